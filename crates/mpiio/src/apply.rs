//! The launcher's side: which environment makes a program's MPI-IO ours.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pio_plan::{Hints, Strategy};
use thiserror::Error;

use crate::places::{self, Places};

/// Sources of the shim, name and text: to be compiled together by the user's own `mpicc` into a library that is *not*
/// linked to MPI.
pub const SHIM: &[(&str, &str)] = &[
    ("pio_access.c", include_str!("../c/pio_access.c")),
    ("pio_error.c", include_str!("../c/pio_error.c")),
    ("pio_file.c", include_str!("../c/pio_file.c")),
    ("pio_fortran.c", include_str!("../c/pio_fortran.c")),
    ("pio_handle.c", include_str!("../c/pio_handle.c")),
    ("pio_native.c", include_str!("../c/pio_native.c")),
    ("pio_netcdf.c", include_str!("../c/pio_netcdf.c")),
    ("pio_representation.c", include_str!("../c/pio_representation.c")),
    ("pio_request.c", include_str!("../c/pio_request.c")),
    ("pio_table.c", include_str!("../c/pio_table.c")),
    ("pio_types.c", include_str!("../c/pio_types.c")),
    ("pio_wait.c", include_str!("../c/pio_wait.c")),
    ("pio_mpiio.h", include_str!("../c/pio_mpiio.h")),
    ("pio_native.h", include_str!("../c/pio_native.h")),
    ("pio_shim.h", include_str!("../c/pio_shim.h")),
    ("pio_datatype.h", pio_layout::DATATYPE_HEADER),
    ("pio_other_mpi.h", pio_layout::OTHER_MPI_HEADER),
];

/// File name of the core.
const CORE_FILE: &str = "libpio_mpiio.so";

/// How a program's MPI-IO is to be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// The strategy of collective operations.
    pub strategy: Strategy,
    /// Hints; those that the program gives itself come first.
    pub hints: Hints,
    /// The description of the I/O servers that all files are to be on.
    pub store: Option<PathBuf>,
    /// What I/O costs at the places that were calibrated.
    pub places: Places,
    /// Whether to say what is chosen.
    pub verbose: bool,
    /// The core: see [`core_library`].
    pub core: PathBuf,
    /// A file that is created when a process of the job opens its first file through us: without it, nothing was applied.
    pub applied: PathBuf,
}

impl Apply {
    /// The variables to set for the program, beside `LD_PRELOAD`, which is to name the compiled [`SHIM`].
    pub fn settings(&self) -> Vec<(OsString, OsString)> {
        let mut variables = vec![
            ("PIOSCOPE_APPLIED".into(), self.applied.clone().into_os_string()),
            ("PIOSCOPE_MPIIO_CORE".into(), self.core.clone().into_os_string()),
            ("PIOSCOPE_STRATEGY".into(), self.strategy.name().into()),
        ];
        if let Some(store) = &self.store {
            variables.push(("PIOSCOPE_STORE".into(), store.clone().into_os_string()));
        }
        let places = self.places.to_text();
        if !places.is_empty() {
            variables.push((places::VARIABLE.into(), places.into()));
        }
        if self.verbose {
            variables.push(("PIOSCOPE_VERBOSE".into(), "on".into()));
        }
        let hints = self.hints.to_text();
        if !hints.is_empty() {
            variables.push(("PIOSCOPE_HINTS".into(), hints.into()));
        }
        variables
    }
}

/// The core is not where it is installed or built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{CORE_FILE} not found: expected it as {}", .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or "))]
pub struct CoreNotFound(Vec<PathBuf>);

/// Finds the core for the command at `executable`: beside it or in `deps` (where cargo builds both), or in
/// `../lib/pioscope` (where it is installed).
///
/// # Errors
/// If it is in none of these places.
pub fn core_library(executable: &Path) -> Result<PathBuf, CoreNotFound> {
    let folder = executable.parent().unwrap_or(Path::new("."));
    let places = ["", "deps", "../lib/pioscope"].map(|place| folder.join(place).join(CORE_FILE));
    match places.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.canonicalize().unwrap_or_else(|_| path.clone())),
        None => Err(CoreNotFound(places.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(hints: Hints) -> Apply {
        Apply {
            strategy: Strategy::TwoPhase,
            hints,
            store: None,
            places: Places::default(),
            verbose: false,
            core: "/c.so".into(),
            applied: "/a".into(),
        }
    }

    #[test]
    fn hints_and_strategy_go_into_the_environment() {
        let environment = apply(Hints { cb_nodes: Some(2), ..Hints::default() }).settings();
        let value =
            |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        assert_eq!(value("PIOSCOPE_HINTS"), Some("cb_nodes=2".into()));
        assert_eq!(value("PIOSCOPE_STRATEGY"), Some("two-phase".into()));
        assert_eq!(value("PIOSCOPE_MPIIO_CORE"), Some("/c.so".into()));
    }

    #[test]
    fn a_missing_core_is_named_with_its_places() {
        let error = core_library(Path::new("/nowhere/bin/pioscope")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/bin/libpio_mpiio.so"), "{error}");
        assert!(error.contains("lib/pioscope/libpio_mpiio.so"), "{error}");
    }
}
