//! `pioscope record`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use pio_record::{Options, Outcome, Summary};

use crate::mpi;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope record -o run.pio -- mpiexec -n 8 ./collapse --iterations 20
  pioscope record -o sort.pio -- sort big.txt

The exit code is the program's own.")]
pub struct Arguments {
    /// The trace to write
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    #[command(flatten)]
    job: Job,
}

/// What is common to all verbs that run a program.
#[derive(Debug, Args)]
pub struct Job {
    /// The MPI compiler of the program's MPI [default: beside the launcher, else on the PATH]
    #[arg(long, value_name = "PATH")]
    pub mpicc: Option<PathBuf>,
    /// Folder for what is recorded until the job ends; every host of the job must reach it [default: beside the trace]
    #[arg(long, value_name = "FOLDER")]
    pub spool: Option<PathBuf>,
    /// The program and its arguments, as they would be typed without Pioscope
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Job {
    /// How to record it.
    ///
    /// # Errors
    /// If the part that must fit the program's MPI cannot be compiled.
    pub fn options(&self, output: PathBuf) -> Result<Options> {
        let compiler = mpi::compiler(self.mpicc.as_deref(), &self.command);
        let mpi_shim = match compiler {
            Some(mpicc) => Some(mpi::build(&mpicc, "record", pio_record::MPI_SHIM)?),
            None => None,
        };
        Ok(Options {
            command: self.command.clone(),
            output,
            mpi_shim,
            spool: self.spool.clone(),
            ..Options::default()
        })
    }
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    record(&arguments.job.options(arguments.output)?)
}

/// Runs and records a job, and says on standard error what came of it.
pub fn record(options: &Options) -> Result<ExitCode> {
    let Outcome { status, summary } = pio_record::run(options)?;
    tell(&options.output, &summary);
    Ok(mpi::exit_code(status))
}

/// Says what a trace holds and what is missing in it.
pub fn tell(output: &Path, summary: &Summary) {
    let output = output.display();
    eprintln!("pioscope: {output}: {} events of {} processes", summary.events, summary.processes);
    for problem in summary.problems() {
        eprintln!("pioscope: {output}: {problem}");
    }
}
