//! An open file: view, positions, hints, and what changes them. Reading and writing is in [`crate::core::file::access`].

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pio_layout::{Datatype, View};
use pio_plan::{
    Beside, Direction, Gaps, Group, Hints, Rank, Shape, Site, ToldViews, Via, ViewExchange, Views,
};

use crate::core::file::access::{Inner, Positioning, State, Whence};
use crate::core::file::hints::{self, Given, Kept};
use crate::core::file::open::Opened;
use crate::core::file::settings::Settings;
use crate::core::file::views::FileView;
use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::memory::Memory;
use crate::core::mpi::progress::May;
use crate::core::mpi::status::Status;
use crate::core::run::channel::Channel;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::run::driver::{Driver, Means, Ranks, to_the_end};
use crate::core::run::queue::{Completion, Queue};
use crate::core::run::working_memory::WorkingMemory;
use crate::core::storage::backend::{Storage, without_driver};
use crate::core::storage::mode::Mode;
use crate::core::storage::servers;
use crate::core::storage::sidecar::Sidecar;

/// One open file of one rank.
#[derive(Debug)]
pub(crate) struct File {
    pool: Arc<ChannelPool>,
    communicator: *const std::ffi::c_void,
    /// Of a closed file: its channel, if nobody else can have that.
    left: Mutex<Option<Channel>>,
    pub(super) inner: Arc<Inner>,
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(channel) = self.left.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            channel.communicator.release(true);
        }
    }
}

/// Where a view is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displacement {
    /// At this byte.
    Byte(i64),
    /// Where the shared file pointer is: sequential files know nothing else.
    Current,
}

impl File {
    /// Opens a file. Collective: all ranks get it, or all an error.
    pub(crate) fn open(
        pool: &Arc<ChannelPool>,
        settings: &Settings,
        path: &CStr,
        mode: Mode,
        given: &Given,
    ) -> Result<File, Status> {
        let given_of_site = Given::of_site();
        let wanted = given.followed.or(&settings.hints).or(&given_of_site.followed);
        let Opened { channel, storage, end, hints, place, number, terms, several_threads } =
            Opened::new(pool, path, mode, given.kept.permissions(), &wanted, &settings.places)?;
        let communicator = channel.communicator.handle();
        let site = Site {
            ranks: channel.communicator.ranks(),
            nodes: channel.nodes.clone(),
            processors: channel.processors,
            via: storage.via(),
            terms: terms.into(),
        };
        let (hints, shape) = (hints::in_force(hints), Shape::default());
        let state = State {
            view: View::contiguous(0),
            overlapping: None,
            view_number: 0,
            position: end,
            shared_start: end,
            atomic: false,
            remembered: channel.memory.recall(&site, &hints, shape),
            met: Instant::now(),
            shape,
            hints,
            kept: given.kept.or(&given_of_site.kept),
            views: Views::WHOLE,
            told: ToldViews::default(),
        };
        let any_thread_sends = channel.communicator.any_thread_sends();
        let name = servers::name_of(path)?;
        let path = Path::new(OsStr::from_bytes(without_driver(path).to_bytes()));
        let inner = Inner {
            mode,
            strategy: settings.strategy,
            several_threads,
            parts_of_etypes: channel.communicator.moves_parts_of_etypes(),
            site,
            rank: channel.communicator.rank(),
            sidecar: Mutex::new(Sidecar::new(path, name.as_deref(), place, number)?),
            independent: Queue::new((), true),
            writes: Arc::default(),
            collective: Queue::new(channel, any_thread_sends),
            storage,
            state: Mutex::new(state),
            alone: Mutex::new(WorkingMemory::private()),
        };
        let (pool, left, inner) = (pool.clone(), Mutex::new(None), Arc::new(inner));
        Ok(File { pool, communicator, left, inner })
    }

    /// Closes the file. Collective: what any rank wrote before is in the file when any rank is through, and a rank that
    /// is through may delete it. It can still be asked what it was: an error handler that is told of a failure has its handle.
    pub(crate) fn close(&self) -> Result<(), Status> {
        self.inner.drain();
        let Inner { mode, rank, storage, collective, sidecar, site, .. } = &*self.inner;
        let (mode, rank) = (*mode, *rank);
        let mut channel = collective.give_up().ok_or(Status::Internal)?;
        let state = self.lock();
        channel.memory.keep(site, &state.hints, state.shape, state.remembered);
        drop(state);
        let mut result = Ok(());
        if mode.deletes_on_close() && rank == 0 {
            // When all others have closed it.
            result = channel.communicator.barrier();
            result = result.and(storage.remove().map_err(Status::from));
        } else if mode.writes() && !mode.deletes_on_close() {
            result = storage.settle().map_err(Status::from);
        }
        result = result.and(storage.close().map_err(Status::from));
        result = channel.communicator.barrier().and(result);
        // Nobody needs it any more.
        sidecar.lock().unwrap_or_else(PoisonError::into_inner).remove(rank == 0);
        if mode.deletes_on_close() && rank > 0 {
            // Else this rank might open the file anew before rank 0 has deleted it.
            result = channel.communicator.barrier().and(result);
        }
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = self.pool.offer(channel);
        result
    }

    /// Reads or writes: see [`Inner::transfer`].
    pub(crate) fn transfer(
        &self,
        direction: Direction,
        collective: bool,
        positioning: Positioning,
        memory: Result<Memory, Status>,
    ) -> Result<u64, Status> {
        self.inner.transfer(direction, collective, positioning, memory)
    }

    /// Begins an operation: see [`Inner::start`].
    pub(crate) fn start(
        &self,
        direction: Direction,
        collective: bool,
        positioning: Positioning,
        memory: Result<Memory, Status>,
        completion: Completion,
    ) -> Result<(), Status> {
        self.inner.start(direction, collective, positioning, memory, completion)
    }

    /// The shim's pointer to the file's communicator.
    pub(crate) fn communicator(&self) -> *const std::ffi::c_void {
        self.communicator
    }

    /// Changes the view; the file pointers go to its beginning. Collective.
    pub(crate) fn set_view(
        &self,
        displacement: Displacement,
        types: Option<(&Datatype, &Datatype)>,
        given: &Given,
    ) -> Result<(), Status> {
        let mut channel = self.inner.collective.acquire()?;
        let mut state = self.lock();
        // All that is to be agreed on goes in one call: each costs every rank a channel where they outnumber processors.
        let expected = self.view_of(displacement, types, 0);
        let regular = expected.as_ref().map_or(&state.view, |view| &view.regular);
        let (gaps, shape) = (Gaps::of(regular), Shape::of(regular));
        let [a, b, c, d, e, f, g] = hints::words_of(&given.followed);
        let (asks, sets) = (u64::from(displacement == Displacement::Current), u64::from(expected.is_ok()));
        let said = [a, b, c, d, e, f, g, asks, sets, gaps as u64, shape.number()];
        let all = channel.communicator.gather(said)?;
        let [hint_words @ .., _, _, _, _] = all[0];
        let site = &self.inner.site;
        channel.memory.keep(site, &state.hints, state.shape, state.remembered);
        state.follow(&hint_words, given);
        let view = match all.iter().any(|[.., asks, _, _, _]| *asks != 0) {
            true => self.view_of(displacement, types, self.shared_byte(&channel, &state)?),
            false => expected,
        };
        if let Ok(view) = &view {
            state.view = view.regular.clone();
            state.overlapping = view.overlapping.clone();
            state.position = 0;
        }
        // A rank whose arguments are wrong still takes part, and has the shared pointer of the others.
        if all.iter().any(|[.., sets, _, _]| *sets != 0) {
            state.view_number += 1;
            state.shared_start = 0;
        }
        state.told = ToldViews::default();
        state.shape = Shape::of_all(all.iter().map(|[.., shape]| Shape::of_number(*shape)));
        state.remembered = channel.memory.recall(site, &state.hints, state.shape);
        let gaps = all.iter().map(|[.., gaps, _]| Gaps::of_number(*gaps)).fold(gaps, Gaps::max);
        state.views = Views { each: self.exchange_views(&mut channel, &state)?, gaps };
        state.met = Instant::now();
        view.map(drop)
    }

    /// Where the shared pointer is, in bytes. Collective: rank 0 looks when all are here, and nobody still moves it.
    fn shared_byte(&self, channel: &Channel, state: &State) -> Result<u64, Status> {
        let byte = || state.byte_of(self.inner.shared_position(state)?);
        channel.communicator.on_first(byte)
    }

    /// The views of all ranks, if the strategy wants to know them: then collective.
    fn exchange_views(&self, channel: &mut Channel, state: &State) -> Result<Option<Arc<[View]>>, Status> {
        let Inner { storage, strategy, site, .. } = &*self.inner;
        if !site.exchanges_views(*strategy, &state.hints) {
            return Ok(None);
        }
        let group = Group { rank: Rank(channel.communicator.rank()), ranks: site.ranks };
        let exchange = Box::new(ViewExchange::new(group, state.view.clone()));
        #[cfg(test)]
        let exchange = crate::core::file::twin::listen(exchange);
        let mut driver = Driver::collective(channel, exchange, Direction::Read, Memory::none(), false);
        to_the_end(channel, site.via, |channel| {
            let ranks = Ranks::On { channel, modifying: Some(&self.inner.alone) };
            driver.step(&mut Means { ranks, storage }, May::ALL)
        })?;
        driver.into_machine().views().map(Some).ok_or(Status::Internal)
    }

    /// The view that a program sets; `current` is the byte where rank 0 found the shared pointer.
    fn view_of(
        &self,
        displacement: Displacement,
        types: Option<(&Datatype, &Datatype)>,
        current: u64,
    ) -> Result<FileView, Status> {
        let (etype, filetype) = types.ok_or(Status::Type)?;
        let sequential = self.inner.mode.is_sequential();
        let displacement = match displacement {
            Displacement::Byte(byte) if !sequential => {
                u64::try_from(byte).map_err(|_| Status::Displacement)?
            }
            Displacement::Current if sequential => current,
            _ => return Err(Status::Displacement),
        };
        FileView::new(displacement, etype.size(), filetype, self.inner.mode.writes())
    }

    /// Where the view begins, in bytes.
    pub(crate) fn displacement(&self) -> u64 {
        self.lock().view.displacement()
    }

    /// Moves the file pointer.
    pub(crate) fn seek(&self, offset: i64, whence: Whence) -> Result<(), Status> {
        self.inner.not_sequential()?;
        let mut state = self.lock();
        let current = state.position / state.view.etype_size();
        let target = self.inner.target_of(&state, offset, whence, || Ok(current))?;
        state.position = state.byte_position(target)?;
        Ok(())
    }

    /// The file pointer, in etypes; one that is within an etype is at its beginning.
    pub(crate) fn position(&self) -> Result<u64, Status> {
        self.inner.not_sequential()?;
        let state = self.lock();
        Ok(state.position / state.view.etype_size())
    }

    /// Moves the shared file pointer. Collective.
    pub(crate) fn seek_shared(&self, offset: i64, whence: Result<Whence, Status>) -> Result<(), Status> {
        let channel = self.inner.collective.acquire()?;
        // When all are here, nobody is still moving it.
        let mine = [offset as u64, whence.map_or(u64::MAX, |whence| whence as u64)];
        let same = channel.communicator.gather(mine)?.into_iter().all(|other| other == mine);
        let moved = channel.communicator.on_first(|| {
            if !same {
                return Err(Status::NotSame);
            }
            self.inner.not_sequential()?;
            let state = self.lock();
            let current = || self.inner.shared_position(&state);
            let target = self.inner.target_of(&state, offset, whence?, current)?;
            self.inner.sidecar().set(state.view_number, target.wrapping_sub(state.shared_start))?;
            Ok(0)
        });
        moved.map(drop)
    }

    /// The shared file pointer, in etypes.
    pub(crate) fn position_shared(&self) -> Result<u64, Status> {
        self.inner.not_sequential()?;
        self.inner.shared_position(&self.lock())
    }

    /// Where in the file a position of the view (in etypes) is.
    pub(crate) fn byte_offset(&self, offset: i64) -> Result<u64, Status> {
        self.inner.not_sequential()?;
        self.lock().byte_of(u64::try_from(offset).map_err(|_| Status::Argument)?)
    }

    /// Makes what this rank wrote durable.
    pub(crate) fn sync(&self) -> Result<(), Status> {
        if !self.inner.mode.writes() {
            // MPI says nothing of it; its implementations refuse.
            return Err(Status::ReadOnly);
        }
        self.inner.drain();
        Ok(self.inner.storage.sync()?)
    }

    /// Bytes in the file.
    pub(crate) fn size(&self) -> Result<u64, Status> {
        Ok(self.inner.storage.size()?)
    }

    /// Cuts or extends the file. Collective.
    pub(crate) fn set_size(&self, size: i64) -> Result<(), Status> {
        self.once_for_all(size, Storage::set_size)
    }

    /// Reserves room for the file. Collective.
    pub(crate) fn preallocate(&self, size: i64) -> Result<(), Status> {
        self.once_for_all(size, Storage::preallocate)
    }

    /// Adds hints. Collective.
    pub(crate) fn set_hints(&self, given: &Given) -> Result<(), Status> {
        // By the hints, ranks know whether others sieve, and lock what they write: what sieves by the old ones ends before any rank goes
        // by the new ones. Writes that begin meanwhile do not sieve.
        let changing = self.inner.writes.announce_collective();
        Backoff::wait_until(|| changing.may_be_told(Beside::Independent));
        let channel = self.inner.collective.acquire()?;
        let all = channel.communicator.gather(hints::words_of(&given.followed))?;
        self.lock().follow(&all[0], given);
        Ok(())
    }

    /// The hints in force, and those that are kept.
    ///
    /// Of the striping what is, not what was wished for: a file that was there keeps its own, and over how many servers a
    /// plain file goes we neither choose nor know.
    pub(crate) fn hints(&self) -> (Hints, Kept) {
        let state = self.lock();
        let (striping_factor, striping_unit) = match self.inner.site.via {
            Via::Kernel => (None, state.hints.striping_unit),
            Via::Servers { factor, unit } => (Some(factor), Some(unit)),
        };
        (Hints { striping_factor, striping_unit, ..state.hints.clone() }, state.kept.clone())
    }

    /// Switches atomic mode. Collective.
    pub(crate) fn set_atomic(&self, atomic: bool) -> Result<(), Status> {
        let channel = self.inner.collective.acquire()?;
        let mine = [u64::from(atomic)];
        if channel.communicator.gather(mine)?.into_iter().any(|other| other != mine) {
            return Err(Status::NotSame);
        }
        self.lock().atomic = atomic;
        Ok(())
    }

    /// Whether the file is in atomic mode.
    pub(crate) fn is_atomic(&self) -> bool {
        self.lock().atomic
    }

    /// Lets rank 0 change the file; all ranks learn what came of it.
    fn once_for_all(
        &self,
        size: i64,
        change: fn(&Storage, u64) -> Result<(), pio_plan::IoError>,
    ) -> Result<(), Status> {
        self.inner.independent.drain();
        let mut channel = self.inner.collective.acquire()?;
        // When rank 0 knows that all are here, what they wrote before is in the file. Nobody may go on and write
        // before it is cut; so the others wait once, for what rank 0 says.
        let all = channel.collect([size as u64])?.unwrap_or_default();
        let changed = channel.communicator.on_first(|| match u64::try_from(size) {
            _ if all.iter().any(|other| *other != [size as u64]) => Err(Status::NotSame),
            Err(_) => Err(Status::Argument),
            Ok(_) if !self.inner.mode.writes() => Err(Status::ReadOnly),
            Ok(size) => {
                self.inner.not_sequential()?;
                change(&self.inner.storage, size)?;
                Ok(0)
            }
        });
        changed.map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state()
    }
}

impl State {
    /// Adds the hints that rank 0 said (with different ones, ranks could not work together), and keeps those that this rank was given only to keep.
    fn follow(&mut self, words: &[u64], given: &Given) {
        self.hints = hints::in_force(hints::of_words(words).or(&self.hints));
        self.kept.add(&given.kept);
    }
}
