//! How a file is opened.

/// MPI's access modes, in the shim's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub i32);

impl Mode {
    const READ_ONLY: i32 = 1;
    const WRITE_ONLY: i32 = 2;
    const READ_WRITE: i32 = 4;
    const CREATE: i32 = 8;
    const EXCLUSIVE: i32 = 16;
    const DELETE_ON_CLOSE: i32 = 32;
    const SEQUENTIAL: i32 = 128;
    const APPEND: i32 = 256;

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    /// Exactly one of read only, write only, read and write; nothing created or demanded new by who only reads.
    pub(crate) fn is_valid(self) -> bool {
        let access = self.0 & (Mode::READ_ONLY | Mode::WRITE_ONLY | Mode::READ_WRITE);
        access.count_ones() == 1 && !(self.has(Mode::READ_ONLY) && self.has(Mode::CREATE | Mode::EXCLUSIVE))
    }

    /// Whether the file may be read.
    pub(crate) fn reads(self) -> bool {
        !self.has(Mode::WRITE_ONLY)
    }

    /// Whether the file may be written.
    pub(crate) fn writes(self) -> bool {
        !self.has(Mode::READ_ONLY)
    }

    /// Whether whoever opens makes the file. The `first` rank alone can tell whether it is new.
    pub(crate) fn creates(self, first: bool) -> Creates {
        if !self.has(Mode::CREATE) {
            Creates::No
        } else if !self.has(Mode::EXCLUSIVE) {
            Creates::IfMissing
        } else if first {
            Creates::New
        } else {
            Creates::No
        }
    }

    /// Whether positions begin at the end of the file.
    pub(crate) fn appends(self) -> bool {
        self.has(Mode::APPEND)
    }

    /// Whether the file is one that can only be passed through.
    pub(crate) fn is_sequential(self) -> bool {
        self.has(Mode::SEQUENTIAL)
    }

    /// Whether the file goes with its handle.
    pub(crate) fn deletes_on_close(self) -> bool {
        self.has(Mode::DELETE_ON_CLOSE)
    }
}

/// Whether opening makes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Creates {
    /// It must be there.
    No,
    /// If there is none.
    IfMissing,
    /// There must be none.
    New,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_checked() {
        assert!(Mode(Mode::READ_ONLY).is_valid());
        assert!(!Mode(Mode::READ_ONLY | Mode::CREATE).is_valid());
        assert!(!Mode(Mode::READ_ONLY | Mode::READ_WRITE).is_valid());
        assert!(!Mode(Mode::CREATE).is_valid());
        assert!(Mode(Mode::WRITE_ONLY | Mode::CREATE | Mode::EXCLUSIVE).is_valid());
    }
}
