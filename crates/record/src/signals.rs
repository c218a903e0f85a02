//! Signals that must not end us before a job's trace is made: those that are meant for the job, which are passed on to it, and the
//! one that ends who writes beyond the limit of a file's size.
#![allow(unsafe_code)] // Signal handlers and kill(2) exist in C only.

use std::io::{self, Read};
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::run::remove_folder;

/// The process that gets the signals; 0 for none.
static TARGET: AtomicI32 = AtomicI32::new(0);

/// Whether one that tells to end has come since the last job began.
static HAS_COME: AtomicBool = AtomicBool::new(false);

/// Whether one that tells to end has come during any job.
static WAS_TOLD_TO_END: AtomicBool = AtomicBool::new(false);

/// Whether SIGINT, SIGTERM, SIGHUP or SIGQUIT has come while a job ran, or its trace was made: whoever runs several jobs in turn
/// is to begin no other.
pub fn was_told_to_end() -> bool {
    WAS_TOLD_TO_END.load(Ordering::SeqCst)
}

/// What a terminal sends, and a batch system before and at the end of time: the last two tell programs to write a checkpoint.
const FORWARDED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// While it lives, these signals go to another process, unless they are ignored: then the job ignores them, too.
pub(crate) struct Forwarding {
    previous: Vec<(libc::c_int, libc::sigaction)>,
}

impl Forwarding {
    /// To the process `pid`.
    pub(crate) fn to(pid: u32) -> Forwarding {
        TARGET.store(pid as i32, Ordering::SeqCst);
        HAS_COME.store(false, Ordering::SeqCst);
        Forwarding { previous: FORWARDED.iter().filter_map(|&signal| install(signal)).collect() }
    }
}

impl Forwarding {
    /// The process has ended: signals are only remembered from now on.
    pub(crate) fn target_has_ended(&self) {
        TARGET.store(0, Ordering::SeqCst);
        HAS_COME.store(false, Ordering::SeqCst);
    }

    /// Whether a signal has come since.
    pub(crate) fn has_come(&self) -> bool {
        HAS_COME.load(Ordering::SeqCst)
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        TARGET.store(0, Ordering::SeqCst);
        for (signal, previous) in &self.previous {
            // SAFETY: `previous` is what sigaction filled in for this signal.
            unsafe { libc::sigaction(*signal, previous, std::ptr::null_mut()) };
        }
    }
}

fn install(signal: libc::c_int) -> Option<(libc::c_int, libc::sigaction)> {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = forward;
    // SAFETY: all-zero is a valid sigaction; the handler has the type that SA_SIGINFO promises, and makes only
    // async-signal-safe calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut previous: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut previous) != 0
            || previous.sa_sigaction == libc::SIG_IGN
        {
            return None;
        }
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        (libc::sigaction(signal, &action, std::ptr::null_mut()) == 0).then_some((signal, previous))
    }
}

/// Folders and files that are to go when a signal ends this process.
static PASSING: Mutex<Passing> =
    Mutex::new(Passing { is_watched: false, folders: Vec::new(), files: Vec::new() });

/// Where the handler says which signal came; -1 for nowhere.
static TELL: AtomicI32 = AtomicI32::new(-1);

struct Passing {
    /// Whether signals are waited for.
    is_watched: bool,
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Passing {
    fn lock() -> MutexGuard<'static, Passing> {
        PASSING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&mut self) -> io::Result<()> {
        if !self.is_watched {
            remove_when_told_to_end()?;
            self.is_watched = true;
        }
        Ok(())
    }
}

/// A new folder that goes with what is in it when this is dropped, or when SIGINT, SIGTERM or SIGHUP ends this process before.
///
/// While a job runs, they go to the job instead: whoever started it asks [`was_told_to_end`].
#[derive(Debug)]
pub struct PassingFolder {
    path: PathBuf,
}

impl PassingFolder {
    /// Makes one in the folder `parent`, whose name begins with `prefix`.
    ///
    /// # Errors
    /// If it cannot be made, or signals cannot be waited for.
    pub fn within(parent: &Path, prefix: &str) -> io::Result<PassingFolder> {
        // Held until the folder is on the list: who is to remove it waits.
        let mut passing = Passing::lock();
        passing.watch()?;
        let path = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?.keep();
        passing.folders.push(path.clone());
        Ok(PassingFolder { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PassingFolder {
    fn drop(&mut self) {
        let mut passing = Passing::lock();
        passing.folders.retain(|folder| *folder != self.path);
        // There is nobody to tell.
        let _ = remove_folder(&self.path);
    }
}

/// A file that is not complete: it goes when SIGINT, SIGTERM or SIGHUP ends this process before this is dropped.
///
/// For commands, which are the whole process: others have handlers of their own.
#[derive(Debug)]
pub struct PassingFile {
    path: PathBuf,
}

impl PassingFile {
    /// That which `make` makes, and says where it is; none if it says nowhere, as of a device.
    ///
    /// # Errors
    /// If it cannot be made, or signals cannot be waited for.
    pub fn made_by<T>(
        make: impl FnOnce() -> io::Result<(T, Option<PathBuf>)>,
    ) -> io::Result<(T, Option<PassingFile>)> {
        // Held until the file is on the list: who is to remove it waits.
        let mut passing = Passing::lock();
        passing.watch()?;
        let (made, path) = make()?;
        passing.files.extend(path.clone());
        Ok((made, path.map(|path| PassingFile { path })))
    }
}

/// Holds back the end of this process by a signal until `work` is done, which looks whether one [came](was_told_to_end). It must
/// not make anything that passes meanwhile: whoever makes such things waits for each other.
///
/// # Errors
/// If signals cannot be waited for.
pub fn hold_back_the_end<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let mut passing = Passing::lock();
    passing.watch()?;
    Ok(work())
}

impl Drop for PassingFile {
    fn drop(&mut self) {
        Passing::lock().files.retain(|file| *file != self.path);
    }
}

/// Has a thread wait for the signals, remove folders and files, and end this process by the same signal: a handler may not remove a
/// folder itself. Signals that are ignored stay so.
fn remove_when_told_to_end() -> io::Result<()> {
    let (mut told, tell) = io::pipe()?;
    TELL.store(tell.into_raw_fd(), Ordering::SeqCst);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut signal = [0];
        if told.read_exact(&mut signal).is_ok() {
            // Kept to the end: whoever drops a folder now, because it fails without it, waits here and has no time to say so.
            let passing = Passing::lock();
            for folder in &passing.folders {
                let _ = remove_folder(folder);
            }
            for file in &passing.files {
                let _ = std::fs::remove_file(file);
            }
            let signal = libc::c_int::from(signal[0]);
            // SAFETY: neither call takes memory of ours.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::kill(libc::getpid(), signal);
            }
            // Another thread may have to take it; and the first process of a container is not ended by it at all.
            std::thread::sleep(std::time::Duration::from_secs(1));
            std::process::exit(128 + signal);
        }
    })?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        catch(signal, tell_of, |given| given != libc::SIG_IGN);
    }
    Ok(())
}

/// Hands a signal to the thread that waits for it.
extern "C" fn tell_of(signal: libc::c_int) {
    WAS_TOLD_TO_END.store(true, Ordering::SeqCst);
    let byte = signal as u8;
    // SAFETY: the byte is valid for the call; write and errno are async-signal-safe.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(TELL.load(Ordering::SeqCst), (&raw const byte).cast(), 1);
        *errno = before;
    }
}

/// From now on a write beyond the limit of a file's size (`ulimit -f`) fails with EFBIG, as one to a full disk fails: it no
/// longer kills this process (SIGXFSZ), which left what it was writing lying about without a word.
///
/// The signal is caught, not ignored: programs that are started inherit what is ignored, but not what is caught, and so begin
/// with what this process was given itself.
pub fn outlive_file_size_limit() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    catch(libc::SIGXFSZ, nothing, |given| given == libc::SIG_DFL);
}

/// Has a signal handled from now on, if what it did up to now may be replaced. A handler makes only async-signal-safe calls.
fn catch(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
    may_replace: impl Fn(libc::sighandler_t) -> bool,
) {
    // SAFETY: all-zero is a valid sigaction; the handler has the type of one without SA_SIGINFO.
    unsafe {
        let mut given: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut given) == 0 && may_replace(given.sa_sigaction) {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// A terminal sends its signals to the whole foreground group: the job has them already. A signal from a process is for us alone.
extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let target = TARGET.load(Ordering::SeqCst);
    if signal != libc::SIGUSR1 && signal != libc::SIGUSR2 {
        HAS_COME.store(true, Ordering::SeqCst);
        WAS_TOLD_TO_END.store(true, Ordering::SeqCst);
    }
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler; kill is async-signal-safe.
    unsafe {
        if target > 0 && (*info).si_code != libc::SI_KERNEL {
            libc::kill(target, signal);
        }
    }
}
