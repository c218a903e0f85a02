//! `pioscope convert`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pio_trace::export;

use crate::record;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope convert run.pio -o run.parquet
  pioscope convert run.pio --to chrome -o run.json      (open in ui.perfetto.dev or chrome://tracing)
  pioscope convert .run.pio.4711.spool -o run.pio       (what `pioscope record` left when it was killed itself)")]
pub struct Arguments {
    /// The trace; or the folder of spools of a job whose recorder was killed
    trace: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Its format [default: by the ending of the file: .parquet, .json, or .pio for spools]
    #[arg(long, value_enum)]
    to: Option<Format>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// One row an event, for data frames and SQL
    Parquet,
    /// Trace-event JSON, for Chrome and Perfetto
    Chrome,
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    if arguments.trace.is_dir() {
        return recover(&arguments);
    }
    let format = match (arguments.to, arguments.output.extension().and_then(|ending| ending.to_str())) {
        (Some(format), _) => format,
        (None, Some("parquet")) => Format::Parquet,
        (None, Some("json")) => Format::Chrome,
        _ => bail!("{}: unknown format (expected .parquet or .json, or --to)", arguments.output.display()),
    };
    let trace = crate::explain::open(&arguments.trace)?;
    match format {
        Format::Parquet => export::parquet(&trace, &arguments.output)?,
        Format::Chrome => export::chrome(&trace, &arguments.output)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the trace that the recorder could not make any more. The spools stay.
fn recover(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.to.is_some() || arguments.output.extension().is_none_or(|ending| ending != "pio") {
        bail!("{}: spools become a trace first (expected -o NAME.pio)", arguments.output.display());
    }
    let job = format!("recovered from {}", arguments.trace.display());
    let summary = pio_record::collect(&arguments.trace, &arguments.output, &job)?;
    record::tell(&arguments.output, &summary);
    Ok(ExitCode::SUCCESS)
}
