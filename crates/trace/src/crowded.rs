//! Hosts with more ranks than processors.

use std::collections::{BTreeMap, BTreeSet};

use crate::Tables;

/// A host with more ranks of a job than processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrowdedHost {
    /// Its name.
    pub name: String,
    /// How many ranks ran there.
    pub ranks: u64,
    /// How many processors they had.
    pub processors: u64,
}

impl CrowdedHost {
    /// The name of the recorder's note that says how many processors ranks had: `node1 16, node2 16`.
    pub const NOTE: &str = "processors";

    /// Those of a trace; none where nobody noted its processors.
    pub fn of(tables: &Tables) -> Vec<CrowdedHost> {
        let Some((_, note)) = tables.notes.iter().find(|(key, _)| key == CrowdedHost::NOTE) else {
            return Vec::new();
        };
        let mut ranks: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for process in &tables.processes {
            if let Some(rank) = process.rank {
                ranks.entry(&process.host).or_default().insert(rank);
            }
        }
        let of_host = |host: &str| {
            let (name, processors) = host.rsplit_once(' ')?;
            let processors: u64 = processors.parse().ok().filter(|processors| *processors > 0)?;
            let ranks = ranks.get(name)?.len() as u64;
            (ranks > processors).then(|| CrowdedHost { name: name.to_owned(), ranks, processors })
        };
        note.split(", ").filter_map(of_host).collect()
    }
}
