//! Folders of ours that were left behind, because the process was killed.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// How the names of all files begin that Pioscope puts beside the user's.
pub(crate) const OURS: &str = ".pioscope-";
/// How the names of the folders begin that hold copies.
pub(crate) const PREFIX: &str = ".pioscope-scratch-";
/// A file that the owner of such a folder keeps locked.
const ALIVE: &str = "alive";

/// Locks a folder as our own, as long as the file is open.
pub(crate) fn hold(folder: &Path) -> io::Result<File> {
    let file = File::create(folder.join(ALIVE))?;
    // Where a file system has no locks, nobody can tell: nothing is removed there.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok(file)
}

/// Removes what was left in a folder by processes that are no more. What cannot be removed stays.
pub(crate) fn remove(there: &Path) {
    for entry in fs::read_dir(there).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            let path = entry.path();
            let is_left = File::open(path.join(ALIVE))
                .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
            if is_left {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}
