//! What can go wrong.

use std::io;
use std::path::PathBuf;

use pio_protocol::client::{Lost, OperationError};
use pio_protocol::{Failure, Holder};
use thiserror::Error;

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
    /// A server's folder is another server's, or not all of its folders.
    #[error("{path}: {what}")]
    OtherServer {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
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
    /// What is to be said to a server is longer than it takes.
    #[error(
        "server {server}: a request without its data of {bytes} bytes, as the file view is so long: expected at most {limit}"
    )]
    TooLong {
        /// Its index.
        server: u32,
        /// Bytes that are to be said.
        bytes: u64,
        /// Bytes that it takes.
        limit: u64,
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
    /// What an operation on the file `path` failed with.
    pub(crate) fn of(path: &str, error: OperationError) -> StoreError {
        let path = path.to_owned();
        match error {
            OperationError::Lost(Lost { server }) => StoreError::Lost { path, server },
            OperationError::Failed { server, failure } => StoreError::Failed { path, server, failure },
            OperationError::Confused { server } => StoreError::Confused { server },
        }
    }

    /// The operating system's error number that says it best: what MPI error classes are made from.
    pub fn errno(&self) -> i32 {
        use rustix::io::Errno;
        let errno = match self {
            StoreError::Config { .. }
            | StoreError::OtherServer { .. }
            | StoreError::Invalid { .. }
            | StoreError::TooLong { .. } => Errno::INVAL,
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
                Failure::UnknownView | Failure::Damaged { .. } | Failure::FolderLost | Failure::Stale => {
                    Errno::IO
                }
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
