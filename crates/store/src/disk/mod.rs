//! A server's disks: data in ordinary files, names and records in a database.
//!
//! What it is asked ([`Work`]) it does at once, in the thread that asks; any number of threads may ask.

mod allowance;
mod extents;
mod files;
mod groups;
mod mapped;
#[cfg(test)]
mod model_tests;
mod names;
mod part;
mod ranges;
mod room;
mod shared_sync;
mod sums;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pio_protocol::server::{Task, Work};
use pio_protocol::{
    Answer, Expected, Failure, FileId, FileRef, MOST_BLOCKS, MOST_NAMES, Placement, ReplyBody, Usage,
};

use crate::error::StoreError;
use crate::private;
pub use crate::summed::BLOCK_BYTES;
use crate::summed::Summed;
pub use allowance::Allowance;
use allowance::Reserved;
use files::{Trouble, parts_of};
pub use names::{Loss, Losses, Names, Owner, Past, Traces, Unopened};
use part::{Part, Paths};

/// Parts that are kept open, at most.
const MOST_OPEN: usize = 256;
/// The share of them that is closed when there are as many, if nobody works with them: one in so many.
const SHARE_CLOSED: usize = 16;
/// Descriptors of a part that is open.
const DESCRIPTORS_OF_A_PART: u64 = 2;
/// A server's names and records, in its first folder.
const DATABASE: &str = "names.redb";

/// The disks of a server.
#[derive(Debug)]
pub struct Disks {
    folders: Vec<PathBuf>,
    names: Names,
    /// A placement that has all servers.
    everywhere: Placement,
    boot: u128,
    epoch: AtomicU64,
    /// Whether the epoch could not be noted: a restart would begin with an older one.
    epoch_is_unsaved: AtomicBool,
    parts: Mutex<OpenParts>,
    /// What is left of the last listing of parts.
    listed: Mutex<Listed>,
    most_open: usize,
    made_private: u64,
    allowance: Option<Arc<Allowance>>,
}

/// Files of which there were parts when somebody listed them.
#[derive(Debug, Default)]
struct Listed {
    /// From which on they have not been told yet, if some have,
    from: Option<FileId>,
    /// and these, ascending.
    files: Vec<FileId>,
}

/// Memory to work in, one a thread.
#[derive(Debug, Default)]
pub struct Buffers {
    /// The data of a read.
    pub data: Vec<u8>,
    window: Vec<u8>,
}

impl Disks {
    /// Opens (or makes) what server `index` of `servers` keeps in `folders`; names and records are in the first. Its parts take
    /// no more room than `allowance` says. If it was `started` before, and there is nothing now, that is a [`Loss`].
    ///
    /// # Errors
    /// If they cannot be read or written, are in use, or belong to another server.
    pub fn open(
        folders: &[PathBuf],
        index: u32,
        servers: u32,
        allowance: Option<Arc<Allowance>>,
        started: bool,
    ) -> Result<(Disks, Past), StoreError> {
        let wrong = |path: &Path, what: String| StoreError::Config { path: path.to_owned(), what };
        let Some(first) = folders.first() else {
            return Err(wrong(Path::new(""), "expected a folder".into()));
        };
        let mut made_private = 0;
        for folder in folders {
            let closed = private::create_folder(&parts_of(folder))
                .and_then(|()| private::close_to_others(folder))
                .map_err(|error| wrong(folder, error.to_string()))?;
            made_private += closed;
        }
        let everywhere = Placement::new(BLOCK_BYTES, servers, 0, servers)
            .ok_or_else(|| wrong(first, "expected a server at least".into()))?;
        let boot = boot();
        if let Some(other) = folders[1..].iter().find(|folder| folder.join(DATABASE).exists()) {
            let what = format!(
                "the server's names are in {}: expected it as the first folder (--dir)",
                other.display()
            );
            return Err(StoreError::OtherServer { path: first.clone(), what });
        }
        let path = first.join(DATABASE);
        let owner = Owner { index, servers, folders: folders.len() as u32 };
        let traces = traces(folders, index, started).map_err(|error| wrong(first, error.to_string()))?;
        let (names, past) = Names::open(&path, owner, boot, traces).map_err(|error| match error {
            Unopened::Database(error) => wrong(&path, error.to_string()),
            Unopened::OtherServer(what) => StoreError::OtherServer { path: first.clone(), what },
        })?;
        let epoch = AtomicU64::new(past.epoch);
        let parts = Mutex::default();
        Ok((
            Disks {
                folders: folders.to_vec(),
                names,
                everywhere,
                boot,
                epoch,
                epoch_is_unsaved: AtomicBool::new(false),
                parts,
                listed: Mutex::default(),
                most_open: most_open(servers),
                made_private,
                allowance,
            },
            past,
        ))
    }

    /// How many of its files and folders others could read when they were opened; now they cannot.
    pub fn made_private(&self) -> u64 {
        self.made_private
    }

    /// Counts how often data not yet synced may have been lost.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Does work. `data` came with it; what it reads is in `room` afterwards, or in `buffers.data` if there is none.
    ///
    /// # Errors
    /// What the client is to be told.
    pub fn perform(
        &self,
        work: &Work,
        data: Summed<'_>,
        room: Option<&mut [u8]>,
        buffers: &mut Buffers,
    ) -> ReplyBody {
        self.perform_part(work, data, room, buffers).map_err(|trouble| trouble.0)
    }

    fn perform_part(
        &self,
        work: &Work,
        data: Summed<'_>,
        room: Option<&mut [u8]>,
        buffers: &mut Buffers,
    ) -> Result<Answer, Trouble> {
        match &work.task {
            Task::Write { file, strips, .. } => {
                // Said now: whatever is lost from now on may be this.
                let epoch = self.epoch();
                if !data.data.is_empty() {
                    self.make(file)?.write(strips.clone(), data, &mut buffers.window)?;
                }
                Ok(Answer::Written { epoch })
            }
            Task::Read { file, strips, bytes } => {
                let len = *bytes as usize;
                let Buffers { data, window } = buffers;
                if room.is_none() && data.len() < len {
                    data.resize(len, 0);
                }
                let out = &mut room.unwrap_or(data)[..len];
                let bytes = match self.find(file)? {
                    Some(part) => part.read(strips.clone(), out, window)?,
                    None => 0,
                };
                // Said now: who is told this epoch did not read what was lost before it.
                Ok(Answer::Data { bytes, epoch: self.epoch() })
            }
            Task::Length { file } => {
                let part = self.find(file)?;
                let bytes = part.map_or(Ok(0), |part| part.len())?;
                Ok(Answer::Length { bytes, epoch: self.epoch() })
            }
            Task::SetLength { file, bytes } => {
                let epoch = self.epoch();
                if *bytes > 0 || self.find(file)?.is_some() {
                    self.make(file)?.set_len(*bytes)?;
                }
                Ok(Answer::Written { epoch })
            }
            Task::Preallocate { file, bytes } => {
                let epoch = self.epoch();
                self.make(file)?.preallocate(*bytes)?;
                Ok(Answer::Written { epoch })
            }
            Task::Extend { file, bytes } => {
                let epoch = self.epoch();
                self.make(file)?.extend(*bytes)?;
                Ok(Answer::Written { epoch })
            }
            Task::Sync { file } => self.sync(file),
            Task::RemovePart { file } => {
                self.remove_part(file)?;
                Ok(Answer::Done)
            }
            Task::Check { file } => {
                let (checked, mut blocks) = match self.find(file)? {
                    Some(part) => part.check()?,
                    None if file.id.count() < self.names.losses().parts_below => {
                        return Err(Trouble(Failure::FolderLost));
                    }
                    None => (0, Vec::new()),
                };
                let damaged = blocks.len() as u64;
                blocks.truncate(MOST_BLOCKS);
                Ok(Answer::Damage { checked, damaged, blocks })
            }
            Task::Usage => self.usage(),
            Task::Parts { from, most } => self.parts(*from, *most),
            _ => self.names.perform(work).map_err(Trouble),
        }
    }

    fn sync(&self, file: &FileRef) -> Result<Answer, Trouble> {
        if self.epoch_is_unsaved.load(Ordering::SeqCst) {
            self.save_epoch();
        }
        if let Some(part) = self.find(file)? {
            // Before anybody else's turn: whoever is told that all is well from now on must find the new epoch.
            part.sync(|| self.begin_epoch())?;
        }
        Ok(Answer::Written { epoch: self.epoch() })
    }

    /// The operating system says once that it could not write, then forgets what it could not: whoever wrote must learn of
    /// it, not only who asked.
    fn begin_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.save_epoch();
    }

    /// A disk that cannot be written may not take the number of the epoch either: it is noted with the next sync then.
    fn save_epoch(&self) {
        let saved = self.names.note_epoch(self.epoch());
        self.epoch_is_unsaved.store(saved.is_err(), Ordering::SeqCst);
    }

    fn remove_part(&self, file: &FileRef) -> Result<(), Trouble> {
        let paths = self.paths(file.id);
        // What is so damaged that it does not say where it belongs can be removed.
        if paths.placement().is_some_and(|placement| placement != file.placement) {
            return Err(Trouble(Failure::Invalid(Expected::Placement)));
        }
        // With the table held: who opens the part meanwhile finds all of it, or nothing.
        let mut parts = self.opened();
        parts.parts.remove(&file.id);
        let room = Reserved::new(self.allowance.as_deref(), &paths, || Ok(0))?;
        paths.remove()?;
        drop((room, parts));
        paths.sync_folder()
    }

    fn usage(&self) -> Result<Answer, Trouble> {
        let mut usage = Usage::default();
        let mut devices = Vec::new();
        for folder in &self.folders {
            let parts = parts_of(folder);
            let system =
                rustix::fs::statvfs(&parts).map_err(|errno| Trouble(Failure::Os(errno.raw_os_error())))?;
            // Folders of one file system share its room.
            if !devices.contains(&system.f_fsid) {
                devices.push(system.f_fsid);
                usage.total_bytes += system.f_blocks * system.f_frsize;
                usage.free_bytes += system.f_bavail * system.f_frsize;
            }
            for entry in fs::read_dir(parts)? {
                let entry = entry?;
                if entry.file_name().as_encoded_bytes().ends_with(b".data") {
                    usage.files += 1;
                    usage.used_bytes += entry.metadata()?.len();
                }
            }
        }
        if let Some(allowance) = &self.allowance {
            usage.total_bytes = usage.total_bytes.min(allowance.limit_bytes());
            usage.free_bytes = usage.free_bytes.min(allowance.free_bytes());
        }
        Ok(Answer::Usage(usage))
    }

    /// The parts of files from `from` on, whoever has a name for them.
    fn parts(&self, from: FileId, most: u32) -> Result<Answer, Trouble> {
        let files = self.list_parts(from)?;
        let mut parts = Vec::new();
        let mut more = false;
        for (index, &id) in files.iter().enumerate() {
            if parts.len() == most.min(MOST_NAMES) as usize {
                more = true;
                // Whoever asks for the next ones finds them here.
                let from =
                    parts.last().and_then(|(last, _): &(FileRef, u64)| last.id.0.checked_add(1)).map(FileId);
                *self.listed() = Listed { from, files: files[index..].to_vec() };
                break;
            }
            let paths = self.paths(id);
            // It may have been removed since it was listed.
            if paths.exist() {
                let placement = paths.placement().unwrap_or(self.everywhere);
                parts.push((FileRef { id, placement }, paths.len()?));
            }
        }
        Ok(Answer::Parts { more, parts, lost_below: self.names.losses().names_below })
    }

    /// Files from `from` on of which there are parts, ascending. The folders are read at the first question, not for each answer
    /// to those that follow: with very many parts, that would take hours.
    fn list_parts(&self, from: FileId) -> Result<Vec<FileId>, Trouble> {
        let listed = std::mem::take(&mut *self.listed());
        if listed.from == Some(from) {
            return Ok(listed.files);
        }
        let mut files = Vec::new();
        for folder in &self.folders {
            for entry in fs::read_dir(parts_of(folder))? {
                files.extend(Paths::file(&entry?.file_name()).filter(|file| *file >= from));
            }
        }
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    fn listed(&self) -> std::sync::MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a file, if there is one.
    fn find(&self, file: &FileRef) -> Result<Option<Arc<Part>>, Trouble> {
        self.open_part(file, false)
    }

    /// The part of a file, made if there is none.
    fn make(&self, file: &FileRef) -> Result<Arc<Part>, Trouble> {
        let none = Trouble(Failure::Os(rustix::io::Errno::NOENT.raw_os_error()));
        self.open_part(file, true)?.ok_or(none)
    }

    fn open_part(&self, file: &FileRef, create: bool) -> Result<Option<Arc<Part>>, Trouble> {
        let mut parts = self.opened();
        if let Some(part) = parts.take_up(file.id) {
            return match part.placement() == file.placement {
                true => Ok(Some(part)),
                false => Err(Trouble(Failure::Invalid(Expected::Placement))),
            };
        }
        parts.make_room(self.most_open);
        let allowance = self.allowance.clone();
        let Some(part) = Part::open(self.paths(file.id), file.placement, self.boot, create, allowance)?
        else {
            return Ok(None);
        };
        let part = Arc::new(part);
        parts.insert(file.id, part.clone());
        Ok(Some(part))
    }

    fn paths(&self, file: FileId) -> Paths {
        let folder = &self.folders[(file.0 % self.folders.len() as u64) as usize];
        Paths::new(&parts_of(folder), file)
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, OpenParts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parts that are open, each with when it was last taken up.
#[derive(Debug, Default)]
struct OpenParts {
    parts: BTreeMap<FileId, (Arc<Part>, u64)>,
    /// How often parts were taken up.
    taken_up: u64,
}

impl OpenParts {
    fn take_up(&mut self, file: FileId) -> Option<Arc<Part>> {
        self.taken_up += 1;
        let (part, used) = self.parts.get_mut(&file)?;
        *used = self.taken_up;
        Some(part.clone())
    }

    fn insert(&mut self, file: FileId, part: Arc<Part>) {
        self.parts.insert(file, (part, self.taken_up));
    }

    /// Closes some of those that nobody works with, if there are `most`: those first that would forget nothing, and of these
    /// the ones that were not taken up for longest. What is dirty is noted beside the data, and found again.
    fn make_room(&mut self, most: usize) {
        if self.parts.len() < most {
            return;
        }
        // Nobody else can take one up while we hold the table, so nobody has the lock of one that is idle.
        let idle = self.parts.iter().filter(|(_, (part, _))| Arc::strong_count(part) == 1);
        let mut idle: Vec<(bool, u64, FileId)> =
            idle.map(|(file, (part, used))| (!part.is_clean(), *used, *file)).collect();
        idle.sort_unstable();
        let enough = self.parts.len() - most + most.div_ceil(SHARE_CLOSED);
        idle.iter().take(enough).for_each(|(_, _, file)| drop(self.parts.remove(file)));
    }
}

/// What the parts in a server's folders say of what its database should know.
fn traces(folders: &[PathBuf], index: u32, started: bool) -> io::Result<Traces> {
    let mut traces = Traces { started, ..Traces::default() };
    for folder in folders {
        for entry in fs::read_dir(parts_of(folder))? {
            let Some(file) = Paths::file(&entry?.file_name()) else { continue };
            traces.parts = true;
            if file.home() == index {
                traces.latest = traces.latest.max(file.count());
            }
        }
    }
    Ok(traces)
}

/// Parts that a server keeps open where as many as `servers` may be in its process: half of its descriptors are for them, the others
/// for clients.
fn most_open(servers: u32) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let parts = limit / 2 / DESCRIPTORS_OF_A_PART / u64::from(servers.max(1));
    parts.clamp(1, MOST_OPEN as u64) as usize
}

/// Which start of the machine this is; a new one each time if Linux does not say.
fn boot() -> u128 {
    crate::process::boot_id().or_else(|| crate::auth::random().ok().map(u128::from_le_bytes)).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    /// Bytes that say otherwise where the file is would be put where they do not belong.
    #[test]
    fn a_part_is_only_used_as_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (disks, _) = Disks::open(&[folder.path().to_owned()], 0, 1, None, false).unwrap();
        let file = |unit| FileRef { id: FileId(1), placement: Placement::new(unit, 1, 0, 1).unwrap() };
        disks.make(&file(4096)).ok().unwrap().set_len(100).ok().unwrap();
        let wrong = Failure::Invalid(Expected::Placement);
        assert_eq!(disks.find(&file(8192)).err().unwrap().0, wrong);
        assert_eq!(disks.make(&file(8192)).err().unwrap().0, wrong);
        assert_eq!(disks.remove_part(&file(8192)).err().unwrap().0, wrong);
        assert_eq!(disks.find(&file(4096)).ok().unwrap().unwrap().len().ok(), Some(100));
        disks.remove_part(&file(4096)).ok().unwrap();
        assert!(disks.find(&file(4096)).ok().unwrap().is_none());
    }

    /// They were read for each 512 parts: to check a store of a million, 2000 times.
    #[test]
    fn folders_are_read_once_for_all_their_parts() {
        let folder = tempfile::tempdir().unwrap();
        let (disks, _) = Disks::open(&[folder.path().to_owned()], 0, 1, None, false).unwrap();
        let make = |id| {
            let placement = Placement::new(4096, 1, 0, 1).unwrap();
            drop(disks.make(&FileRef { id: FileId(id), placement }).ok().unwrap());
        };
        let parts = |from, most| {
            let Ok(Answer::Parts { more, parts, .. }) = disks.parts(FileId(from), most) else { panic!() };
            (more, parts.into_iter().map(|(file, _)| file.id.0).collect::<Vec<_>>())
        };
        [1, 2, 3, 5, 6, 8].into_iter().for_each(make);
        assert_eq!(parts(0, 2), (true, vec![1, 2]));
        // Made since: not among those that were listed. Removed since: no part any more.
        make(4);
        disks.paths(FileId(5)).remove().ok().unwrap();
        assert_eq!(parts(3, 2), (true, vec![3, 6]));
        // Another lists them meanwhile.
        assert_eq!(parts(0, 4), (true, vec![1, 2, 3, 4]));
        assert_eq!(parts(7, 2), (false, vec![8]));
        assert_eq!(parts(5, 9), (false, vec![6, 8]));
        assert_eq!(parts(0, 9), (false, vec![1, 2, 3, 4, 6, 8]));
    }

    /// All that were idle were closed, to be opened and read again one after the other.
    #[test]
    fn parts_that_were_not_used_for_longest_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut disks, _) = Disks::open(&[folder.path().to_owned()], 0, 1, None, false).unwrap();
        disks.most_open = 4;
        let placement = Placement::new(4096, 1, 0, 1).unwrap();
        let make = |id| disks.make(&FileRef { id: FileId(id), placement }).ok().unwrap();
        let open = || disks.opened().parts.keys().map(|file| file.0).collect::<Vec<_>>();
        let busy = make(1);
        [2, 3, 4, 2].into_iter().for_each(|id| drop(make(id)));
        assert_eq!(open(), [1, 2, 3, 4]);
        drop(make(5));
        assert_eq!(open(), [1, 2, 4, 5]);
        // What would have to be found again is kept, as long as something else is idle.
        make(2).set_len(10).ok().unwrap();
        let (write, strip) = ([1; 10], placement.strips_of(0, &pio_layout::View::contiguous(0), 0..10));
        make(4).write(strip, Summed { data: &write, sums: &[] }, &mut Vec::new()).ok().unwrap();
        [2, 5, 6].into_iter().for_each(|id| drop(make(id)));
        assert_eq!(open(), [1, 4, 5, 6]);
        drop(busy);
    }

    /// A file that one client removes while another syncs it is gone, not damaged.
    #[test]
    fn who_syncs_a_part_that_is_being_removed_finds_all_of_it_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (disks, _) = Disks::open(&[folder.path().to_owned()], 0, 1, None, false).unwrap();
        let placement = Placement::new(1 << 16, 1, 0, 1).unwrap();
        let file = FileRef { id: FileId(1), placement };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let syncing = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    disks.sync(&file).map_err(|trouble| trouble.0)?;
                }
                Ok(())
            });
            for _ in 0..200 {
                disks.make(&file).ok().unwrap().set_len(100_000).ok().unwrap();
                disks.remove_part(&file).ok().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            assert_eq!(syncing.join().unwrap(), Ok::<(), Failure>(()));
        });
    }
}
