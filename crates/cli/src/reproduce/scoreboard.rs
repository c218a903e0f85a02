//! `pioscope reproduce io500`, `mlperf-storage` and `lustre-ior`: predictions for storage systems of today.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use pio_studies::scoreboard::{ScoreError, Scoreboard};

use super::output::footer;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A folder with a table of measured runs, of the columns that papers/scoreboards/README.md names; may be given several
    /// times [default: the runs that are carried]
    #[arg(long, value_name = "FOLDER")]
    data: Vec<PathBuf>,
}

/// Of what a scoreboard is made: the folders that were given, or what is carried.
type Make = fn(&[PathBuf]) -> Result<Scoreboard, ScoreError>;

pub(super) fn run(arguments: &Arguments, make: Make) -> Result<ExitCode> {
    let mut text = make(&arguments.data)?.text();
    let folders: Vec<String> = arguments.data.iter().map(|folder| folder.display().to_string()).collect();
    let of = if folders.is_empty() {
        "carried runs".to_owned()
    } else {
        format!("runs of {}", folders.join(", "))
    };
    text.push_str(&footer(&of, None));
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
