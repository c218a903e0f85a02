//! The name of a trace that nobody named: the program's, and never that of a file that is there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file of the working folder that is taken before the job runs: of jobs that start at the same time, each gets its own.
/// Dropped while it is empty, it is removed.
pub(crate) struct NewTrace {
    path: PathBuf,
}

impl NewTrace {
    /// Takes `PROGRAM.pio`, or if that is there `PROGRAM-2.pio`, and so on.
    ///
    /// # Errors
    /// If no file can be made in the working folder.
    pub(crate) fn of(command: &[OsString]) -> Result<NewTrace> {
        let name = program_name(command);
        let mut number = 1u32;
        loop {
            let mut file = name.clone();
            if number > 1 {
                file.push(format!("-{number}"));
            }
            file.push(".pio");
            let path = PathBuf::from(file);
            match File::create_new(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                made => {
                    made.with_context(|| format!("{}: cannot create", path.display()))?;
                    return Ok(NewTrace { path });
                }
            }
        }
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for NewTrace {
    fn drop(&mut self) {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The program that a command runs: of a launcher, the first of its words that is a program.
fn program_name(command: &[OsString]) -> OsString {
    let first = command.first().map_or(OsStr::new("job"), OsString::as_os_str);
    let launched = pio_record::is_launcher(first)
        .then(|| command[1..].iter().find(|word| is_program(word)))
        .flatten()
        .map_or(first, OsString::as_os_str);
    Path::new(launched).file_name().unwrap_or(OsStr::new("job")).to_owned()
}

/// Whether a word of a launcher's names a program: options do not, nor do their values.
fn is_program(word: &OsString) -> bool {
    !word.as_encoded_bytes().starts_with(b"-") && pio_record::check(std::slice::from_ref(word)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(words: &[&str]) -> OsString {
        program_name(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_launcher_is_not_the_program() {
        assert_eq!(name(&["/bin/sort", "big.txt"]), "sort");
        assert_eq!(name(&["mpiexec", "-n", "4", "-genv", "A", "b", "/bin/sh", "-c", "true"]), "sh");
        assert_eq!(name(&["mpiexec", "-n", "4", "./no-such-program"]), "mpiexec");
        assert_eq!(name(&["/usr/bin/srun", "-n", "4", "/bin/sh"]), "sh");
        assert_eq!(name(&["timeout", "10", "/bin/sh"]), "sh");
        assert_eq!(name(&[".."]), "job");
    }
}
