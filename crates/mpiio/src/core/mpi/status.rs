//! What went wrong, as the shim is told: each status has its MPI error class there.

use pio_plan::IoError;

/// The numbers of `pio_status` in `c/pio_mpiio.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Access = 1,
    Amode = 2,
    Argument = 3,
    BadFile = 4,
    FileExists = 5,
    FileInUse = 6,
    Io = 7,
    NoSpace = 8,
    NoSuchFile = 9,
    Quota = 10,
    ReadOnly = 11,
    Type = 12,
    Unsupported = 13,
    NoMemory = 14,
    Internal = 15,
    DataRepresentation = 16,
    File = 17,
    Count = 18,
    Communicator = 19,
    /// Ranks gave different arguments where all must give the same.
    NotSame = 20,
    /// A displacement that is none.
    Displacement = 21,
    /// Data that could not be converted.
    Conversion = 22,
    /// What holds the file does not answer.
    Unreachable = 23,
    /// No memory where there must be data.
    Buffer = 24,
}

const ALL: [Status; 24] = [
    Status::Access,
    Status::Amode,
    Status::Argument,
    Status::BadFile,
    Status::FileExists,
    Status::FileInUse,
    Status::Io,
    Status::NoSpace,
    Status::NoSuchFile,
    Status::Quota,
    Status::ReadOnly,
    Status::Type,
    Status::Unsupported,
    Status::NoMemory,
    Status::Internal,
    Status::DataRepresentation,
    Status::File,
    Status::Count,
    Status::Communicator,
    Status::NotSame,
    Status::Displacement,
    Status::Conversion,
    Status::Unreachable,
    Status::Buffer,
];

impl Status {
    /// From a number that the shim or another rank says; 0 is success.
    pub(crate) fn check(number: i32) -> Result<(), Status> {
        match number {
            0 => Ok(()),
            _ => Err(ALL.into_iter().find(|status| *status as i32 == number).unwrap_or(Status::Internal)),
        }
    }

    /// The number that says `result`.
    pub(crate) fn number(result: Result<(), Status>) -> i32 {
        result.err().map_or(0, |status| status as i32)
    }

    /// From an error number of the operating system.
    pub(crate) fn of_errno(errno: i32) -> Status {
        match errno {
            libc::EACCES | libc::EPERM => Status::Access,
            libc::EROFS => Status::ReadOnly,
            libc::ENOENT => Status::NoSuchFile,
            libc::EEXIST => Status::FileExists,
            libc::EISDIR | libc::ENOTDIR | libc::ENAMETOOLONG | libc::ELOOP => Status::BadFile,
            libc::ETXTBSY | libc::EBUSY => Status::FileInUse,
            libc::ENOSPC => Status::NoSpace,
            libc::EDQUOT => Status::Quota,
            libc::ENOMEM => Status::NoMemory,
            libc::EINVAL => Status::Argument,
            libc::EOPNOTSUPP => Status::Unsupported,
            libc::EPROTO => Status::Internal,
            libc::ETIMEDOUT => Status::Unreachable,
            _ => Status::Io,
        }
    }
}

impl From<IoError> for Status {
    fn from(error: IoError) -> Status {
        Status::of_errno(error.errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for status in ALL {
            assert_eq!(Status::check(Status::number(Err(status))), Err(status));
        }
        assert_eq!(Status::check(Status::number(Ok(()))), Ok(()));
        assert_eq!(Status::check(9999), Err(Status::Internal));
    }
}
