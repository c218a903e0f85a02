//! Runs a job under the recorder and collects its trace.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use tempfile::TempDir;

use crate::collect::{Settings, Summary, collect_with};
use crate::error::Error;
use crate::live::{Look, Watch};
use crate::preload::{can_be_preloaded, preload_folder};
use crate::signals::Forwarding;
use crate::{POSIX_LIBRARY, program};

/// How often a running job is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
    /// the fewer calls are kept. Without, only the disk limits them.
    pub budget_bytes: Option<u64>,
    /// Called once a second with what the job does, and in the end.
    pub live: Option<fn(&Look)>,
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
pub fn run(options: &Options) -> Result<Outcome, Error> {
    program::check(&options.command)?;
    check_output(&options.output)?;
    let spool = make_spool_folder(options)?;
    let library = match PosixLibrary::write(&spool) {
        Ok(library) => library,
        Err(error) => {
            let _ = fs::remove_dir_all(&spool);
            return Err(error);
        }
    };
    let job = job(options, &spool, &library.path);
    let status = match job.and_then(|mut job| run_watched(&mut job, &spool, options.live)) {
        Ok(status) => status,
        Err(error) => {
            // Nothing has been recorded yet: nothing is lost.
            let _ = fs::remove_dir_all(&spool);
            return Err(error);
        }
    };
    let job = options.command.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let summary = collect_with(&spool, &options.output, &job, &options.settings)
        .map_err(|error| Error::Collect { spool: spool.clone(), source: Box::new(error) })?;
    fs::remove_dir_all(&spool).map_err(Error::io(&spool, "remove the folder of spools"))?;
    Ok(Outcome { status, summary })
}

/// The trace's place must be writable now, rather than after hours of work.
fn check_output(output: &Path) -> Result<(), Error> {
    let fails = |source| Error::Output { path: output.to_path_buf(), source };
    if output.file_name().is_none() || output.is_dir() {
        return Err(fails(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let existed = output.exists();
    let file = fs::OpenOptions::new().append(true).create(true).open(output).map_err(fails)?;
    drop(file);
    if !existed {
        fs::remove_file(output).map_err(fails)?;
    }
    Ok(())
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
    if let Some(limit) = options.budget_bytes {
        // The page that the job's processes share (c/pio_writer.h): the limit, and what has been used of it.
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

/// As [`run_to_end`], while somebody looks on.
fn run_watched(command: &mut Command, spool: &Path, live: Option<fn(&Look)>) -> Result<ExitStatus, Error> {
    let Some(tell) = live else { return run_to_end(command) };
    let mut watch = Watch::new(spool);
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
    let status = run_to_end(command);
    drop(ended);
    let _ = watcher.join();
    status
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
fn job(options: &Options, spool: &Path, posix: &Path) -> Result<Command, Error> {
    let [program, arguments @ ..] = options.command.as_slice() else { return Err(Error::NoCommand) };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LD_PRELOAD", preload_list(options, posix)?)
        .env("PIOSCOPE_SPOOL", spool)
        .env("PIOSCOPE_PATHS", options.settings.filter.path_lines()?)
        .envs(options.environment.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Ours first, then what the user preloads anyway. The MPI recorder comes before the POSIX one: it asks it for services,
/// and both come before libraries whose calls are to be seen.
fn preload_list(options: &Options, posix: &Path) -> Result<OsString, Error> {
    let mut list = OsString::new();
    let mpi = options.mpi_shim.iter().map(PathBuf::as_path);
    for path in mpi.chain([posix]).chain(options.preload.iter().map(PathBuf::as_path)) {
        if !can_be_preloaded(path) {
            let reason = "contains a blank or a colon, which LD_PRELOAD cannot hold: choose another folder";
            return Err(Error::UnusablePath { path: path.to_path_buf(), reason });
        }
        if !list.is_empty() {
            list.push(":");
        }
        list.push(path);
    }
    if let Some(existing) = std::env::var_os("LD_PRELOAD").filter(|value| !value.is_empty()) {
        list.push(OsStr::new(":"));
        list.push(existing);
    }
    Ok(list)
}
