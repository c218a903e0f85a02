//! `pioscope convert`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pio_import::Format;
use pio_trace::{Splits, Trace, export};

use crate::output::{note, warning};
use crate::progress::{Progress, Working};
use crate::record::{self, Replaced};
use crate::whole_file::{self, WholeFile};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope convert run.pio -o run.parquet
  pioscope convert run.pio --to chrome -o run.json      (open in ui.perfetto.dev or chrome://tracing)
  pioscope convert run.pio -o run.iolog         (then: fio --name=run --read_iolog=run.iolog)
  pioscope convert run.darshan -o run.pio       (the accesses that DXT traced)
  pioscope convert run.strace -o run.pio        (what strace -f -ttt -T wrote; so for fio, blktrace and CSV)
  pioscope convert dftracer-logs -o run.pio     (a folder that DFTracer or Recorder wrote)
  pioscope convert .run.pio.4711.0.spool -o run.pio     (spools left by a killed recorder)")]
pub(crate) struct Arguments {
    /// The trace; a log of Darshan, DFTracer, strace, fio or blktrace; a folder of logs of DFTracer, Recorder or fio; a table of calls (CSV); or the folder of spools of a job whose recorder was killed
    trace: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Its format [default: by the ending of the file: .parquet, .json, .iolog, or .pio for logs and spools]
    #[arg(long, value_enum)]
    to: Option<To>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    /// One row an event, for data frames and SQL
    Parquet,
    /// Trace-event JSON, for Chrome and Perfetto
    Chrome,
    /// Requests that `fio --read_iolog` carries out on a real disk
    Fio,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let format = pio_import::recognise(&arguments.trace)?;
    if arguments.trace.is_dir() && format.is_none() {
        return recover(&arguments);
    }
    if let Some(format) = format
        && arguments.to.is_none()
        && is_trace(&arguments.output)
    {
        return from_log(&arguments, format);
    }
    let format = match (arguments.to, arguments.output.extension().and_then(|ending| ending.to_str())) {
        (Some(format), _) => format,
        (None, Some("parquet")) => To::Parquet,
        (None, Some("json")) => To::Chrome,
        (None, Some("iolog")) => To::Fio,
        (None, Some("pio")) => bail!(
            "{}: not recognised as another tool's log (expected one of Darshan, DFTracer, Recorder, strace, fio, blktrace or CSV)",
            arguments.trace.display()
        ),
        _ => bail!(
            "{}: unknown format (expected .parquet, .json or .iolog, .pio for logs and spools, or --to)",
            arguments.output.display()
        ),
    };
    let path = &arguments.output;
    whole_file::check_other(path, &arguments.trace)?;
    let trace = crate::explain::open(&arguments.trace)?;
    let written = WholeFile::create(path)?;
    let working = Working::new("looking at the collective calls");
    let splits = if matches!(format, To::Fio) { Splits::default() } else { pio_explain::splits(&trace)? };
    drop(working);
    let progress = Progress::new("writing", trace.event_count());
    let tell = &mut |done| progress.set(done);
    let requests = match format {
        To::Parquet => export::parquet(&trace, &splits, written.file(), path, tell).map(|()| None)?,
        To::Chrome => export::chrome(&trace, &splits, written.file(), path, tell).map(|()| None)?,
        To::Fio => export::fio(&trace, written.file(), path, tell).map(Some)?,
    };
    drop(progress);
    written.keep()?;
    if let Some(requests) = requests {
        let what = |count: u64| if count == 1 { "request" } else { "requests" };
        note!("{}: {} {}", path.display(), requests.written, what(requests.written));
        if requests.nowhere > 0 {
            let (count, what) = (requests.nowhere, what(requests.nowhere));
            warning!(
                "{}: {count} {what} left out: the trace has no offsets of them",
                arguments.trace.display()
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_trace(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "pio")
}

/// Makes a trace of the calls that another tool wrote down.
fn from_log(arguments: &Arguments, format: Format) -> Result<ExitCode> {
    let path = &arguments.output;
    whole_file::check_other(path, &arguments.trace)?;
    let trace = WholeFile::of_trace(path)?;
    let working = Working::new(&format!("reading {}", arguments.trace.display()));
    let events = pio_import::write_trace(format, &arguments.trace, trace.file(), path)?;
    drop(working);
    trace.keep()?;
    if events == 0 && format == Format::Darshan {
        warning!("{}: no events: the log has no accesses, only counters (kept as notes)", path.display());
    } else {
        let what = if events == 1 { "event" } else { "events" };
        note!("{}: {events} {what}", path.display());
    }
    let trace = Trace::open(path)?;
    for (name, value) in &trace.tables().notes {
        if name.starts_with("lost") {
            warning!("{}: {name}: {value}", arguments.trace.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the trace that the recorder could not make any more. The spools stay.
fn recover(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.to.is_some() || !is_trace(&arguments.output) {
        bail!("{}: spools become a trace first (expected -o NAME.pio)", arguments.output.display());
    }
    let job = format!("recovered from {}", arguments.trace.display());
    let replaced = match record::replaces(&arguments.output) {
        true => Replaced::Earlier,
        false => Replaced::Nothing,
    };
    let working = Working::new("collecting what was recorded");
    let summary = pio_record::collect(&arguments.trace, &arguments.output, &job)?;
    drop(working);
    record::tell(&arguments.output, &summary, replaced);
    Ok(ExitCode::SUCCESS)
}
