//! Where the bytes of an open file are: in a plain file, or on I/O servers.

use std::ffi::CStr;
use std::ops::Range;
use std::time::Duration;

use pio_layout::View;
use pio_plan::{Direction, IoError, Via};
use pio_protocol::client::Naming;
use pio_store::client::StripingHints;

use crate::core::mpi::memory::Memory;
use crate::core::storage::mode::Mode;
use crate::core::storage::path_prefix;
use crate::core::storage::posix::{self, PlainFile};
use crate::core::storage::servers::{self, RemoteFile};

/// An open file.
#[derive(Debug)]
pub(crate) enum Storage {
    /// A plain one.
    Plain(PlainFile),
    /// One on I/O servers.
    Remote(RemoteFile),
}

impl Storage {
    /// Opens the file. The `first` rank creates it, if it is to be created; on servers as `wanted` says.
    pub(crate) fn open(
        path: &CStr,
        mode: Mode,
        first: bool,
        wanted: StripingHints,
    ) -> Result<Storage, IoError> {
        match servers::name_of(path)? {
            Some(name) => RemoteFile::open(&name, mode.creates(first), wanted).map(Storage::Remote),
            None => PlainFile::open(without_driver(path), mode, first).map(Storage::Plain),
        }
    }

    /// Whether the file can be read from.
    pub(crate) fn is_readable(&self) -> bool {
        match self {
            Storage::Plain(file) => file.is_readable(),
            Storage::Remote(_) => true,
        }
    }

    /// A number that other files that are there have not: not those that had this one's name before, or will have.
    pub(crate) fn identity(&self) -> u64 {
        match self {
            Storage::Plain(file) => file.identity(),
            Storage::Remote(file) => file.identity(),
        }
    }

    /// How ranks reach the file.
    pub(crate) fn via(&self) -> Via {
        match self {
            Storage::Plain(_) => Via::Kernel,
            Storage::Remote(file) => {
                let (unit, factor) = file.striping();
                Via::Servers { factor, unit }
            }
        }
    }

    /// What must be done before the file is closed, and while it is there: servers make durable what was written.
    pub(crate) fn settle(&self) -> Result<(), IoError> {
        match self {
            Storage::Plain(_) => Ok(()),
            Storage::Remote(file) => file.sync(),
        }
    }

    /// Closes the file. What is asked of it from then on is an error.
    pub(crate) fn close(&self) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.close(),
            Storage::Remote(_) => Ok(()),
        }
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.remove(),
            Storage::Remote(file) => file.remove(),
        }
    }

    /// Reads until the buffer is full or the file ends; returns the bytes read.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<u64, IoError> {
        match self {
            Storage::Plain(file) => file.read(offset, buffer),
            Storage::Remote(file) => file.read(offset, buffer),
        }
    }

    /// Writes the whole buffer.
    pub(crate) fn write(&self, offset: u64, buffer: &[u8]) -> Result<u64, IoError> {
        match self {
            Storage::Plain(file) => file.write(offset, buffer),
            Storage::Remote(file) => file.write(offset, buffer),
        }
    }

    /// Reads or writes an interval of the file; of what is read, bytes beyond the end of the file are zero.
    pub(crate) fn window(
        &self,
        direction: Direction,
        file: Range<u64>,
        buffer: &mut [u8],
    ) -> Result<u64, IoError> {
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
    /// the servers, which put them in their places; requests name them as `naming` says. None for a plain file: there is
    /// nobody to do that.
    pub(crate) fn ship(
        &self,
        naming: Naming,
        direction: Direction,
        view: &View,
        positions: Range<u64>,
        start: u64,
        memory: &mut Memory,
    ) -> Option<Result<u64, IoError>> {
        match self {
            Storage::Plain(_) => None,
            Storage::Remote(file) => Some(file.ship(naming, direction, view, positions, start, memory)),
        }
    }

    /// Waits until nobody else has a lock on any of these bytes, or none but shared ones if this is `shared`, too, and locks
    /// them. Others are all other open files: of other processes, and of this one.
    pub(crate) fn lock(&self, file: Range<u64>, shared: bool) -> Result<(), IoError> {
        match self {
            Storage::Plain(plain) => plain.lock(file, shared),
            Storage::Remote(remote) => remote.lock(file, shared),
        }
    }

    /// Locks them as [`Storage::lock`] does for itself, but does not wait forever: who holds shared locks of a plain file by turns
    /// never leaves the bytes to one that waits for all of them, and a server keeps those of a client that hangs.
    pub(crate) fn lock_within(&self, file: Range<u64>, patience: Duration) -> Result<(), IoError> {
        match self {
            Storage::Plain(plain) => plain.lock_within(file, patience),
            Storage::Remote(remote) => remote.lock_within(file, patience),
        }
    }

    /// Gives the bytes free again.
    pub(crate) fn unlock(&self, file: Range<u64>) -> Result<(), IoError> {
        match self {
            Storage::Plain(plain) => plain.unlock(file),
            Storage::Remote(remote) => remote.unlock(&file),
        }
    }

    /// Bytes in the file.
    pub(crate) fn size(&self) -> Result<u64, IoError> {
        match self {
            Storage::Plain(file) => file.size(),
            Storage::Remote(file) => file.size(),
        }
    }

    /// Cuts or extends the file.
    pub(crate) fn set_size(&self, size: u64) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.set_size(size),
            Storage::Remote(file) => file.set_size(size),
        }
    }

    /// Makes sure that there is room for so many bytes; the file is at least so long then.
    pub(crate) fn preallocate(&self, size: u64) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.preallocate(size),
            Storage::Remote(file) => file.preallocate(size),
        }
    }

    /// Makes the data durable.
    pub(crate) fn sync(&self) -> Result<(), IoError> {
        match self {
            Storage::Plain(file) => file.sync(),
            Storage::Remote(file) => file.sync(),
        }
    }
}

/// Removes a file by name.
pub(crate) fn remove(path: &CStr) -> Result<(), IoError> {
    match servers::name_of(path).inspect_err(|_| servers::say_why())? {
        Some(name) => servers::remove(&name),
        None => posix::remove(without_driver(path)),
    }
}

/// The path without the name of a driver.
pub(crate) fn without_driver(path: &CStr) -> &CStr {
    CStr::from_bytes_with_nul(&path.to_bytes_with_nul()[path_prefix::prefix_len(path.to_bytes())..])
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
}
