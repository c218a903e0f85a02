//! The user's own MPI: our thin C for it.
//!
//! A handle of `mpi.h` is a number in one MPI and an address in another, so what touches it is C, compiled with one `mpi.h`.
//! Wheels and packages bring it for those of the usual MPIs (`pio_mpi::Header`). For others, and where nothing was brought,
//! the user's own `mpicc` compiles it at first use (`pio_mpi` says which that is). The result is cached, one an MPI and a
//! version of the sources.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context, Result};
use clap::Args;
use pio_mpi::{Found, Header, Library};
use pio_record::{can_be_preloaded, preload_folder};
use tempfile::TempDir;

use crate::output::note;
use crate::whole_file::WholeFile;

/// The MPI of a job.
pub(crate) enum Mpi {
    /// One for which our libraries were compiled beforehand.
    Ready {
        /// Its library.
        library: Library,
        /// The folder with ours.
        folder: PathBuf,
    },
    /// One whose compiler this is.
    Compiler(PathBuf),
}

impl Mpi {
    /// That of a command, if our libraries are there for it; and how that is known, as a sentence.
    pub(crate) fn ready(command: &[OsString]) -> Option<(Mpi, String)> {
        let installed = installed()?;
        let Found { library, why } = pio_mpi::library_of(command)?;
        let header = library.header()?;
        let folder = installed.join(header.name());
        let why = format!("MPI library {library}: {why}; what was compiled for {header} fits");
        if !folder.is_dir() {
            return None;
        }
        let fits = |kind: Kind| pio_record::is_shim_of(&folder.join(kind.file_name()), kind.sources());
        if ![Kind::Record, Kind::Apply].into_iter().all(fits) {
            note!("{}: left out, as it was compiled by another version, or cannot be read", folder.display());
            return None;
        }
        Some((Mpi::Ready { library, folder }, why))
    }

    /// The MPI library, if it is known.
    pub(crate) fn library(&self) -> Option<Library> {
        match self {
            Mpi::Ready { library, .. } => Some(library.clone()),
            Mpi::Compiler(mpicc) => Library::of_compiler(mpicc),
        }
    }

    /// Finds what is to be preloaded, or compiles it.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(crate) fn shim(&self, kind: Kind) -> Result<Shim> {
        match self {
            Mpi::Ready { folder, .. } => Shim::new(folder.join(kind.file_name())),
            Mpi::Compiler(mpicc) => build(mpicc, kind),
        }
    }
}

/// Libraries of ours that are preloaded into MPI programs.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Records MPI calls.
    Record,
    /// Hands MPI-IO to our library.
    Apply,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Record => "record",
            Kind::Apply => "apply",
        }
    }

    fn file_name(self) -> String {
        format!("{}.so", self.name())
    }

    fn sources(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Record => pio_record::MPI_SHIM,
            Kind::Apply => pio_mpiio::SHIM,
        }
    }
}

/// Where what is installed with this command lies, by the names of headers.
fn installed() -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?.parent()?.join("../lib/pioscope");
    folder.canonicalize().ok()
}

/// `pioscope shims`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope shims --mpicc /opt/mpi/bin/mpicc --header mpich-4 /opt/pioscope/lib/pioscope")]
pub(crate) struct Arguments {
    /// The MPI compiler
    #[arg(long, value_name = "PATH")]
    mpicc: PathBuf,
    /// Which mpi.h it compiles with: mpich-3, mpich-4, mpich-5, openmpi-4, openmpi-5 or standard [default: by the library that it
    /// links to]
    #[arg(long, value_parser = header)]
    header: Option<Header>,
    /// The folder lib/pioscope of an installation: the libraries go into a folder there, by the name of the header
    folder: PathBuf,
}

fn header(text: &str) -> Result<Header> {
    let found = Header::ALL.into_iter().find(|header| header.name() == text);
    found.with_context(|| format!("expected {}", Header::ALL.map(Header::name).join(", ")))
}

/// Compiles what this command preloads into MPI programs, so that no compiler is needed where it is installed.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { mpicc, header, folder } = arguments;
    pio_mpi::show(&mpicc).with_context(|| format!("cannot run the MPI compiler {}", mpicc.display()))?;
    let by_library = || Library::of_compiler(&mpicc)?.header();
    let header = header.or_else(by_library).with_context(|| {
        format!("{}: it does not show a library that is known (expected --header)", mpicc.display())
    })?;
    let folder = folder.join(header.name());
    fs::create_dir_all(&folder).with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    for kind in [Kind::Record, Kind::Apply] {
        let work = tempfile::tempdir().context("no folder for temporary files")?;
        let built = pio_record::compile_shim(&mpicc, kind.sources(), work.path())?;
        let library = folder.join(kind.file_name());
        // As a whole, in the place of the one that is there: running jobs may have mapped that.
        let whole = WholeFile::replacing(&library)?;
        let copied = File::open(built).and_then(|mut from| io::copy(&mut from, &mut whole.file()));
        copied
            .and_then(|_| whole.file().set_permissions(Permissions::from_mode(0o755)))
            .with_context(|| format!("{}: cannot write", library.display()))?;
        whole.keep()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A library to preload into a job. It must be kept until the job is over: it may lie in a folder that goes with it.
pub(crate) struct Shim {
    /// The library, where `LD_PRELOAD` can name it.
    pub path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Shim {
    /// One that lies in a folder which stays; or a copy of it, where `LD_PRELOAD` cannot hold its path.
    fn new(library: PathBuf) -> Result<Shim> {
        if can_be_preloaded(&library) {
            return Ok(Shim { path: library, _temporary: None });
        }
        let folder = folder_for_one()?;
        let path = folder.path().join(library.file_name().unwrap_or_default());
        fs::copy(&library, &path)
            .with_context(|| format!("{}: cannot copy it to be preloaded", library.display()))?;
        Ok(Shim { path, _temporary: Some(folder) })
    }
}

fn folder_for_one() -> Result<TempDir> {
    preload_folder().context("no folder for a library to preload")
}

/// Compiles a library with `mpicc`, or finds it compiled.
///
/// The library is deliberately not linked to the MPI library: it is preloaded into every process of the job, launchers
/// and shells too, and must not draw MPI into them.
///
/// # Errors
/// If the compiler cannot be run, or does not accept the sources; with what it said. If there is no folder for the library.
fn build(mpicc: &Path, kind: Kind) -> Result<Shim> {
    let sources = kind.sources();
    let compile = |folder: &Path| Ok(pio_record::compile_shim(mpicc, sources, folder)?);
    kept(kind.name(), || fingerprint(mpicc, sources), compile)
}

/// The library that looks at each program that a job starts (`pio_record::STARTS_LIBRARY`).
///
/// # Errors
/// If there is no folder for it.
pub(crate) fn starts_library() -> Result<Shim> {
    let text = pio_record::STARTS_LIBRARY;
    let fingerprint = || {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Ok(hasher.finish())
    };
    let write = |folder: &Path| {
        let path = folder.join("starts.so");
        fs::write(&path, text).with_context(|| format!("{}: cannot write", path.display()))?;
        Ok(path)
    };
    kept("starts", fingerprint, write)
}

/// A library that is made in a folder, and kept in the user's cache by its fingerprint, if there is one.
fn kept(
    name: &str,
    fingerprint: impl FnOnce() -> Result<u64>,
    make: impl FnOnce(&Path) -> Result<PathBuf>,
) -> Result<Shim> {
    let Some(cache) = writable_cache() else {
        let folder = folder_for_one()?;
        let path = make(folder.path())?;
        return Ok(Shim { path, _temporary: Some(folder) });
    };
    let library = cache.join(format!("{name}-{:016x}.so", fingerprint()?));
    if !library.is_file() {
        let work = tempfile::tempdir_in(&cache)
            .with_context(|| format!("{}: cannot create a folder", cache.display()))?;
        let made = make(work.path())?;
        // A rename, so that two jobs that start at once never see half a library.
        fs::rename(&made, &library).with_context(|| format!("{}: cannot create", library.display()))?;
    }
    Shim::new(library)
}

/// What the library depends on: the sources, and which MPI and compiler stand behind `mpicc`.
fn fingerprint(mpicc: &Path, sources: &[(&str, &str)]) -> Result<u64> {
    let output =
        pio_mpi::show(mpicc).with_context(|| format!("cannot run the MPI compiler {}", mpicc.display()))?;
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
