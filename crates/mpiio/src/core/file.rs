//! An open file: view, positions, hints, and what changes them. Reading and writing is in [`super::access`].

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pio_layout::{Datatype, View};
use pio_plan::Hints;

use super::access::{Inner, State};
use super::cache::Cache;
use super::channel::Channel;
use super::common::{Common, Gaps};
use super::companion::{Companion, Place as CompanionPlace};
use super::hints::{self, Given, Kept};
use super::remote;
use super::settings::Settings;
use super::status::Status;
use super::storage::{Creates, Mode, Storage};
use super::turns::Turns;
use super::views::FileView;

/// One open file of one rank.
#[derive(Debug)]
pub struct File {
    cache: Arc<Cache>,
    communicator: *const std::ffi::c_void,
    pub(super) inner: Arc<Inner>,
}

/// From where a seek counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    Start,
    Current,
    End,
}

/// Where a view is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displacement {
    /// At this byte.
    Byte(i64),
    /// Where the shared file pointer is: sequential files know nothing else.
    Current,
}

impl File {
    /// Opens a file. Collective: all ranks get it, or all an error.
    pub fn open(
        cache: &Arc<Cache>,
        settings: &Settings,
        path: &CStr,
        mode: Mode,
        given: &Given,
    ) -> Result<File, Status> {
        let wanted = given.followed.or(&settings.hints);
        let first = cache.is_first()?;
        // Of a file that must be new, only the first to open it can tell. (And who sets permissions, whether it is new.)
        let after_first =
            !first && (mode.creates(true) == Creates::New || given.kept.permissions().is_some());
        let open = || {
            let storage = open_storage(path, mode, first, given.kept.permissions())?;
            // Now: as soon as all know that all have opened the file, some may write to it.
            let end = if mode.appends() { storage.size().unwrap_or(0) } else { 0 };
            Ok((storage, end))
        };
        let mut opened = if after_first { Err(Status::Internal) } else { open() };
        let on_servers = remote::name_of(path).is_some();
        let name = Path::new(OsStr::from_bytes(without_prefix(path.to_bytes())));
        let beside = first && !on_servers && Companion::fits_beside(name);
        let [a, b, c, d, e, f] = hints::words_of(&wanted);
        let number = unique_number();
        let outcome = if after_first { TO_BE_OPENED } else { outcome_of(&opened) };
        let (channel, all) =
            cache.open([outcome, mode.0 as u64, u64::from(beside), number, a, b, c, d, e, f, 0])?;
        let mut outcomes: Vec<u64> = all.iter().map(|[outcome, ..]| *outcome).collect();
        let mut agreed = agree(&outcomes, &all);
        if agreed.is_ok() && outcomes.contains(&TO_BE_OPENED) {
            if after_first {
                opened = open();
            }
            let later = channel.communicator.gather([outcome_of(&opened)])?;
            outcomes = later.into_iter().map(|[outcome]| outcome).collect();
            agreed = agree(&outcomes, &all);
        }
        let (storage, end) = match (opened, agreed) {
            (Ok(opened), Ok(())) => opened,
            (opened, agreed) => {
                let closed = opened.map_or(Ok(()), |(storage, _)| storage.close());
                cache.put_back(channel);
                closed?;
                return Err(agreed.err().unwrap_or(Status::Internal));
            }
        };
        let [_, _, beside, number, hints @ .., _] = all[0];
        let place = place_of_companion(&channel, beside == 1, on_servers);
        let communicator = channel.communicator.handle();
        let state = State {
            view: View::contiguous(0),
            overlapping: None,
            view_number: 0,
            position: end,
            shared_start: end,
            atomic: false,
            hints: hints::in_force(hints::of_words(&hints)),
            kept: given.kept.clone(),
            common: Common::of_new_file(&channel),
        };
        let inner = Inner {
            mode,
            strategy: settings.strategy,
            rank: channel.communicator.rank(),
            companion: Mutex::new(Companion::new(name, place, number)?),
            turns: Turns::new(channel),
            storage,
            state: Mutex::new(state),
            block: Mutex::default(),
        };
        Ok(File { cache: cache.clone(), communicator, inner: Arc::new(inner) })
    }

    /// Closes the file. Collective: what any rank wrote before is in the file when any rank is through, and a rank that
    /// is through may delete it.
    pub fn close(self) -> Result<(), Status> {
        drop(self.inner.turns.take()?);
        let Inner { mode, rank, storage, turns, companion, .. } =
            Arc::into_inner(self.inner).ok_or(Status::Internal)?;
        let channel = turns.into_channel().ok_or(Status::Internal)?;
        let mut result = Ok(());
        if mode.deletes_on_close() && rank == 0 {
            // When all others have closed it.
            result = channel.communicator.barrier();
            result = result.and(storage.remove().map_err(Status::from));
        }
        result = result.and(storage.close().map_err(Status::from));
        result = channel.communicator.barrier().and(result);
        if rank == 0 {
            // Nobody needs it any more.
            companion.into_inner().unwrap_or_else(PoisonError::into_inner).remove();
        }
        if mode.deletes_on_close() && rank > 0 {
            // Else this rank might open the file anew before rank 0 has deleted it.
            result = channel.communicator.barrier().and(result);
        }
        self.cache.put_back(channel);
        result
    }

    /// The shim's pointer to the file's communicator.
    pub fn communicator(&self) -> *const std::ffi::c_void {
        self.communicator
    }

    /// Changes the view; the file pointers go to its beginning. Collective.
    pub fn set_view(
        &self,
        displacement: Displacement,
        types: Option<(&Datatype, &Datatype)>,
        given: &Given,
    ) -> Result<(), Status> {
        let mut turn = self.inner.turns.take()?;
        let mut state = self.lock();
        let mut current = [0; 2];
        if displacement == Displacement::Current && turn.communicator.rank() == 0 {
            let byte = self.inner.shared_position(&state).and_then(|position| state.byte_of(position));
            current = [Status::number(byte.map(drop)) as u64, byte.unwrap_or(0)];
        }
        // All that is to be agreed on goes in one call: each costs every rank a turn where they outnumber processors.
        let expected = self.view_of(displacement, types, [0, 0]);
        let gaps = Gaps::of(expected.as_ref().map_or(&state.view, |view| &view.regular));
        let [current_status, current_byte] = current;
        let [a, b, c, d, e, f] = hints::words_of(&given.followed);
        let all = turn.communicator.gather([a, b, c, d, e, f, current_status, current_byte, gaps as u64])?;
        let [hint_words @ .., current_status, current_byte, _] = all[0];
        state.follow(&hint_words, given);
        Status::check(current_status as i32)?;
        let view = match displacement {
            Displacement::Current => self.view_of(displacement, types, [current_status, current_byte]),
            Displacement::Byte(_) => expected,
        };
        if let Ok(view) = &view {
            state.view = view.regular.clone();
            state.overlapping = view.overlapping.clone();
            state.view_number += 1;
            state.position = 0;
            state.shared_start = 0;
        }
        // A rank whose arguments are wrong still takes part.
        let gaps = all.iter().map(|[.., gaps]| Gaps::of_number(*gaps)).fold(gaps, Gaps::max);
        let Inner { storage, strategy, .. } = &*self.inner;
        state.common = Common::agree(&mut turn, storage, *strategy, &state.view, gaps)?;
        view.map(drop)
    }

    /// The view that a program sets; `current` is where rank 0 found the shared pointer, and what was wrong there.
    fn view_of(
        &self,
        displacement: Displacement,
        types: Option<(&Datatype, &Datatype)>,
        current: [u64; 2],
    ) -> Result<FileView, Status> {
        let (etype, filetype) = types.ok_or(Status::Type)?;
        let sequential = self.inner.mode.is_sequential();
        let displacement = match displacement {
            Displacement::Byte(byte) if !sequential => {
                u64::try_from(byte).map_err(|_| Status::Displacement)?
            }
            Displacement::Current if sequential => {
                Status::check(current[0] as i32)?;
                current[1]
            }
            _ => return Err(Status::Displacement),
        };
        FileView::new(displacement, etype.size(), filetype, self.inner.mode.writes())
    }

    /// Where the view begins, in bytes.
    pub fn displacement(&self) -> u64 {
        self.lock().view.displacement()
    }

    /// Moves the file pointer.
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<(), Status> {
        self.inner.not_sequential()?;
        let mut state = self.lock();
        let position = state.position;
        state.position = self.inner.target_of(&state, offset, whence, || Ok(position))?;
        Ok(())
    }

    /// The file pointer, in etypes.
    pub fn position(&self) -> Result<u64, Status> {
        self.inner.not_sequential()?;
        Ok(self.lock().position)
    }

    /// Moves the shared file pointer. Collective.
    pub fn seek_shared(&self, offset: i64, whence: Result<Whence, Status>) -> Result<(), Status> {
        let turn = self.inner.turns.take()?;
        // When all are here, nobody is still moving it.
        let mine = [offset as u64, whence.map_or(u64::MAX, |whence| whence as u64)];
        let same = turn.communicator.gather(mine)?.into_iter().all(|other| other == mine);
        let mut outcome = [0_u8; 4];
        if turn.communicator.rank() == 0 && same {
            let state = self.lock();
            let moved = self.inner.not_sequential().and_then(|()| {
                let current = || self.inner.shared_position(&state);
                let target = self.inner.target_of(&state, offset, whence?, current)?;
                self.inner.companion().set(state.view_number, target.wrapping_sub(state.shared_start))
            });
            outcome = Status::number(moved).to_ne_bytes();
        }
        turn.communicator.broadcast(&mut outcome)?;
        if same { Status::check(i32::from_ne_bytes(outcome)) } else { Err(Status::NotSame) }
    }

    /// The shared file pointer, in etypes.
    pub fn position_shared(&self) -> Result<u64, Status> {
        self.inner.not_sequential()?;
        self.inner.shared_position(&self.lock())
    }

    /// Where in the file a position of the view (in etypes) is.
    pub fn byte_offset(&self, offset: i64) -> Result<u64, Status> {
        self.inner.not_sequential()?;
        self.lock().byte_of(u64::try_from(offset).map_err(|_| Status::Argument)?)
    }

    /// Makes what this rank wrote durable.
    pub fn sync(&self) -> Result<(), Status> {
        if !self.inner.mode.writes() {
            return Ok(());
        }
        drop(self.inner.turns.take()?);
        Ok(self.inner.storage.sync()?)
    }

    /// Bytes in the file.
    pub fn size(&self) -> Result<u64, Status> {
        Ok(self.inner.storage.size()?)
    }

    /// Cuts or extends the file. Collective.
    pub fn set_size(&self, size: i64) -> Result<(), Status> {
        self.once_for_all(size, Storage::set_size)
    }

    /// Reserves room for the file. Collective.
    pub fn preallocate(&self, size: i64) -> Result<(), Status> {
        self.once_for_all(size, Storage::preallocate)
    }

    /// Adds hints. Collective.
    pub fn set_hints(&self, given: &Given) -> Result<(), Status> {
        let turn = self.inner.turns.take()?;
        self.lock().agree_on_hints(given, &turn)
    }

    /// The hints in force, and those that are kept.
    pub fn hints(&self) -> (Hints, Kept) {
        let state = self.lock();
        (state.hints.clone(), state.kept.clone())
    }

    /// Switches atomic mode. Collective.
    pub fn set_atomic(&self, atomic: bool) -> Result<(), Status> {
        let turn = self.inner.turns.take()?;
        let mine = [u64::from(atomic)];
        if turn.communicator.gather(mine)?.into_iter().any(|other| other != mine) {
            return Err(Status::NotSame);
        }
        self.lock().atomic = atomic;
        Ok(())
    }

    /// Whether the file is in atomic mode.
    pub fn is_atomic(&self) -> bool {
        self.lock().atomic
    }

    /// Lets rank 0 change the file; all ranks learn what came of it.
    fn once_for_all(
        &self,
        size: i64,
        change: fn(&Storage, u64) -> Result<(), pio_plan::IoError>,
    ) -> Result<(), Status> {
        let mut turn = self.inner.turns.take()?;
        // When rank 0 knows that all are here, what they wrote before is in the file. Nobody may go on and write
        // before it is cut; so the others wait once, for what rank 0 says.
        let mut said = [0_u8; 4];
        if let Some(all) = turn.collect([size as u64])? {
            let result = match u64::try_from(size) {
                _ if all.iter().any(|other| *other != [size as u64]) => Err(Status::NotSame),
                Err(_) => Err(Status::Argument),
                Ok(_) if !self.inner.mode.writes() => Err(Status::ReadOnly),
                Ok(size) => self
                    .inner
                    .not_sequential()
                    .and_then(|()| change(&self.inner.storage, size).map_err(Status::from)),
            };
            said = Status::number(result).to_ne_bytes();
        }
        turn.communicator.broadcast(&mut said)?;
        Status::check(i32::from_ne_bytes(said))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state()
    }
}

impl State {
    /// Adds rank 0's hints on all ranks: with different ones they could not work together.
    fn agree_on_hints(&mut self, given: &Given, channel: &Channel) -> Result<(), Status> {
        let mut bytes = hints::words_of(&given.followed).map(u64::to_ne_bytes);
        channel.communicator.broadcast(bytes.as_flattened_mut())?;
        self.follow(&bytes.map(u64::from_ne_bytes), given);
        Ok(())
    }

    /// Adds the hints that rank 0 said, and keeps those that this rank was given only to keep.
    fn follow(&mut self, words: &[u64], given: &Given) {
        self.hints = hints::in_force(hints::of_words(words).or(&self.hints));
        self.kept.add(&given.kept);
    }
}

/// What a rank says when it opens a file: what came of it, the mode, whether there can be a companion beside the file, a
/// number for that, hints; the last word is the channel's.
type Opening = [u64; 5 + hints::WORDS];

/// Instead of the number of a status: a rank that lets rank 0 go first.
const TO_BE_OPENED: u64 = u64::MAX;

fn outcome_of(opened: &Result<(Storage, u64), Status>) -> u64 {
    Status::number(opened.as_ref().map(|_| ()).map_err(|status| *status)) as u64
}

/// If one rank could not open the file, none has. `all` also say with which mode they open.
fn agree(outcomes: &[u64], all: &[Opening]) -> Result<(), Status> {
    if all.iter().any(|[_, mode, ..]| *mode != all[0][1]) {
        return Err(Status::NotSame);
    }
    let failed = |outcome: &&u64| !matches!(**outcome, 0 | TO_BE_OPENED);
    outcomes.iter().find(failed).map_or(Ok(()), |outcome| Status::check(*outcome as i32))
}

fn place_of_companion(channel: &Channel, fits_beside: bool, on_servers: bool) -> CompanionPlace {
    let me = channel.communicator.rank();
    let one_node = (0..channel.communicator.ranks()).all(|rank| rank == me || channel.shares_with(rank));
    match (fits_beside, one_node) {
        (true, _) => CompanionPlace::Beside,
        (false, true) => CompanionPlace::Memory,
        (false, false) if on_servers => CompanionPlace::Nowhere,
        // Creating it will say what is wrong.
        (false, false) => CompanionPlace::Beside,
    }
}

fn open_storage(path: &CStr, mode: Mode, first: bool, permissions: Option<u32>) -> Result<Storage, Status> {
    if !mode.is_valid() || (mode.is_sequential() && mode.reads() && mode.writes()) {
        return Err(Status::Amode);
    }
    let Some(permissions) = permissions else { return Ok(Storage::open(path, mode, first)?) };
    let name = Path::new(OsStr::from_bytes(without_prefix(path.to_bytes())));
    let is_new = !name.exists();
    let storage = Storage::open(path, mode, first)?;
    if is_new {
        // A hint: if the file system will not have it, the file is there with the usual permissions.
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(permissions);
        let _ = std::fs::set_permissions(name, permissions);
    }
    Ok(storage)
}

/// The path without what tells ROMIO which file system driver to use, as [`Storage`] has it.
fn without_prefix(path: &[u8]) -> &[u8] {
    match path.iter().position(|byte| *byte == b':') {
        Some(colon) if colon > 1 && path[..colon].iter().all(u8::is_ascii_lowercase) => &path[colon + 1..],
        _ => path,
    }
}

/// Different for all files that processes of this system, or others that share file systems with it, open.
fn unique_number() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}
