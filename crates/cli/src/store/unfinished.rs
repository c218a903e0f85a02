//! Files of the store that copies write to until they are complete.
//!
//! Such a file is called `PATH.NUMBER.part`, and its copy holds a lock on it, which the servers give up when they have not
//! heard of the client for a while: so one whose copy was killed can be told from one that is being written.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pio_protocol::{Failure, FileId, PATH_BYTES};
use pio_store::StoreError;
use pio_store::auth::random;
use pio_store::client::{Lock, Mode, Store, StoreFile, StripingHints};

const END: &str = ".part";
const DIGITS: usize = 8;
/// Bytes of a path whose copy has a name until it is complete, too.
const MOST_BYTES: usize = PATH_BYTES - (1 + DIGITS + END.len());

/// How long a copy waits for others to see that it is going on.
const PATIENCE: Duration = Duration::from_secs(10);

/// A name that no other copy has.
fn name(path: &str) -> Result<String> {
    ensure!(
        path.len() <= MOST_BYTES,
        "{path}: a path of {} bytes: expected at most {MOST_BYTES}, as the copy has a longer name until it is complete",
        path.len()
    );
    let number = u32::from_le_bytes(random().context("no random numbers")?);
    Ok(format!("{path}.{number:0DIGITS$x}{END}"))
}

/// The path that the copy was to get; `None` if the name is not one of an unfinished copy.
pub(super) fn target(name: &str) -> Option<&str> {
    let (path, number) = name.strip_suffix(END)?.rsplit_once('.')?;
    let digits = |digit: char| digit.is_ascii_digit() || ('a'..='f').contains(&digit);
    (number.len() == DIGITS && number.chars().all(digits)).then_some(path)
}

/// Makes the file that a copy writes to until it is complete, and says to others that it is going on, until the process ends or
/// has not been heard of for a while.
pub(super) fn create(
    store: &Store,
    path: &str,
    striping: StripingHints,
) -> Result<(String, StoreFile, Lock)> {
    loop {
        let name = name(path)?;
        let file = store.open(&name, Mode { create: true, exclusive: true }, striping)?;
        let lock = file.lock(0..1, false, PATIENCE)?;
        // Another copy may have found it before it was locked, and removed it.
        match store.stat(&name) {
            Ok(_) => return Ok((name, file, lock)),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Those of the names that are unfinished copies nobody works on any more.
pub(super) fn abandoned(store: &Store, names: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in names.iter().filter(|name| target(name).is_some()) {
        if let Some((file, lock)) = lock_abandoned(store, name)? {
            file.unlock(lock)?;
            found.push(name.clone());
        }
    }
    Ok(found)
}

/// Removes an unfinished copy, unless somebody works on it.
pub(super) fn remove(store: &Store, name: &str) -> Result<()> {
    let Some((file, lock)) = lock_abandoned(store, name)? else { return Ok(()) };
    drop_name(store, name, file.file().id)?;
    // Nobody looks for the lock of a file that is gone.
    let _ = file.unlock(lock);
    Ok(())
}

/// Takes its name from an unfinished copy, and with it the data; but one that was stopped while it took its path has both names: that
/// file is complete.
pub(super) fn drop_name(store: &Store, name: &str, file: FileId) -> Result<(), StoreError> {
    let path = target(name).map(|path| store.open(path, Mode::default(), StripingHints::default()));
    match path {
        Some(Ok(found)) if found.file().id == file => store.unlink(name),
        // What is known of the copy was not lost: that is another file.
        Some(Err(StoreError::Failed { failure: Failure::FolderLost, .. })) => store.remove(name),
        // Who cannot be asked may have it.
        Some(Err(error)) if !is_missing(&error) => Err(error),
        _ => store.remove(name),
    }
}

/// Opens and locks an unfinished copy; `None` if it is gone, or somebody works on it.
fn lock_abandoned(store: &Store, name: &str) -> Result<Option<(StoreFile, Lock)>> {
    let file = match store.open(name, Mode::default(), StripingHints::default()) {
        Ok(file) => file,
        // It may be complete by now.
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match file.lock(0..1, false, Duration::ZERO) {
        Ok(lock) => Ok(Some((file, lock))),
        Err(error) if kind(error.errno()) == io::ErrorKind::TimedOut => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether there is no such file.
pub(super) fn is_missing(error: &StoreError) -> bool {
    kind(error.errno()) == io::ErrorKind::NotFound
}

fn kind(errno: i32) -> io::ErrorKind {
    io::Error::from_raw_os_error(errno).kind()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on should stop.
mod tests {
    use super::*;

    #[test]
    fn names_of_unfinished_copies_are_told_from_others() {
        assert_eq!(target(&name("run/a.nc").unwrap()), Some("run/a.nc"));
        let longest = "a".repeat(MOST_BYTES);
        assert_eq!(name(&longest).unwrap().len(), PATH_BYTES);
        let error = name(&format!("{longest}b")).unwrap_err().to_string();
        assert!(error.ends_with(
            "of 1011 bytes: expected at most 1010, as the copy has a longer name until it is complete"
        ));
        for other in ["a.part", "a.0123.part", "a.0123456x.part", "a.01234567", "a.01234567.parts"] {
            assert_eq!(target(other), None, "{other}");
        }
    }
}
