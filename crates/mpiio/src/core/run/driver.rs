//! Drives the machine of a strategy: carries out what it asks for, and tells it what came of that.
//!
//! A driver goes in steps. Each carries on until it would block, on messages or on storage, and says on which; whoever
//! drives takes it up again. Blocking and nonblocking operations, collective and independent ones are the same driver:
//! they differ in who takes the steps, and in what these may do.
//!
//! Data take one of three paths. Between ranks that share memory, a client copies its piece straight between the program's
//! memory and its place in the aggregator's collective buffer, and the message only says that it is there; or the sender packs
//! large pieces into its [outbox](super::buffers), if that [is faster](super::transfer_path), and the message says where. Else the bytes
//! go in the message: [`DataPath`] tells which. The strategy's protocol tells when a buffer may be used again.

mod data;
mod own_memory;
mod requests;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pio_layout::LayoutError;
use pio_plan::{
    Access, Action, Choice, DataPath, Direction, Event, Io, IoError, Message, Piece, Purpose, Rank,
    StateMachine, Via,
};

use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::memory::Memory;
use crate::core::mpi::progress::{May, Step, WouldBlock};
use crate::core::run::channel::Channel;
use crate::core::run::message_log::{Call, MessageLog};
use crate::core::run::transfer_path::Trial;
use crate::core::run::working_memory::WorkingMemory;
use crate::core::storage::backend::Storage;
use own_memory::OwnMemory;

/// More than the head of a message of data can have.
const HEAD_BYTES: usize = 80;

/// What other ranks say makes no sense, or MPI failed.
const PROTOCOL_ERROR: IoError = IoError { errno: libc::EPROTO };

/// One operation of one rank.
pub(crate) struct Driver<M: ?Sized> {
    machine: Box<M>,
    memory: OwnMemory,
    direction: Direction,
    me: Rank,
    /// Of its messages.
    tag: i32,
    choosing: Choosing,
    actions: VecDeque<Action>,
    fresh: Vec<Action>,
    log: MessageLog,
    /// Whether data may go through outboxes, where memory is shared.
    packs: bool,
    /// When the first data or request came, in an operation where they may: then every rank has described its part.
    began: Option<Instant>,
    /// The path of large pieces, and how many bytes took it.
    trial: Option<(Trial, u64)>,
    /// Data that could not be put where they belong, for want of memory. The rank goes on taking part, or the others
    /// would wait for ever; nothing more is written.
    failure: Option<IoError>,
    /// What came of it; messages may still be on their way.
    outcome: Option<Result<u64, IoError>>,
}

/// Until the ranks have chosen a strategy, if that is for them to do.
enum Choosing {
    NotBegun,
    Since(Instant),
    Took(Duration),
}

/// What a driver works with in a step.
pub(crate) struct Means<'a> {
    /// What it reaches other ranks through.
    pub(crate) ranks: Ranks<'a>,
    /// The file.
    pub(crate) storage: &'a Storage,
}

/// The other ranks of an operation.
pub(crate) enum Ranks<'a> {
    /// None: an independent operation.
    None(&'a mut WorkingMemory),
    /// Those on this channel.
    On {
        /// The channel.
        channel: &'a mut Channel,
        /// Whoever has it locks parts of the file, or reads, changes and writes them back: several threads of a process that do
        /// so at once would undo each other's changes, as locks of the file system do not keep threads apart. None if whoever takes
        /// the step has it.
        modifying: Option<&'a Mutex<WorkingMemory>>,
    },
}

impl<'a> Means<'a> {
    /// Keeps other threads of this process from reading, changing and writing back what this one does.
    fn modify(&self) -> Option<MutexGuard<'a, WorkingMemory>> {
        let Ranks::On { modifying: Some(modifying), .. } = self.ranks else { return None };
        Some(modifying.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn channel(&mut self) -> Result<&mut Channel, IoError> {
        match &mut self.ranks {
            Ranks::None(_) => Err(PROTOCOL_ERROR),
            Ranks::On { channel, .. } => Ok(channel),
        }
    }

    fn working(&mut self) -> &mut WorkingMemory {
        match &mut self.ranks {
            Ranks::None(working) => working,
            Ranks::On { channel, .. } => &mut channel.working,
        }
    }
}

impl<M: StateMachine + ?Sized> Driver<M> {
    /// For the next operation of all ranks on this channel. Every rank makes one, in the same order. If `packs`, data may go
    /// through outboxes: if enough ranks aggregate to unpack them.
    pub(crate) fn collective(
        channel: &mut Channel,
        machine: Box<M>,
        direction: Direction,
        memory: Memory,
        packs: bool,
    ) -> Driver<M> {
        let me = Rank(channel.communicator.rank());
        Driver { packs, ..Driver::new(machine, direction, memory, me, channel.next_tag()) }
    }

    /// For an operation of this rank alone, which is rank 0 in it.
    pub(crate) fn independent(machine: Box<M>, direction: Direction, memory: Memory) -> Driver<M> {
        Driver::new(machine, direction, memory, Rank(0), 0)
    }

    fn new(machine: Box<M>, direction: Direction, memory: Memory, me: Rank, tag: i32) -> Driver<M> {
        let (actions, fresh, log) = (VecDeque::new(), Vec::new(), MessageLog::new());
        Driver {
            machine,
            memory: OwnMemory::of_program(memory),
            direction,
            me,
            tag,
            choosing: Choosing::NotBegun,
            actions,
            fresh,
            log,
            packs: false,
            began: None,
            trial: None,
            failure: None,
            outcome: None,
        }
    }

    /// What its ranks chose, if that was for them to do.
    pub(crate) fn choice(&self) -> Option<&Choice> {
        self.machine.choice()
    }

    /// How long it waited for the others until they had chosen.
    pub(crate) fn chose_after(&self) -> Duration {
        if let Choosing::Took(time) = self.choosing { time } else { Duration::ZERO }
    }

    /// Runs an operation that needs no other rank to its end: bytes moved to or from this rank's memory.
    pub(crate) fn run(&mut self, means: &mut Means) -> Result<u64, IoError> {
        match self.step(means, May::ALL) {
            Step::Done(outcome) => outcome,
            Step::Blocked { .. } => Err(PROTOCOL_ERROR),
        }
    }

    /// Carries on until it would block.
    pub(crate) fn step(&mut self, means: &mut Means, may: May) -> Step<Result<u64, IoError>> {
        let mut moved = false;
        let outcome = match self.outcome {
            Some(outcome) => outcome,
            None => match self.work(means, may, &mut moved) {
                Ok(Err(on)) => return Step::Blocked { on, moved },
                Ok(Ok(result)) => self.end(means, Ok(result)),
                Err(error) => self.end(means, Err(error)),
            },
        };
        match self.complete_sends(means, may) {
            Ok(true) => Step::Done(outcome),
            Ok(false) => Step::Blocked { on: WouldBlock::OnMessages, moved },
            Err(error) => Step::Done(outcome.and(Err(error))),
        }
    }

    /// The machine, after the end.
    pub(crate) fn into_machine(self) -> M
    where
        M: Sized,
    {
        *self.machine
    }

    /// Bytes moved, or what would block.
    fn work(
        &mut self,
        means: &mut Means,
        may: May,
        moved: &mut bool,
    ) -> Result<Result<u64, WouldBlock>, IoError> {
        if let Choosing::NotBegun = self.choosing {
            self.choosing = Choosing::Since(Instant::now());
            self.tell(Event::Start);
        }
        // From a lock until it is given back. What a machine asks for between them is carried out before all else, and is nothing but
        // requests and copies, so that this is one step.
        let mut modifying = None;
        loop {
            while let Some(action) = self.actions.pop_front() {
                if let Some(on) = would_block(&action, may) {
                    self.actions.push_front(action);
                    return Ok(Err(on));
                }
                *moved = true;
                if self.packs && matches!(action, Action::SendData { .. } | Action::Io(_)) {
                    self.began.get_or_insert_with(Instant::now);
                }
                match action {
                    Action::Send { to, message } => self.say(means.channel()?, to, &message)?,
                    Action::SendData { to, piece, error } => {
                        self.send_data(means.channel()?, to, &piece, error)?;
                    }
                    Action::Copy { .. } if self.others_wait() > 0 => {
                        let behind = self.others_wait();
                        self.actions.insert(behind, action);
                    }
                    Action::Gather { bytes } => {
                        let result = self.memory.gather(means.channel()?, bytes);
                        self.note(result);
                        self.tell(Event::Room { result });
                    }
                    Action::Copy { piece } => {
                        let copied = self.copy(means.working(), &piece);
                        self.note(copied);
                    }
                    Action::Io(io) => {
                        self.log.pause();
                        if let Io::Lock { .. } = &io
                            && modifying.is_none()
                        {
                            modifying = means.modify();
                        }
                        // What failed since a lock was taken is no reason to keep it.
                        let gives_back = matches!(io, Io::Unlock { .. });
                        let result = match self.failure {
                            Some(error) if self.direction == Direction::Write && !gives_back => Err(error),
                            _ => self.request(means, &io),
                        };
                        // What could not be locked is not unlocked either.
                        if gives_back || (matches!(io, Io::Lock { .. }) && result.is_err()) {
                            modifying = None;
                        }
                        let others = self.actions.len();
                        self.tell(Event::IoDone { result });
                        if modifying.is_some() {
                            self.actions.rotate_left(others);
                        }
                    }
                    Action::Finish { result } => {
                        return self.failure.map_or(result, Err).map(Ok);
                    }
                }
            }
            if !may.messages {
                return Ok(Err(WouldBlock::OnMessages));
            }
            let Some(event) = self.poll(means.channel()?)? else {
                return Ok(Err(WouldBlock::OnMessages));
            };
            *moved = true;
            self.tell(event);
        }
    }

    fn end(&mut self, means: &mut Means, outcome: Result<u64, IoError>) -> Result<u64, IoError> {
        self.outcome = Some(outcome);
        self.log.pause();
        if let Ok(channel) = means.channel() {
            channel.tally.program += outcome.unwrap_or(0);
            if let (Ok(_), Some(began), Some((trial, bytes))) = (outcome, self.began, self.trial) {
                channel.paths.took(trial, bytes, began.elapsed());
            }
            if let Some(choice) = self.choice().filter(|_| self.me.0 == 0) {
                channel.tell(choice);
            }
        }
        outcome
    }

    /// How many of the next actions send data that were read. They need not come after what is this rank's own.
    fn others_wait(&self) -> usize {
        // What is gathered may have to be copied there first.
        let sends =
            |action: &&Action| matches!(action, Action::SendData { piece, .. } if !piece.is_gathered());
        match self.direction {
            Direction::Read => self.actions.iter().take_while(sends).count(),
            Direction::Write => 0,
        }
    }

    fn tell(&mut self, event: Event) {
        self.machine.handle(event, &mut self.fresh);
        if let (Choosing::Since(start), Some(_)) = (&self.choosing, self.choice()) {
            self.choosing = Choosing::Took(start.elapsed());
        }
        self.actions.extend(self.fresh.drain(..));
    }

    fn note(&mut self, result: Result<(), IoError>) {
        self.failure = self.failure.or(result.err());
    }

    // --- Messages ---

    fn say(&mut self, channel: &mut Channel, to: Rank, message: &Message) -> Result<(), IoError> {
        let start_ns = self.log.begin();
        let bytes = message.encode();
        let (call, len) = (call_of(message), bytes.len() as u64);
        channel.tally.messages += len;
        self.send(channel, to, bytes)?;
        self.log.sent(call, to.0, len, start_ns);
        Ok(())
    }

    fn send(&mut self, channel: &mut Channel, to: Rank, bytes: Vec<u8>) -> Result<(), IoError> {
        let communicator = &channel.communicator;
        let mut sending = communicator.send(to.0, self.tag, bytes).map_err(|_| PROTOCOL_ERROR)?;
        if !communicator.is_sent(&mut sending).map_err(|_| PROTOCOL_ERROR)? {
            channel.sending.push(sending);
        }
        Ok(())
    }

    /// Whether all messages are on their way.
    fn complete_sends(&mut self, means: &mut Means, may: May) -> Result<bool, IoError> {
        let Ranks::On { channel, .. } = &mut means.ranks else { return Ok(true) };
        if !channel.sending.is_empty() && may.messages {
            progress_sends(channel)?;
        }
        Ok(channel.sending.is_empty())
    }

    /// What the next message says, if one has come.
    fn poll(&mut self, channel: &mut Channel) -> Result<Option<Event>, IoError> {
        if let Some(arrived) = channel.communicator.probe(self.tag).map_err(|_| PROTOCOL_ERROR)? {
            let from = Rank(arrived.from);
            let mut bytes = std::mem::take(&mut channel.received);
            let taken = channel.communicator.receive(arrived, &mut bytes);
            let event =
                taken.map_err(|_| PROTOCOL_ERROR).and_then(|()| self.understand(channel, from, &bytes));
            channel.received = bytes;
            return event.map(Some);
        }
        if !channel.sending.is_empty() {
            progress_sends(channel)?;
        }
        Ok(None)
    }

    fn understand(&mut self, channel: &mut Channel, from: Rank, bytes: &[u8]) -> Result<Event, IoError> {
        if DataPath::of(bytes).is_none() {
            let message = Message::decode(bytes).map_err(|_| PROTOCOL_ERROR)?;
            return Ok(Event::Received { from, message });
        }
        let mut rest = bytes;
        let (path, piece, error) = Piece::decode(&mut rest).map_err(|_| PROTOCOL_ERROR)?;
        // Whoever speaks for others tells them, too.
        let placed = if error.is_none() { self.place(channel, path, from, &piece, rest) } else { Ok(()) };
        self.note(placed);
        Ok(Event::Data { from, piece, error: error.or(placed.err()) })
    }
}

/// Takes the steps of a collective operation to its end, waiting in between where it must; what came of it.
pub(crate) fn to_the_end<T>(
    channel: &mut Channel,
    via: Via,
    mut step: impl FnMut(&mut Channel) -> Step<T>,
) -> T {
    let new = || if via == Via::Kernel { Backoff::without_servers() } else { Backoff::new() };
    let mut backoff = new();
    loop {
        match step(channel) {
            Step::Done(outcome) => return outcome,
            Step::Blocked { moved, .. } => {
                if moved {
                    backoff = new();
                }
                channel.communicator.wait(&mut backoff);
            }
        }
    }
}

/// What carrying out the action would block on, if a step may not do it.
fn would_block(action: &Action, may: May) -> Option<WouldBlock> {
    match action {
        Action::Send { .. } | Action::SendData { .. } if !may.messages => Some(WouldBlock::OnMessages),
        Action::Io(_) if !may.storage => Some(WouldBlock::OnStorage),
        _ => None,
    }
}

fn progress_sends(channel: &mut Channel) -> Result<(), IoError> {
    let Channel { communicator, sending, .. } = channel;
    let mut failed = false;
    sending.retain_mut(|one| match communicator.is_sent(one) {
        Ok(sent) => !sent,
        Err(_) => {
            failed = true;
            true
        }
    });
    if failed { Err(PROTOCOL_ERROR) } else { Ok(()) }
}

/// Where in memory a piece of this rank's own begins.
fn start_in(access: &Access, piece: &Piece) -> Result<u64, IoError> {
    let inside = piece.positions.start >= access.positions.start
        && piece.positions.end <= access.positions.end
        && piece.positions.start <= piece.positions.end;
    if inside { Ok(piece.positions.start - access.positions.start) } else { Err(PROTOCOL_ERROR) }
}

/// A piece that does not lie where its head says.
fn out_of_place(_: LayoutError) -> IoError {
    PROTOCOL_ERROR
}

fn call_of(message: &Message) -> Call {
    match message.purpose() {
        Purpose::Describe => Call::Describe,
        Purpose::Grant => Call::Grant,
        Purpose::Acknowledge => Call::Acknowledge,
    }
}

#[cfg(test)]
mod tests {
    use pio_layout::View;
    use pio_plan::{Context, Hints, Site, Strategy, Views};

    use super::*;

    /// A leader's own part of a window goes to where it gathers: what it then gives out must not go before.
    #[test]
    fn what_is_gathered_waits_for_what_is_copied_there() {
        let site = Site { ranks: 1, nodes: None, processors: 1, via: Via::Kernel, terms: Default::default() };
        let context: Context = site.context(&Views::WHOLE, &Hints::default(), Direction::Read);
        let access = Access { view: View::contiguous(0), positions: 0..0 };
        let machine = Strategy::Independent.alone(Rank(0), Direction::Read, access, &context);
        let mut driver = Driver::independent(machine, Direction::Read, Memory::none());
        let window = Piece { client: Rank(1), index: 0, window: 0..8, positions: 0..8 };
        let gathered = Piece { index: u64::MAX, ..window.clone() };
        assert!(gathered.is_gathered());
        let send = |piece: &Piece| Action::SendData { to: Rank(1), piece: piece.clone(), error: None };
        driver.actions.extend([&window, &window, &gathered, &window].map(send));
        assert_eq!(driver.others_wait(), 2);
    }
}
