//! `pioscope apply`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_mpiio::Apply;
use pio_plan::{Hints, Strategy};

use crate::mpi;
use crate::record::{self, Job};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope apply --strategy two-phase -- mpiexec -n 8 ./collapse --iterations 20
  pioscope apply --strategy two-phase --hints cb_nodes=4,cb_buffer_size=4194304 -- mpiexec -n 8 ./collapse
  pioscope apply --strategy ecio --store /scratch/store.toml -- mpiexec -n 8 ./collapse
  pioscope apply --strategy auto --verbose -- mpiexec -n 8 ./collapse
  pioscope apply --strategy independent --record run.pio -- mpiexec -n 8 ./collapse

Files come out the same, byte for byte. The exit code is the program's own; it is 1 if the program never opened a
file through MPI-IO, since nothing was applied then.")]
pub struct Arguments {
    /// How reads and writes are carried out: independent, sieving, list, two-phase, view-based, ecio or auto
    #[arg(short, long)]
    strategy: Strategy,
    /// Put all files on the I/O servers that this file describes (pioscope serve writes it)
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Say which strategy auto chooses, and why
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    hints: HintArguments,
    /// Also record the program, as `pioscope record` does
    #[arg(long, value_name = "TRACE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    job: Job,
}

/// Hints from the command line.
#[derive(Debug, Args)]
pub struct HintArguments {
    /// Hints, as key=value,…: cb_nodes, cb_buffer_size, ind_rd_buffer_size, ind_wr_buffer_size, striping_unit,
    /// striping_factor
    #[arg(long, value_name = "HINTS")]
    hints: Option<String>,
    /// A file of such hints, separated by commas, blanks or new lines; # begins a comment
    #[arg(long, value_name = "FILE")]
    hints_file: Option<PathBuf>,
}

impl HintArguments {
    /// The hints of the command line, completed by those of the file.
    pub fn read(&self) -> Result<Hints> {
        let given = Hints::parse(self.hints.as_deref().unwrap_or_default())?;
        let Some(path) = &self.hints_file else { return Ok(given) };
        let text = fs::read_to_string(path).with_context(|| format!("{}: cannot read", path.display()))?;
        let from_file = Hints::parse(&text).with_context(|| path.display().to_string())?;
        Ok(given.or(&from_file))
    }
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    let store = arguments.store.map(|path| {
        path.canonicalize()
            .with_context(|| format!("{}: cannot find the store's description", path.display()))
    });
    let how = How {
        strategy: arguments.strategy,
        hints: arguments.hints.read()?,
        store: store.transpose()?,
        verbose: arguments.verbose,
    };
    run_with(how, &arguments.job, arguments.record)
}

/// Runs a job with its MPI-IO carried out under a strategy, recorded if a trace is named.
pub fn run_under(strategy: Strategy, hints: &Hints, job: &Job, trace: Option<PathBuf>) -> Result<ExitCode> {
    run_with(How { strategy, hints: hints.clone(), store: None, verbose: false }, job, trace)
}

/// How a job's MPI-IO is to be carried out.
pub struct How {
    /// By which strategy.
    pub strategy: Strategy,
    /// With which hints.
    pub hints: Hints,
    /// On these I/O servers.
    pub store: Option<PathBuf>,
    /// Whether to say which strategy auto chooses.
    pub verbose: bool,
}

/// Runs a job with its MPI-IO carried out so, recorded if a trace is named.
pub fn run_with(how: How, job: &Job, trace: Option<PathBuf>) -> Result<ExitCode> {
    pio_record::check(&job.command)?;
    let Some(mpicc) = mpi::compiler(job.mpicc.as_deref(), &job.command) else {
        bail!("no mpicc beside the launcher or on the PATH: name the program's MPI with --mpicc");
    };
    let shim = mpi::build(&mpicc, "apply", pio_mpiio::SHIM)?;
    let core =
        pio_mpiio::core_library(&std::env::current_exe().context("cannot find this program's own file")?)?;
    let applied = Applied::new()?;
    let How { strategy, hints, store, verbose } = how;
    let apply = Apply { strategy, hints, store, verbose, shim, core, applied: applied.path.clone() };
    let code = match trace {
        Some(trace) => {
            let mut options = job.options(trace)?;
            options.preload.push(apply.shim.clone());
            options.environment = apply.settings();
            record::record(&options)?
        }
        None => {
            let [program, words @ ..] = &job.command[..] else { bail!("no command") };
            let mut command = Command::new(program);
            command.args(words).envs(apply.environment());
            mpi::exit_code(pio_record::run_to_end(&mut command)?)
        }
    };
    if !applied.happened() {
        bail!(
            "nothing was applied: no process opened a file by MPI-IO (expected an MPI program that calls MPI_File_open)"
        );
    }
    Ok(code)
}

/// A file that the first process to open a file through us creates: how we know that anything was applied at all.
struct Applied {
    path: PathBuf,
}

impl Applied {
    /// In the working folder, which the hosts of a job share.
    fn new() -> Result<Applied> {
        let folder = std::env::current_dir().context("the working folder is gone")?;
        Ok(Applied { path: folder.join(format!(".pioscope-applied-{}", std::process::id())) })
    }

    fn happened(&self) -> bool {
        self.path.exists()
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
