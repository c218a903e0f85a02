//! Room for the database of names on a disk that is full.
//!
//! Removing a file is a transaction too, and writes before it frees: without room of its own, nothing could ever be removed
//! from a full disk again. So blocks for the whole database and some more are taken while there are any.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FallocateFlags;

/// Blocks behind the end of the database: it grows by as much at a time while it is small.
const RESERVE_BYTES: u64 = 1 << 20;

/// Blocks that are kept for a file.
#[derive(Debug)]
pub(super) struct Room {
    file: File,
    /// For which length of the file they were taken last.
    for_len: AtomicU64,
}

impl Room {
    /// Keeps room for the file at `path`.
    pub(super) fn keep(path: &Path) -> io::Result<Room> {
        let room = Room { file: File::options().write(true).open(path)?, for_len: AtomicU64::new(0) };
        room.renew();
        Ok(room)
    }

    /// Takes blocks again if the file has another length now. There may be none to be had: then later.
    pub(super) fn renew(&self) {
        let Ok(len) = self.file.metadata().map(|metadata| metadata.len()) else { return };
        if len != self.for_len.load(Ordering::Relaxed) {
            let wanted = len + RESERVE_BYTES;
            let taken = rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, wanted);
            self.for_len.store(if taken.is_ok() { len } else { 0 }, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn blocks_are_kept_and_the_length_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = File::create(&path).unwrap();
        file.set_len(3 << 20).unwrap();
        let room = Room::keep(&path).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!(metadata.len(), 3 << 20);
        assert!(metadata.blocks() * 512 >= 4 << 20, "{}", metadata.blocks());
        file.set_len(5 << 20).unwrap();
        room.renew();
        assert!(file.metadata().unwrap().blocks() * 512 >= 6 << 20);
    }
}
