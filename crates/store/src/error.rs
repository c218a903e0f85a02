//! What can go wrong.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::protocol::Holder;

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
    /// A register that does not overflow.
    #[error("a value of at most 63 bits")]
    Value,
}

/// What a client is told.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store's description cannot be read or makes no sense.
    #[error("{path}: {what}")]
    Config {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A server refused the connection.
    #[error("server {server} at {address} refused: {reason}")]
    Refused {
        /// Its index.
        server: u32,
        /// Where it was looked for.
        address: String,
        /// What it said.
        reason: String,
    },
    /// A server could not be reached in time.
    #[error("server {server} at {address} did not answer within {seconds} s: {source}")]
    Unreachable {
        /// Its index.
        server: u32,
        /// Where it was looked for.
        address: String,
        /// How long it was tried.
        seconds: u64,
        /// The last error.
        source: io::Error,
    },
    /// A server said no.
    #[error("{path}: server {server}: {failure}")]
    Failed {
        /// Which file of the store.
        path: String,
        /// Which server.
        server: u32,
        /// What it said.
        failure: Failure,
    },
    /// A lock was not had in time.
    #[error("{path}: locked by {holder}")]
    Locked {
        /// Which file of the store.
        path: String,
        /// Who holds the lock, or is before this client.
        holder: Holder,
    },
    /// A server's machine went down with data that were written and not yet synced.
    #[error("{path}: server {server} lost data that were written and not yet synced")]
    Lost {
        /// Which file of the store.
        path: String,
        /// Which server.
        server: u32,
    },
    /// A server answered something else than was asked.
    #[error("server {server} answered something else than was asked")]
    Confused {
        /// Which server.
        server: u32,
    },
    /// The caller's request makes no sense.
    #[error("{path}: expected {expected}")]
    Invalid {
        /// Which file of the store.
        path: String,
        /// What was expected of the caller.
        expected: String,
    },
}

impl StoreError {
    /// The operating system's error number that says it best: what MPI error classes are made from.
    pub fn errno(&self) -> i32 {
        use rustix::io::Errno;
        let errno = match self {
            StoreError::Config { .. } | StoreError::Invalid { .. } => Errno::INVAL,
            StoreError::Refused { .. } => Errno::ACCESS,
            StoreError::Unreachable { .. } | StoreError::Locked { .. } => Errno::TIMEDOUT,
            StoreError::Lost { .. } | StoreError::Confused { .. } => Errno::IO,
            StoreError::Failed { failure, .. } => match failure {
                Failure::Os(errno) => return *errno,
                Failure::NotFound => Errno::NOENT,
                Failure::Exists => Errno::EXIST,
                Failure::Invalid(_) => Errno::INVAL,
                Failure::NotLocked => Errno::NOLCK,
                Failure::Limit => Errno::NOBUFS,
                Failure::Full => Errno::NOSPC,
                Failure::UnknownView | Failure::Damaged { .. } | Failure::Stale => Errno::IO,
            },
        };
        errno.raw_os_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_words() {
        let errno = rustix::io::Errno::NOSPC.raw_os_error();
        let failure = Failure::Os(errno);
        let error = StoreError::Failed { path: "run/a".into(), server: 1, failure };
        assert_eq!(error.to_string(), "run/a: server 1: No space left on device");
        assert_eq!(error.errno(), errno);
    }
}
