//! The modules of Darshan, and their numbers in the versions of the log.

use std::fmt;

use super::counters::{self, CounterNames};
use super::header::LogVersion;

/// A module of Darshan: an interface that it watches, or something else that it notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Module {
    /// POSIX calls.
    Posix,
    /// MPI-IO calls.
    MpiIo,
    /// Files of HDF5.
    Hdf5File,
    /// Datasets of HDF5.
    Hdf5Dataset,
    /// Files of PnetCDF.
    PnetcdfFile,
    /// Variables of PnetCDF.
    PnetcdfVariable,
    /// Nodes and torus of a Blue Gene/Q.
    BlueGeneQ,
    /// Striping on Lustre.
    Lustre,
    /// Buffered streams of the C library.
    Stdio,
    /// Every POSIX read and write.
    DxtPosix,
    /// Every MPI-IO read and write.
    DxtMpiIo,
    /// The key-value store MDHIM.
    Mdhim,
    /// Router counters of a Cray XC (AutoPerf).
    Apxc,
    /// MPI calls (AutoPerf).
    Apmpi,
    /// Bytes over time.
    Heatmap,
    /// Files of DAOS.
    Dfs,
    /// Objects of DAOS.
    Daos,
    /// A number that no known version of Darshan gives to a module.
    Unknown(u8),
}

use Module::*;

/// The modules by number, from 1 on, each with the minor version of the log that it came with: the later ones moved up.
const MODULES: &[(Module, u32)] = &[
    (Posix, 0),
    (MpiIo, 0),
    (Hdf5File, 0),
    (Hdf5Dataset, 20),
    (PnetcdfFile, 0),
    (PnetcdfVariable, 41),
    (BlueGeneQ, 0),
    (Lustre, 0),
    (Stdio, 0),
    (DxtPosix, 0),
    (DxtMpiIo, 0),
    (Mdhim, 0),
    (Apxc, 0),
    (Apmpi, 0),
    (Heatmap, 20),
    (Dfs, 41),
    (Daos, 41),
];

impl Module {
    /// The module of this number (the null module is 0).
    pub(super) fn of(version: LogVersion, number: usize) -> Module {
        let mut known = MODULES.iter().filter(|(_, since)| *since <= version.minor);
        let known = number.checked_sub(1).and_then(|index| known.nth(index));
        known.map_or(Unknown(u8::try_from(number).unwrap_or(u8::MAX)), |(module, _)| *module)
    }

    /// Darshan's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Posix => "POSIX",
            MpiIo => "MPI-IO",
            Hdf5File => "H5F",
            Hdf5Dataset => "H5D",
            PnetcdfFile => "PNETCDF_FILE",
            PnetcdfVariable => "PNETCDF_VAR",
            BlueGeneQ => "BG/Q",
            Lustre => "LUSTRE",
            Stdio => "STDIO",
            DxtPosix => "DXT_POSIX",
            DxtMpiIo => "DXT_MPIIO",
            Mdhim => "MDHIM",
            Apxc => "APXC",
            Apmpi => "APMPI",
            Heatmap => "HEATMAP",
            Dfs => "DFS",
            Daos => "DAOS",
            Unknown(_) => "unknown",
        }
    }

    /// The counters of its records; empty for modules that keep something else.
    pub fn counters(self) -> &'static CounterNames {
        counters::of(self)
    }

    /// The newest version of its records that this reader knows; 0 for a module that it does not know at all.
    pub fn newest_version(self) -> u32 {
        match self {
            Posix => 4,
            MpiIo | Hdf5File | PnetcdfFile => 3,
            Hdf5Dataset | BlueGeneQ | Lustre | Stdio | DxtMpiIo => 2,
            PnetcdfVariable | DxtPosix | Mdhim | Apxc | Apmpi | Heatmap | Dfs | Daos => 1,
            Unknown(_) => 0,
        }
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown(number) => write!(f, "number {number}"),
            known => f.write_str(known.name()),
        }
    }
}
