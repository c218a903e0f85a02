//! What can go wrong with recording.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use pio_trace::TraceError;

/// Why a job could not be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to run.
    #[error("no command to record: give the program and its arguments")]
    NoCommand,
    /// The program is nowhere.
    #[error("{program}: not found (neither a file nor in the PATH)", program = program.display())]
    NotFound {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The program may not be run.
    #[error("{program}: not executable (expected a program file with execute permission)", program = program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
    },
    /// Nothing of ours can be loaded into the program.
    #[error("{program}: {reason}: nothing of Pioscope can be loaded into it", program = program.display())]
    Unreachable {
        /// The file.
        program: PathBuf,
        /// What speaks against it, for people.
        reason: &'static str,
    },
    /// The trace could not be written where it should go.
    #[error("{path}: cannot write the trace there: {source}", path = path.display())]
    Output {
        /// The trace.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The system refused.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// The file, folder or program.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Nothing was recorded there.
    #[error("{folder}: no spools (expected the folder that a killed recorder left)", folder = folder.display())]
    NoSpools {
        /// The folder.
        folder: PathBuf,
    },
    /// What was recorded is there, but was written by another version of the recorder.
    #[error(
        "{folder}: its spools are of version {found} (expected version {expected}): the Pioscope that recorded them can make a trace of them",
        folder = folder.display()
    )]
    SpoolVersion {
        /// The folder of spools.
        folder: PathBuf,
        /// Their version of the format.
        found: u32,
        /// The one that is read.
        expected: u32,
    },
    /// A path that cannot be passed on in an environment variable.
    #[error("{path}: {reason}", path = path.display())]
    UnusablePath {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Patterns of paths that the recorder in the job cannot be told.
    #[error("{reason}")]
    Patterns {
        /// What is wrong with them.
        reason: &'static str,
    },
    /// What the user's own MPI compiler must compile, does not.
    #[error("{compiler}: cannot compile what must fit the program's MPI: {message}", compiler = compiler.display())]
    Compile {
        /// The compiler.
        compiler: PathBuf,
        /// What it said first.
        message: String,
    },
    /// The job ran, but its trace was not written.
    #[error("{source}; {}", what_is_kept(spool))]
    Collect {
        /// The folder of spools.
        spool: PathBuf,
        /// How the command ended.
        status: ExitStatus,
        /// What went wrong.
        source: Box<Error>,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

fn what_is_kept(spool: &Path) -> String {
    let shown = spool.display();
    match spool.is_dir() {
        true => format!("what was recorded is kept in {shown}"),
        // Jobs that clear the folder that they work in do so.
        false => format!(
            "what was recorded was in {shown}, which the job removed (expected -o or --spool in another folder)"
        ),
    }
}

impl Error {
    /// Wraps an error of the system.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { path, action, source }
    }
}
