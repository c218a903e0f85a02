//! Reading and writing: where an operation begins, who carries it out, and under which locks.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pio_layout::View;
use pio_plan::{
    Access, Beside, Choice, Context, Direction, Group, Hints, Rank, Recalled, Remembered, Shape, Site,
    StateMachine, Strategy, ToldViews, Took, Views,
};

use crate::core::file::hints::Kept;
use crate::core::file::views::Overlapping;
use crate::core::file::writes::{UnderWay, Writes};
use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::communicator::CollectiveCall;
use crate::core::mpi::memory::Memory;
use crate::core::mpi::progress::{May, Step, WouldBlock};
use crate::core::mpi::status::Status;
use crate::core::run::channel::Channel;
use crate::core::run::driver::{Driver, Means, Ranks, to_the_end};
use crate::core::run::queue::{Completion, Queue};
use crate::core::run::working_memory::WorkingMemory;
use crate::core::storage::backend::Storage;
use crate::core::storage::mode::Mode;
use crate::core::storage::pieces;
use crate::core::storage::sidecar::Sidecar;

/// What an open file has; nonblocking operations keep it.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) mode: Mode,
    pub(crate) strategy: Strategy,
    /// Whether threads of any rank may begin operations while others are in blocking ones.
    pub(crate) several_threads: bool,
    /// Whether data may end within an etype.
    pub(crate) parts_of_etypes: bool,
    pub(crate) rank: u32,
    pub(crate) site: Site,
    pub(crate) storage: Storage,
    /// Of collective operations.
    pub(crate) collective: Queue<Channel>,
    /// Of independent operations.
    pub(crate) independent: Queue<()>,
    /// Those of both kinds that write.
    pub(crate) writes: Arc<Writes>,
    pub(crate) sidecar: Mutex<Sidecar>,
    pub(crate) state: Mutex<State>,
    /// For operations without other ranks. Who makes requests alone holds it: several threads that read, change and write
    /// back the same part of a file would undo each other's changes, and locks of the file system do not keep threads
    /// apart.
    pub(crate) alone: Mutex<WorkingMemory>,
}

/// What changes. Nobody waits for other ranks with its lock held, but in calls that MPI forbids others beside.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) view: View,
    /// Instead of the view, to read through.
    pub(crate) overlapping: Option<Arc<Overlapping>>,
    /// How many views there were before.
    pub(crate) view_number: u64,
    /// The individual file pointer, in data bytes: it may be within an etype.
    pub(crate) position: u64,
    /// Where the shared file pointer of this view began, in etypes.
    pub(crate) shared_start: u64,
    pub(crate) atomic: bool,
    pub(crate) hints: Hints,
    pub(crate) kept: Kept,
    /// What the ranks know of each other's views.
    pub(crate) views: Views,
    /// What ranks told each other of the views in force.
    pub(crate) told: ToldViews,
    /// What the automatic choice keeps in mind under the views in force.
    pub(crate) remembered: Remembered,
    /// When the ranks opened the file, set its views, or last described their accesses.
    pub(crate) met: Instant,
    /// How these lie.
    pub(crate) shape: Shape,
}

/// From where a seek counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whence {
    Start,
    Current,
    End,
}

/// Where an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Positioning {
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

enum Start {
    /// At this data byte of the view.
    At(u64),
    /// After the data of the lower ranks, which are not known yet.
    Ordered { view_number: u64, shared_start: u64 },
}

/// What a rank tells others of time. Machines of tests are compared with those of the simulator, which has another clock.
fn told_us(time: Duration) -> u64 {
    if cfg!(test) { 0 } else { time.as_micros() as u64 }
}

impl Inner {
    /// Reads or writes; bytes moved. If collective, a rank whose arguments are wrong (`memory` an error, or others)
    /// still takes part, with no data.
    pub(crate) fn transfer(
        &self,
        direction: Direction,
        collective: bool,
        positioning: Positioning,
        memory: Result<Memory, Status>,
    ) -> Result<u64, Status> {
        if collective {
            let mut operation = self.prepare(direction, collective, positioning, memory);
            if self.strategy == Strategy::Auto {
                operation.context.remembered = self.state().recall(direction);
            }
            if self.several_threads {
                operation.context.beside = Beside::Independent;
            }
            let mut operation = Collective::new(operation);
            Backoff::wait_until(|| operation.may_be_told(self));
            let mut channel = self.collective.acquire()?;
            let began = Instant::now();
            let outcome =
                to_the_end(&mut channel, self.site.via, |channel| operation.step(self, channel, May::ALL));
            if let Some((choice, after)) = operation.choice() {
                let mut state = self.state();
                let took = Took { waited_us: told_us(after), all_us: told_us(began.elapsed()) };
                state.remembered.learn(direction, choice, took);
                state.met = began + after;
            }
            return outcome;
        }
        // Those that the program began before come first.
        self.independent.drain();
        let under_way = (direction == Direction::Write).then(|| self.writes.begin_independent());
        let beside = under_way.as_ref().map_or(Beside::Nothing, UnderWay::beside);
        let mut state = self.state();
        let (start, mut memory) = self.check(&mut state, direction, false, positioning, memory)?;
        let bytes = memory.size();
        if beside == Beside::Nothing
            && let Some(positions) = self.one_request(&state, direction, &start, bytes)
            && let Some(offset) = state.view.offset_of(positions.start)
            && let Some(data) = memory.contiguous(0..bytes)
        {
            #[cfg(test)]
            let machine = {
                let context = self.site.context(&state.views, &state.hints, direction);
                let access = Access { view: state.view.clone(), positions };
                self.strategy.alone(Rank(0), direction, access, &context)
            };
            drop(state);
            let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = pieces::request(&self.storage, direction, offset, data);
            #[cfg(test)]
            crate::core::file::twin::hear(machine, outcome);
            return Ok(outcome?);
        }
        let mut operation = self.operation(&state, direction, start, memory, None);
        drop(state);
        operation.context.beside = beside;
        self.alone(operation)
    }

    /// The data bytes of an independent operation that is one request; none if it is not.
    fn one_request(
        &self,
        state: &State,
        direction: Direction,
        start: &Start,
        bytes: u64,
    ) -> Option<Range<u64>> {
        let Start::At(start) = *start else { return None };
        let positions = state.positions(start, bytes).ok()?;
        let is_plain = !state.atomic && state.overlapping.is_none();
        (is_plain && self.site.is_one_request(&state.views, direction, &state.view, &positions))
            .then_some(positions)
    }

    /// Begins an operation, and returns at once; `completion` is told of its end. If the arguments are wrong, that is said
    /// at once, and the rank takes part in a collective operation with no data: of the end of that part, the shim is told
    /// without its name for the operation.
    pub(crate) fn start(
        self: &Arc<Self>,
        direction: Direction,
        collective: bool,
        positioning: Positioning,
        memory: Result<Memory, Status>,
        completion: Completion,
    ) -> Result<(), Status> {
        let mut operation = self.prepare(direction, collective, positioning, memory);
        let (inner, error) = (self.clone(), operation.error);
        if collective {
            let completion = if error.is_none() { completion } else { completion.without_token() };
            // What is chosen is not learned: the program may have begun others before that.
            self.state().remembered.describe_next();
            operation.context.beside = Beside::Independent;
            let mut operation = Collective::new(operation);
            let work = move |channel: &mut Channel, may: May| operation.step(&inner, channel, may);
            self.collective.start(Box::new(work), completion);
        } else if error.is_none() {
            let under_way = (direction == Direction::Write).then(|| self.writes.begin_independent());
            operation.context.beside = under_way.as_ref().map_or(Beside::Nothing, UnderWay::beside);
            let mut operation = Some((operation, under_way));
            let work = move |(): &mut (), may: May| match may.storage {
                false => Step::Blocked { on: WouldBlock::OnStorage, moved: false },
                true => {
                    Step::Done(operation.take().map_or(Err(Status::Internal), |(one, _)| inner.alone(one)))
                }
            };
            self.independent.start(Box::new(work), completion);
        }
        error.map_or(Ok(()), Err)
    }

    /// Waits until what the program began is complete.
    pub(crate) fn drain(&self) {
        self.independent.drain();
        self.collective.drain();
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sidecar(&self) -> MutexGuard<'_, Sidecar> {
        self.sidecar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sequential files have only shared pointers.
    pub(crate) fn not_sequential(&self) -> Result<(), Status> {
        if self.mode.is_sequential() { Err(Status::Unsupported) } else { Ok(()) }
    }

    /// The shared file pointer, in etypes.
    pub(crate) fn shared_position(&self, state: &State) -> Result<u64, Status> {
        Ok(state.shared_start.wrapping_add(self.sidecar().get(state.view_number)?))
    }

    /// Where a seek goes to, in etypes.
    pub(crate) fn target_of(
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
                state.position_at_or_after(self.storage.size()?)?.div_ceil(state.view.etype_size())
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
        self.operation(&state, direction, start, memory, error)
    }

    /// Its arguments were checked.
    fn operation(
        &self,
        state: &State,
        direction: Direction,
        start: Start,
        memory: Memory,
        error: Option<Status>,
    ) -> Operation {
        let State { view, hints, atomic, views, .. } = state;
        let (view, atomic) = (view.clone(), *atomic);
        let context = Context { told: state.told.clone(), ..self.site.context(views, hints, direction) };
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
        let (bytes, etype_size) = (memory.size(), state.view.etype_size());
        // A shared pointer counts etypes: the next operation would begin before the last byte of this one.
        let may_end_within = self.parts_of_etypes && positioning != Positioning::Shared;
        if !bytes.is_multiple_of(etype_size) && !may_end_within {
            return Err(Status::Io);
        }
        let start = match positioning {
            Positioning::Explicit(offset) => {
                state.byte_position(u64::try_from(offset).map_err(|_| Status::Argument)?)?
            }
            Positioning::Individual => state.position,
            Positioning::Shared if collective => return Ok((state.ordered(), memory)),
            Positioning::Shared => {
                let moved = self.sidecar().fetch_add(state.view_number, bytes / etype_size)?;
                state.byte_position(state.shared_start.wrapping_add(moved))?
            }
        };
        state.positions(start, bytes)?;
        if positioning == Positioning::Individual {
            state.position = start + bytes;
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
        let positions = positions(&view, start, memory.size())?;
        if let Some(overlapping) = overlapping {
            return overlapping.read(&self.storage, positions, &mut memory);
        }
        let access = Access { view, positions };
        self.independently(direction, access, memory, &context, atomic)
    }

    /// Without other ranks; in atomic mode, with others kept out of all that lies between the first byte and the last.
    fn independently(
        &self,
        direction: Direction,
        access: Access,
        memory: Memory,
        context: &Context,
        atomic: bool,
    ) -> Result<u64, Status> {
        let mut alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let bounds = (atomic && !access.positions.is_empty()).then(|| access.bounds());
        let machine = self.strategy.alone(Rank(0), direction, access, context);
        #[cfg(test)]
        let machine: Box<dyn StateMachine + Send> = crate::core::file::twin::listen(machine);
        let transfer = || {
            let mut means = Means { ranks: Ranks::None(&mut alone), storage: &self.storage };
            Ok(Driver::independent(machine, direction, memory).run(&mut means)?)
        };
        match bounds {
            Some(bounds) => self.sidecar().locked(bounds, direction == Direction::Read, transfer),
            None => transfer(),
        }
    }
}

/// A collective operation of this rank, step by step.
struct Collective {
    phase: Phase,
    /// Until the driver has it.
    operation: Option<Operation>,
    /// If ranks write each other's data, from when it waits for this rank's own writes.
    under_way: Option<UnderWay>,
}

enum Phase {
    Begin,
    /// Ranks tell each other how many etypes they have, in an operation where they come in their order.
    Counting(CollectiveCall),
    /// Rank 0 tells where the data of the first begin; this rank's come so many etypes later.
    Placing {
        call: CollectiveCall,
        before: u64,
    },
    /// At which data byte of the view the data begin.
    Placed(Result<u64, Status>),
    Driving {
        driver: Box<Driver<dyn StateMachine + Send>>,
        /// What was wrong with the arguments.
        error: Option<Status>,
        /// What came of what this rank read on its own.
        apart: Option<Result<u64, Status>>,
    },
}

/// A step that found nothing.
const WAITS: Step<Result<u64, Status>> = Step::Blocked { on: WouldBlock::OnMessages, moved: false };

impl Collective {
    fn new(operation: Operation) -> Collective {
        let phase = match operation.start {
            Start::At(start) => Phase::Placed(Ok(start)),
            Start::Ordered { .. } => Phase::Begin,
        };
        Collective { phase, operation: Some(operation), under_way: None }
    }

    /// What its ranks chose, if that was for them to do, and after how long.
    fn choice(&self) -> Option<(&Choice, Duration)> {
        match &self.phase {
            Phase::Driving { driver, .. } => Some((driver.choice()?, driver.chose_after())),
            _ => None,
        }
    }

    /// Whether the other ranks may hear of its part: not while this rank writes what they, or it, could overwrite with old bytes.
    /// What the rank begins to write from now on looks out for that, and is not waited for.
    fn may_be_told(&mut self, file: &Inner) -> bool {
        match &self.operation {
            Some(operation) if operation.exchanges_writes(file) => {
                let under_way = self.under_way.get_or_insert_with(|| file.writes.announce_collective());
                under_way.may_be_told(operation.context.beside)
            }
            _ => true,
        }
    }

    /// Carries on until it would block.
    fn step(&mut self, file: &Inner, channel: &mut Channel, may: May) -> Step<Result<u64, Status>> {
        loop {
            self.phase = match &mut self.phase {
                Phase::Driving { driver, error, apart } => {
                    let (_alone, modifying) = match file.strategy.sends_messages() {
                        true => (None, Some(&file.alone)),
                        // It may be held for as long as a request takes.
                        false if !may.storage => {
                            return Step::Blocked { on: WouldBlock::OnStorage, moved: false };
                        }
                        false => (Some(file.alone.lock().unwrap_or_else(PoisonError::into_inner)), None),
                    };
                    let ranks = Ranks::On { channel, modifying };
                    let step = driver.step(&mut Means { ranks, storage: &file.storage }, may);
                    return step.map(|outcome| match error {
                        Some(status) => Err(*status),
                        None => outcome.map_err(Status::from).and_then(|moved| apart.unwrap_or(Ok(moved))),
                    });
                }
                Phase::Placed(start) => {
                    let start = *start;
                    let Some(operation) = &self.operation else { return Step::Done(Err(Status::Internal)) };
                    if operation.needs_storage(file) && !may.storage {
                        return Step::Blocked { on: WouldBlock::OnStorage, moved: false };
                    }
                    if !self.may_be_told(file) {
                        return Step::Blocked { on: WouldBlock::OnStorage, moved: false };
                    }
                    let Some(operation) = self.operation.take() else {
                        return Step::Done(Err(Status::Internal));
                    };
                    match operation.begin(file, channel, start) {
                        ControlFlow::Continue(phase) => phase,
                        ControlFlow::Break(outcome) => return Step::Done(outcome),
                    }
                }
                _ if !may.messages => return WAITS,
                phase => {
                    match self.operation.as_ref().map(|operation| operation.placing(file, channel, phase)) {
                        Some(Ok(Some(phase))) => phase,
                        Some(Ok(None)) => return WAITS,
                        Some(Err(status)) => Phase::Placed(Err(status)),
                        None => return Step::Done(Err(Status::Internal)),
                    }
                }
            };
        }
    }
}

impl Operation {
    /// Whether its beginning reads or writes.
    fn needs_storage(&self, file: &Inner) -> bool {
        self.overlapping.is_some() || self.is_independent(file)
    }

    /// Whether each rank carries out its part on its own.
    fn is_independent(&self, file: &Inner) -> bool {
        self.atomic || file.strategy == Strategy::Independent
    }

    /// Whether ranks write each other's data.
    fn exchanges_writes(&self, file: &Inner) -> bool {
        self.direction == Direction::Write && file.strategy.sends_messages() && !self.is_independent(file)
    }

    fn etypes(&self) -> u64 {
        self.memory.size() / self.view.etype_size()
    }

    /// The phase after one of those in which it is settled where the data begin; none if others have not spoken yet.
    fn placing(&self, file: &Inner, channel: &Channel, phase: &mut Phase) -> Result<Option<Phase>, Status> {
        let communicator = &channel.communicator;
        match (&self.start, phase) {
            (Start::Ordered { .. }, Phase::Begin) => {
                Ok(Some(Phase::Counting(communicator.start_gather(&self.etypes().to_ne_bytes())?)))
            }
            (Start::Ordered { view_number, .. }, Phase::Counting(call)) => {
                let Some(counts) = communicator.poll(call)? else { return Ok(None) };
                let counts = counts.as_chunks::<8>().0.iter().map(|count| u64::from_ne_bytes(*count));
                let before = counts.clone().take(file.rank as usize).fold(0, u64::wrapping_add);
                let mut said = [0_u8; 16];
                if file.rank == 0 {
                    let moved = file.sidecar().fetch_add(*view_number, counts.fold(0, u64::wrapping_add));
                    said[..8].copy_from_slice(&moved.unwrap_or(0).to_ne_bytes());
                    said[8..12].copy_from_slice(&Status::number(moved.map(drop)).to_ne_bytes());
                }
                Ok(Some(Phase::Placing { call: communicator.start_broadcast(said.to_vec())?, before }))
            }
            (Start::Ordered { shared_start, .. }, Phase::Placing { call, before }) => {
                let Some(said) = communicator.poll(call)? else { return Ok(None) };
                let ([moved, status], _) = said.as_chunks::<8>() else { return Err(Status::Internal) };
                Status::check(u64::from_ne_bytes(*status) as i32)?;
                let moved = u64::from_ne_bytes(*moved).wrapping_add(*before);
                let start = shared_start.wrapping_add(moved).checked_mul(self.view.etype_size());
                Ok(Some(Phase::Placed(start.ok_or(Status::Argument))))
            }
            _ => Err(Status::Internal),
        }
    }

    /// Begins at the data byte of the view where its data do; ends it, if this rank needs no other.
    fn begin(
        self,
        file: &Inner,
        channel: &mut Channel,
        start: Result<u64, Status>,
    ) -> ControlFlow<Result<u64, Status>, Phase> {
        let is_independent = self.is_independent(file);
        let Operation { direction, view, overlapping, mut memory, context, atomic, mut error, .. } = self;
        let mut apart = None;
        let access = match start.and_then(|start| positions(&view, start, memory.size())) {
            // This rank reads on its own, and has no data in what all do together.
            Ok(positions) if let Some(overlapping) = &overlapping => {
                apart = Some(overlapping.read(&file.storage, positions, &mut memory));
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
        if is_independent {
            let outcome = file.independently(direction, access, memory, &context, atomic);
            return ControlFlow::Break(match error {
                Some(status) => Err(status),
                None => outcome.and_then(|moved| apart.unwrap_or(Ok(moved))),
            });
        }
        let group = Group { rank: Rank(file.rank), ranks: channel.communicator.ranks() };
        let machine = file.strategy.collective(group, direction, access, &context);
        #[cfg(test)]
        let machine: Box<dyn StateMachine + Send> = crate::core::file::twin::listen(machine);
        // Where a few ranks aggregate, they would have to pack or unpack what the others can do side by side.
        let packs = context.hints.aggregators(group.ranks) > group.ranks / 2;
        let driver = Box::new(Driver::collective(channel, machine, direction, memory, packs));
        ControlFlow::Continue(Phase::Driving { driver, error, apart })
    }
}

impl State {
    /// What the next collective operation is to know of those before it.
    fn recall(&mut self, direction: Direction) -> Recalled {
        self.remembered.recall(direction, told_us(self.met.elapsed()))
    }

    fn ordered(&self) -> Start {
        Start::Ordered { view_number: self.view_number, shared_start: self.shared_start }
    }

    fn positions(&self, start: u64, bytes: u64) -> Result<Range<u64>, Status> {
        positions(&self.view, start, bytes)
    }

    /// The first data byte of an etype of the view.
    pub(crate) fn byte_position(&self, etype: u64) -> Result<u64, Status> {
        etype.checked_mul(self.view.etype_size()).ok_or(Status::Argument)
    }

    /// The first data byte of the view that is not before this one of the file.
    fn position_at_or_after(&self, offset: u64) -> Result<u64, Status> {
        match &self.overlapping {
            Some(overlapping) => overlapping.position_at_or_after(offset).ok_or(Status::Argument),
            None => Ok(self.view.position_at_or_after(offset)),
        }
    }

    /// Where in the file an etype of the view is.
    pub(crate) fn byte_of(&self, etype: u64) -> Result<u64, Status> {
        let position = self.byte_position(etype)?;
        let byte = match &self.overlapping {
            Some(overlapping) => overlapping.offset_of(position),
            None => self.view.offset_of(position),
        };
        byte.ok_or(Status::Argument)
    }
}

/// So many data bytes from data byte `start` of the view on.
fn positions(view: &View, start: u64, bytes: u64) -> Result<Range<u64>, Status> {
    let end = start.checked_add(bytes).filter(|end| *end <= view.limit() || bytes == 0);
    Ok(start..end.ok_or(Status::Argument)?)
}
