//! Scoreboards: predictions for storage systems of today beside what was measured there.
//!
//! Each takes one measurement of a system and predicts another: more clients, another workload, another interface. With
//! [`io500`] and [`mlperf_storage`], what the models leave open is fitted to other systems alone, a whole family of them left
//! out at a time ([`leave_out`]). The form of the models was chosen with the carried systems in view, so expect larger errors
//! of a new one. [`lustre_ior`] has one cluster: each run there is predicted from its other runs. The errors stand beside what
//! repeats of a run differ by, where repeats tell it, and beside the simplest predictions. `papers/scoreboards/README.md`
//! says where the numbers are from, what is fitted and what was chosen.

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
    /// A table lacks columns.
    #[error("{}: no column {missing}; needed are {needed}", path.display())]
    NoColumns {
        /// The file.
        path: PathBuf,
        /// The columns that are missing.
        missing: String,
        /// All that are needed.
        needed: String,
    },
    /// A cell holds what cannot be.
    #[error("{}, line {line}, column {column}: {text:?} is not {expected}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The line of the row.
        line: u64,
        /// The column.
        column: &'static str,
        /// What is there.
        text: String,
        /// What may be there.
        expected: &'static str,
    },
    /// No row of a table can be used.
    #[error("{}: no row can be used. {why}", path.display())]
    NothingUsable {
        /// The file.
        path: PathBuf,
        /// How many rows were left out, and why.
        why: String,
    },
    /// No row can be predicted from another.
    #[error("nothing to predict: {needed}. {why}")]
    NothingToPredict {
        /// What a prediction needs.
        needed: &'static str,
        /// How many rows were left out, and why.
        why: String,
    },
    /// The project may not carry the data.
    #[error("{0}: no data are carried with Pioscope; give their folder with --data")]
    NotCarried(&'static str),
}
