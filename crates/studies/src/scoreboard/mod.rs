//! Scoreboards: predictions for storage systems of today beside what was measured there.
//!
//! Each takes one measurement of a system and predicts another: more clients, another workload, another interface. What
//! the models leave open is fitted to other systems alone, a whole family of them left out at a time ([`leave_out`]), so
//! that a system which nobody has seen comes out alike. The errors stand beside what repeats of a run differ by, and
//! beside the simplest predictions. `papers/scoreboards/README.md` says where the numbers are from.

mod data;
pub mod io500;
mod leave_out;
pub mod lustre_ior;
pub mod mlperf_storage;
mod saturation;
mod show;

use std::path::PathBuf;

use thiserror::Error;

pub use leave_out::COVERAGE;
pub use show::{Line, Scoreboard, Section};

/// Why a scoreboard cannot be made.
#[derive(Debug, Error)]
pub enum ScoreError {
    /// A folder that was given has no such table.
    #[error("{}: no {file} there", folder.display())]
    NoTable {
        /// The folder.
        folder: PathBuf,
        /// The table's name.
        file: String,
    },
    /// A table is not as expected.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        source: csv::Error,
    },
    /// The project may not carry the data.
    #[error("{0}: no data are carried with Pioscope; give their folder with --data")]
    NotCarried(&'static str),
}
