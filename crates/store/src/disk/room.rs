//! Room for the database of names on a disk that is full.
//!
//! Removing a file is a transaction too, and writes before it frees: without room of its own, nothing could ever be removed
//! from a full disk again. So some is kept back, in a file that has no other use, and given away for what makes room.

use std::fs;
use std::path::PathBuf;

use rustix::fs::FallocateFlags;

use crate::private;

/// Bytes that are kept back: the database grows by a mebibyte at a time while it is small.
const RESERVE_BYTES: u64 = 4 << 20;

/// Room that is kept back.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Room in the file `path`, which may be there from earlier.
    pub(super) fn new(path: PathBuf) -> Reserve {
        Reserve { path }
    }

    /// Keeps the room, if there is so much: all or nothing, so that the little there is serves others.
    pub(super) fn keep(&self) {
        let kept = private::create_file(&self.path)
            .is_ok_and(|file| rustix::fs::fallocate(file, FallocateFlags::empty(), 0, RESERVE_BYTES).is_ok());
        if !kept {
            self.release();
        }
    }

    /// Gives it away; false if there was none.
    pub(super) fn release(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn room_is_kept_and_given_away_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reserve");
        let reserve = Reserve::new(path.clone());
        reserve.keep();
        reserve.keep();
        assert!(fs::metadata(&path).unwrap().blocks() * 512 >= RESERVE_BYTES);
        assert!(reserve.release());
        assert!(!reserve.release());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
