//! Where the bytes of an open file are: in a plain file, or on I/O servers.

use std::ffi::CStr;
use std::ops::Range;

use pio_layout::View;
use pio_plan::{Direction, IoError, Via};
use pio_store::client::Striping;

use super::drivers;
use super::memory::Memory;
use super::plain::{self, PlainFile};
use super::remote::{self, RemoteFile};

/// MPI's access modes, in the shim's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub i32);

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
    pub fn is_valid(self) -> bool {
        let access = self.0 & (Mode::READ_ONLY | Mode::WRITE_ONLY | Mode::READ_WRITE);
        access.count_ones() == 1 && !(self.has(Mode::READ_ONLY) && self.has(Mode::CREATE | Mode::EXCLUSIVE))
    }

    /// Whether the file may be read.
    pub fn reads(self) -> bool {
        !self.has(Mode::WRITE_ONLY)
    }

    /// Whether the file may be written.
    pub fn writes(self) -> bool {
        !self.has(Mode::READ_ONLY)
    }

    /// Whether whoever opens makes the file. The `first` rank alone can tell whether it is new.
    pub fn creates(self, first: bool) -> Creates {
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
    pub fn appends(self) -> bool {
        self.has(Mode::APPEND)
    }

    /// Whether the file is one that can only be passed through.
    pub fn is_sequential(self) -> bool {
        self.has(Mode::SEQUENTIAL)
    }

    /// Whether the file goes with its handle.
    pub fn deletes_on_close(self) -> bool {
        self.has(Mode::DELETE_ON_CLOSE)
    }
}

/// Whether opening makes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creates {
    /// It must be there.
    No,
    /// If there is none.
    IfMissing,
    /// There must be none.
    New,
}

/// An open file.
#[derive(Debug)]
pub enum Storage {
    /// A plain one.
    Plain(PlainFile),
    /// One on I/O servers.
    Remote(RemoteFile),
}

impl Storage {
    /// Opens the file. The `first` rank creates it, if it is to be created; on servers as `wanted` says.
    pub fn open(path: &CStr, mode: Mode, first: bool, wanted: Striping) -> Result<Storage, IoError> {
        match remote::name_of(path) {
            Some(name) => RemoteFile::open(&name, mode.creates(first), wanted).map(Storage::Remote),
            None => PlainFile::open(without_driver(path), mode, first).map(Storage::Plain),
        }
    }

    /// Whether the file can be read from.
    pub fn is_readable(&self) -> bool {
        match self {
            Storage::Plain(file) => file.is_readable(),
            Storage::Remote(_) => true,
        }
    }

    /// A number that other files that are there have not: not those that had this one's name before, or will have.
    pub fn identity(&self) -> u64 {
        match self {
            Storage::Plain(file) => file.identity(),
            Storage::Remote(file) => file.identity(),
        }
    }

    /// How ranks reach the file.
    pub fn via(&self) -> Via {
        match self {
            Storage::Plain(_) => Via::Kernel,
            Storage::Remote(file) => {
                let (unit, factor) = file.striping();
                Via::Servers { factor, unit }
            }
        }
    }

    /// What must be done before the file is closed, and while it is there: servers make durable what was written.
    pub fn settle(&self) -> Result<(), IoError> {
        match self {
            Storage::Plain(_) => Ok(()),
            Storage::Remote(file) => file.sync(),
        }
    }

    /// Closes the file.
    pub fn close(self) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.close(),
            Storage::Remote(_) => Ok(()),
        }
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.remove(),
            Storage::Remote(file) => file.remove(),
        }
    }

    /// Reads until the buffer is full or the file ends; returns the bytes read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<u64, IoError> {
        match self {
            Storage::Plain(file) => file.read(offset, buffer),
            Storage::Remote(file) => file.read(offset, buffer),
        }
    }

    /// Writes the whole buffer.
    pub fn write(&self, offset: u64, buffer: &[u8]) -> Result<u64, IoError> {
        match self {
            Storage::Plain(file) => file.write(offset, buffer),
            Storage::Remote(file) => file.write(offset, buffer),
        }
    }

    /// Reads or writes an interval of the file; of what is read, bytes beyond the end of the file are zero.
    pub fn window(&self, direction: Direction, file: Range<u64>, buffer: &mut [u8]) -> Result<u64, IoError> {
        match direction {
            Direction::Write => self.write(file.start, buffer),
            Direction::Read => {
                let read = self.read(file.start, buffer)?;
                buffer[read as usize..].fill(0);
                Ok(read)
            }
        }
    }

    /// Moves the data bytes `positions` of `view`, the first of which is data byte `start` of memory, between memory and
    /// the servers, which put them in their places. None for a plain file: there is nobody to do that.
    pub fn ship(
        &self,
        direction: Direction,
        view: &View,
        positions: Range<u64>,
        start: u64,
        memory: &mut Memory,
    ) -> Option<Result<u64, IoError>> {
        match self {
            Storage::Plain(_) => None,
            Storage::Remote(file) => Some(file.ship(direction, view, positions, start, memory)),
        }
    }

    /// Waits until nobody else has a lock on any of these bytes, and locks them. Others are all other open files: of
    /// other processes, and of this one.
    pub fn lock(&self, file: Range<u64>) -> Result<(), IoError> {
        match self {
            Storage::Plain(plain) => plain.lock(file),
            Storage::Remote(remote) => remote.lock(file),
        }
    }

    /// Gives the bytes free again.
    pub fn unlock(&self, file: Range<u64>) -> Result<(), IoError> {
        match self {
            Storage::Plain(plain) => plain.unlock(file),
            Storage::Remote(remote) => remote.unlock(&file),
        }
    }

    /// Bytes in the file.
    pub fn size(&self) -> Result<u64, IoError> {
        match self {
            Storage::Plain(file) => file.size(),
            Storage::Remote(file) => file.size(),
        }
    }

    /// Cuts or extends the file.
    pub fn set_size(&self, size: u64) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.set_size(size),
            Storage::Remote(file) => file.set_size(size),
        }
    }

    /// Makes sure that there is room for so many bytes; the file is at least so long then.
    pub fn preallocate(&self, size: u64) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.preallocate(size),
            Storage::Remote(file) => file.preallocate(size),
        }
    }

    /// Makes the data durable.
    pub fn sync(&self) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.sync(),
            Storage::Remote(file) => file.sync(),
        }
    }
}

/// Removes a file by name.
pub fn remove(path: &CStr) -> Result<(), IoError> {
    match remote::name_of(path) {
        Some(name) => remote::remove(&name),
        None => plain::remove(without_driver(path)),
    }
}

/// The path without the name of a driver.
pub fn without_driver(path: &CStr) -> &CStr {
    CStr::from_bytes_with_nul(&path.to_bytes_with_nul()[drivers::prefix_len(path.to_bytes())..])
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_drivers_are_taken_off() {
        assert_eq!(without_driver(c"ufs:/tmp/a"), c"/tmp/a");
        assert_eq!(without_driver(c"run:a"), c"run:a");
    }

    #[test]
    fn modes_are_checked() {
        assert!(Mode(Mode::READ_ONLY).is_valid());
        assert!(!Mode(Mode::READ_ONLY | Mode::CREATE).is_valid());
        assert!(!Mode(Mode::READ_ONLY | Mode::READ_WRITE).is_valid());
        assert!(!Mode(Mode::CREATE).is_valid());
        assert!(Mode(Mode::WRITE_ONLY | Mode::CREATE | Mode::EXCLUSIVE).is_valid());
    }
}
