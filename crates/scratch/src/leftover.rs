//! Folders of ours that were left behind, because the process was killed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// How the names of all files begin that Pioscope puts beside the user's.
pub(crate) const OURS: &str = ".pioscope-";
/// How the names of the folders begin that hold copies.
pub(crate) const PREFIX: &str = ".pioscope-scratch-";
/// A file that the owner of such a folder keeps locked. It holds the owner's host and process.
const ALIVE: &str = "alive";
/// What it is called until it is locked: who finds it before may not take the owner for dead.
const BEGUN: &str = "alive.begun";
/// A file that does not name its owner says nothing before that: it may just have been made, or be of another host.
const OLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// Locks a folder as our own, as long as the file is open.
pub(crate) fn hold(folder: &Path) -> io::Result<File> {
    hold_by(folder, |file| flock(file, FlockOperation::NonBlockingLockExclusive))
}

fn hold_by(folder: &Path, lock: impl FnOnce(&File) -> rustix::io::Result<()>) -> io::Result<File> {
    let begun = folder.join(BEGUN);
    let mut file = File::create(&begun)?;
    if lock(&file).is_ok() {
        writeln!(file, "{} {}", host(), process::id())?;
        fs::rename(begun, folder.join(ALIVE))?;
    } else {
        // Not every file system has locks (NFS 3 may have no lockd), and each says so in its own way. Nobody can tell then, also
        // not when there are locks again: nothing is removed there.
        fs::remove_file(begun)?;
    }
    Ok(file)
}

/// Removes what was left in a folder by processes that are no more. What cannot be removed stays.
pub(crate) fn remove(there: &Path) {
    for entry in fs::read_dir(there).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            let path = entry.path();
            // The owner may have been killed before it locked the file, or renamed it.
            if is_left(&path.join(ALIVE)) || is_left(&path.join(BEGUN)) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

/// Whether the owner of a folder is no more. Many file systems keep locks to the host: those of others cannot be told.
fn is_left(alive: &Path) -> bool {
    let can_be_told = || {
        fs::read_to_string(alive).is_ok_and(|owner| match owner.split_once(' ') {
            Some((of, _)) => of == host(),
            // Earlier versions did not name the owner.
            None => owner.is_empty() && is_old(alive),
        })
    };
    // NFS locks only what is open for writing.
    let is_free = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    can_be_told() && File::options().write(true).open(alive).is_ok_and(is_free)
}

fn is_old(file: &Path) -> bool {
    let changed = fs::metadata(file).and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > OLD))
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::SystemTime;

    use rustix::io::Errno;

    use super::*;

    /// NFS 3 without its lockd says ENOLCK: no program could be tried there.
    #[test]
    fn a_folder_without_locks_can_be_used_and_stays() {
        let place = tempfile::tempdir().unwrap();
        for error in [Errno::NOLCK, Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP] {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place.path()).unwrap();
            drop(hold_by(folder.path(), |_| Err(error)).unwrap());
            remove(place.path());
            assert!(folder.path().exists());
        }
    }

    /// Neither what an earlier version left nor what was left before the file was renamed was ever removed.
    #[test]
    fn what_does_not_name_its_owner_is_left_when_it_is_old() {
        let place = tempfile::tempdir().unwrap();
        let stays = |name: &str, owner: &str, age: Duration, locked: bool| {
            let folder = place.path().join(format!("{PREFIX}x"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(name), owner).unwrap();
            let file = File::options().write(true).open(folder.join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            if locked {
                flock(&file, FlockOperation::LockExclusive).unwrap();
            }
            remove(place.path());
            let stays = folder.exists();
            let _ = fs::remove_dir_all(folder);
            stays
        };
        let own = format!("{} 1\n", host());
        for name in [ALIVE, BEGUN] {
            assert!(!stays(name, "", 2 * OLD, false), "{name}");
            assert!(stays(name, "", 2 * OLD, true), "{name}: locked");
            assert!(stays(name, "", Duration::ZERO, false), "{name}: new");
            assert!(!stays(name, &own, Duration::ZERO, false), "{name}: ours");
            assert!(stays(name, "another 1\n", 2 * OLD, false), "{name}: of another host");
        }
    }

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
