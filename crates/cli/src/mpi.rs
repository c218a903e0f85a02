//! The user's own MPI: building our thin C for it at first use.
//!
//! A handle of `mpi.h` is a number in one MPI and an address in another, so what touches it is C that the user's own
//! `mpicc` compiles (`pio_mpi` says which that is). The result is cached, one an MPI and a version of the sources.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use pio_record::{can_be_preloaded, preload_folder};
use tempfile::TempDir;

/// A library to preload into a job. It must be kept until the job is over: it may lie in a folder that goes with it.
pub(crate) struct Shim {
    /// The library, where `LD_PRELOAD` can name it.
    pub path: PathBuf,
    /// The compiler that compiled it.
    pub mpicc: PathBuf,
    _temporary: Option<TempDir>,
}

/// Compiles `sources` (name and text; headers included) with `mpicc` into a library to preload, or finds it compiled.
///
/// The library is deliberately not linked to the MPI library: it is preloaded into every process of the job, launchers
/// and shells too, and must not draw MPI into them.
///
/// # Errors
/// If the compiler cannot be run, or does not accept the sources; with what it said. If there is no folder for the library.
pub(crate) fn build(mpicc: &Path, name: &str, sources: &[(&str, &str)]) -> Result<Shim> {
    let file = format!("{name}-{:016x}.so", fingerprint(mpicc, sources)?);
    let elsewhere = || preload_folder().context("no folder for a library to preload");
    let Some(cache) = writable_cache() else {
        let folder = elsewhere()?;
        let path = pio_record::compile_shim(mpicc, sources, folder.path())?;
        return Ok(Shim { path, mpicc: mpicc.to_owned(), _temporary: Some(folder) });
    };
    let library = cache.join(&file);
    if !library.is_file() {
        let work = tempfile::tempdir_in(&cache)
            .with_context(|| format!("{}: cannot create a folder", cache.display()))?;
        let built = pio_record::compile_shim(mpicc, sources, work.path())?;
        // A rename, so that two jobs that start at once never see half a library.
        fs::rename(&built, &library).with_context(|| format!("{}: cannot create", library.display()))?;
    }
    if can_be_preloaded(&library) {
        return Ok(Shim { path: library, mpicc: mpicc.to_owned(), _temporary: None });
    }
    let folder = elsewhere()?;
    let path = folder.path().join(file);
    fs::copy(&library, &path)
        .with_context(|| format!("{}: cannot copy it to be preloaded", library.display()))?;
    Ok(Shim { path, mpicc: mpicc.to_owned(), _temporary: Some(folder) })
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

/// The user's cache, if it can be written to.
fn writable_cache() -> Option<PathBuf> {
    user_caches().find(|folder| fs::create_dir_all(folder).is_ok() && tempfile::tempfile_in(folder).is_ok())
}

/// Where what was found out for this user is kept; none without a home.
pub(crate) fn user_cache() -> Option<PathBuf> {
    user_caches().next()
}

/// Where the user's cache may be: `$XDG_CACHE_HOME/pioscope`, `~/.cache/pioscope`.
fn user_caches() -> impl Iterator<Item = PathBuf> {
    let home =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let bases = [home("XDG_CACHE_HOME"), home("HOME").map(|home| home.join(".cache"))];
    // A relative one would be another for each folder that somebody works in.
    bases.into_iter().flatten().filter(|base| base.is_absolute()).map(|base| base.join("pioscope"))
}

/// The exit code that says how a program ended: its own, or 128 + the signal that killed it, as shells have it.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
