//! Runs a job with libraries in its programs, unrecorded. What does not run with them is started without them, and named.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use pio_trace::{Reason, Unseen};

use crate::error::Error;
use crate::preload::{Order, list_of, preload_list, users_list};
use crate::program::Program;
use crate::run::run_to_end;
use crate::unseen::unseen;

/// The library that must be the first of those: it looks at each program that the job starts (`c/pio_starts.c`). A shared object for
/// this machine, to be written to a file.
pub const STARTS_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libpio_starts.so"));

/// How such a job went.
#[derive(Debug)]
pub struct Loaded {
    /// Of the command.
    pub status: ExitStatus,
    /// Programs that ran without the libraries, as far as their hosts reach the folder of notes.
    pub without: Vec<Unseen>,
}

/// Runs a command with libraries after the user's own in `LD_PRELOAD`, passing signals on to it. The folder `notes` is for
/// notes on programs that ran without.
///
/// # Errors
/// If it cannot be started, or `LD_PRELOAD` cannot name the libraries.
pub fn run_loaded(command: &mut Command, libraries: &[PathBuf], notes: &Path) -> Result<Loaded, Error> {
    let program = Program::of(&[command.get_program()])?;
    let own = list_of(libraries)?;
    command
        .env("LD_PRELOAD", preload_list(&program, &own, &users_list(), Order::UsersFirst))
        .env("PIOSCOPE_STARTS_SPOOL", notes)
        .env("PIOSCOPE_STARTS_PRELOAD", &own);
    match &program.sanitizer {
        Some(first) => command.env("PIOSCOPE_STARTS_FIRST", first),
        None => command.env_remove("PIOSCOPE_STARTS_FIRST"),
    };
    let status = run_to_end(command)?;
    let noted = unseen(&[notes.to_owned()], |_, _| false).map_err(Error::io(notes, "read notes in"))?;
    // Those of Go bear libraries, though their own calls pass them by.
    let without = noted.into_iter().filter(|program| program.reason != Reason::Go).collect();
    Ok(Loaded { status, without })
}
