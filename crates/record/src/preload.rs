//! Where a library must lie to be preloaded.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Whether `LD_PRELOAD` can hold a path: the loader takes a blank or a colon in it for the end of a name.
pub fn can_be_preloaded(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':'))
}

/// A new folder for libraries to preload, which is removed when it is dropped: in the working folder, which the hosts of
/// a job share, else in one for temporary files.
///
/// # Errors
/// If no such folder can be written to, or none has a path that `LD_PRELOAD` can hold.
pub fn preload_folder() -> io::Result<TempDir> {
    let temporary = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/dev/shm")];
    let folders = std::env::current_dir().into_iter().chain(temporary);
    let mut failure = io::Error::new(
        io::ErrorKind::InvalidInput,
        "the working folder and that for temporary files (TMPDIR) have a blank or a colon in their paths",
    );
    for folder in folders.filter(|folder| can_be_preloaded(folder)) {
        match tempfile::Builder::new().prefix(".pioscope-").tempdir_in(folder) {
            Ok(made) => return Ok(made),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
