//! What can go wrong with a trace, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a trace could not be written, read or exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
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
    /// The file is something else.
    #[error("{path}: not a Pioscope trace (expected the bytes 'PIOTRACE' at 0, found {found})")]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// Its first bytes, for people.
        found: String,
    },
    /// The file was written by a later program.
    #[error("{path}: version {version} is newer than this program reads ({known}): update Pioscope")]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u16,
        /// The newest version that this program reads.
        known: u16,
    },
    /// The bytes at an offset are not what they must be.
    #[error("{path}: damaged at byte {offset}: expected {expected}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file: the start of the damaged header, block or trailer.
        offset: u64,
        /// What should have been there, and what was instead if that helps.
        expected: String,
    },
    /// An event starts before the one pushed before it.
    #[error(
        "{path}: event {index} starts at {start_ns} ns, before its predecessor ({previous_ns} ns): events must be pushed in order of their start"
    )]
    OutOfOrder {
        /// The file.
        path: PathBuf,
        /// Which event, counting from 0.
        index: u64,
        /// When it starts.
        start_ns: u64,
        /// When its predecessor starts.
        previous_ns: u64,
    },
    /// An event or a table entry names something that the tables do not hold.
    #[error("{path}: {what} {id} is not in the tables ({known} known)")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What kind of thing.
        what: &'static str,
        /// Its id.
        id: u32,
        /// How many of that kind there are.
        known: usize,
    },
    /// Table entries that are already in the file were changed or removed.
    #[error("{path}: {what} changed after being written: tables may only grow (and processes end)")]
    TablesChanged {
        /// The file.
        path: PathBuf,
        /// Which table.
        what: &'static str,
    },
    /// A limit of the format would be passed.
    #[error("{path}: {what} takes {bytes} bytes, the trace format allows {limit}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is too large.
        what: &'static str,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// Writing has failed before: the file ends with the last whole block.
    #[error("{path}: an earlier write failed: the trace cannot go on")]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// The Parquet library refused.
    #[cfg(feature = "parquet")]
    #[error("{path}: cannot write Parquet: {source}")]
    Parquet {
        /// The file being written.
        path: PathBuf,
        /// The library's answer.
        source: parquet::errors::ParquetError,
    },
}

impl TraceError {
    /// Wraps an error of the system.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> TraceError {
        let path = path.to_path_buf();
        move |source| TraceError::Io { path, action, source }
    }
}

/// Where a trace is damaged, and what was saved.
///
/// A damaged trace is still a trace: what is whole is read as usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file of the header, block or trailer that is not whole; of several blocks, the first.
    pub offset: u64,
    /// What should have been there, and what was instead if that helps.
    pub expected: String,
    /// Events in the blocks that are whole.
    pub events_saved: u64,
    /// Events in damaged blocks, where the index says how many those had. None if nothing behind `offset` can be found.
    pub events_lost: Option<u64>,
    /// Bytes of the file that are not used.
    pub bytes_lost: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { offset, expected, events_saved, events_lost, bytes_lost } = self;
        write!(f, "damaged at byte {offset}: expected {expected}; ")?;
        match events_lost {
            Some(lost) => write!(
                f,
                "{lost} events in damaged blocks ({bytes_lost} bytes) are lost, the other {events_saved} are whole"
            ),
            None => write!(
                f,
                "{events_saved} events before it are whole, {bytes_lost} bytes from there on are not used"
            ),
        }
    }
}
