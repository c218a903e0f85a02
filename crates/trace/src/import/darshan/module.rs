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

/// Up to 3.10.
const WITHOUT_DATASETS: &[Module] =
    &[Posix, MpiIo, Hdf5File, PnetcdfFile, BlueGeneQ, Lustre, Stdio, DxtPosix, DxtMpiIo, Mdhim, Apxc, Apmpi];

/// From 3.20 on HDF5's datasets are a module of their own.
const WITHOUT_VARIABLES: &[Module] = &[
    Posix,
    MpiIo,
    Hdf5File,
    Hdf5Dataset,
    PnetcdfFile,
    BlueGeneQ,
    Lustre,
    Stdio,
    DxtPosix,
    DxtMpiIo,
    Mdhim,
    Apxc,
    Apmpi,
    Heatmap,
];

/// From 3.41 on PnetCDF's variables are.
const ALL: &[Module] = &[
    Posix,
    MpiIo,
    Hdf5File,
    Hdf5Dataset,
    PnetcdfFile,
    PnetcdfVariable,
    BlueGeneQ,
    Lustre,
    Stdio,
    DxtPosix,
    DxtMpiIo,
    Mdhim,
    Apxc,
    Apmpi,
    Heatmap,
    Dfs,
    Daos,
];

impl Module {
    /// The module of this number (the null module is 0).
    pub(super) fn of(version: LogVersion, number: usize) -> Module {
        let known = match version.minor {
            0..=19 => WITHOUT_DATASETS,
            20..=40 => WITHOUT_VARIABLES,
            _ => ALL,
        };
        let known = number.checked_sub(1).and_then(|index| known.get(index));
        known.copied().unwrap_or(Unknown(u8::try_from(number).unwrap_or(u8::MAX)))
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
