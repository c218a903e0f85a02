//! How much room the parts of all servers of a process may take.
//!
//! Counted is what the files of parts take on their disks, which is less than their length where they have holes. Room is
//! reserved before it is written to, and what a file really takes is looked up afterwards: so writers at the same moment
//! cannot take more than there is, and bytes that are written over need none.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::SeekFrom;

use super::extents::seek;
use super::files::{Trouble, parts_of};
use super::part::Paths;
use pio_protocol::Failure;

/// File systems give room in blocks of so many bytes.
const GRAIN_BYTES: u64 = 4096;

/// The room that the parts of all servers of a process may take.
#[derive(Debug)]
pub struct Allowance {
    limit_bytes: u64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// What the files take, and what is reserved.
    bytes: u64,
    /// What those of each part take.
    parts: BTreeMap<PathBuf, u64>,
}

/// Room that is reserved for what is about to be written to a part.
#[derive(Debug)]
#[must_use]
pub(super) struct Reserved<'a> {
    allowance: Option<&'a Allowance>,
    paths: &'a Paths,
    bytes: u64,
    /// Up to where room is the part's, even if it ends before.
    own_bytes: u64,
}

impl Allowance {
    /// Room of `limit_bytes` for the servers that keep their data in `folders`: what is there already counts.
    ///
    /// # Errors
    /// If a folder cannot be looked at.
    pub fn new(limit_bytes: u64, folders: &[PathBuf]) -> io::Result<Allowance> {
        let mut taken = Taken::default();
        for folder in folders {
            taken.count(&parts_of(folder))?;
        }
        Ok(Allowance { limit_bytes, taken: Mutex::new(taken) })
    }

    /// How much the parts may take.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// How much they take.
    pub fn taken_bytes(&self) -> u64 {
        self.taken().bytes
    }

    /// How much more they may take.
    pub fn free_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.taken().bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<(), Trouble> {
        let mut taken = self.taken();
        let after = taken.bytes.checked_add(bytes).filter(|after| bytes == 0 || *after <= self.limit_bytes);
        taken.bytes = after.ok_or(Trouble(Failure::Full))?;
        Ok(())
    }

    /// Gives back what was reserved for a part, and counts what its files take.
    fn settle(&self, paths: &Paths, reserved_bytes: u64, own_bytes: u64) {
        let mut taken = self.taken();
        taken.bytes -= reserved_bytes;
        // With the table held: what is looked up last is noted last.
        match paths.taken_bytes(own_bytes) {
            0 => taken.forget(&paths.data),
            bytes => taken.note(&paths.data, bytes),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn count(&mut self, parts: &Path) -> io::Result<()> {
        let entries = match fs::read_dir(parts) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            if let Some(file) = Paths::file(&entry?.file_name()) {
                let paths = Paths::new(parts, file);
                self.note(&paths.data, paths.taken_bytes(0));
            }
        }
        Ok(())
    }

    fn note(&mut self, part: &Path, bytes: u64) {
        let before = self.parts.insert(part.to_owned(), bytes).unwrap_or(0);
        self.bytes = self.bytes + bytes - before;
    }

    fn forget(&mut self, part: &Path) {
        self.bytes -= self.parts.remove(part).unwrap_or(0);
    }
}

impl<'a> Reserved<'a> {
    /// Reserves room for a part, if there is a limit.
    ///
    /// # Errors
    /// [`Failure::Full`] if there is not so much.
    pub(super) fn new(
        allowance: Option<&'a Allowance>,
        paths: &'a Paths,
        bytes: impl FnOnce() -> io::Result<u64>,
    ) -> Result<Reserved<'a>, Trouble> {
        let mut reserved = Reserved { allowance: None, paths, bytes: 0, own_bytes: 0 };
        if let Some(limited) = allowance {
            reserved.bytes = bytes()?;
            limited.reserve(reserved.bytes)?;
            reserved.allowance = allowance;
        }
        Ok(reserved)
    }

    /// The part has made sure of room for so many bytes: it counts, though there is nothing yet.
    pub(super) fn owning(mut self, bytes: u64) -> Reserved<'a> {
        self.own_bytes = bytes;
        self
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(allowance) = self.allowance {
            allowance.settle(self.paths, self.bytes, self.own_bytes);
        }
    }
}

/// Bytes that a file takes on its disk, as far as they are its own: some file systems take more behind the end of a file
/// for a while, in case it grows. What is before `own_bytes` is its own even so.
pub(super) fn taken_by(metadata: &Metadata, own_bytes: u64) -> u64 {
    let blocks = metadata.blocks().saturating_mul(512);
    blocks.min(metadata.len().max(own_bytes).checked_next_multiple_of(GRAIN_BYTES).unwrap_or(u64::MAX))
}

/// Bytes that writing to `bytes` of a file takes beyond what the file takes now.
pub(super) fn holes(file: &File, bytes: &Range<u64>) -> io::Result<u64> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let end = bytes.end.checked_next_multiple_of(GRAIN_BYTES).unwrap_or(u64::MAX);
    let mut at = bytes.start - bytes.start % GRAIN_BYTES;
    let mut missing = 0;
    while at < end {
        // Behind the end of the file all is a hole.
        let hole =
            seek(file, SeekFrom::Hole(at))?.map_or(at, |hole| hole.next_multiple_of(GRAIN_BYTES)).max(at);
        if hole >= end {
            break;
        }
        let data = seek(file, SeekFrom::Data(hole))?.map_or(end, |data| data - data % GRAIN_BYTES);
        at = data.clamp(hole, end);
        missing += at - hole;
        if at == hole {
            // A block of data shorter than ours.
            at += GRAIN_BYTES;
        }
    }
    Ok(missing)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn only_holes_take_room() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(holes(&file, &(0..1)).unwrap(), GRAIN_BYTES);
        assert_eq!(holes(&file, &(5000..8193)).unwrap(), 2 * GRAIN_BYTES);
        file.write_all_at(&[1; 100], 10 * GRAIN_BYTES).unwrap();
        if taken_by(&file.metadata().unwrap(), 0) != GRAIN_BYTES {
            eprintln!("skipped: no holes in files on this file system");
            return;
        }
        assert_eq!(holes(&file, &(0..11 * GRAIN_BYTES)).unwrap(), 10 * GRAIN_BYTES);
        assert_eq!(holes(&file, &(10 * GRAIN_BYTES..11 * GRAIN_BYTES)).unwrap(), 0);
        assert_eq!(holes(&file, &(10 * GRAIN_BYTES + 7..12 * GRAIN_BYTES + 1)).unwrap(), 2 * GRAIN_BYTES);
        file.write_all_at(&[1], 0).unwrap();
        assert_eq!(holes(&file, &(0..11 * GRAIN_BYTES)).unwrap(), 9 * GRAIN_BYTES);
    }
}
