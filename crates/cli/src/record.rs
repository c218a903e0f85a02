//! `pioscope record`.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use pio_machine::parse_size;
use pio_mpi::{Chosen, Library};
use pio_record::{Filter, LEAST_BUDGET_BYTES, Look, Options, Outcome, PathRule, Ranks, Settings, Summary};
use pio_report::units;
use pio_scratch::Scratch;
use pio_trace::{Layer, Tables};

use crate::flags::MpiccFlag;
use crate::mpi::{self, Kind, Mpi, Shim};
use crate::output::{self, note, warning};
use crate::own_way;
use crate::progress::Working;
use crate::trace_name::NewTrace;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope record -o run.pio -- mpiexec -n 8 ./collapse --iterations 20
  pioscope record -- sort big.txt              (writes sort.pio)
  pioscope record -o run.pio --live --ranks 0-3 --path '/scratch/*' --budget '1 GiB' -- mpiexec -n 64 ./yours

The exit code is the program's own.")]
pub(crate) struct Arguments {
    /// The trace to write [default: PROGRAM.pio in the working folder, or PROGRAM-2.pio and so on if that is there]
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// What the records of each host's processes may take on disk and in memory until the job ends, such as `1 GiB`: the
    /// less of it is left, the fewer calls are kept, and the trace says how many were not
    #[arg(long, value_name = "SIZE", value_parser = budget)]
    budget: Option<u64>,
    /// Show once a second what the job reads and writes
    #[arg(long)]
    live: bool,
    /// Keep recording until every process that the command started has ended
    #[arg(long)]
    wait: bool,
    /// Do not have Python programs mark their epochs, waits and checkpoints by a module in PYTHONPATH, nor say which of their
    /// lines open files
    #[arg(long)]
    no_python_marks: bool,
    /// Keep times to the nanosecond instead of rounding them; traces get twice as large
    #[arg(long)]
    exact_times: bool,
    #[command(flatten)]
    job: Job,
}

/// What of a job to record: all, unless told otherwise.
#[derive(Debug, Args)]
struct Selection {
    /// Record these files alone; `*` stands for any characters. May be given several times
    #[arg(long, value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new())]
    path: Vec<String>,
    /// Do not record these files, though --path may name them
    #[arg(long, value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new())]
    not_path: Vec<String>,
    /// Record these ranks alone, such as 3 or 0-7
    #[arg(long, value_name = "RANKS", value_delimiter = ',')]
    ranks: Vec<Ranks>,
    /// Record these layers alone: hdf5, pnetcdf, mpi-io, posix, stdio, server, message. Marks are always kept
    #[arg(long, value_name = "LAYER", value_delimiter = ',', value_parser = layer)]
    layer: Vec<Layer>,
    /// Leave out reads and writes that ask for less, such as `4 KiB`
    #[arg(long, value_name = "SIZE", value_parser = size)]
    at_least: Option<u64>,
}

impl Selection {
    fn filter(self) -> Result<Filter> {
        // What no pattern is relative to may be gone.
        let is_relative = |pattern: &String| !pattern.starts_with(['/', '*']);
        let folder = match self.path.iter().chain(&self.not_path).any(is_relative) {
            true => std::env::current_dir().context("cannot find the current folder")?,
            false => PathBuf::new(),
        };
        let not = self.not_path.iter().flat_map(|pattern| PathRule::of(false, pattern, &folder));
        let only = self.path.iter().flat_map(|pattern| PathRule::of(true, pattern, &folder));
        Ok(Filter {
            paths: not.chain(only).collect(),
            ranks: self.ranks.into_iter().map(|Ranks(ranks)| ranks).collect(),
            layers: self.layer,
            least_bytes: self.at_least.unwrap_or(0),
        })
    }
}

fn layer(text: &str) -> Result<Layer> {
    let found = Layer::ALL.into_iter().find(|layer| layer.name() == text);
    found.ok_or_else(|| anyhow!("expected hdf5, pnetcdf, mpi-io, posix, stdio, server or message"))
}

fn budget(text: &str) -> Result<u64> {
    let bytes = parse_size(text).filter(|&bytes| bytes >= LEAST_BUDGET_BYTES);
    bytes.ok_or_else(|| anyhow!("expected 64 KiB, which a process takes at least, or more, such as `1 GiB`"))
}

fn size(text: &str) -> Result<u64> {
    parse_size(text).ok_or_else(|| anyhow!("expected a size with its unit, such as `4 KiB`"))
}

/// What is common to all verbs that run a program.
#[derive(Clone, Debug, Args)]
pub(crate) struct Job {
    #[command(flatten)]
    pub mpicc: MpiccFlag,
    /// Say which MPI was found, and how; and which strategy auto chooses, and why
    #[arg(short, long)]
    pub verbose: bool,
    /// Say nothing of what was recorded.
    #[arg(skip)]
    pub quiet: bool,
    /// Variables for the program, beside the user's own.
    #[arg(skip)]
    pub environment: Vec<(OsString, OsString)>,
    /// Copies in which it runs, if it is not to change the user's files.
    #[arg(skip)]
    pub scratch: Option<ScratchUse>,
    /// Folder for what is recorded until the job ends; every host of the job must reach it [default: beside the trace]
    #[arg(long, value_name = "FOLDER")]
    pub spool: Option<PathBuf>,
    /// The program and its arguments, as they would be typed without Pioscope
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What records MPI calls of one MPI.
pub(crate) struct MpiRecorder {
    shim: Shim,
    library: Option<Library>,
}

impl MpiRecorder {
    pub(crate) fn new(mpi: &Mpi) -> Result<MpiRecorder> {
        Ok(MpiRecorder { shim: mpi.shim(Kind::Record)?, library: mpi.library() })
    }
}

/// How a job runs in scratch copies.
#[derive(Clone, Debug)]
pub(crate) struct ScratchUse {
    folder: PathBuf,
    library: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// None if the kernel has none.
    pub guard: Option<Arc<OwnedFd>>,
}

impl ScratchUse {
    pub(crate) fn of(scratch: &Scratch) -> ScratchUse {
        ScratchUse {
            folder: scratch.working_folder().to_owned(),
            library: scratch.library(),
            environment: scratch.environment(),
            guard: scratch.guard(),
        }
    }
}

impl Job {
    /// How to record it, with the part that fits the program's MPI, if there is one.
    pub(crate) fn options(&self, output: PathBuf, mpi: Option<&MpiRecorder>) -> Options {
        let scratch = self.scratch.as_ref();
        let told = scratch.map_or(&[][..], |scratch| &scratch.environment);
        Options {
            command: self.command.clone(),
            output,
            preload: scratch.iter().map(|scratch| scratch.library.clone()).collect(),
            folder: scratch.map(|scratch| scratch.folder.clone()),
            guard: scratch.and_then(|scratch| scratch.guard.clone()),
            mpi_shim: mpi.map(|recorder| recorder.shim.path.clone()),
            spool: self.spool.clone(),
            environment: [&self.environment, told].concat(),
            settings: Settings {
                measure: true,
                cache: mpi::user_cache(),
                mpi_library: mpi.and_then(|recorder| own_way::note(recorder.library.as_ref(), &self.command)),
                notes: mpi
                    .and_then(|_| own_way::site_hints_note(&self.environment))
                    .map(|hints| (Tables::SITE_HINTS.to_owned(), hints))
                    .into_iter()
                    .collect(),
                ..Settings::default()
            },
            ..Options::default()
        }
    }

    /// The program's MPI; none if there is none, and the program is not known to need one. What was compiled beforehand comes
    /// first, unless the user names a compiler.
    ///
    /// # Errors
    /// If the program is known to need one, and none that fits is found.
    pub(crate) fn mpi(&self) -> Result<Option<Mpi>> {
        let ready = if self.mpicc.mpicc.is_none() { Mpi::ready(&self.command) } else { None };
        let (mpi, why) = match ready {
            Some((mpi, why)) => (Some(mpi), why),
            None => match pio_mpi::compiler_for(self.mpicc.mpicc.as_deref(), &self.command)? {
                Some(Chosen { mpicc, why }) => {
                    let why = format!("MPI compiler {}: {why}", mpicc.display());
                    (Some(Mpi::Compiler(mpicc)), why)
                }
                None => (None, "no MPI compiler beside the launcher or on the PATH".to_owned()),
            },
        };
        if self.verbose {
            note!("{why}");
        }
        Ok(mpi)
    }

    /// What records MPI calls. A program for whose MPI there is none is recorded without, which is said.
    ///
    /// # Errors
    /// If the compiler that the user named does not compile it.
    pub(crate) fn mpi_recorder(&self) -> Result<Option<MpiRecorder>> {
        let without = |error| {
            warning!("MPI calls are not recorded: {error:#}");
            Ok(None)
        };
        let mpi = match self.mpi() {
            Ok(Some(mpi)) => mpi,
            Ok(None) => return Ok(None),
            Err(error) => return without(error),
        };
        match MpiRecorder::new(&mpi) {
            Err(error) if self.mpicc.mpicc.is_none() => without(error),
            built => built.map(Some),
        }
    }

    /// After a job failed: says what its launcher must be told to start it, if it cannot have started it.
    pub(crate) fn explain_refusal(&self) {
        if let Some(refusal) = pio_mpi::refusal(&self.command) {
            note!("{refusal}");
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let recorder = arguments.job.mpi_recorder()?;
    // Kept until the trace is written: it holds the name.
    let (output, _taken) = match arguments.output {
        Some(output) => (output, None),
        None => {
            pio_record::check(&arguments.job.command)?;
            let taken = NewTrace::of(&arguments.job.command)?;
            (taken.path().to_owned(), Some(taken))
        }
    };
    let mut options = arguments.job.options(output, recorder.as_ref());
    options.settings = Settings {
        filter: arguments.selection.filter()?,
        exact_times: arguments.exact_times,
        ..options.settings
    };
    options.budget_bytes = arguments.budget;
    options.python_marks = !arguments.no_python_marks;
    options.wait = arguments.wait;
    options.live = arguments.live.then_some(show as fn(&Look));
    let status = record(&options, arguments.job.quiet)?;
    if !status.success() {
        arguments.job.explain_refusal();
    }
    Ok(mpi::exit_code(status))
}

/// Runs and records a job, all of it.
pub(crate) fn record_as_it_is(job: &Job, output: PathBuf) -> Result<ExitStatus> {
    let recorder = job.mpi_recorder()?;
    record(&job.options(output, recorder.as_ref()), job.quiet)
}

/// A line on standard error for each look at a running job.
fn show(look: &Look) {
    let Look { processes, total, since_last, .. } = look;
    let bytes = |count| units::bytes(look.per_second(count));
    let calls = |count| look.per_second(count).round();
    note!(
        "{}; read {} ({}/s, {} calls/s), wrote {} ({}/s, {} calls/s), {} other calls/s",
        units::things(*processes as u64, "process", "processes"),
        units::bytes(total.read_bytes as f64),
        bytes(since_last.read_bytes),
        calls(since_last.reads),
        units::bytes(total.written_bytes as f64),
        bytes(since_last.written_bytes),
        calls(since_last.writes),
        calls(since_last.others),
    );
}

/// Runs and records a job, and (unless it is to be quiet) says on standard error what came of it.
pub(crate) fn record(options: &Options, quiet: bool) -> Result<ExitStatus> {
    if let Some(reason) = pio_record::cannot_see(&options.command) {
        // Now, rather than after hours: who wants its calls can stop it.
        warning!("{reason}; it runs without being recorded (strace can record it: see docs/record.md)");
    }
    if let Some(name) = pio_record::hands_on(&options.command) {
        warning!(
            "{name} only hands a script on: what runs later is not recorded (expected `pioscope record` in the script, before its mpiexec \
             or srun)"
        );
    }
    let before = replaces(&options.output);
    let mut replaced = Replaced::Nothing;
    let collecting = || {
        replaced = match replaces(&options.output) {
            true if before => Replaced::Earlier,
            true => Replaced::Meanwhile,
            false => Replaced::Nothing,
        };
        Working::new("collecting what was recorded")
    };
    let Outcome { status, summary } = match pio_record::run_told(options, collecting) {
        Err(error @ pio_record::Error::Collect { status, .. }) if !status.success() => {
            // That it failed by itself is not to be hidden by our own failure.
            output::error(&crate::one_line(&error.into()));
            return Ok(status);
        }
        outcome => outcome?,
    };
    if !quiet {
        tell(&options.output, &summary, replaced);
        let filter = &options.settings.filter;
        if !filter.keeps_all() {
            note!("{}: recorded with filters ({filter}): it lacks other calls", options.output.display());
        }
    }
    Ok(status)
}

/// What a trace takes the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    Nothing,
    /// A file that was there before the job.
    Earlier,
    /// One that was written while the job ran.
    Meanwhile,
}

/// Whether writing a file takes the place of another one.
pub(crate) fn replaces(output: &Path) -> bool {
    output.metadata().is_ok_and(|file| file.is_file() && file.len() > 0)
}

/// Says what a trace holds, what is missing in it, and whether it replaces a file.
pub(crate) fn tell(output: &Path, summary: &Summary, replaced: Replaced) {
    let output = output.display();
    let replaces = if replaced == Replaced::Earlier { " (in place of an earlier file)" } else { "" };
    let events = if summary.events == 1 { "event" } else { "events" };
    let processes = if summary.processes == 1 { "process" } else { "processes" };
    note!("{output}: {} {events} of {} {processes}{replaces}", summary.events, summary.processes);
    if replaced == Replaced::Meanwhile {
        warning!(
            "{output}: in place of a file that was written while the job ran: if each task of a job has a recorder of its own, only the \
             last one's trace is there (expected one for all: `pioscope record -- srun …`)"
        );
    }
    for problem in summary.problems() {
        warning!("{output}: {problem}");
    }
}
