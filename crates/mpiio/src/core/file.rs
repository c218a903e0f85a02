//! An open file: view, position, hints, and the operations on it.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pio_layout::{Datatype, View};
use pio_plan::{Access, Direction, Group, Hints, Rank, Strategy};

use super::cache::Cache;
use super::channel::Channel;
use super::common::Common;
use super::driver::Driver;
use super::memory::Memory;
use super::requests;
use super::segment;
use super::settings::Settings;
use super::status::Status;
use super::storage::{Mode, Storage};

/// One open file of one rank.
#[derive(Debug)]
pub struct File {
    cache: Arc<Cache>,
    mode: Mode,
    strategy: Strategy,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    channel: Channel,
    storage: Storage,
    view: View,
    /// The individual file pointer, in etypes.
    position: u64,
    hints: Hints,
    /// What the ranks know of each other's views.
    common: Common,
}

/// Where an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this many etypes into the view.
    Explicit(i64),
    /// At the individual file pointer, which then moves.
    Pointer,
}

/// From where a seek counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    Start,
    Current,
    End,
}

impl File {
    /// Opens a file. Collective: all ranks get it, or all an error.
    pub fn open(
        cache: &Arc<Cache>,
        settings: &Settings,
        path: &CStr,
        mode: Mode,
        hints: &Hints,
    ) -> Result<File, Status> {
        // Rank 0 opens first, for only one can create; all use its hints. Words that others say are not heard.
        let wanted = hints.or(&settings.hints);
        let mut words = [0; 1 + HINT_WORDS];
        let mut storage = Err(Status::Internal);
        let first = cache.is_first()?;
        if first {
            storage = open_storage(path, mode, true);
            words[0] = Status::number(storage.as_ref().map(|_| ()).map_err(|status| *status)) as u64;
            words[1..].copy_from_slice(&words_of(&wanted));
        }
        let channel = cache.open(&mut words)?;
        if let Err(status) = Status::check(words[0] as i32) {
            cache.put_back(channel);
            return Err(status);
        }
        if !first {
            storage = open_storage(path, mode, false);
        }
        // If one could not, none has.
        let mine = Status::number(storage.as_ref().map(|_| ()).map_err(|status| *status));
        let all = channel.communicator.gather([mine as u64])?;
        let failed = all.into_iter().find_map(|[number]| Status::check(number as i32).err());
        let storage = match (storage, failed) {
            (Ok(storage), None) => storage,
            (opened, failed) => {
                if let Ok(storage) = opened {
                    storage.close()?;
                }
                cache.put_back(channel);
                return Err(failed.unwrap_or(Status::Internal));
            }
        };
        let hints = in_force(hints_of(&words[1..]), &channel);
        let position = if mode.appends() { storage.size()? } else { 0 };
        let state = State { channel, storage, view: View::contiguous(0), position, hints, common: Common::default() };
        Ok(File { cache: cache.clone(), mode, strategy: settings.strategy, state: Mutex::new(state) })
    }

    /// Closes the file. Collective: what any rank wrote before is in the file when any rank is through.
    pub fn close(self) -> Result<(), Status> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let State { channel, storage, .. } = state;
        let mut result = Ok(());
        if self.mode.writes() || self.mode.deletes_on_close() {
            result = channel.communicator.barrier();
        }
        if self.mode.deletes_on_close() && channel.communicator.rank() == 0 {
            result = result.and(storage.remove().map_err(Status::from));
        }
        result = result.and(storage.close().map_err(Status::from));
        self.cache.put_back(channel);
        result
    }

    /// The shim's pointer to the file's communicator.
    pub fn communicator(&self) -> *const std::ffi::c_void {
        self.lock().channel.communicator.handle()
    }

    /// Changes the view; the file pointer goes to its beginning. Collective.
    pub fn set_view(
        &self,
        displacement: i64,
        types: Option<(&Datatype, &Datatype)>,
        representation: &CStr,
        hints: &Hints,
    ) -> Result<(), Status> {
        let mut state = self.lock();
        state.agree_on_hints(hints)?;
        let view = view_of(displacement, types, representation);
        if let Ok(view) = &view {
            state.view = view.clone();
            state.position = 0;
        }
        // A rank whose arguments are wrong still takes part.
        let State { channel, storage, view: in_force, common, .. } = &mut *state;
        *common = Common::agree(channel, storage, self.strategy, in_force)?;
        view.map(drop)
    }

    /// Where the view begins, in bytes.
    pub fn displacement(&self) -> u64 {
        self.lock().view.displacement()
    }

    /// Reads or writes; bytes moved. If collective, a rank whose arguments are wrong (`memory` an error, or others)
    /// still takes part, with no data.
    pub fn transfer(
        &self,
        direction: Direction,
        collective: bool,
        place: Place,
        memory: Result<Memory, Status>,
    ) -> Result<u64, Status> {
        let mut state = self.lock();
        let prepared = self.prepare(&state, direction, place, memory);
        let (access, mut memory, error) = match prepared {
            Ok((access, memory)) => (access, memory, None),
            Err(status) if !collective => return Err(status),
            Err(status) => {
                (Access { view: state.view.clone(), positions: 0..0 }, Memory::none(), Some(status))
            }
        };
        let end = access.positions.end;
        let State { channel, storage, common, hints, .. } = &mut *state;
        let context = common.context(hints, storage);
        let outcome = if collective && self.strategy != Strategy::Independent {
            let group =
                Group { rank: Rank(channel.communicator.rank()), ranks: channel.communicator.ranks() };
            let mut machine = self.strategy.collective(group, direction, access, &context);
            Driver::new(channel, storage, &mut memory, direction, &mut *machine).run()
        } else {
            let block = &mut channel.block;
            requests::transfer(storage, direction, access, &mut memory, self.strategy, &context, block)
        };
        if let Some(status) = error {
            return Err(status);
        }
        let moved = outcome?;
        if place == Place::Pointer {
            state.position = end / state.view.etype_size();
        }
        Ok(moved)
    }

    /// Moves the file pointer.
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<(), Status> {
        let mut state = self.lock();
        let from = match whence {
            Whence::Start => 0,
            Whence::Current => state.position,
            Whence::End => {
                // In etypes, a last one that is only begun counted.
                let size = state.storage.size()?;
                state.view.position_at_or_after(size).div_ceil(state.view.etype_size())
            }
        };
        let target = i64::try_from(from).ok().and_then(|from| from.checked_add(offset));
        state.position = target.and_then(|target| u64::try_from(target).ok()).ok_or(Status::Argument)?;
        Ok(())
    }

    /// The file pointer, in etypes.
    pub fn position(&self) -> u64 {
        self.lock().position
    }

    /// Where in the file a position of the view (in etypes) is.
    pub fn byte_offset(&self, offset: i64) -> Result<u64, Status> {
        let state = self.lock();
        let etypes = u64::try_from(offset).map_err(|_| Status::Argument)?;
        let position = etypes.checked_mul(state.view.etype_size());
        position.and_then(|position| state.view.offset_of(position)).ok_or(Status::Argument)
    }

    /// Makes what this rank wrote durable.
    pub fn sync(&self) -> Result<(), Status> {
        Ok(self.lock().storage.sync()?)
    }

    /// Bytes in the file.
    pub fn size(&self) -> Result<u64, Status> {
        Ok(self.lock().storage.size()?)
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
    pub fn set_hints(&self, hints: &Hints) -> Result<(), Status> {
        self.lock().agree_on_hints(hints)
    }

    /// The hints in force.
    pub fn hints(&self) -> Hints {
        self.lock().hints.clone()
    }

    fn prepare(
        &self,
        state: &State,
        direction: Direction,
        place: Place,
        memory: Result<Memory, Status>,
    ) -> Result<(Access, Memory), Status> {
        let memory = memory?;
        match direction {
            Direction::Read if !self.mode.reads() => return Err(Status::Access),
            Direction::Write if !self.mode.writes() => return Err(Status::ReadOnly),
            _ => {}
        }
        let etype_size = state.view.etype_size();
        if !memory.size().is_multiple_of(etype_size) {
            return Err(Status::Argument);
        }
        let etypes = match place {
            Place::Explicit(offset) => u64::try_from(offset).map_err(|_| Status::Argument)?,
            Place::Pointer => state.position,
        };
        let start = etypes.checked_mul(etype_size).ok_or(Status::Argument)?;
        let end = start.checked_add(memory.size()).ok_or(Status::Argument)?;
        if end > state.view.limit() && memory.size() > 0 {
            return Err(Status::Argument);
        }
        Ok((Access { view: state.view.clone(), positions: start..end }, memory))
    }

    /// Lets rank 0 change the file; all ranks learn what came of it.
    fn once_for_all(
        &self,
        size: i64,
        change: fn(&Storage, u64) -> Result<(), pio_plan::IoError>,
    ) -> Result<(), Status> {
        let state = self.lock();
        let mut outcome = [0_u8; 4];
        if state.channel.communicator.rank() == 0 {
            let result = match u64::try_from(size) {
                Err(_) => Err(Status::Argument),
                Ok(_) if !self.mode.writes() => Err(Status::ReadOnly),
                Ok(size) => change(&state.storage, size).map_err(Status::from),
            };
            outcome = Status::number(result).to_ne_bytes();
        }
        state.channel.communicator.broadcast(&mut outcome)?;
        Status::check(i32::from_ne_bytes(outcome))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds rank 0's hints on all ranks: with different ones they could not work together.
    fn agree_on_hints(&mut self, hints: &Hints) -> Result<(), Status> {
        let mut bytes: Vec<u8> = words_of(hints).iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.channel.communicator.broadcast(&mut bytes)?;
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        self.hints = in_force(hints_of(&words).or(&self.hints), &self.channel);
        Ok(())
    }
}

/// The view that a program sets.
fn view_of(
    displacement: i64,
    types: Option<(&Datatype, &Datatype)>,
    representation: &CStr,
) -> Result<View, Status> {
    let (etype, filetype) = types.ok_or(Status::Type)?;
    let displacement = u64::try_from(displacement).map_err(|_| Status::Argument)?;
    match representation.to_bytes() {
        // Data in the file are as in memory.
        b"native" | b"internal" => {}
        _ => return Err(Status::DataRepresentation),
    }
    View::new(displacement, etype.size(), filetype.clone()).map_err(|_| Status::Argument)
}

fn open_storage(path: &CStr, mode: Mode, first: bool) -> Result<Storage, Status> {
    if !mode.is_valid() {
        return Err(Status::Amode);
    }
    if mode.is_sequential() {
        return Err(Status::Unsupported);
    }
    Ok(Storage::open(path, mode, first)?)
}

const HINT_WORDS: usize = 6;

/// Hints as words for other ranks: 0 is not set, which no hint may be.
fn words_of(hints: &Hints) -> [u64; HINT_WORDS] {
    [
        hints.cb_nodes.map_or(0, u64::from),
        hints.cb_buffer_size.unwrap_or(0),
        hints.striping_unit.unwrap_or(0),
        hints.striping_factor.map_or(0, u64::from),
        hints.ind_rd_buffer_size.unwrap_or(0),
        hints.ind_wr_buffer_size.unwrap_or(0),
    ]
}

fn hints_of(words: &[u64]) -> Hints {
    let word = |index: usize| words.get(index).copied().filter(|word| *word > 0);
    Hints {
        cb_nodes: word(0).map(|word| word as u32),
        cb_buffer_size: word(1),
        striping_unit: word(2),
        striping_factor: word(3).map(|word| word as u32),
        ind_rd_buffer_size: word(4),
        ind_wr_buffer_size: word(5),
    }
}

/// Completes hints with our own choices.
fn in_force(hints: Hints, channel: &Channel) -> Hints {
    let ranks = channel.communicator.ranks();
    Hints {
        cb_nodes: Some(hints.aggregators(ranks)),
        cb_buffer_size: Some(hints.buffer_size().min(segment::MOST_BYTES)),
        ..hints
    }
}
