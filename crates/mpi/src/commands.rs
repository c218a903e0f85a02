//! The commands of one MPI: compilers and launcher.
//!
//! They are together in one folder. Systems with several MPIs, such as Debian, tell their commands apart by the end of the
//! name (`mpicc.mpich`, `mpicc.openmpi`), and make `mpicc` a link to one of them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::choose::compiler_for;
use crate::library::is_elf;
use crate::refusal::may_be_refused;

/// How many links a name may lead through: as many as Linux follows.
const LINKS: usize = 40;

/// The first words of the names of launchers, without what tells one MPI's from another's.
const LAUNCHERS: [&str; 4] = ["mpiexec", "mpirun", "orterun", "prterun"];

/// Ends of names that tell apart the commands of one MPI, and not the MPIs.
const KINDS: [&str; 3] = [".hydra", ".gforker", "_abi"];

/// In the names of those variables of `any_ranks.env` by which ranks may share processors.
const SHARING: &str = "_rmaps_";

/// The variables of `any_ranks.env`: with them, every MPI's launcher starts any number of ranks on this machine, for root,
/// too. For jobs of our own; a user's job keeps what its user said.
pub fn any_ranks() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("any_ranks.env").lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='))
}

/// Those of [`any_ranks`] that a job of our own needs which is started by `command`, and that the environment does not set: where it
/// says on which nodes ranks go, they go there. Ranks may share processors only where Open MPI would start no such job else: it binds
/// those that may to none, and they wait differently, so that it would not be the job of who has processors enough.
pub fn for_own_job(command: &[OsString]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let share = may_be_refused(command);
    any_ranks()
        .filter(move |(name, _)| share || !name.contains(SHARING))
        .filter(|(name, _)| std::env::var_os(name).is_none())
}

/// The file that a shell would run for `name`.
pub fn on_path(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = Path::new(name.as_ref());
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Which MPIs understand each other's handles and options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MPICH, and what descends from it: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// Open MPI.
    OpenMpi,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Mpich => "MPICH",
            Family::OpenMpi => "Open MPI",
        })
    }
}

/// There is no whole MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// The compiler and the launcher of one MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    /// The C compiler.
    pub mpicc: PathBuf,
    /// The launcher.
    pub mpiexec: PathBuf,
}

impl Commands {
    /// The MPI whose `mpicc` is first on the PATH, with the launcher of that same MPI.
    ///
    /// # Errors
    /// If there is no `mpicc`, or no launcher beside it.
    pub fn first() -> Result<Commands, Missing> {
        Commands::with_suffix("")
    }

    /// The MPI whose commands' names end with `suffix` (`.mpich`, `.openmpi`).
    ///
    /// # Errors
    /// If there is no such `mpicc` on the PATH, or no launcher beside it.
    pub fn with_suffix(suffix: &str) -> Result<Commands, Missing> {
        let name = format!("mpicc{suffix}");
        Commands::of_compiler(on_path(&name).ok_or_else(|| Missing(format!("no {name} on the PATH")))?)
    }

    /// The MPI that a program was built with.
    ///
    /// # Errors
    /// If no compiler of it is found, or no launcher beside that.
    pub fn of_program(program: &Path) -> Result<Commands, Missing> {
        let chosen = compiler_for(None, &[program.into()]).map_err(|none| Missing(none.to_string()))?;
        Commands::of_compiler(chosen.ok_or_else(|| Missing("no mpicc on the PATH".to_owned()))?.mpicc)
    }

    fn of_compiler(mpicc: PathBuf) -> Result<Commands, Missing> {
        // By its own name rather than that of a link to it, so that one MPI found twice is one.
        let mpicc = beside(&mpicc, "mpicc").unwrap_or(mpicc);
        match beside(&mpicc, "mpiexec") {
            Some(mpiexec) => Ok(Commands { mpicc, mpiexec }),
            None => Err(Missing(format!("no mpiexec beside {}", mpicc.display()))),
        }
    }

    /// The Fortran compiler of the same MPI, if it has one.
    pub fn fortran(&self) -> Option<PathBuf> {
        beside(&self.mpicc, "mpifort").or_else(|| beside(&self.mpicc, "mpif90"))
    }

    /// The words that start a job of `ranks` ranks, whoever runs it, on however few processors.
    pub fn launch(&self, ranks: u32) -> Vec<OsString> {
        let mut words = vec![OsString::from("env")];
        words.extend(any_ranks().map(|(name, value)| format!("{name}={value}").into()));
        words.extend([self.mpiexec.clone().into(), "-n".into(), ranks.to_string().into()]);
        words
    }

    /// The family of its launcher.
    pub fn family(&self) -> Family {
        launcher_family(&self.mpiexec).unwrap_or(Family::Mpich)
    }
}

/// Whether a command's name is that of an MPI's launcher, such as `mpiexec.mpich`.
pub fn is_launcher(command: impl AsRef<OsStr>) -> bool {
    Path::new(command.as_ref()).file_name().is_some_and(|name| {
        let rest = LAUNCHERS.iter().find_map(|stem| name.as_bytes().strip_prefix(stem.as_bytes()));
        rest.is_some_and(|rest| rest.is_empty() || matches!(rest[0], b'.' | b'-' | b'_'))
    })
}

/// What a launcher says of itself. None if it cannot be run, or is no MPI's own (a batch system's, for example).
pub(crate) fn launcher_family(launcher: &Path) -> Option<Family> {
    // A user's own script may have such a name, and is not ours to start.
    if !is_elf(launcher) && beside(launcher, "mpicc").is_none() {
        return None;
    }
    let output = Command::new(launcher).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let says = |names: &[&str]| names.iter().any(|name| said.contains(name));
    if says(&["Open MPI", "OpenRTE", "PRRTE", "prterun"]) {
        Some(Family::OpenMpi)
    } else if says(&["HYDRA", "MPICH", "Intel(R) MPI", "gforker", "mpiexec"]) {
        Some(Family::Mpich)
    } else {
        None
    }
}

/// The command `wanted` of the MPI that `command` (a compiler or a launcher) belongs to.
///
/// Links are followed one by one, and the last name that still says what the command is counts: `/usr/bin/mpicc` may be a
/// link to `mpicc.openmpi`, and that one to a program that serves all of Open MPI's compilers.
pub(crate) fn beside(command: &Path, wanted: &str) -> Option<PathBuf> {
    let names = links(command);
    let named = |name: &Path, suffix: &OsStr| {
        let mut sibling = OsString::from(wanted);
        sibling.push(suffix);
        Some(name.with_file_name(sibling)).filter(|path| path.is_file())
    };
    let suffixes = names.iter().rev().filter_map(|name| Some((name, suffix(name.file_name()?)?)));
    let (of_one, telling): (Vec<_>, Vec<_>) =
        suffixes.partition(|(name, suffix)| KINDS.iter().any(|kind| suffix == kind) || is_inner(name));
    let same = telling.iter().find_map(|(name, suffix)| named(name, suffix));
    same.or_else(|| of_one.iter().find_map(|(name, _)| named(name, OsStr::new(""))))
}

/// Whether this is the program behind Open MPI's launchers, whose name does not say which MPI it is of.
fn is_inner(name: &Path) -> bool {
    name.file_name().is_some_and(|name| name == "orterun" || name == "prterun")
}

/// What comes after the command's first word in its name: `.mpich` of `mpicc.mpich`. None of other names.
fn suffix(name: &OsStr) -> Option<&OsStr> {
    let name = name.as_bytes();
    let stems = LAUNCHERS.iter().chain(&["mpicc"]);
    stems.filter_map(|stem| name.strip_prefix(stem.as_bytes())).map(OsStr::from_bytes).next()
}

/// A path, and what it leads to, link by link.
fn links(path: &Path) -> Vec<PathBuf> {
    let mut names = vec![path.to_owned()];
    while names.len() <= LINKS
        && let Some(name) = names.last()
        && let Ok(target) = fs::read_link(name)
    {
        // An absolute target replaces the folder.
        let next = name.parent().unwrap_or(Path::new("/")).join(target);
        names.push(next);
    }
    names
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder as Debian's `/usr/bin` with both MPIs, and alternatives that point to one of them for compilers and to
    /// the other for launchers.
    fn debian() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["opal_wrapper", "orterun", "mpicc.mpich", "mpiexec.hydra", "mpifort.mpich", "mpifort"] {
            fs::write(at(name), "").expect("a file");
        }
        fs::create_dir(at("alternatives")).expect("a folder");
        for (target, name) in [
            ("opal_wrapper", "mpicc.openmpi"),
            ("orterun", "mpiexec.openmpi"),
            ("mpiexec.hydra", "mpiexec.mpich"),
            ("alternatives/mpi", "mpicc"),
            ("../mpicc.openmpi", "alternatives/mpi"),
            ("mpiexec.mpich", "mpiexec"),
        ] {
            symlink(target, at(name)).expect("a link");
        }
        folder
    }

    #[test]
    fn the_launcher_is_of_the_compilers_own_mpi() {
        let folder = debian();
        let at = |name: &str| folder.path().join(name);
        let name = |path: Option<PathBuf>| path.map(|path| path.canonicalize().expect("it is there"));
        assert_eq!(name(beside(&at("mpicc"), "mpiexec")), Some(at("orterun")));
        assert_eq!(name(beside(&at("mpiexec"), "mpicc")), Some(at("mpicc.mpich")));
        // Rather than the plain name beside the program that is behind it.
        assert_eq!(beside(&at("mpiexec.openmpi"), "mpicc"), Some(at("mpicc.openmpi")));
        assert_eq!(name(beside(&at("mpicc.mpich"), "mpifort")), Some(at("mpifort.mpich")));
        assert_eq!(beside(&at("mpicc.openmpi"), "mpifort"), None, "the other MPI's");
        assert_eq!(
            name(beside(&at("mpiexec.hydra"), "mpicc")),
            Some(at("opal_wrapper")),
            "the only plain name"
        );
    }

    #[test]
    fn a_folder_of_links_to_chosen_commands_leads_to_their_mpi() {
        let (folder, links) = (debian(), tempfile::tempdir().expect("a temporary folder"));
        symlink(folder.path().join("mpicc.mpich"), links.path().join("mpicc")).expect("a link");
        let found = beside(&links.path().join("mpicc"), "mpiexec");
        assert_eq!(found, Some(folder.path().join("mpiexec.mpich")));
    }

    #[test]
    fn a_circle_of_links_ends() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        symlink("mpiexec", folder.path().join("mpicc")).expect("a link");
        symlink("mpicc", folder.path().join("mpiexec")).expect("a link");
        assert_eq!(beside(&folder.path().join("mpicc"), "mpiexec"), None);
    }

    #[test]
    fn a_script_that_is_called_as_a_launcher_is_not_started() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = folder.path().join("mpirun.sh");
        let ran = folder.path().join("ran");
        fs::write(&script, format!("#!/bin/sh\ntouch '{}'\n", ran.display())).expect("a file");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("its mode");
        assert_eq!(launcher_family(&script), None);
        assert!(!ran.exists());
    }

    #[test]
    fn launchers_are_told_to_start_any_number_of_ranks() {
        let names: Vec<&str> = any_ranks().map(|(name, _)| name).collect();
        assert!(names.contains(&"OMPI_MCA_rmaps_base_oversubscribe"), "{names:?}");
        assert!(names.iter().all(|name| name.starts_with("OMPI_") || name.starts_with("PRTE_")), "{names:?}");
    }

    #[test]
    fn ranks_share_processors_only_where_they_are_more() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let names = |line: &str| -> Vec<&str> { for_own_job(&words(line)).map(|(name, _)| name).collect() };
        let given = |name: &str| std::env::var_os(name).is_some();
        for few in ["mpiexec -n 1 ./a", "mpiexec ./a", "env A=1 mpirun.openmpi -np 1 ./a -n 1000000"] {
            assert!(names(few).iter().all(|name| !name.contains(SHARING)), "{few}");
        }
        // A script may start any number.
        for many in ["mpiexec -n 1000000 ./a", "mpirun.openmpi -np 1000000 ./a", "./start-job ./a"] {
            let names = names(many);
            assert!(any_ranks().all(|(name, _)| given(name) || names.contains(&name)), "{many}: {names:?}");
        }
    }
}
