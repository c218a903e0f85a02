//! The user's own MPI: finding its compiler, and building our thin C for it at first use.
//!
//! A handle of `mpi.h` is a number in one MPI and an address in another, so what touches it is C that the user's own
//! `mpicc` compiles. The result is cached, one an MPI and a version of the sources.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};

/// Finds the MPI compiler of the job: `--mpicc`, else the one beside the job's launcher, else the one on the PATH.
///
/// None if there is none: then only calls below MPI can be seen.
pub fn compiler(given: Option<&Path>, command: &[OsString]) -> Option<PathBuf> {
    if let Some(path) = given {
        return Some(path.to_owned());
    }
    let launcher = command.first().and_then(|name| on_path(name));
    let beside = launcher.and_then(|path| Some(path.parent()?.join("mpicc"))).filter(|path| path.is_file());
    beside.or_else(|| on_path(OsStr::new("mpicc")))
}

/// Compiles `sources` (name and text; headers included) with `mpicc` into a library to preload, or finds it compiled.
///
/// The library is deliberately not linked to the MPI library: it is preloaded into every process of the job, launchers
/// and shells too, and must not draw MPI into them.
///
/// # Errors
/// If the compiler cannot be run, or does not accept the sources; with what it said.
pub fn build(mpicc: &Path, name: &str, sources: &[(&str, &str)]) -> Result<PathBuf> {
    let folder = cache_folder()?;
    let library = folder.join(format!("{name}-{:016x}.so", fingerprint(mpicc, sources)?));
    if library.is_file() {
        return Ok(library);
    }
    let work = tempfile::tempdir_in(&folder)
        .with_context(|| format!("{}: cannot create a folder", folder.display()))?;
    let built = pio_record::compile_shim(mpicc, sources, work.path())?;
    // A rename, so that two jobs that start at once never see half a library.
    fs::rename(&built, &library).with_context(|| format!("{}: cannot create", library.display()))?;
    Ok(library)
}

/// What the library depends on: the sources, and which MPI and compiler stand behind `mpicc`.
fn fingerprint(mpicc: &Path, sources: &[(&str, &str)]) -> Result<u64> {
    let output = Command::new(mpicc)
        .arg("-show")
        .output()
        .with_context(|| format!("cannot run the MPI compiler {}", mpicc.display()))?;
    let mut hasher = DefaultHasher::new();
    (mpicc, &output.stdout, sources).hash(&mut hasher);
    if let Ok(modified) = fs::metadata(mpicc).and_then(|metadata| metadata.modified()) {
        modified.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// `$XDG_CACHE_HOME/pioscope` or `~/.cache/pioscope`, else a folder of the user's own in the temporary folder.
fn cache_folder() -> Result<PathBuf> {
    let home =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let candidates = [home("XDG_CACHE_HOME"), home("HOME").map(|home| home.join(".cache"))];
    for base in candidates.into_iter().flatten() {
        let folder = base.join("pioscope");
        if fs::create_dir_all(&folder).is_ok() && tempfile::tempfile_in(&folder).is_ok() {
            return Ok(folder);
        }
    }
    let fresh =
        tempfile::Builder::new().prefix("pioscope-").tempdir().context("no folder for compiled libraries")?;
    Ok(fresh.keep())
}

/// The file that a shell would run for `name`.
pub fn on_path(name: &OsStr) -> Option<PathBuf> {
    let name = Path::new(name);
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The exit code that says how a program ended: its own, or 128 + the signal that killed it, as shells have it.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
