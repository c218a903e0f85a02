//! `pioscope explain`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use pio_explain::{Counted, Explanation, Trouble};
use pio_import::Format;
use pio_import::darshan::Log;
use pio_machine::Machine;
use pio_report::{Gathering, Prediction};
use pio_trace::Trace;

use crate::flags::{HtmlFlag, JsonFlag};
use crate::gain::predict_gains;
use crate::json;
use crate::learned::{Asked, find_here, find_named};
use crate::output::{note, warning};
use crate::progress::{Progress, Working};
use crate::whole_file::{self, WholeFile};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope explain run.pio
  pioscope explain run.pio --brief
  pioscope explain run.pio --html report.html
  pioscope explain run.pio --machine sp-argonne,here.toml      (what each finding's change would gain there)
  pioscope explain run.darshan      (a log of Darshan, with DXT or without)
  strace -f -ttt -T -o run.strace ./program; pioscope explain run.strace")]
pub(crate) struct Arguments {
    /// The trace, or a log of Darshan, DFTracer, strace, fio or blktrace, a folder of logs of DFTracer, Recorder or fio, or a table of calls (CSV)
    trace: PathBuf,
    #[command(flatten)]
    html: HtmlFlag,
    /// Machines on which to predict what the changes would gain: names (pioscope machines list) or files, separated by commas;
    /// here is the place where the trace's files are, as pioscope machines calibrate found it
    #[arg(short, long, value_delimiter = ',', value_name = "MACHINE")]
    machine: Vec<String>,
    /// Print ten lines at most: the job, its time and bytes, and the three costliest findings with what would fix them
    #[arg(long, conflicts_with = "json")]
    brief: bool,
    #[command(flatten)]
    json: JsonFlag,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let machines = find_named(&arguments.machine)?;
    if let Some(html) = &arguments.html.html {
        whole_file::check_other(html, &arguments.trace)?;
        whole_file::check(html)?;
    }
    if pio_import::recognise(&arguments.trace)? == Some(Format::Darshan) {
        return explain_log(&arguments, machines);
    }
    let trace = open(&arguments.trace)?;
    let machines = machines_of(machines, &trace)?;
    let (mut explanation, gathering) = match arguments.html.html {
        Some(_) => explain_for_page(&trace)?,
        None => (explain(&trace)?, None),
    };
    predict_gains(&trace, &mut explanation, &machines)?;
    print(&arguments, &explanation, None)?;
    if let Some(path) = &arguments.html.html {
        write_html(path, &trace, &explanation, gathering, &[])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The same for a Darshan log: its accesses as a trace, and its counters.
fn explain_log(arguments: &Arguments, machines: Vec<Option<Asked>>) -> Result<ExitCode> {
    let working = Working::new(&format!("reading {}", arguments.trace.display()));
    let log = Log::open(&arguments.trace)?;
    let trace = pio_import::trace_of_log(&log)?;
    drop(working);
    let machines = machines_of(machines, &trace)?;
    let mut explanation = explain(&trace)?;
    predict_gains(&trace, &mut explanation, &machines)?;
    let counted = Counted::of(&log);
    explanation.add_counters(&counted);
    print(arguments, &explanation, Some(&counted))?;
    if let Some(path) = &arguments.html.html {
        write(path, |out| pio_report::html_with_counters(&trace, &explanation, &counted, out))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(arguments: &Arguments, found: &Explanation, counted: Option<&Counted>) -> Result<()> {
    if arguments.json.json {
        return json::print(&json::explain::Explained::of(&arguments.trace, found, counted));
    }
    crate::print(&match counted {
        _ if arguments.brief => pio_report::brief(found, counted),
        Some(counted) => pio_report::text_with_counters(found, counted),
        None => pio_report::text(found),
    })
}

/// The machines, and here as a trace says where that is.
fn machines_of(named: Vec<Option<Asked>>, trace: &Trace) -> Result<Vec<Machine>> {
    Ok(find_here(named, Some(trace))?.into_iter().map(|asked| asked.machine).collect())
}

/// Opens a trace or another tool's log, and says on standard error what it lacks.
///
/// # Errors
/// If it cannot be read, or nothing is left of it.
pub(crate) fn open(path: &Path) -> Result<Trace> {
    let is_stream = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    ensure!(
        !is_stream,
        "{}: is a pipe or device (expected a file, which is read in any order)",
        path.display()
    );
    let working = Working::new(&format!("reading {}", path.display()));
    let trace = pio_import::open(path)?;
    drop(working);
    let mut trouble = Trouble::of(trace.tables());
    if let Some(damage) = trace.damage() {
        if trace.event_count() == 0 {
            bail!("{}: nothing can be read: {damage}", path.display());
        }
        trouble.damage.push(damage.to_string());
    }
    let losses = pio_report::losses(&trouble);
    if !losses.is_empty() {
        let losses = losses.join("; ");
        warning!("{}: incomplete: {losses}. Counts, bytes and times are lower bounds.", path.display());
    }
    Ok(trace)
}

/// The statistics of a trace.
///
/// # Errors
/// If it cannot be read, or all that it holds is damaged.
pub(crate) fn explain(trace: &Trace) -> Result<Explanation> {
    let progress = Progress::new("explaining", trace.event_count());
    let found = Explanation::of_trace(trace, &mut |done| progress.set(done))?;
    check(&found)?;
    Ok(found)
}

/// The same, and what the page of the trace is made of.
///
/// # Errors
/// As [`explain`].
pub(crate) fn explain_for_page(trace: &Trace) -> Result<(Explanation, Option<Gathering<'_>>)> {
    let progress = Progress::new("explaining", trace.event_count());
    let (found, gathering) = pio_report::explain_for_page(trace, &mut |done| progress.set(done))?;
    check(&found)?;
    Ok((found, gathering))
}

fn check(found: &Explanation) -> Result<()> {
    match found.trouble.damage.first().filter(|_| found.events == 0) {
        Some(damage) => bail!("nothing can be read: {damage}"),
        None => Ok(()),
    }
}

/// Writes the HTML report.
pub(crate) fn write_html(
    path: &Path,
    trace: &Trace,
    explanation: &Explanation,
    gathering: Option<Gathering<'_>>,
    predictions: &[Prediction],
) -> Result<()> {
    write(path, |out| pio_report::html_of_trace(trace, explanation, gathering, predictions, out))
}

fn write(path: &Path, report: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> Result<()> {
    let page = WholeFile::create(path)?;
    let mut out = BufWriter::new(page.file());
    let working = Working::new("writing the report");
    report(&mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("{}: cannot write the report", path.display()))?;
    drop(out);
    drop(working);
    page.keep()?;
    note!("wrote {}", path.display());
    Ok(())
}
