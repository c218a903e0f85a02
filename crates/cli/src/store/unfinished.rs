//! Files of the store that copies write to until they are complete.
//!
//! Such a file is called `PATH.NUMBER.part`, and its copy holds a lock on it, which the servers give up when they have not
//! heard of the client for a while: so one whose copy was killed can be told from one that is being written.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use pio_store::auth::random;
use pio_store::client::{Lock, Mode, Store, StoreFile, StripingHints};

const END: &str = ".part";
const DIGITS: usize = 8;

/// A name that no other copy has.
pub(super) fn name(path: &str) -> Result<String> {
    let number = u32::from_le_bytes(random().context("no random numbers")?);
    Ok(format!("{path}.{number:0DIGITS$x}{END}"))
}

/// The path that the copy was to get; `None` if the name is not one of an unfinished copy.
pub(super) fn target(name: &str) -> Option<&str> {
    let (path, number) = name.strip_suffix(END)?.rsplit_once('.')?;
    let digits = |digit: char| digit.is_ascii_digit() || ('a'..='f').contains(&digit);
    (number.len() == DIGITS && number.chars().all(digits)).then_some(path)
}

/// Says to others that this copy is going on, until the process ends or has not been heard of for a while.
pub(super) fn mark(file: &StoreFile) -> Result<Lock> {
    Ok(file.lock(0..1, false, Duration::ZERO)?)
}

/// Those of the names that are unfinished copies nobody works on any more.
pub(super) fn abandoned(store: &Store, names: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in names.iter().filter(|name| target(name).is_some()) {
        let file = match store.open(name, Mode::default(), StripingHints::default()) {
            Ok(file) => file,
            // It may be complete by now.
            Err(error) if kind(error.errno()) == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        match file.lock(0..1, false, Duration::ZERO) {
            Ok(lock) => {
                file.unlock(lock)?;
                found.push(name.clone());
            }
            Err(error) if kind(error.errno()) == io::ErrorKind::TimedOut => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
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
        for other in ["a.part", "a.0123.part", "a.0123456x.part", "a.01234567", "a.01234567.parts"] {
            assert_eq!(target(other), None, "{other}");
        }
    }
}
