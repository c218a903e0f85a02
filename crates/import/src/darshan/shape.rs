//! What the bytes of a module's records are, version by version.

use super::autoperf;
use super::counters::{self, CounterNames};
use super::module::Module;

/// Where a word of a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// It is this counter.
    Is(usize),
    /// It is a part of this counter.
    PartOf(usize),
    /// Nothing of the newest version is this.
    Skip,
    /// Nothing, if it is 0; otherwise the whole record counts something else than its names say, and is passed over.
    MustBeZero,
}

/// The layout of the records of one version of one module.
pub(super) struct Shape {
    pub(super) names: &'static CounterNames,
    /// Whether a record says which file its data set or variable is in.
    pub(super) has_file: bool,
    /// Words behind id and rank that mean nothing.
    pub(super) padding: usize,
    pub(super) integers: Vec<Slot>,
    pub(super) floats: Vec<Slot>,
    /// Counters of the newest version before this record's are filled in: −1, or 0 where −1 could be a value.
    pub(super) blank_integers: Vec<i64>,
    /// Bytes behind the counters.
    pub(super) trailer: usize,
}

/// Counters that records have only from a version on.
const SINCE: &[(Module, u32, &[&str])] = &[
    (
        Module::Posix,
        4,
        &[
            "POSIX_FILENOS",
            "POSIX_DUPS",
            "POSIX_RENAME_SOURCES",
            "POSIX_RENAME_TARGETS",
            "POSIX_RENAMED_FROM",
        ],
    ),
    (Module::Posix, 3, &["POSIX_F_CLOSE_START_TIMESTAMP", "POSIX_F_OPEN_END_TIMESTAMP"]),
    (Module::MpiIo, 3, &["MPIIO_F_CLOSE_START_TIMESTAMP", "MPIIO_F_OPEN_END_TIMESTAMP"]),
    (Module::Stdio, 2, &["STDIO_FDOPENS"]),
    (Module::Hdf5File, 3, &["H5F_FLUSHES", "H5F_USE_MPIIO", "H5F_F_META_TIME"]),
    (Module::Hdf5File, 2, &["H5F_F_CLOSE_START_TIMESTAMP", "H5F_F_OPEN_END_TIMESTAMP"]),
    (
        Module::PnetcdfFile,
        3,
        &[
            "PNETCDF_FILE_F_WAIT_START_TIMESTAMP",
            "PNETCDF_FILE_F_WAIT_END_TIMESTAMP",
            "PNETCDF_FILE_F_META_TIME",
            "PNETCDF_FILE_F_WAIT_TIME",
        ],
    ),
    (Module::PnetcdfFile, 2, &["PNETCDF_FILE_F_CLOSE_START_TIMESTAMP", "PNETCDF_FILE_F_OPEN_END_TIMESTAMP"]),
];

impl Shape {
    /// Of the records of this version; of those behind the header record, if the module has one.
    pub(super) fn of(module: Module, version: u32) -> Option<Shape> {
        if version == 0 || version > module.newest_version() {
            return None;
        }
        let names = counters::of(module);
        let lacks = |name: &str| {
            SINCE.iter().any(|(of, since, what)| *of == module && version < *since && what.contains(&name))
        };
        let slots = |names: &[String]| -> Vec<Slot> {
            (0..names.len()).filter(|&index| !lacks(&names[index])).map(Slot::Is).collect()
        };
        let mut shape = Shape {
            names,
            has_file: match module {
                Module::Hdf5Dataset => version >= 2,
                module => module == Module::PnetcdfVariable,
            },
            padding: 0,
            integers: slots(&names.integers),
            floats: slots(&names.floats),
            blank_integers: vec![-1; names.integers.len()],
            trailer: match module {
                Module::Dfs => 32,
                Module::Daos => 48,
                Module::Apmpi => 128,
                _ => 0,
            },
        };
        match (module, version) {
            (Module::Posix, 1) => {
                // fopen, fread, fwrite and fseek had counters here, behind mmap's, and shared all others.
                shape.integers.splice(6..6, [Slot::MustBeZero, Slot::Skip, Slot::Skip, Slot::Skip]);
            }
            (Module::PnetcdfFile, 1 | 2) => {
                // Opens by one process and by all were counted apart.
                let opens = names.integer("PNETCDF_FILE_OPENS").unwrap_or_default();
                shape.integers = vec![Slot::Is(opens), Slot::PartOf(opens)];
            }
            (Module::BlueGeneQ, 1) => shape.padding = 1,
            _ => {}
        }
        if let Some(renamed) = names.integer("POSIX_RENAMED_FROM") {
            // The id of a record: every number is one.
            shape.blank_integers[renamed] = 0;
        }
        Some(shape)
    }

    /// Of the header record, which stands before all others.
    pub(super) fn of_header(module: Module) -> Option<Shape> {
        let names = match module {
            Module::Apxc => autoperf::router_header(),
            Module::Apmpi => autoperf::mpi_header(),
            _ => return None,
        };
        Some(Shape {
            names,
            has_file: false,
            padding: 0,
            integers: (0..names.integers.len()).map(Slot::Is).collect(),
            floats: (0..names.floats.len()).map(Slot::Is).collect(),
            blank_integers: vec![-1; names.integers.len()],
            trailer: 0,
        })
    }

    /// Bytes of a record, without lists that may follow.
    pub(super) fn len(&self) -> usize {
        let words = 2 + usize::from(self.has_file) + self.padding + self.integers.len() + self.floats.len();
        8 * words + self.trailer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_version_are_as_long_as_darshan_wrote_them() {
        let expected = [
            (Module::Posix, [680, 648, 664, 704].as_slice()),
            (Module::MpiIo, &[544, 544, 560]),
            (Module::Stdio, &[240, 248]),
            (Module::Hdf5File, &[40, 56, 80]),
            (Module::Hdf5Dataset, &[904, 912]),
            (Module::PnetcdfFile, &[48, 64, 152]),
            (Module::PnetcdfVariable, &[1120]),
            (Module::BlueGeneQ, &[120, 112]),
            (Module::Mdhim, &[88]),
            (Module::Dfs, &[584]),
            (Module::Daos, &[696]),
            (Module::Apxc, &[3184]),
            (Module::Apmpi, &[5232]),
        ];
        for (module, lens) in expected {
            assert_eq!(module.newest_version() as usize, lens.len(), "{module}");
            for (version, len) in (1..).zip(lens) {
                assert_eq!(Shape::of(module, version).unwrap().len(), *len, "{module} version {version}");
            }
        }
        assert_eq!(Shape::of_header(Module::Apxc).unwrap().len(), 72);
        assert_eq!(Shape::of_header(Module::Apmpi).unwrap().len(), 48);
        assert!(Shape::of(Module::Posix, 5).is_none());
    }
}
