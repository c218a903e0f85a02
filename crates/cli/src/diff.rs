//! `pioscope diff`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::explain;
use crate::flags::JsonFlag;
use crate::json;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope diff before.pio after.pio
  pioscope diff run.darshan run.pio")]
pub(crate) struct Arguments {
    /// The trace of the first run, or another tool's log
    before: PathBuf,
    /// The trace of the second run, or another tool's log
    after: PathBuf,
    #[command(flatten)]
    json: JsonFlag,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let before = explain::explain(&explain::open(&arguments.before)?)?;
    let after = explain::explain(&explain::open(&arguments.after)?)?;
    if arguments.json.json {
        json::print(&json::diff::Compared::of((&arguments.before, &before), (&arguments.after, &after)))?;
    } else {
        crate::print(&pio_report::diff_text(&before, &after))?;
    }
    Ok(ExitCode::SUCCESS)
}
