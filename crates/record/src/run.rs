//! Runs a job under the recorder and collects its trace.
#![allow(unsafe_code)] // waitid(2) exists in C only, and what is done between fork and exec is unsafe.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::POSIX_LIBRARY;
use crate::collect::{Settings, Summary, collect_from};
use crate::error::Error;
use crate::live::{Look, Watch};
use crate::members::{self, Account};
use crate::preload::{
    Order, can_be_preloaded, companions, list_of, preload_folder, preload_list, users_list_without_recorder,
};
use crate::program::Program;
use crate::python;
use crate::signals::Forwarding;
use crate::unseen;
use crate::whole_file::{WholeFile, named_by};
use crate::words;

/// How often a running job is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it is asked whether processes of the job still run, after its command has ended.
const LOOK_FOR_PROCESSES_EVERY: Duration = Duration::from_millis(100);
/// How often, and how far apart, those that outlive the command are looked at before they are told of as running on: a
/// launcher ends before the ranks that it kills (after MPI_Abort). Looks count, not the clock: on a host that stands still
/// for a second (a virtual machine, a burst of writes to its disk) they could not have ended in it.
const LET_END_LOOKS: usize = 100;
const LET_END_EVERY: Duration = Duration::from_millis(10);

/// What a process needs of a budget at least, to leave anything (`FIRST_SEGMENT_BYTES` of `c/pio_room.h`).
pub const LEAST_BUDGET_BYTES: u64 = 64 << 10;

/// What to record, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The trace to write.
    pub output: PathBuf,
    /// The compiled MPI recorder ([`crate::compile_shim`]); without it, MPI calls are not recorded.
    pub mpi_shim: Option<PathBuf>,
    /// Other libraries to load into the job, after the recorders (so that the recorders see what the program asks of
    /// them).
    pub preload: Vec<PathBuf>,
    /// Other environment variables for the job.
    pub environment: Vec<(OsString, OsString)>,
    /// What to keep of it, and how exactly.
    pub settings: Settings,
    /// Bytes that the recorded calls of each host's processes may take until the job is over: the less of it is left,
    /// the fewer calls are kept. Without, only the disk limits them. Of less than [`LEAST_BUDGET_BYTES`] nothing is recorded.
    pub budget_bytes: Option<u64>,
    /// Called once a second with what the job does, and in the end.
    pub live: Option<fn(&Look)>,
    /// Whether to go on until the last process of the job on this host has ended, though the command has; SIGINT and SIGTERM
    /// end the waiting. Else a process that outlives the command is in the trace up to then.
    pub wait: bool,
    /// Whether Python programs of the job mark their epochs, waits and checkpoints, by a module that their interpreters run
    /// when they start, and say which of their lines opens a file.
    pub python_marks: bool,
    /// Where the job runs: here if none is given.
    pub folder: Option<PathBuf>,
    /// Whether what the job says on standard output goes to standard error: then the former is its caller's alone.
    pub stdout_to_stderr: bool,
    /// Rules of Landlock that hold for the job, all of it.
    pub guard: Option<Arc<OwnedFd>>,
    /// Where to make the folder of spools, which every host of the job must reach: beside the trace if none is given.
    pub spool: Option<PathBuf>,
}

/// How a recorded job went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of the command.
    pub status: ExitStatus,
    /// Of its trace.
    pub summary: Summary,
}

/// Runs the command, passing SIGINT and SIGTERM on to it, and writes its trace however it ends.
///
/// A program that cannot be seen runs as it is: the trace names it.
pub fn run(options: &Options) -> Result<Outcome, Error> {
    run_told(options, || ())
}

/// The same. `collecting` is called when the job has ended and its trace is about to be made, which takes a while after
/// many calls; what it gives is dropped when the trace is written.
pub fn run_told<Told>(options: &Options, collecting: impl FnOnce() -> Told) -> Result<Outcome, Error> {
    let program = Program::of(&options.command)?;
    check_output(&options.output)?;
    let spool = make_spool_folder(options)?;
    let library = match PosixLibrary::write(&spool) {
        Ok(library) => library,
        Err(error) => {
            let _ = fs::remove_dir_all(&spool);
            return Err(error);
        }
    };
    let others = OtherUsers::new(options, &spool, &library.path);
    let mut folders = vec![spool.clone()];
    folders.extend(others.iter().map(OtherUsers::folder));
    let started = job(options, &program, &spool, &library.path, others.as_ref())
        .and_then(|mut job| run_watched(&mut job, &program, &folders, options));
    let status = match started {
        Ok(status) => status,
        Err(error) => {
            // Nothing has been recorded yet: nothing is lost.
            let _ = fs::remove_dir_all(&spool);
            return Err(error);
        }
    };
    let job = words::typed(&options.command);
    let told = collecting();
    let summary =
        collect_from(&folders, &options.output, &job, &options.settings).map_err(|error| Error::Collect {
            spool: others.map_or(spool.clone(), |others| others.keep(&spool)),
            status,
            source: Box::new(error),
        })?;
    remove_folder(&spool).map_err(Error::io(&spool, "remove the folder of spools"))?;
    drop(told);
    Ok(Outcome { status, summary })
}

/// Removes a folder and what is in it, also while a process that outlives the job puts files there: under another name it does
/// not find it any more.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    const TRIES: u32 = 100;
    let mut name = folder.as_os_str().to_owned();
    name.push(".gone");
    let renamed = PathBuf::from(name);
    let folder = fs::rename(folder, &renamed).map_or(folder, |()| renamed.as_path());
    // A file may still come whose maker had found the folder before.
    for _ in 1..TRIES {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            done => return done,
        }
    }
    fs::remove_dir_all(folder)
}

/// Where processes of other users leave what they record, and find the recorder: `su` and its kin start them, and the folder
/// of spools often lies where they may not look. Only root can start such processes. All may put files into the folder,
/// none may list it, and its name cannot be guessed; each spool can be read by its owner and root alone.
struct OtherUsers {
    folder: PathBuf,
    /// Copies of what is preloaded, as a list.
    libraries: OsString,
    /// Those of them that record.
    recorder: Vec<PathBuf>,
}

impl OtherUsers {
    /// None where it is not needed, or cannot be made: then programs of other users are named as not seen.
    fn new(options: &Options, spool: &Path, posix: &Path) -> Option<OtherUsers> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        is_root.then(|| OtherUsers::make(options, spool, posix).ok()).flatten()
    }

    fn make(options: &Options, spool: &Path, posix: &Path) -> io::Result<OtherUsers> {
        let parent = std::env::temp_dir().canonicalize()?;
        let mut number = [0; 16];
        fs::File::open("/dev/urandom")?.read_exact(&mut number)?;
        let folder = parent.join(format!(".pioscope-{:032x}", u128::from_le_bytes(number)));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let mut others = OtherUsers { folder, libraries: OsString::new(), recorder: Vec::new() };
        let recorder = recorder_libraries(options, posix);
        for library in own_libraries(options, posix) {
            let copy = others.folder.join(library.file_name().unwrap_or_default());
            if !can_be_preloaded(&copy) {
                return Err(io::Error::from(io::ErrorKind::InvalidFilename));
            }
            fs::copy(&library, &copy)?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o644))?;
            if !others.libraries.is_empty() {
                others.libraries.push(":");
            }
            others.libraries.push(&copy);
            if recorder.contains(&library) {
                others.recorder.push(copy);
            }
        }
        let budget = spool.join("budget");
        if budget.is_file() {
            // Of their own: what another user may write to, the job must not depend on.
            let copy = others.folder.join("budget");
            fs::copy(&budget, &copy)?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o666))?;
        }
        fs::set_permissions(&others.folder, fs::Permissions::from_mode(0o1733))?;
        Ok(others)
    }

    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Moves what is in it to the folder of spools, which is kept.
    fn keep(self, spool: &Path) -> PathBuf {
        for path in members::files_of(&self.folder, "spool").unwrap_or_default() {
            let _ = fs::copy(&path, spool.join(path.file_name().unwrap_or_default()));
        }
        spool.to_path_buf()
    }
}

impl Drop for OtherUsers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The trace's place must be writable now, rather than after hours of work.
fn check_output(output: &Path) -> Result<(), Error> {
    let fails = |source| Error::Output { path: output.to_path_buf(), source };
    if output.file_name().is_none() || output.is_dir() {
        return Err(fails(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let output = named_by(output);
    if !output.exists() {
        // Beside it: another recorder may have the same name for its trace.
        return WholeFile::create(&output).map(drop).map_err(fails);
    }
    // A device, a pipe: the trace takes the place of what is there, and spools lie beside it.
    if !output.is_file() {
        let reason = "it is a device, pipe or socket (expected a regular file, or a name that is free)";
        return Err(fails(io::Error::new(io::ErrorKind::InvalidInput, reason)));
    }
    fs::OpenOptions::new().append(true).open(&output).map(drop).map_err(fails)
}

/// A new folder for the spools of the job's processes.
fn make_spool_folder(options: &Options) -> Result<PathBuf, Error> {
    let parent = match &options.spool {
        Some(folder) => folder.clone(),
        None => match options.output.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        },
    };
    fs::create_dir_all(&parent).map_err(Error::io(&parent, "create the folder of spools"))?;
    let folder = new_folder(&parent, options)?;
    let folder = folder.canonicalize().map_err(Error::io(&folder, "find the folder of spools"))?;
    // Spools change while a job puts its folder into a repository of git: it is to pass them over.
    let ignored = folder.join(".gitignore");
    if let Err(error) = fs::write(&ignored, "*\n") {
        let _ = fs::remove_dir_all(&folder);
        return Err(Error::io(&ignored, "write what git is to ignore to")(error));
    }
    if let Some(limit) = options.budget_bytes {
        // The page that the job's processes share (c/pio_room.c): the limit, and what has been used of it.
        let mut page = vec![0; 4096];
        page[..8].copy_from_slice(&limit.to_le_bytes());
        let path = folder.join("budget");
        if let Err(error) = fs::write(&path, page) {
            let _ = fs::remove_dir_all(&folder);
            return Err(Error::io(&path, "write the budget to")(error));
        }
    }
    Ok(folder)
}

/// A folder that was not there before: what an earlier job left must not get into this trace, and nothing but our own is
/// removed in the end.
fn new_folder(parent: &Path, options: &Options) -> Result<PathBuf, Error> {
    // The recorder is preloaded from there.
    let name = options.output.file_name().unwrap_or_default().to_string_lossy().replace([' ', ':'], "_");
    let mut attempt = 0;
    loop {
        let mut unique = OsString::from(".");
        unique.push(&name);
        unique.push(format!(".{}.{attempt}.spool", std::process::id()));
        let folder = parent.join(unique);
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
            Err(error) => return Err(Error::io(&folder, "create the folder of spools")(error)),
        }
    }
}

/// The POSIX recorder in a file.
struct PosixLibrary {
    path: PathBuf,
    /// Where it is if it cannot be preloaded from the spools' folder.
    _elsewhere: Option<TempDir>,
}

impl PosixLibrary {
    /// Writes it beside the spools, which also shows that the disk has room; unless the path of that folder is one that
    /// `LD_PRELOAD` cannot hold.
    fn write(spool: &Path) -> Result<PosixLibrary, Error> {
        let elsewhere = match can_be_preloaded(spool) {
            true => None,
            false => Some(preload_folder().map_err(Error::io(spool, "put the recorder elsewhere than in"))?),
        };
        let path = elsewhere.as_ref().map_or(spool, TempDir::path).join("libpio_posix.so");
        fs::write(&path, POSIX_LIBRARY).map_err(Error::io(&path, "write the recorder to"))?;
        Ok(PosixLibrary { path, _elsewhere: elsewhere })
    }
}

/// Runs the job's command and waits for it, while somebody may look on; and for all that it started, if that is asked.
fn run_watched(
    command: &mut Command,
    program: &Program,
    folders: &[PathBuf],
    options: &Options,
) -> Result<ExitStatus, Error> {
    let Some(tell) = options.live else { return run_recorded(command, program, folders, options.wait) };
    let mut watch = Watch::of(folders.to_vec());
    // Nothing of the job depends on what is shown of it: what cannot be read is shown the next time, or never.
    let mut look = move || {
        if let Ok(look) = watch.look() {
            tell(&look);
        }
    };
    let (ended, has_ended) = std::sync::mpsc::channel::<()>();
    let watcher = std::thread::spawn(move || {
        while has_ended.recv_timeout(LOOK_EVERY) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            look();
        }
        look();
    });
    let status = run_recorded(command, program, folders, options.wait);
    drop(ended);
    let _ = watcher.join();
    status
}

fn run_recorded(
    command: &mut Command,
    program: &Program,
    folders: &[PathBuf],
    wait: bool,
) -> Result<ExitStatus, Error> {
    let mut child = command.spawn().map_err(Error::io(&program.path, "start the program"))?;
    let account = Account::open(child.id());
    let forwarding = Forwarding::to(child.id());
    // It runs already: what cannot be noted about it is not worth its life.
    let _ = folders.first().map(|folder| unseen::note_start(folder, child.id(), program));
    if wait_without_reaping(child.id()) {
        unseen::note_end(folders, child.id(), &account);
    }
    let status = child.wait().map_err(Error::io(&program.path, "wait for the program"))?;
    forwarding.target_has_ended();
    while wait && !forwarding.has_come() && !members::running(folders).is_empty() {
        std::thread::sleep(LOOK_FOR_PROCESSES_EVERY);
    }
    for _ in 0..LET_END_LOOKS {
        if members::with_recorder(folders).is_empty() {
            break;
        }
        std::thread::sleep(LET_END_EVERY);
    }
    Ok(status)
}

/// Waits until a child has ended, and leaves it there to be asked. False if that cannot be.
fn wait_without_reaping(pid: u32) -> bool {
    loop {
        // SAFETY: all-zero is a valid siginfo_t, and it is valid for the call.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if result == 0 {
            return true;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

/// Runs a command and waits for it, passing SIGINT and SIGTERM on to it.
pub fn run_to_end(command: &mut Command) -> Result<ExitStatus, Error> {
    let program = PathBuf::from(command.get_program());
    let mut child = command.spawn().map_err(Error::io(&program, "start the program"))?;
    let forwarding = Forwarding::to(child.id());
    let status = child.wait();
    drop(forwarding);
    status.map_err(Error::io(&program, "wait for the program"))
}

/// The job's command, with the recorders in its environment.
fn job(
    options: &Options,
    program: &Program,
    spool: &Path,
    posix: &Path,
    others: Option<&OtherUsers>,
) -> Result<Command, Error> {
    let [name, arguments @ ..] = options.command.as_slice() else { return Err(Error::NoCommand) };
    let own = list_of(&own_libraries(options, posix))?;
    let mut recorder = recorder_libraries(options, posix);
    recorder.extend(others.iter().flat_map(|others| others.recorder.clone()));
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env("LD_PRELOAD", preload_list(program, &own, &users_list_without_recorder(), Order::OwnFirst))
        .env("PIOSCOPE_SPOOL", spool)
        .env("PIOSCOPE_PRELOAD", &own)
        .env("PIOSCOPE_RECORDER", list_of(&recorder)?)
        .env("PIOSCOPE_PATHS", options.settings.filter.path_lines()?)
        .envs(options.environment.iter().map(|(name, value)| (name, value)));
    match &program.sanitizer {
        Some(first) => command.env("PIOSCOPE_FIRST", first),
        None => command.env_remove("PIOSCOPE_FIRST"),
    };
    match others {
        Some(others) => {
            command.env("PIOSCOPE_OTHERS", &others.folder).env("PIOSCOPE_OTHERS_PRELOAD", &others.libraries);
        }
        None => {
            command.env_remove("PIOSCOPE_OTHERS").env_remove("PIOSCOPE_OTHERS_PRELOAD");
        }
    }
    if let Some(path) = options.python_marks.then(|| python::path_with_module(spool)).flatten() {
        command.env("PYTHONPATH", path);
    }
    command.env("PIOSCOPE_CALL_SITES", if options.python_marks { "yes" } else { "no" });
    if let Some(folder) = &options.folder {
        command.current_dir(folder);
    }
    if options.stdout_to_stderr {
        command.stdout(io::stderr());
    }
    if let Some(rules) = options.guard.clone() {
        // SAFETY: between fork and exec, this makes two system calls, and allocates nothing.
        unsafe { command.pre_exec(move || enforce(rules.as_fd())) };
    }
    Ok(command)
}

/// Has rules of Landlock hold for this process and those that it starts.
fn enforce(rules: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: neither call takes memory of ours.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What is loaded into every process. The recorder comes first: before libraries whose calls are to be seen.
fn own_libraries(options: &Options, posix: &Path) -> Vec<PathBuf> {
    let mut libraries = recorder_libraries(options, posix);
    for library in options.preload.iter().cloned().chain(companions()) {
        if !libraries.contains(&library) {
            libraries.push(library);
        }
    }
    libraries
}

/// Those that record. That for MPI comes before that for POSIX: it asks it for services.
fn recorder_libraries(options: &Options, posix: &Path) -> Vec<PathBuf> {
    options.mpi_shim.iter().map(PathBuf::as_path).chain([posix]).map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_while_another_puts_files_there() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("spools");
        for _ in 0..50 {
            fs::create_dir(&folder).expect("a folder");
            let wait = std::sync::Barrier::new(2);
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    wait.wait();
                    // Until the folder is gone.
                    (0..100_000).find(|number| fs::write(folder.join(number.to_string()), "").is_err())
                });
                wait.wait();
                remove_folder(&folder).expect("the folder is removed");
            });
        }
    }
}
