//! Folders of ours that were left behind, because the process was killed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How the names of all files begin that Pioscope puts beside the user's.
pub(crate) const OURS: &str = ".pioscope-";
/// How the names of the folders begin that hold copies.
pub(crate) const PREFIX: &str = ".pioscope-scratch-";
/// A file that the owner of such a folder keeps locked. It holds the owner's host and process.
const ALIVE: &str = "alive";
/// What it is called until it is locked: who finds it before may not take the owner for dead.
const BEGUN: &str = "alive.begun";

/// Locks a folder as our own, as long as the file is open.
pub(crate) fn hold(folder: &Path) -> io::Result<File> {
    let begun = folder.join(BEGUN);
    let mut file = File::create(&begun)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            writeln!(file, "{} {}", host(), process::id())?;
            fs::rename(begun, folder.join(ALIVE))?;
        }
        // Where a file system has no locks, nobody can tell: nothing is removed there.
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(file)
}

/// Removes what was left in a folder by processes that are no more. What cannot be removed stays.
pub(crate) fn remove(there: &Path) {
    for entry in fs::read_dir(there).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            let path = entry.path();
            if is_left(&path.join(ALIVE)) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

/// Whether the owner of a folder is no more. Many file systems keep locks to the host: those of others cannot be told.
fn is_left(alive: &Path) -> bool {
    let is_ours = || {
        fs::read_to_string(alive).is_ok_and(|owner| owner.split_once(' ').is_some_and(|(of, _)| of == host()))
    };
    // NFS locks only what is open for writing.
    let is_free = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    is_ours() && File::options().write(true).open(alive).is_ok_and(is_free)
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Who looked for leftovers meanwhile locked the folder before its owner did, and removed it.
    #[test]
    fn a_folder_that_is_being_made_is_not_left() {
        let place = tempfile::tempdir().unwrap();
        let is_done = AtomicBool::new(false);
        let stays = |_| {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place.path()).unwrap();
            let held = hold(folder.path());
            thread::sleep(Duration::from_micros(200));
            held.is_ok() && folder.path().join(ALIVE).is_file()
        };
        let all_stay = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    remove(place.path());
                }
            });
            let all_stay = (0..300).all(stays);
            is_done.store(true, Ordering::Relaxed);
            all_stay
        });
        assert!(all_stay);
    }
}
