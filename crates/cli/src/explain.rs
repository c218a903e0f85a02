//! `pioscope explain`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use pio_explain::Explanation;
use pio_report::Prediction;
use pio_trace::Trace;

use crate::progress::Progress;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope explain run.pio
  pioscope explain run.pio --html report.html")]
pub struct Arguments {
    /// The trace
    trace: PathBuf,
    /// Also write the report as one HTML file that opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    let trace = open(&arguments.trace)?;
    let explanation = explain(&trace)?;
    crate::print(&pio_report::text(&explanation))?;
    if let Some(path) = &arguments.html {
        write_html(path, &trace, &explanation, &[])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a trace, and says on standard error if part of it is lost.
pub fn open(path: &Path) -> Result<Trace> {
    let trace = Trace::open(path)?;
    if let Some(damage) = trace.damage() {
        eprintln!("pioscope: {}: {damage}", path.display());
    }
    Ok(trace)
}

/// The statistics of a trace.
pub fn explain(trace: &Trace) -> Result<Explanation> {
    let progress = Progress::new("explaining", trace.event_count());
    Ok(Explanation::of_trace(trace, &mut |done| progress.set(done))?)
}

/// Writes the HTML report.
pub fn write_html(
    path: &Path,
    trace: &Trace,
    explanation: &Explanation,
    predictions: &[Prediction],
) -> Result<()> {
    let file = File::create(path).with_context(|| format!("{}: cannot create", path.display()))?;
    let mut out = BufWriter::new(file);
    pio_report::html_of_trace(trace, explanation, predictions, &mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("{}: cannot write the report", path.display()))?;
    eprintln!("pioscope: wrote {}", path.display());
    Ok(())
}
