//! The names of marks and of call sites: each process has ids for them, alike for alike names.

use std::collections::HashMap;
use std::fs::File;

use pio_trace::{MarkNameId, TraceWriter};

/// Names at most, in a trace: each process has at most 1024 (`c/pio_mark.c`).
const MOST: usize = 1 << 16;

/// The names by their ids. One gets into the tables when the first event of that name is written.
pub(crate) struct MarkNames {
    names: HashMap<u64, String>,
    known: HashMap<u64, MarkNameId>,
}

impl MarkNames {
    /// Those of all processes.
    pub(crate) fn new(names: impl Iterator<Item = (u64, String)>) -> MarkNames {
        let mut found = HashMap::new();
        for (id, name) in names {
            if found.len() == MOST {
                break;
            }
            found.insert(id, name);
        }
        MarkNames { names: found, known: HashMap::new() }
    }

    /// The name of this id, if it is known.
    pub(crate) fn id(&mut self, id: u64, writer: &mut TraceWriter<File>) -> Option<MarkNameId> {
        if let Some(&known) = self.known.get(&id) {
            return Some(known);
        }
        let name = self.names.remove(&id)?;
        let names = &mut writer.tables_mut().mark_names;
        names.push(name);
        let next = MarkNameId(names.len() as u32 - 1);
        self.known.insert(id, next);
        Some(next)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    #[test]
    fn names_that_many_processes_have_count_once() {
        let of_a_process = |last| [(1, "epoch".to_owned()), (2, "step".to_owned()), last];
        let many = (0..MOST as u64).flat_map(|_| of_a_process((3, "save".to_owned())));
        let names = MarkNames::new(many.chain(of_a_process((4, "load".to_owned()))));
        assert_eq!(names.names.get(&4).unwrap(), "load");
        let endless = (0..).map(|id| (id, id.to_string()));
        assert_eq!(MarkNames::new(endless).names.len(), MOST);
    }
}
