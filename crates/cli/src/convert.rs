//! `pioscope convert`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pio_trace::export;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope convert run.pio -o run.parquet
  pioscope convert run.pio --to chrome -o run.json      (open in ui.perfetto.dev or chrome://tracing)")]
pub struct Arguments {
    /// The trace
    trace: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Its format [default: by the ending of the file: .parquet or .json]
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
