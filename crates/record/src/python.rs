//! The module by which recorded Python programs mark their epochs, waits and checkpoints without being changed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{env, fs, io};

/// What the interpreter runs when it starts.
const MODULE: &str = include_str!("../python/sitecustomize.py");

/// Writes the module below the folder of spools, whose files are none of the job's. The value of `PYTHONPATH` that has it run;
/// none if that cannot be, as nothing depends on it.
pub(crate) fn path_with_module(spool: &Path) -> Option<OsString> {
    let folder = spool.join("python");
    // The variable has no way to write a colon.
    if folder.as_os_str().as_bytes().contains(&b':') || write(&folder).is_err() {
        return None;
    }
    let mut path = folder.into_os_string();
    let users = env::var_os("PYTHONPATH").unwrap_or_default();
    if !users.is_empty() {
        path.push(OsStr::new(":"));
        path.push(users);
    }
    Some(path)
}

fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    fs::write(folder.join("sitecustomize.py"), MODULE)
}
