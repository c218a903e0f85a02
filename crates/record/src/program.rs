//! Can this command be recorded? Asked before it is started, so that nobody waits for a job that leaves no trace.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Programs that start the program in their arguments, beside the launchers of MPIs.
const LAUNCHERS: [&str; 8] = ["srun", "env", "time", "nice", "timeout", "nohup", "taskset", "numactl"];

/// Checks `command[0]`; and, if it is a launcher, the first program among its arguments.
pub fn check(command: &[impl AsRef<OsStr>]) -> Result<(), Error> {
    let Some(program) = command.first().map(AsRef::as_ref) else { return Err(Error::NoCommand) };
    let path = find(program)?;
    check_dynamic(&path)?;
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or("");
    if !LAUNCHERS.contains(&name) && !pio_mpi::is_launcher(name) {
        return Ok(());
    }
    // Options' values are no program files: the first argument that is one is what gets launched.
    for argument in &command[1..] {
        if let Ok(path) = find(argument.as_ref())
            && is_elf(&path)
        {
            return check_dynamic(&path);
        }
    }
    Ok(())
}

/// The file that the system would run.
fn find(program: &OsStr) -> Result<PathBuf, Error> {
    let not_found = || Error::NotFound { program: program.into() };
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match path.metadata() {
            Err(_) => Err(not_found()),
            Ok(_) if !is_executable(&path) => Err(Error::NotExecutable { program: path }),
            Ok(_) => Ok(path),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
        .ok_or_else(not_found)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && &magic == b"\x7fELF"
}

/// Refuses a 64-bit ELF program without an interpreter: nothing loads libraries into it.
fn check_dynamic(path: &Path) -> Result<(), Error> {
    match has_interpreter(path) {
        Some(false) => Err(Error::Static { program: path.to_path_buf() }),
        _ => Ok(()),
    }
}

/// None if the file is no 64-bit little-endian ELF program (a script, say), or cannot be read.
fn has_interpreter(path: &Path) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let file = File::open(path).ok()?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if &header[..4] != b"\x7fELF" || header[4] != 2 || header[5] != 1 {
        return None;
    }
    let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let table = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let (entry_bytes, entries) = (u64::from(u16_at(54)), u64::from(u16_at(56)));
    for entry in 0..entries {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, table.checked_add(entry * entry_bytes)?).ok()?;
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}
