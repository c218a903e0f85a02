//! Which hints an open file has: those of the program, then those of whoever carries out its MPI-IO, then those of the site.

use std::collections::BTreeMap;

use pio_plan::{Hints, Strategy};

use crate::workload::Workload;

/// The hints of all open files.
pub(super) struct HintsInForce {
    /// Where the program gives none.
    usual: Hints,
    /// By collective open, where it does.
    opens: BTreeMap<u64, Hints>,
    /// The first such open of each file.
    files: BTreeMap<u32, u64>,
}

impl HintsInForce {
    /// With those that are `given` where the program gives none. OMPIO does not know the site's.
    pub(super) fn new(workload: &Workload, strategy: Strategy, given: &Hints) -> HintsInForce {
        let usual = if strategy == Strategy::Ompio { given.clone() } else { given.or(&workload.site_hints) };
        let opens: BTreeMap<u64, Hints> =
            workload.hints.iter().map(|(open, own)| (*open, own.or(&usual))).collect();
        let mut files = BTreeMap::new();
        for open in workload.handles.iter().filter(|open| opens.contains_key(&open.collective)) {
            files.entry(open.file).or_insert(open.collective);
        }
        HintsInForce { usual, opens, files }
    }

    /// Those of a collective open.
    pub(super) fn of_open(&self, collective: u64) -> &Hints {
        self.opens.get(&collective).unwrap_or(&self.usual)
    }

    /// Those with which a file is made.
    pub(super) fn of_file(&self, file: u32) -> &Hints {
        self.files.get(&file).map_or(&self.usual, |open| self.of_open(*open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Open;

    #[test]
    fn the_program_comes_first_and_the_site_last() {
        let hints = |text: &str| Hints::parse(text).unwrap();
        let open = |file, collective| Open { file, rank: 0, group: Some(0), collective };
        let workload = Workload {
            handles: vec![open(0, 1), open(1, 2), open(1, 3)],
            hints: BTreeMap::from([(3, hints("cb_nodes=1"))]),
            site_hints: hints("cb_nodes=8,striping_unit=4096,cb_buffer_size=65536"),
            ..Workload::default()
        };
        let given = hints("cb_nodes=4,striping_unit=8192");
        let found = |strategy| HintsInForce::new(&workload, strategy, &given);
        let romio = found(Strategy::Romio);
        assert_eq!(romio.of_open(2).to_text(), "cb_nodes=4,cb_buffer_size=65536,striping_unit=8192");
        assert_eq!(romio.of_open(3).to_text(), "cb_nodes=1,cb_buffer_size=65536,striping_unit=8192");
        assert_eq!(romio.of_file(0), romio.of_open(1));
        assert_eq!(romio.of_file(1), romio.of_open(3));
        assert_eq!(*found(Strategy::Ompio).of_open(2), given);
    }
}
