//! Where a sidecar is, and its name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name of the sidecar with a number.
pub(crate) fn name(number: u64) -> String {
    format!(".pioscope-{number:016x}")
}

/// The folder that the file at `path` is in.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != OsStr::from_bytes(b"") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
