//! `pioscope apply`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use pio_machine::Machine;
use pio_mpiio::{Apply, Places};
use pio_plan::{Hints, Strategy};
use pio_record::Loaded;
use pio_trace::{Tables, Unseen};
use tempfile::TempDir;

use crate::advise::Advice;
use crate::flags::MpiccFlag;
use crate::here::{self, Here};
use crate::learned::{self, AppliedRun};
use crate::mpi::{self, Kind, Mpi};
use crate::output::warning;
use crate::own_way;
use crate::record::{self, Job, MpiRecorder};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope apply --strategy two-phase -- mpiexec -n 8 ./collapse --iterations 20
  pioscope apply --strategy two-phase --hints cb_nodes=4,cb_buffer_size=4194304 -- mpiexec -n 8 ./collapse
  pioscope apply --strategy ecio --store /scratch/store.toml -- mpiexec -n 8 ./collapse
  pioscope apply --strategy auto --verbose -- mpiexec -n 8 ./collapse
  pioscope apply --strategy independent --record run.pio -- mpiexec -n 8 ./collapse
  pioscope apply --advice advice.toml -- mpiexec -n 8 ./collapse
  pioscope apply --strategy romio --hints romio_cb_write=disable -- mpiexec -n 8 ./collapse

Files come out the same, byte for byte. The exit code is the program's own. If the program opens no file through
MPI-IO, nothing is applied, and standard error says so.")]
pub(crate) struct Arguments {
    /// How reads and writes are carried out: independent, sieving, list, two-phase, view-based, ecio or auto; by romio or ompio
    /// the MPI library's own MPI-IO is only given the hints
    #[arg(short, long, required_unless_present = "advice", value_parser = Strategy::to_predict)]
    strategy: Option<Strategy>,
    /// Take strategy and hints from this file (pioscope advise writes it)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["strategy", "hints", "hints_file"])]
    advice: Option<PathBuf>,
    /// Put all files on the I/O servers that this file describes (pioscope serve writes it)
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    hints: HintArguments,
    /// What I/O costs where the files are, for auto to choose by (default: what `pioscope machines calibrate` keeps of this host)
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Also record the program, as `pioscope record` does. Where its files are on a calibrated place, the run is compared with
    /// its prediction, for the intervals of later ones
    #[arg(long, value_name = "TRACE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    job: Job,
}

/// Hints from the command line.
#[derive(Debug, Args)]
pub(crate) struct HintArguments {
    /// Hints, as key=value,…: cb_nodes, cb_buffer_size, ind_rd_buffer_size, ind_wr_buffer_size, striping_unit, pio_describe; where
    /// files are put on I/O servers striping_factor; for romio and predictions of it: romio_cb_read, romio_cb_write, romio_ds_read,
    /// romio_ds_write, cb_config_list
    #[arg(long, value_name = "HINTS")]
    hints: Option<String>,
    /// A file of such hints, separated by commas, blanks or new lines; # begins a comment
    #[arg(long, value_name = "FILE")]
    hints_file: Option<PathBuf>,
}

impl HintArguments {
    /// The hints of the command line, completed by those of the file.
    pub(crate) fn read(&self) -> Result<Hints> {
        let on_command_line = self.hints.as_deref().unwrap_or_default();
        let given = Hints::parse(on_command_line)?;
        refuse_twice(on_command_line).context("--hints")?;
        let Some(path) = &self.hints_file else { return Ok(given) };
        let text = fs::read_to_string(path).with_context(|| format!("{}: cannot read", path.display()))?;
        let from_file = Hints::parse(&text).with_context(|| path.display().to_string())?;
        refuse_twice(&text).with_context(|| path.display().to_string())?;
        Ok(given.or(&from_file))
    }
}

/// Which of two values of a hint was meant, nobody knows.
fn refuse_twice(text: &str) -> Result<()> {
    let words =
        text.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split([',', ' ', '\t']));
    let mut seen = BTreeSet::new();
    for key in words.filter_map(|word| word.split_once('=')).map(|(key, _)| key.trim()) {
        ensure!(seen.insert(key), "the hint {key} is given twice");
    }
    Ok(())
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let Advice { strategy, hints } = match (&arguments.advice, arguments.strategy) {
        (Some(path), _) => Advice::read(path)?,
        (None, Some(strategy)) => Advice { strategy, hints: arguments.hints.read()? },
        (None, None) => bail!("expected --strategy, or --advice"),
    };
    // The MPI library's own MPI-IO does not know the environment's.
    let store = match Strategy::OWN.contains(&strategy) {
        true => arguments.store.as_deref().map(find_store).transpose()?,
        false => store_of_job(arguments.store.as_deref())?,
    };
    // What ran by the knowledge of another machine says nothing of what is known here.
    let recorded = arguments.record.clone().filter(|_| arguments.machine.is_none());
    let run =
        recorded.map(|trace| AppliedRun { trace, strategy, hints: hints.clone(), store: store.clone() });
    let machine = arguments.machine.as_deref().map(Machine::load).transpose()?;
    let how = How { strategy, hints, store, machine };
    how.check()?;
    let Ended { status, applied, library, without } = run_with(how, &arguments.job, arguments.record)?;
    for program in without {
        warning!("{}: ran without Pioscope: {}", program.program, program.reason.sentence());
    }
    if !applied {
        warning!(
            "nothing was applied: no process opened a file by MPI-IO, or none could load {} (expected an MPI program that \
             calls MPI_File_open, and this library on every host that it runs on)",
            library.display()
        );
    }
    if !status.success() {
        arguments.job.explain_refusal();
    } else if let Some(run) = run.filter(|_| applied) {
        learned::learn_from(run);
    }
    Ok(mpi::exit_code(status))
}

/// The store that a job's files are in, wherever its processes work: that which is given, or the environment's.
pub(crate) fn store_of_job(given: Option<&Path>) -> Result<Option<PathBuf>> {
    let named = given.map(Path::to_owned).or_else(crate::store::of_environment);
    named.as_deref().map(find_store).transpose()
}

/// The description of a store, wherever the job's processes work.
pub(crate) fn find_store(path: &Path) -> Result<PathBuf> {
    path.canonicalize().with_context(|| format!("{}: cannot find the store's description", path.display()))
}

/// Runs a job of our own on this machine, on however few processors, recorded if a trace is named.
///
/// # Errors
/// If it fails, or opens no file by MPI-IO.
pub(crate) fn run_own(how: How, command: Vec<OsString>, trace: Option<PathBuf>) -> Result<()> {
    let strategy = how.strategy;
    let job = own_job(command);
    let Ended { status, applied, .. } = run_with(how, &job, trace)?;
    if !status.success() {
        bail!("{}: failed under {strategy}: {status}", job.command[0].display());
    }
    if !applied {
        bail!("{}: opened no file by MPI-IO, so {strategy} was not applied", job.command[0].display());
    }
    Ok(())
}

/// A job of our own on this machine, on however few processors: as a user's who has enough, if there are enough.
pub(crate) fn own_job(command: Vec<OsString>) -> Job {
    let environment =
        pio_mpi::for_own_job(&command).map(|(name, value)| (name.into(), value.into())).collect();
    Job {
        mpicc: MpiccFlag::default(),
        verbose: false,
        quiet: true,
        environment,
        scratch: None,
        spool: None,
        command,
    }
}

/// How a job's MPI-IO is to be carried out.
pub(crate) struct How {
    /// By which strategy.
    pub strategy: Strategy,
    /// With which hints.
    pub hints: Hints,
    /// On these I/O servers.
    pub store: Option<PathBuf>,
    /// What I/O costs there, where it is not what was calibrated on this host.
    pub machine: Option<Machine>,
}

impl How {
    /// Whether it is left to the MPI library, which is only given hints.
    pub(crate) fn is_own(&self) -> bool {
        Strategy::OWN.contains(&self.strategy)
    }

    /// What the automatic choice is to know.
    fn places(&self) -> Places {
        if self.strategy != Strategy::Auto {
            return Places::default();
        }
        if let Some(machine) = &self.machine {
            let terms = pio_sim::terms(machine);
            return Places { folders: vec![("/".into(), terms.clone())], servers: Some(terms) };
        }
        let of_store = |store: &PathBuf| Here::of_store(store).and_then(|here| here.load()).ok();
        let folders = here::calibrated_folders().into_iter();
        Places {
            folders: folders.map(|(folder, machine)| (folder, pio_sim::terms(&machine))).collect(),
            servers: self.store.as_ref().and_then(of_store).map(|machine| pio_sim::terms(&machine)),
        }
    }

    /// Makes sure that its hints can be followed, and that its strategy knows the servers.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            !self.is_own() || self.store.is_none(),
            "{}: the MPI library's own MPI-IO knows no I/O servers (expected no --store, or another strategy)",
            self.strategy
        );
        ensure!(
            self.is_own() || self.store.is_some() || self.hints.striping_factor.is_none(),
            "hint striping_factor: the file system says over how many servers a file goes (expected --store)"
        );
        if let Some((key, _)) = self.hints.own.pairs().first().filter(|_| !self.is_own()) {
            bail!("hint {key}: only the MPI library itself follows it (expected --strategy romio)");
        }
        Ok(())
    }
}

/// How a job ended.
pub(crate) struct Ended {
    pub status: ExitStatus,
    /// Whether a process opened a file through us; what the MPI library does by itself is taken for applied.
    pub applied: bool,
    /// What the job's processes had to load for that; empty if nothing.
    pub library: PathBuf,
    /// Programs of the job that ran without it, if it was not recorded: a trace names them itself.
    pub without: Vec<Unseen>,
}

/// Runs a job with its MPI-IO carried out so, recorded if a trace is named.
pub(crate) fn run_with(how: How, job: &Job, trace: Option<PathBuf>) -> Result<Ended> {
    pio_record::check(&job.command)?;
    let Some(mpi) = job.mpi()? else {
        bail!("no mpicc beside the launcher or on the PATH: name the program's MPI with --mpicc");
    };
    if how.is_own() {
        return leave_to_the_library(&how, job, &mpi, trace);
    }
    let shim = mpi.shim(Kind::Apply)?;
    let core =
        pio_mpiio::core_library(&std::env::current_exe().context("cannot find this program's own file")?)?;
    let applied = Applied::new(trace.as_deref())?;
    let library = shim.path.clone();
    let (notes, places) = (notes(&how), how.places());
    let How { strategy, hints, store, .. } = how;
    let apply = Apply { strategy, hints, store, places, verbose: job.verbose, core, applied: applied.path() };
    let (status, without) = match trace {
        Some(trace) => {
            let recorder = MpiRecorder::new(&mpi)?;
            let mut options = job.options(trace, Some(&recorder));
            options.preload.push(shim.path.clone());
            options.environment.extend(apply.settings());
            options.settings.notes.extend(notes);
            (record::record(&options, job.quiet)?, Vec::new())
        }
        None => {
            let [program, words @ ..] = &job.command[..] else { bail!("no command") };
            let mut command = Command::new(program);
            command.args(words).envs(job.environment.iter().cloned()).envs(apply.settings());
            let starts = mpi::starts_library()?;
            let libraries = [starts.path.clone(), library.clone()];
            let Loaded { status, without } =
                pio_record::run_loaded(&mut command, &libraries, applied.folder.path())?;
            (status, without)
        }
    };
    Ok(Ended { status, applied: applied.happened(), library, without })
}

/// What a trace says of how its MPI-IO was carried out.
fn notes(how: &How) -> Vec<(String, String)> {
    let note = |name: &str, value: String| (name.to_owned(), value);
    let store = how.store.as_ref().map(|store| note(Tables::STORE, store.display().to_string()));
    let strategy = note(Tables::STRATEGY, how.strategy.name().to_owned());
    [strategy, note(Tables::HINTS, how.hints.to_text())].into_iter().chain(store).collect()
}

/// Runs a job whose MPI library is given hints for its own MPI-IO.
fn leave_to_the_library(how: &How, job: &Job, mpi: &Mpi, trace: Option<PathBuf>) -> Result<Ended> {
    own_way::ensure_is(how.strategy, mpi.library().as_ref(), &job.command)?;
    let folder = folder_of_a_job(trace.as_deref())?;
    let told = own_way::variables(how.strategy, &how.hints, &folder.path().join("hints"), &[])?;
    // Which MPI it is has been said.
    let job = Job { environment: [&job.environment[..], &told].concat(), verbose: false, ..job.clone() };
    let status = match trace {
        Some(trace) => {
            let recorder = job.mpi_recorder()?;
            let mut options = job.options(trace, recorder.as_ref());
            options.settings.notes.extend(notes(how));
            record::record(&options, job.quiet)?
        }
        None => {
            let [program, words @ ..] = &job.command[..] else { bail!("no command") };
            pio_record::run_to_end(Command::new(program).args(words).envs(job.environment))?
        }
    };
    Ok(Ended { status, applied: true, library: PathBuf::new(), without: Vec::new() })
}

/// A folder for a job that is started here: beside the trace, else in the working folder, both of which its hosts share, if
/// that can be written to.
fn folder_of_a_job(trace: Option<&Path>) -> Result<TempDir> {
    let within = |folder: PathBuf| tempfile::Builder::new().prefix(".pioscope-applied-").tempdir_in(folder);
    let working = std::env::current_dir().context("the working folder is gone")?;
    let beside = trace.and_then(Path::parent).map_or(working.clone(), |folder| working.join(folder));
    within(beside)
        .or_else(|_| within(std::env::temp_dir()))
        .context("cannot create a file in the working folder or that for temporary ones")
}

/// A file that the first process to open a file through us creates: how we know that anything was applied at all.
struct Applied {
    folder: TempDir,
}

impl Applied {
    fn new(trace: Option<&Path>) -> Result<Applied> {
        Ok(Applied { folder: folder_of_a_job(trace)? })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("applied")
    }

    fn happened(&self) -> bool {
        self.path().exists()
    }
}
