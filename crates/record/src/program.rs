//! What is about to be started: is it there, and can it be recorded? Asked before the job starts, so that nobody waits for
//! one that leaves no trace.
//!
//! What a program file is, the C of the recorder's exec hooks decides (`c/pio_program.c`): here for the command itself,
//! there for all that it starts.
#![allow(unsafe_code)] // The C is called.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pio_trace::Reason;

use crate::error::Error;

/// A program file, looked at.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The file that the system would run.
    pub path: PathBuf,
    /// Why its calls cannot be seen; none if they can.
    pub unseen: Option<Reason>,
    /// Whether it does not run, or complains, with the recorder in `LD_PRELOAD`.
    pub is_harmed: bool,
    /// The library that must come before the recorder in `LD_PRELOAD`.
    pub sanitizer: Option<OsString>,
}

/// `struct pio_program` of `c/pio_program.h`.
#[repr(C)]
struct Verdict {
    reason: *const c_char,
    is_harmed: bool,
    sanitizer: [c_char; 512],
}

unsafe extern "C" {
    fn pio_look_at_program(path: *const c_char, program: *mut Verdict);
}

impl Program {
    /// The program that `command` names.
    ///
    /// # Errors
    /// If there is no such program.
    pub(crate) fn of(command: &[impl AsRef<OsStr>]) -> Result<Program, Error> {
        let Some(name) = command.first().map(AsRef::as_ref) else { return Err(Error::NoCommand) };
        let path = find(name)?;
        let mut verdict = Verdict { reason: std::ptr::null(), is_harmed: false, sanitizer: [0; 512] };
        if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
            // SAFETY: both pointers are valid for the call; the C fills the verdict in, and keeps neither.
            unsafe { pio_look_at_program(path.as_ptr(), &mut verdict) };
        }
        // SAFETY: the reason is null or a string literal of the C.
        let reason = (!verdict.reason.is_null()).then(|| unsafe { CStr::from_ptr(verdict.reason) });
        let sanitizer: Vec<u8> =
            verdict.sanitizer.iter().map(|&c| c.cast_unsigned()).take_while(|&b| b != 0).collect();
        Ok(Program {
            path,
            unseen: reason.map(|name| Reason::from_name(&name.to_string_lossy())),
            is_harmed: verdict.is_harmed,
            sanitizer: (!sanitizer.is_empty()).then(|| OsString::from_vec(sanitizer)),
        })
    }
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

/// Programs that start the program in their arguments, beside the launchers of MPIs: of batch systems, and of any.
const LAUNCHERS: [&str; 10] =
    ["srun", "aprun", "jsrun", "env", "time", "nice", "timeout", "nohup", "taskset", "numactl"];

/// Programs that hand a job script to a batch system, which runs it later.
const SUBMITS: [&str; 3] = ["sbatch", "qsub", "bsub"];

/// The name of a command that only hands a job script on.
pub fn hands_on(command: &[impl AsRef<OsStr>]) -> Option<&'static str> {
    let name = Path::new(command.first()?.as_ref()).file_name()?;
    SUBMITS.into_iter().find(|known| name == *known)
}

/// Checks that libraries can be loaded into `command[0]` and, if it is a launcher, into the first program among its
/// arguments. To record does not need it: what cannot be seen runs, and is named. To change what a program does needs it.
///
/// # Errors
/// If there is no such program, or nothing can be loaded into it.
pub fn check(command: &[impl AsRef<OsStr>]) -> Result<(), Error> {
    let program = Program::of(command)?;
    for program in [Some(program), launched(command)].into_iter().flatten() {
        if let Some(reason) = program.unseen.filter(|reason| *reason != Reason::Go) {
            return Err(Error::Unreachable { program: program.path, reason: reason.sentence() });
        }
    }
    Ok(())
}

/// Why the calls of a command itself, or of the program that it launches, will not be seen, in a sentence; none if they will, or
/// if there is no such command.
pub fn cannot_see(command: &[impl AsRef<OsStr>]) -> Option<String> {
    let programs = [Program::of(command).ok(), launched(command)];
    let unseen = programs.into_iter().flatten().find(|program| program.unseen.is_some())?;
    Some(format!("{}: not seen: {}", unseen.path.display(), unseen.unseen?.sentence()))
}

/// Whether a command's first word is a program that starts one in its arguments, such as `srun` or `mpiexec`.
pub fn is_launcher(command: impl AsRef<OsStr>) -> bool {
    let name = Path::new(command.as_ref()).file_name();
    name.is_some_and(|name| LAUNCHERS.iter().any(|known| name == *known) || pio_mpi::is_launcher(name))
}

/// The program that a launcher's command starts, if that can be told.
fn launched(command: &[impl AsRef<OsStr>]) -> Option<Program> {
    let (launcher, words) = command.split_first()?;
    let is_launcher = is_launcher(launcher);
    // Options' values are no program files: the first argument that is one is what gets launched.
    words.iter().filter(|_| is_launcher).find_map(|word| {
        let found = Program::of(std::slice::from_ref(word)).ok()?;
        is_elf(&found.path).then_some(found)
    })
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && &magic == b"\x7fELF"
}
