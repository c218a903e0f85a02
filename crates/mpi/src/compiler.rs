//! What an MPI compiler shows of its work.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, PoisonError};

/// By compiler. It is a script that takes longer than all else that a job needs to begin, and says the same each time.
static SHOWN: Mutex<BTreeMap<PathBuf, Arc<Output>>> = Mutex::new(BTreeMap::new());

/// What `mpicc -show` puts out: the command that it would run. Asked once in a process.
///
/// # Errors
/// If it cannot be run. That it fails, the output says.
pub fn show(mpicc: &Path) -> io::Result<Arc<Output>> {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(output) = shown.get(mpicc) {
        return Ok(output.clone());
    }
    let output = Arc::new(Command::new(mpicc).arg("-show").output()?);
    shown.insert(mpicc.to_owned(), output.clone());
    Ok(output)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let mpicc = folder.path().join("mpicc");
        assert!(show(&mpicc).is_err());
        fs::write(&mpicc, "#!/bin/sh\necho \"cc $1\"\necho asked >> \"$0.log\"\n").unwrap();
        fs::set_permissions(&mpicc, fs::Permissions::from_mode(0o755)).unwrap();
        for _ in 0..3 {
            assert_eq!(show(&mpicc).unwrap().stdout, b"cc -show\n");
        }
        assert_eq!(fs::read_to_string(folder.path().join("mpicc.log")).unwrap(), "asked\n");
    }
}
