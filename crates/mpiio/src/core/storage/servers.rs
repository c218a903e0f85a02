//! A file on I/O servers.
//!
//! Which files: those whose path begins with `pioscope:`, and all if `PIOSCOPE_STORE` is set. That variable names the
//! store's description. A process has one connection to each server, whatever files it opens.

use std::cell::Cell;
use std::ffi::{CStr, OsString};
use std::io::IoSlice;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pio_layout::View;
use pio_plan::{Direction, IoError};
use pio_protocol::client::Naming;
use pio_protocol::{BLOCK_BYTES, Holder, MOST_EXTENTS};
use pio_store::StoreError;
use pio_store::client::{
    GATHER_BYTES, Lock, Mode, Options, Sink, Source, Store, StoreFile, StripingHints, Unanswered,
};
use pio_store::transport::Traffic;

use crate::core::mpi::memory::Memory;
use crate::core::storage::mode::Creates;
use crate::core::storage::path_prefix;
use crate::core::storage::request_log;
use crate::say::say;

// What the strategy puts into one request, a server takes; and what the cost model says of its blocks is so.
const _: () = assert!(pio_plan::EXTENTS == MOST_EXTENTS);
const _: () = assert!(pio_plan::cost::BLOCK_BYTES == BLOCK_BYTES);

/// Names the store's description.
const STORE: &str = "PIOSCOPE_STORE";
/// Names a folder of the store that all files of this job are in; if not set, they are in none.
const FOLDER: &str = "PIOSCOPE_STORE_FOLDER";
/// Begins the path of a file on servers.
const PREFIX: &str = "pioscope:";
/// How long to wait for a lock before it is an error: nobody holds one for longer than a request takes.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(600);
/// How often a process says at most that it waits for a server.
const SAYS_WAITING_EVERY: Duration = Duration::from_secs(30);

thread_local! {
    /// What the thread's last opening of a file failed with, as long as nobody has said it.
    static UNSAID: Cell<Option<StoreError>> = const { Cell::new(None) };
}
/// When this process said last that it waits for a server.
static SAID_WAITING: Mutex<Option<Instant>> = Mutex::new(None);
static CONNECTED: Mutex<Option<Store>> = Mutex::new(None);
/// What the servers' traffic was when somebody asked last.
static ASKED: Mutex<Traffic> = Mutex::new(Traffic { sent: 0, received: 0 });

/// The name in the store of the file that a program names `path`; none if it is not to be there.
///
/// # Errors
/// If it is to be there, and its name cannot: [`say_why`] says so.
pub(crate) fn name_of(path: &CStr) -> Result<Option<String>, IoError> {
    let folder = std::env::var_os(FOLDER).unwrap_or_default();
    let name = name_in_store(path.to_bytes(), description().is_some(), folder.as_bytes());
    name.map_err(unsaid)
}

/// Keeps an error for [`say_why`].
fn unsaid(error: StoreError) -> IoError {
    let errno = error.errno();
    UNSAID.set((!is_an_answer(&error)).then_some(error));
    IoError { errno }
}

/// What describes the store of all files; set to nothing, there is none.
fn description() -> Option<OsString> {
    std::env::var_os(STORE).filter(|path| !path.is_empty())
}

fn name_in_store(path: &[u8], all: bool, folder: &[u8]) -> Result<Option<String>, StoreError> {
    let (path, explicit) = match path.strip_prefix(PREFIX.as_bytes()) {
        Some(rest) => (rest, true),
        None => (&path[path_prefix::prefix_len(path)..], false),
    };
    if !explicit && !all {
        return Ok(None);
    }
    let text = |bytes| {
        std::str::from_utf8(bytes).map_err(|_| StoreError::Invalid {
            path: String::from_utf8_lossy(bytes).into_owned(),
            expected: "a path in UTF-8, as all in a store".into(),
        })
    };
    let parts = text(folder)?.split('/').chain(text(path)?.split('/'));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty() && *part != ".").collect();
    Ok(Some(parts.join("/")))
}

/// Removes a file by name.
pub(crate) fn remove(name: &str) -> Result<(), IoError> {
    connected().and_then(|store| store.remove(name)).map_err(not_removed)
}

fn not_removed(error: StoreError) -> IoError {
    if is_an_answer(&error) { IoError { errno: error.errno() } } else { refused(error) }
}

/// Says why this thread's last opening of a file failed, if MPI has no class that does. All ranks open, and one says it.
pub(crate) fn say_why() {
    if let Some(error) = UNSAID.take() {
        say(error);
    }
}

/// Bytes that went between this process and the servers since this was asked last, for whatever files.
pub(crate) fn traffic_since_asked() -> Traffic {
    let connected = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let now = connected.map_or(Traffic::default(), |store| store.traffic());
    let before = std::mem::replace(&mut *ASKED.lock().unwrap_or_else(PoisonError::into_inner), now);
    Traffic { sent: now.sent - before.sent, received: now.received - before.received }
}

/// The store; connects to it first, if need be.
pub(crate) fn store() -> Result<Store, IoError> {
    connected().map_err(refused)
}

fn connected() -> Result<Store, StoreError> {
    let mut connected = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = &*connected {
        return Ok(store.clone());
    }
    let description = description().ok_or_else(|| StoreError::Config {
        path: STORE.into(),
        what: format!("not set: {PREFIX} paths need the description that `pioscope serve` wrote"),
    })?;
    let options = Options { waits: say_waiting, ..Options::from_environment()? };
    let store = Store::connect_with(Path::new(&description), options)?;
    request_log::watch(&store);
    Ok(connected.insert(store).clone())
}

/// Says which server this process waits for. Many may be away at once: it says one of them, and the next a while later.
fn say_waiting(server: &Unanswered<'_>) {
    let mut said = SAID_WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if said.is_none_or(|said| said.elapsed() >= SAYS_WAITING_EVERY) {
        *said = Some(Instant::now());
        say(server);
    }
}

/// From now on, files of the tests in this process are on these servers; or on none.
#[cfg(test)]
pub(crate) fn connect_to(store: Option<Store>) {
    *CONNECTED.lock().unwrap_or_else(PoisonError::into_inner) = store;
}

/// An open file on servers.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    file: StoreFile,
    locks: Mutex<Vec<(Range<u64>, Lock)>>,
}

/// What of a wish the servers can fulfil: strips that no file can have are none. More servers than there are is all of
/// them.
fn possible(wanted: StripingHints, servers: u32) -> StripingHints {
    let longest = i64::MAX as u64 / u64::from(servers.max(1));
    StripingHints { unit: if wanted.unit <= longest { wanted.unit } else { 0 }, ..wanted }
}

impl RemoteFile {
    /// Opens a file of the store. One that it makes is dealt out as `wanted` says, as far as the store can: it is a hint.
    pub(crate) fn open(name: &str, creates: Creates, wanted: StripingHints) -> Result<RemoteFile, IoError> {
        UNSAID.take();
        let mode = Mode { create: creates != Creates::No, exclusive: creates == Creates::New };
        let opened = connected().and_then(|store| store.open(name, mode, possible(wanted, store.servers())));
        Ok(RemoteFile { file: opened.map_err(unsaid)?, locks: Mutex::default() })
    }

    /// Its number in the store.
    pub(crate) fn identity(&self) -> u64 {
        self.file.file().id.0
    }

    /// Bytes of a strip, and how many servers have parts of the file.
    pub(crate) fn striping(&self) -> (u64, u32) {
        let striping = self.file.file().placement.striping();
        (striping.unit, striping.factor)
    }

    /// Removes the file, unless another has its name by now.
    pub(crate) fn remove(&self) -> Result<(), IoError> {
        self.file.remove().map_err(not_removed)
    }

    /// Reads until the buffer is full or the file ends; returns the bytes read.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<u64, IoError> {
        self.file.read_at(offset, buffer).map_err(refused)
    }

    /// Writes the whole buffer.
    pub(crate) fn write(&self, offset: u64, buffer: &[u8]) -> Result<u64, IoError> {
        self.file.write_at(offset, buffer).map(|()| buffer.len() as u64).map_err(refused)
    }

    /// See [`crate::core::storage::backend::Storage::ship`].
    pub(crate) fn ship(
        &self,
        naming: Naming,
        direction: Direction,
        view: &View,
        positions: Range<u64>,
        start: u64,
        memory: &mut Memory,
    ) -> Result<u64, IoError> {
        let bytes = positions.end - positions.start;
        let mut data = Data { memory, start };
        match direction {
            Direction::Write => self.file.write_named(naming, view, positions, &data).map(|()| bytes),
            Direction::Read => self.file.read_named(naming, view, positions, &mut data),
        }
        .map_err(refused)
    }

    /// Locks an interval of the file; others may have it `shared` meanwhile.
    pub(crate) fn lock(&self, range: Range<u64>, shared: bool) -> Result<(), IoError> {
        self.locked(range, shared, LOCK_TIMEOUT).map_err(refused).map_err(|error| {
            // Servers have locks: whatever they say is no reason to do without.
            if error.says_that_nothing_can_be_locked() { IoError { errno: libc::EIO } } else { error }
        })
    }

    /// See [`crate::core::storage::backend::Storage::lock_within`].
    pub(crate) fn lock_within(&self, range: Range<u64>, patience: Duration) -> Result<(), IoError> {
        self.locked(range, false, patience).map_err(|error| match error {
            // Who asks so can do without: that is nothing to tell of.
            StoreError::Locked { .. } => IoError { errno: error.errno() },
            error => refused(error),
        })
    }

    fn locked(&self, range: Range<u64>, shared: bool, patience: Duration) -> Result<(), StoreError> {
        let path = self.file.path();
        let mut waiting = |holder: &Holder| say(format_args!("{path}: waiting for a lock of {holder}"));
        let lock = self.file.lock_telling(range.clone(), shared, patience, &mut waiting)?;
        self.locks().push((range, lock));
        Ok(())
    }

    /// Gives it free again.
    pub(crate) fn unlock(&self, range: &Range<u64>) -> Result<(), IoError> {
        let mut locks = self.locks();
        let held = locks.iter().position(|(held, _)| held == range);
        let held = held.map(|index| locks.swap_remove(index)).ok_or(IoError { errno: libc::ENOLCK })?;
        drop(locks);
        self.file.unlock(held.1).map_err(refused)
    }

    /// Bytes in the file.
    pub(crate) fn size(&self) -> Result<u64, IoError> {
        self.file.size().map_err(refused)
    }

    /// Cuts or extends the file.
    pub(crate) fn set_size(&self, size: u64) -> Result<(), IoError> {
        self.file.set_size(size).map_err(refused)
    }

    /// Makes sure that there is room for so many bytes.
    pub(crate) fn preallocate(&self, size: u64) -> Result<(), IoError> {
        self.file.preallocate(size).map_err(refused)
    }

    /// Makes the data durable on every server.
    pub(crate) fn sync(&self) -> Result<(), IoError> {
        self.file.sync().map_err(refused)
    }

    fn locks(&self) -> MutexGuard<'_, Vec<(Range<u64>, Lock)>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a store said no with. MPI has only a class for it: the rest goes to the standard error output.
pub(crate) fn refused(error: StoreError) -> IoError {
    say(&error);
    IoError { errno: error.errno() }
}

/// Whether it is a server's answer to a file's name, as that there is none, or one already: MPI has classes for it, and every
/// rank may ask.
fn is_an_answer(error: &StoreError) -> bool {
    matches!(error, StoreError::Failed { .. })
}

/// The program's memory from a data byte on.
struct Data<'a> {
    memory: &'a mut Memory,
    start: u64,
}

impl Data<'_> {
    fn place(&self, bytes: &Range<u64>) -> Range<u64> {
        self.start + bytes.start..self.start + bytes.end
    }
}

// What lies outside the memory cannot be asked for: the positions are as many as it has bytes.
impl Source for Data<'_> {
    fn gather<'a>(&'a self, bytes: Range<u64>, pieces: &mut Vec<IoSlice<'a>>) -> bool {
        let place = self.place(&bytes);
        let Some(found) = self.memory.slices(place, GATHER_BYTES) else { return false };
        pieces.extend(found.map(IoSlice::new));
        true
    }

    fn pack(&self, bytes: Range<u64>, out: &mut [u8]) {
        let _ = self.memory.pack(self.place(&bytes), out);
    }
}

impl Sink for Data<'_> {
    fn slice(&mut self, bytes: Range<u64>) -> Option<&mut [u8]> {
        let place = self.place(&bytes);
        self.memory.contiguous(place)
    }

    fn unpack(&mut self, bytes: Range<u64>, data: &[u8]) {
        let place = self.place(&bytes);
        let _ = self.memory.unpack(place, data);
    }

    fn zero(&mut self, bytes: Range<u64>) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut place = self.place(&bytes);
        while !place.is_empty() {
            let end = place.end.min(place.start + ZEROS.len() as u64);
            let len = (end - place.start) as usize;
            let _ = self.memory.unpack(place.start..end, &ZEROS[..len]);
            place.start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_files_of_the_store() {
        let name_in_store = |path: &str, all, folder: &str| {
            super::name_in_store(path.as_bytes(), all, folder.as_bytes()).unwrap()
        };
        assert_eq!(name_in_store("/tmp//a/./b", false, ""), None);
        assert_eq!(name_in_store("/tmp//a/./b", true, "").as_deref(), Some("tmp/a/b"));
        assert_eq!(name_in_store("ufs:/tmp/a", true, "").as_deref(), Some("tmp/a"));
        assert_eq!(name_in_store("run:a", true, "").as_deref(), Some("run:a"));
        assert_eq!(name_in_store("ufs:/tmp/a", false, ""), None);
        assert_eq!(name_in_store("pioscope:run/a", false, "").as_deref(), Some("run/a"));
        assert_eq!(name_in_store("pioscope:/run/a", false, "mine/").as_deref(), Some("mine/run/a"));
        assert_eq!(name_in_store("/tmp/a", false, "mine"), None);
        // The store refuses it.
        assert_eq!(name_in_store("pioscope:../a", false, "").as_deref(), Some("../a"));
    }

    /// It was a file of the folder that the program ran in.
    #[test]
    fn a_path_that_no_store_can_have_is_not_taken_for_a_plain_one() {
        let wrong = |path: &[u8], all, folder: &[u8]| name_in_store(path, all, folder).is_err();
        assert!(wrong(b"pioscope:a\xff", false, b""));
        assert!(wrong(b"/tmp/a\xff", true, b""));
        assert!(wrong(b"/tmp/a", true, b"\xff"));
        assert!(!wrong(b"/tmp/a\xff", false, b"\xff"));
    }
}
