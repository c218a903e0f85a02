//! What can go wrong with messages, and what servers say no with.

use std::io;

use thiserror::Error;

/// Bytes that are no message, or one that is not allowed here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Not a message.
    #[error("malformed message: expected {expected}")]
    Malformed {
        /// What should have been there.
        expected: &'static str,
    },
    /// A frame that says it is longer than any may be.
    #[error("a message with {what} of {bytes} bytes: expected at most {limit}")]
    TooLong {
        /// Head or data.
        what: &'static str,
        /// How long it says it is.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// The bytes changed on their way.
    #[error("a message whose {what} does not have the checksum that it says")]
    Checksum {
        /// Head or data.
        what: &'static str,
    },
}

impl From<ProtocolError> for io::Error {
    fn from(error: ProtocolError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Why a server did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Failure {
    /// The operating system's error number, of the server's own files.
    #[error("{}", text_of(*.0))]
    Os(i32),
    /// No such file in the store.
    #[error("no such file")]
    NotFound,
    /// There is such a file already.
    #[error("the file exists")]
    Exists,
    /// A request that makes no sense: expected what it says.
    #[error("a request that makes no sense: expected {0}")]
    Invalid(Expected),
    /// No view has this number in this session, or none any more.
    #[error("an unknown view")]
    UnknownView,
    /// The lock is not (or no longer) held.
    #[error("a lock that is not held")]
    NotLocked,
    /// A limit of the server would be passed.
    #[error("a limit of the server is reached")]
    Limit,
    /// Data on disk do not have the checksum they should have.
    #[error("damaged data: block {block} of the server's part does not have its checksum")]
    Damaged {
        /// Which block of 64 KiB of the server's part of the file.
        block: u64,
    },
    /// What the server had of the file went with its folder: its data, or its record.
    #[error(
        "what this server had of the file is lost: its folder was emptied, or another one was put in its place"
    )]
    FolderLost,
    /// An operation older than one that was answered already.
    #[error("an operation that is over")]
    Stale,
    /// The store's files take all the room that they may take (`pioscope serve --limit`).
    #[error("no space left on device: the limit that `pioscope serve --limit` set is reached")]
    Full,
}

/// What the operating system calls an error number.
fn text_of(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.strip_suffix(&format!(" (os error {errno})")).map_or(text.clone(), str::to_owned)
}

/// What a request should have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Expected {
    /// A path of the store in normal form.
    #[error("a path without empty, `.` and `..` parts, of 1 to 1024 bytes")]
    Path,
    /// As many data bytes as the positions have on this server.
    #[error("as many bytes of data as the positions have on this server")]
    DataLength,
    /// A placement on the servers there are.
    #[error("a placement on the servers that there are, and this one among them")]
    Placement,
    /// The server that is responsible for the file.
    #[error("the server that owns the file")]
    Owner,
    /// A list of extents.
    #[error("1 to 64 extents, ascending, none of them empty, without a byte in common, within 63 bits")]
    Extents,
    /// A register that does not overflow.
    #[error("a value of at most 63 bits")]
    Value,
}
