//! Reading and writing: where an operation begins, who carries it out, and under which locks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pio_layout::View;
use pio_plan::{Access, Context, Direction, Group, Hints, Rank, Site, Strategy, Views};

use crate::core::file::hints::Kept;
use crate::core::file::views::Overlapping;
use crate::core::mpi::memory::Memory;
use crate::core::mpi::status::Status;
use crate::core::run::channel::Channel;
use crate::core::run::driver::Driver;
use crate::core::run::independent;
use crate::core::run::queue::{Completion, Queue};
use crate::core::storage::backend::Storage;
use crate::core::storage::mode::Mode;
use crate::core::storage::sidecar::Sidecar;

/// What an open file has; nonblocking operations keep it.
#[derive(Debug)]
pub struct Inner {
    pub mode: Mode,
    pub strategy: Strategy,
    pub rank: u32,
    pub site: Site,
    pub storage: Storage,
    pub queue: Queue,
    pub sidecar: Mutex<Sidecar>,
    pub state: Mutex<State>,
    /// For requests that do not go straight to or from memory. Who makes requests alone holds it: several threads that
    /// read, change and write back the same part of a file would undo each other's changes, and locks of the file
    /// system do not keep threads apart.
    pub block: Mutex<Vec<u8>>,
}

/// What changes. Nobody waits for other ranks with its lock held, but in calls that MPI forbids others beside.
#[derive(Debug)]
pub struct State {
    pub view: View,
    /// Instead of the view, to read through.
    pub overlapping: Option<Arc<Overlapping>>,
    /// How many views there were before.
    pub view_number: u64,
    /// The individual file pointer, in etypes.
    pub position: u64,
    /// Where the shared file pointer of this view began, in etypes.
    pub shared_start: u64,
    pub atomic: bool,
    pub hints: Hints,
    pub kept: Kept,
    /// What the ranks know of each other's views.
    pub views: Views,
}

/// From where a seek counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    Start,
    Current,
    End,
}

/// Where an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positioning {
    /// At this many etypes into the view.
    Explicit(i64),
    /// At the individual file pointer, which then moves.
    Individual,
    /// At the shared file pointer, which then moves; if collective, by all ranks' data in the order of ranks.
    Shared,
}

/// An operation, its arguments checked.
struct Operation {
    direction: Direction,
    view: View,
    overlapping: Option<Arc<Overlapping>>,
    start: Start,
    memory: Memory,
    context: Context,
    atomic: bool,
    /// What was wrong: then it has no data.
    error: Option<Status>,
}

// SAFETY: the memory is the program's, which it lends until the operation is complete.
unsafe impl Send for Operation {}

enum Start {
    /// At this position of the view, in etypes.
    At(u64),
    /// After the data of the lower ranks, which are not known yet.
    Ordered { view_number: u64, shared_start: u64 },
}

impl Inner {
    /// Reads or writes; bytes moved. If collective, a rank whose arguments are wrong (`memory` an error, or others)
    /// still takes part, with no data.
    pub fn transfer(
        &self,
        direction: Direction,
        collective: bool,
        positioning: Positioning,
        memory: Result<Memory, Status>,
    ) -> Result<u64, Status> {
        let operation = self.prepare(direction, collective, positioning, memory);
        if collective {
            let mut channel = self.queue.take()?;
            return self.together(operation, &mut channel);
        }
        self.alone(operation)
    }

    /// Begins a collective operation, and returns without waiting for other ranks; `completion` is told of its end. If
    /// the arguments are wrong, that is said at once, nobody is told, and the rank takes part with no data.
    pub fn start(
        self: &Arc<Self>,
        direction: Direction,
        positioning: Positioning,
        memory: Result<Memory, Status>,
        completion: Completion,
    ) -> Result<(), Status> {
        let operation = self.prepare(direction, true, positioning, memory);
        let error = operation.error;
        let inner = self.clone();
        let work = Box::new(move |channel: &mut Channel| inner.together(operation, channel));
        self.queue.start(work, error.is_none().then_some(completion));
        error.map_or(Ok(()), Err)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn sidecar(&self) -> MutexGuard<'_, Sidecar> {
        self.sidecar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sequential files have only shared pointers.
    pub fn not_sequential(&self) -> Result<(), Status> {
        if self.mode.is_sequential() { Err(Status::Unsupported) } else { Ok(()) }
    }

    /// The shared file pointer, in etypes.
    pub fn shared_position(&self, state: &State) -> Result<u64, Status> {
        Ok(state.shared_start.wrapping_add(self.sidecar().get(state.view_number)?))
    }

    /// Where a seek goes to, in etypes.
    pub fn target_of(
        &self,
        state: &State,
        offset: i64,
        whence: Whence,
        current: impl FnOnce() -> Result<u64, Status>,
    ) -> Result<u64, Status> {
        let from = match whence {
            Whence::Start => 0,
            Whence::Current => current()?,
            // In etypes, a last one that is only begun counted.
            Whence::End => {
                state.view.position_at_or_after(self.storage.size()?).div_ceil(state.view.etype_size())
            }
        };
        let target = i64::try_from(from).ok().and_then(|from| from.checked_add(offset));
        target.and_then(|target| u64::try_from(target).ok()).ok_or(Status::Argument)
    }

    /// Checks the arguments, and moves the file pointer: the next operation may begin before this one ends.
    fn prepare(
        &self,
        direction: Direction,
        collective: bool,
        positioning: Positioning,
        memory: Result<Memory, Status>,
    ) -> Operation {
        let mut state = self.state();
        let checked = self.check(&mut state, direction, collective, positioning, memory);
        let (start, memory, error) = match checked {
            Ok((start, memory)) => (start, memory, None),
            Err(status) => {
                // What is ordered is so for all ranks, or those without errors would wait.
                let ordered = positioning == Positioning::Shared && collective;
                let start = if ordered { state.ordered() } else { Start::At(0) };
                (start, Memory::none(), Some(status))
            }
        };
        let State { view, hints, atomic, views, .. } = &*state;
        let (view, context, atomic) = (view.clone(), self.site.context(views, hints, direction), *atomic);
        let overlapping = state.overlapping.clone();
        Operation { direction, view, overlapping, start, memory, context, atomic, error }
    }

    fn check(
        &self,
        state: &mut State,
        direction: Direction,
        collective: bool,
        positioning: Positioning,
        memory: Result<Memory, Status>,
    ) -> Result<(Start, Memory), Status> {
        match direction {
            Direction::Read if !self.mode.reads() => return Err(Status::Access),
            Direction::Write if !self.mode.writes() => return Err(Status::ReadOnly),
            _ => {}
        }
        if positioning != Positioning::Shared {
            self.not_sequential()?;
        }
        let memory = memory?;
        let etype_size = state.view.etype_size();
        if !memory.size().is_multiple_of(etype_size) {
            return Err(Status::Argument);
        }
        let etypes = memory.size() / etype_size;
        let start = match positioning {
            Positioning::Explicit(offset) => u64::try_from(offset).map_err(|_| Status::Argument)?,
            Positioning::Individual => state.position,
            Positioning::Shared if collective => return Ok((state.ordered(), memory)),
            Positioning::Shared => {
                let moved = self.sidecar().fetch_add(state.view_number, etypes)?;
                state.shared_start.wrapping_add(moved)
            }
        };
        state.positions(start, etypes)?;
        if positioning == Positioning::Individual {
            state.position = start + etypes;
        }
        Ok((Start::At(start), memory))
    }

    /// An independent operation.
    fn alone(&self, operation: Operation) -> Result<u64, Status> {
        if let Some(status) = operation.error {
            return Err(status);
        }
        let Start::At(start) = operation.start else { return Err(Status::Internal) };
        let Operation { direction, view, overlapping, mut memory, context, atomic, .. } = operation;
        let positions = positions(&view, start, memory.size() / view.etype_size())?;
        if let Some(overlapping) = overlapping {
            return overlapping.read(&self.storage, positions, &mut memory);
        }
        let access = Access { view, positions };
        self.independently(direction, access, &mut memory, &context, atomic)
    }

    /// A collective operation that has the channel.
    fn together(&self, operation: Operation, channel: &mut Channel) -> Result<u64, Status> {
        let Operation { direction, view, overlapping, start, mut memory, context, atomic, mut error } =
            operation;
        let etypes = memory.size() / view.etype_size();
        let start = match start {
            Start::At(start) => Ok(start),
            Start::Ordered { view_number, shared_start } => {
                self.ordered_start(channel, view_number, etypes).map(|moved| shared_start.wrapping_add(moved))
            }
        };
        let access = start.and_then(|start| positions(&view, start, etypes));
        let mut apart = None;
        let access = match access {
            // This rank reads on its own, and has no data in what all do together.
            Ok(positions) if let Some(overlapping) = &overlapping => {
                apart = Some(overlapping.read(&self.storage, positions, &mut memory));
                memory = Memory::none();
                Access { view, positions: 0..0 }
            }
            Ok(positions) => Access { view, positions },
            Err(status) => {
                error = error.or(Some(status));
                memory = Memory::none();
                Access { view, positions: 0..0 }
            }
        };
        let outcome = if atomic || self.strategy == Strategy::Independent {
            self.independently(direction, access, &mut memory, &context, atomic)
        } else {
            let group =
                Group { rank: Rank(channel.communicator.rank()), ranks: channel.communicator.ranks() };
            let mut machine = self.strategy.collective(group, direction, access, &context);
            // Where a few ranks aggregate, they would have to pack or unpack what the others can do side by side.
            let packs = context.hints.aggregators(group.ranks) > group.ranks / 2;
            Driver::new(channel, &self.storage, &mut memory, direction, &mut *machine)
                .packing(packs)
                .run()
                .map_err(Status::from)
        };
        match error {
            Some(status) => Err(status),
            None => outcome.and_then(|moved| apart.unwrap_or(Ok(moved))),
        }
    }

    /// Without other ranks; in atomic mode, with others kept out of all that lies between the first byte and the last.
    fn independently(
        &self,
        direction: Direction,
        access: Access,
        memory: &mut Memory,
        context: &Context,
        atomic: bool,
    ) -> Result<u64, Status> {
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        let bounds = (atomic && !access.positions.is_empty()).then(|| access.bounds());
        let strategy = self.strategy;
        let transfer = || {
            Ok(independent::transfer(
                &self.storage,
                direction,
                access,
                memory,
                strategy,
                context,
                &mut block,
            )?)
        };
        match bounds {
            Some(bounds) => self.sidecar().locked(bounds, direction == Direction::Read, transfer),
            None => transfer(),
        }
    }

    /// How far the shared pointer had moved when this rank's data come, in an operation where ranks come in their order.
    fn ordered_start(&self, channel: &Channel, view_number: u64, etypes: u64) -> Result<u64, Status> {
        let counts = channel.communicator.gather([etypes])?;
        let total = counts.iter().fold(0, |sum: u64, [count]| sum.wrapping_add(*count));
        let before =
            counts[..self.rank as usize].iter().fold(0, |sum: u64, [count]| sum.wrapping_add(*count));
        let mut said = [0_u8; 16];
        if self.rank == 0 {
            let moved = self.sidecar().fetch_add(view_number, total);
            said[..8].copy_from_slice(&moved.unwrap_or(0).to_ne_bytes());
            said[8..12].copy_from_slice(&Status::number(moved.map(drop)).to_ne_bytes());
        }
        channel.communicator.broadcast(&mut said)?;
        let ([moved, status], _) = said.as_chunks::<8>() else { return Err(Status::Internal) };
        Status::check(u64::from_ne_bytes(*status) as i32)?;
        Ok(u64::from_ne_bytes(*moved).wrapping_add(before))
    }
}

impl State {
    fn ordered(&self) -> Start {
        Start::Ordered { view_number: self.view_number, shared_start: self.shared_start }
    }

    fn positions(&self, start: u64, etypes: u64) -> Result<std::ops::Range<u64>, Status> {
        positions(&self.view, start, etypes)
    }

    /// Where in the file an etype of the view is.
    pub fn byte_of(&self, etype: u64) -> Result<u64, Status> {
        let position = etype.checked_mul(self.view.etype_size());
        if let Some(overlapping) = &self.overlapping {
            return position.and_then(|position| overlapping.offset_of(position)).ok_or(Status::Argument);
        }
        position.and_then(|position| self.view.offset_of(position)).ok_or(Status::Argument)
    }
}

/// The data bytes of `etypes` etypes from etype `start` of the view on.
fn positions(view: &View, start: u64, etypes: u64) -> Result<std::ops::Range<u64>, Status> {
    let end = start.checked_add(etypes).and_then(|end| end.checked_mul(view.etype_size()));
    let end = end.filter(|end| *end <= view.limit() || etypes == 0).ok_or(Status::Argument)?;
    Ok(end - etypes * view.etype_size()..end)
}
