//! Why a log could not become a trace.

use std::io;
use std::path::{Path, PathBuf};

use pio_trace::TraceError;

/// Why another tool's log could not be read, or the trace that it becomes not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is no Darshan log.
    #[error("{path}: not a Darshan log (expected a version and the number 6567223 at 8, found '{found}')")]
    NotALog {
        /// The file.
        path: PathBuf,
        /// Its first bytes, for people.
        found: String,
    },
    /// A Darshan log of another time.
    #[error(
        "{path}: Darshan log of version {version} (expected 3.00 to 3.41; darshan-convert makes 3.x of 2.x)"
    )]
    UnknownLogVersion {
        /// The file.
        path: PathBuf,
        /// What it says.
        version: String,
    },
    /// A folder that is nothing that is read.
    #[error(
        "{path}: a folder with no logs of DFTracer, Recorder or fio (expected a trace, a log, or such a folder; spools of a job \
         become a trace with pioscope convert)"
    )]
    NotAFolderOfLogs {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is neither a trace nor a log.
    #[error(
        "{path}: neither a trace nor a log that is known (expected a trace of Pioscope; a log of Darshan, DFTracer, \
         strace -ttt, fio (iolog 2 or 3, or latencies) or blktrace; or a CSV table of calls with commas; only DFTracer's \
         may be compressed), found {found}"
    )]
    NotKnown {
        /// The file.
        path: PathBuf,
        /// Its first bytes, for people.
        found: String,
    },
    /// A trace of Recorder of another time.
    #[error("{path}: trace of Recorder, version {version} (expected 2.3 to 3.0 in the file VERSION)")]
    UnknownRecorderVersion {
        /// The folder.
        path: PathBuf,
        /// What it says.
        version: String,
    },
    /// The bytes at an offset are not what they must be.
    #[error("{path}: damaged at byte {offset}: expected {expected}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What should have been there, and what was instead if that helps.
        expected: String,
    },
    /// A table of calls without a column that each of them needs.
    #[error(
        "{path}:1: a table of calls without the column '{missing}' (expected start_s and call, and may be others)"
    )]
    NoColumn {
        /// The table.
        path: PathBuf,
        /// The column.
        missing: &'static str,
    },
    /// A log that tells of calls, but holds none that could be in a trace.
    #[error("{path}: no calls for a trace in it (expected {expected})")]
    NoCalls {
        /// The log, or the folder of logs.
        path: PathBuf,
        /// What it should have held, and the option of its tool that does it.
        expected: String,
    },
    /// A trace could not be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl ImportError {
    /// Wraps an error of the system.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> ImportError {
        let path = path.to_path_buf();
        move |source| ImportError::Io { path, action, source }
    }
}
