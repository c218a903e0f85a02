//! The MPI of a job, and its compiler: found from the program, else from its launcher.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::commands::{beside, is_launcher, launcher_family, on_path};
use crate::library::{Fit, Library};

/// The compiler of a job's MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The compiler.
    pub mpicc: PathBuf,
    /// What it was chosen for, as a sentence.
    pub why: String,
}

/// The MPI library of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The library.
    pub library: Library,
    /// How it is known, as a sentence.
    pub why: String,
}

/// The program's MPI is known, and no compiler for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCompiler(String);

impl fmt::Display for NoCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoCompiler {}

/// Finds the MPI library of a command, which need not have a compiler: the one that the command's program loads, else (a
/// script does not say what it loads) the launcher's, else that of the first MPI on the PATH.
pub fn library_of(command: &[OsString]) -> Option<Found> {
    if let Some((library, program)) = loaded(command) {
        return Some(Found { library, why: format!("{} loads it", program.display()) });
    }
    let launcher = launcher(command);
    if let Some(Chosen { mpicc, why }) = for_launcher(launcher.as_deref()) {
        let why = format!("{} links to it, {why}", mpicc.display());
        return Some(Found { library: Library::of_compiler(&mpicc)?, why });
    }
    let launcher = launcher.or_else(|| on_path("mpiexec"))?;
    let library = Library::beside_launcher(&launcher, launcher_family(&launcher)?)?;
    Some(Found { library, why: format!("in the tree of the launcher {}", launcher.display()) })
}

/// Finds the compiler of the MPI of a command: `given`, else the one that links to the library that the command's program
/// loads, else (a script does not say what it loads) the launcher's, else the first on the PATH.
///
/// None if there is no compiler, and no program that is known to need one.
///
/// # Errors
/// If the program loads an MPI library for which no compiler is found, or another one than `given` links to.
pub fn compiler_for(given: Option<&Path>, command: &[OsString]) -> Result<Option<Chosen>, NoCompiler> {
    let launcher = launcher(command);
    match (given, loaded(command)) {
        (Some(given), Some((library, program))) => check_given(given, &library, &program).map(Some),
        (Some(given), None) => {
            Ok(Some(Chosen { mpicc: given.to_owned(), why: "given with --mpicc".to_owned() }))
        }
        (None, Some((library, program))) => for_library(&library, &program, launcher.as_deref()).map(Some),
        (None, None) => Ok(for_launcher(launcher.as_deref())),
    }
}

fn launcher(command: &[OsString]) -> Option<PathBuf> {
    command.iter().find(|word| is_launcher(word)).and_then(on_path)
}

/// The MPI library that the program loads for which a word of a command stands; none if it stands for none.
pub fn loaded_by(word: &OsStr) -> Option<Library> {
    Library::of_program(&program(word)?)
}

/// The MPI library that the program of a command loads, and that program.
fn loaded(command: &[OsString]) -> Option<(Library, PathBuf)> {
    command.iter().find_map(|word| {
        let program = program(word)?;
        Some((Library::of_program(&program)?, program))
    })
}

/// The file that a word of a command may stand for: a program on the PATH, or beside the user.
fn program(word: &OsStr) -> Option<PathBuf> {
    if word.is_empty() || word.as_bytes().starts_with(b"-") || is_launcher(word) {
        return None;
    }
    // Launchers also find what lies in the working folder.
    on_path(word).or_else(|| Some(PathBuf::from(word)).filter(|path| path.is_file()))
}

fn check_given(given: &Path, library: &Library, program: &Path) -> Result<Chosen, NoCompiler> {
    let why = format!("given with --mpicc; {} loads {library}", program.display());
    match Library::of_compiler(given) {
        Some(own) if own.fits(library) == Fit::Not => Err(NoCompiler(format!(
            "{} (--mpicc) compiles for {own}, but {} loads {library}: name the compiler of that MPI",
            given.display(),
            program.display()
        ))),
        _ => Ok(Chosen { mpicc: given.to_owned(), why }),
    }
}

fn for_library(library: &Library, program: &Path, launcher: Option<&Path>) -> Result<Chosen, NoCompiler> {
    let mut best: Option<(Fit, PathBuf)> = None;
    let mut tried: Vec<String> = Vec::new();
    for mpicc in candidates(library, launcher) {
        let own = Library::of_compiler(&mpicc);
        let fit = own.as_ref().map_or(Fit::Unknown, |own| own.fits(library));
        let links =
            own.map_or_else(|| "does not say for which MPI".to_owned(), |own| format!("is for {own}"));
        tried.push(format!("{} {links}", mpicc.display()));
        if fit > best.as_ref().map_or(Fit::Not, |best| best.0) {
            best = Some((fit, mpicc));
        }
        if fit == Fit::Exact {
            break;
        }
    }
    let program = program.display();
    match best {
        Some((fit, mpicc)) => {
            let how = match fit {
                Fit::Exact => "which this compiler links to",
                Fit::SameAbi => "which fits this compiler's library",
                Fit::Not | Fit::Unknown => "and no other compiler is known to fit",
            };
            Ok(Chosen { mpicc, why: format!("{program} loads {library}, {how}") })
        }
        None => {
            let tried = if tried.is_empty() { "none is there".to_owned() } else { tried.join(", ") };
            Err(NoCompiler(format!(
                "{program} loads {library}, and no mpicc for that MPI was found ({tried}): name it with --mpicc"
            )))
        }
    }
}

/// Compilers to try for a library: the launcher's, those in the library's own tree, and all on the PATH.
fn candidates(library: &Library, launcher: Option<&Path>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        launcher.and_then(|launcher| beside(launcher, "mpicc")).into_iter().collect();
    let trees = library.path().ancestors().skip(2).take(3);
    found.extend(trees.map(|tree| tree.join("bin/mpicc")).filter(|path| path.is_file()));
    found.extend(on_whole_path());
    // `/bin` is a link to `/usr/bin` on most systems.
    let mut seen = Vec::new();
    found.retain(|mpicc| {
        let folder = mpicc.parent().and_then(|folder| folder.canonicalize().ok());
        let place = (folder, mpicc.file_name().map(OsStr::to_owned));
        let is_new = !seen.contains(&place);
        seen.push(place);
        is_new
    });
    found
}

/// Every `mpicc`, `mpicc.mpich` and the like in the folders of the PATH.
fn on_whole_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = Vec::new();
    for folder in std::env::split_paths(&path) {
        let Ok(entries) = folder.read_dir() else { continue };
        let is_compiler = |name: &OsStr| {
            let rest = name.as_bytes().strip_prefix(b"mpicc");
            rest.is_some_and(|rest| rest.is_empty() || matches!(rest[0], b'.' | b'-' | b'_'))
        };
        let names = entries.flatten().map(|entry| entry.file_name()).filter(|name| is_compiler(name));
        let mut names: Vec<OsString> = names.collect();
        names.sort();
        found.extend(names.iter().map(|name| folder.join(name)).filter(|file| file.is_file()));
    }
    found
}

/// The compiler beside a launcher, else the first on the PATH that is of the launcher's family.
fn for_launcher(launcher: Option<&Path>) -> Option<Chosen> {
    let Some(launcher) = launcher else {
        return on_path("mpicc").map(|mpicc| Chosen { mpicc, why: "the first on the PATH".to_owned() });
    };
    let family = launcher_family(launcher);
    let may_be = |mpicc: &PathBuf| {
        let is_of = family.and_then(|family| Library::of_compiler(mpicc)?.is_of(family));
        is_of != Some(false)
    };
    if let Some(mpicc) = beside(launcher, "mpicc").filter(may_be) {
        return Some(Chosen { mpicc, why: format!("beside the launcher {}", launcher.display()) });
    }
    let of = family
        .map_or(String::new(), |family| format!(" of {family}, as is the launcher {}", launcher.display()));
    let mpicc = on_whole_path().into_iter().find(may_be)?;
    Some(Chosen { mpicc, why: format!("the first on the PATH{of}") })
}
