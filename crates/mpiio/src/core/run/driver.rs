//! Carries out what a strategy asks for, with real messages, shared memory and files, until it is finished.
//!
//! Data take one of three paths. Between ranks that share memory, a client copies its piece straight between the program's
//! memory and its place in the aggregator's collective buffer, and the message only says that it is there; or the sender packs
//! large pieces into its [outbox](super::buffers), if that [is faster](super::transfer_path), and the message says where. Else the bytes
//! go in the message: [`Transfer`] tells which. The strategy's protocol tells when a buffer may be used again.

mod data;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use pio_layout::{Layout, LayoutError, coverage, pack};
use pio_plan::{
    Access, Action, Direction, Event, Io, IoError, Machine, Message, Piece, Rank, Slot, Transfer, Via,
};

use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::memory::Memory;
use crate::core::run::channel::Channel;
use crate::core::run::independent;
use crate::core::run::message_log::{Call, MessageLog};
use crate::core::run::transfer_path::Trial;
use crate::core::storage::backend::Storage;

/// More than the head of a message of data can have.
const HEAD_BYTES: usize = 80;

/// What other ranks say makes no sense, or MPI failed.
const PROTOCOL_ERROR: IoError = IoError { errno: libc::EPROTO };

/// One operation of one rank.
pub struct Driver<'a> {
    channel: &'a mut Channel,
    storage: &'a Storage,
    memory: &'a mut Memory,
    machine: &'a mut (dyn Machine + Send),
    direction: Direction,
    me: Rank,
    tag: i32,
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
}

impl<'a> Driver<'a> {
    /// For the next operation of all ranks on this channel. Every rank makes one, in the same order.
    pub fn new(
        channel: &'a mut Channel,
        storage: &'a Storage,
        memory: &'a mut Memory,
        direction: Direction,
        machine: &'a mut (dyn Machine + Send),
    ) -> Driver<'a> {
        let tag = channel.next_tag();
        let me = Rank(channel.communicator.rank());
        let (actions, fresh, log) = (VecDeque::new(), Vec::new(), MessageLog::new());
        Driver {
            channel,
            storage,
            memory,
            machine,
            direction,
            me,
            tag,
            actions,
            fresh,
            log,
            packs: false,
            began: None,
            trial: None,
            failure: None,
        }
    }

    /// From now on, data may go through outboxes: if enough ranks aggregate to unpack them.
    pub fn packing(self, packs: bool) -> Driver<'a> {
        Driver { packs, ..self }
    }

    /// Runs the operation to its end: bytes moved to or from this rank's memory.
    pub fn run(mut self) -> Result<u64, IoError> {
        let outcome = self.work();
        self.channel.tally.program += outcome.unwrap_or(0);
        if let (Ok(_), Some(began), Some((trial, bytes))) = (outcome, self.began, self.trial) {
            self.channel.paths.took(trial, bytes, began.elapsed());
        }
        self.log.pause();
        if let Some(choice) = self.machine.choice().filter(|_| self.me.0 == 0) {
            self.channel.tell(choice);
        }
        let sent = self.complete_sends();
        outcome.and_then(|moved| sent.map(|()| moved))
    }

    fn work(&mut self) -> Result<u64, IoError> {
        self.tell(Event::Start);
        loop {
            while let Some(action) = self.actions.pop_front() {
                if self.packs && matches!(action, Action::SendData { .. } | Action::Io(_)) {
                    self.began.get_or_insert_with(Instant::now);
                }
                match action {
                    Action::Send { to, message } => self.say(to, &message)?,
                    Action::SendData { to, piece, error } => self.send_data(to, &piece, error)?,
                    Action::Copy { .. } if self.others_wait() > 0 => {
                        let behind = self.others_wait();
                        self.actions.insert(behind, action);
                    }
                    Action::Copy { piece } => {
                        let copied = self.copy(&piece);
                        self.note(copied);
                    }
                    Action::Io(io) => {
                        self.log.pause();
                        let result = match self.failure {
                            Some(error) if self.direction == Direction::Write => Err(error),
                            _ => self.request(&io),
                        };
                        self.tell(Event::IoDone { result });
                    }
                    Action::Finish { result } => return self.failure.map_or(result, Err),
                }
            }
            let event = self.next_event()?;
            self.tell(event);
        }
    }

    /// How many of the next actions send data that were read. They need not come after what is this rank's own.
    fn others_wait(&self) -> usize {
        let sends = |action: &&Action| matches!(action, Action::SendData { .. });
        match self.direction {
            Direction::Read => self.actions.iter().take_while(sends).count(),
            Direction::Write => 0,
        }
    }

    fn tell(&mut self, event: Event) {
        self.machine.handle(event, &mut self.fresh);
        self.actions.extend(self.fresh.drain(..));
    }

    fn note(&mut self, result: Result<(), IoError>) {
        self.failure = self.failure.or(result.err());
    }

    // --- Messages ---

    fn say(&mut self, to: Rank, message: &Message) -> Result<(), IoError> {
        let start_ns = self.log.begin();
        let bytes = message.encode();
        let (call, len) = (call_of(message), bytes.len() as u64);
        self.channel.tally.messages += len;
        self.send(to, bytes)?;
        self.log.sent(call, to.0, len, start_ns);
        Ok(())
    }

    fn send(&mut self, to: Rank, bytes: Vec<u8>) -> Result<(), IoError> {
        let communicator = &self.channel.communicator;
        let mut sending = communicator.send(to.0, self.tag, bytes).map_err(|_| PROTOCOL_ERROR)?;
        if !communicator.is_sent(&mut sending).map_err(|_| PROTOCOL_ERROR)? {
            self.channel.sending.push(sending);
        }
        Ok(())
    }

    fn complete_sends(&mut self) -> Result<(), IoError> {
        let mut backoff = Backoff::new();
        loop {
            self.progress_sends()?;
            if self.channel.sending.is_empty() {
                return Ok(());
            }
            self.channel.communicator.wait(&mut backoff);
        }
    }

    fn progress_sends(&mut self) -> Result<(), IoError> {
        let Channel { communicator, sending, .. } = &mut *self.channel;
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

    fn next_event(&mut self) -> Result<Event, IoError> {
        let mut backoff =
            if self.storage.via() == Via::Kernel { Backoff::without_servers() } else { Backoff::new() };
        loop {
            if let Some(arrived) = self.channel.communicator.probe(self.tag).map_err(|_| PROTOCOL_ERROR)? {
                let from = Rank(arrived.from);
                let mut bytes = std::mem::take(&mut self.channel.received);
                let taken = self.channel.communicator.receive(arrived, &mut bytes);
                let event = taken.map_err(|_| PROTOCOL_ERROR).and_then(|()| self.understand(from, &bytes));
                self.channel.received = bytes;
                return event;
            }
            if !self.channel.sending.is_empty() {
                self.progress_sends()?;
            }
            self.channel.communicator.wait(&mut backoff);
        }
    }

    fn understand(&mut self, from: Rank, bytes: &[u8]) -> Result<Event, IoError> {
        if Transfer::of(bytes).is_none() {
            let message = Message::decode(bytes).map_err(|_| PROTOCOL_ERROR)?;
            return Ok(Event::Received { from, message });
        }
        let mut rest = bytes;
        let (transfer, piece, error) = Piece::decode(&mut rest).map_err(|_| PROTOCOL_ERROR)?;
        if error.is_none() {
            let placed = self.place(transfer, from, &piece, rest);
            self.note(placed);
        }
        Ok(Event::Data { from, piece, error })
    }

    // --- The file ---

    fn request(&mut self, io: &Io) -> Result<u64, IoError> {
        match io {
            Io::Pieces { .. } | Io::List { .. } | Io::Ship { .. } | Io::Lock { .. } | Io::Unlock { .. } => {
                let access = own_access(self.machine, self.me)?;
                independent::carry_out(self.storage, io, access, self.memory, &mut self.channel.block)
            }
            Io::Window { direction, slot, origin, file } => {
                let buffer = self.channel.own(*slot, file.end - origin)?;
                self.storage.window(*direction, file.clone(), &mut buffer[(file.start - origin) as usize..])
            }
            Io::WriteParts { slot, origin, parts } => self.write_parts(*slot, *origin, parts),
            Io::FillAndWrite { slot, origin, file, holes } => {
                self.fill_and_write(*slot, *origin, file.clone(), holes)
            }
        }
    }

    fn write_parts(&mut self, slot: Slot, origin: u64, parts: &Layout) -> Result<u64, IoError> {
        let end = parts.upper_bound().max(0) as u64;
        let buffer = self.channel.own(slot, end - origin)?;
        let mut written = 0;
        for part in parts.extents(0..parts.size()) {
            let start = (part.offset as u64 - origin) as usize;
            written += self.storage.write(part.offset as u64, &buffer[start..start + part.len as usize])?;
        }
        Ok(written)
    }

    /// Completes the window with what the file holds in the holes, and writes it with one request.
    fn fill_and_write(
        &mut self,
        slot: Slot,
        origin: u64,
        file: Range<u64>,
        holes: &Layout,
    ) -> Result<u64, IoError> {
        if !self.storage.is_readable() {
            let parts = coverage::holes_of_layouts(file.start as i64..file.end as i64, vec![holes.clone()]);
            self.write_parts(slot, origin, &parts)?;
            return Ok(file.end - file.start);
        }
        let needed = holes.lower_bound().max(0) as u64..holes.upper_bound().max(0) as u64;
        let len = (needed.end - needed.start) as usize;
        let (buffer, block) = self.channel.own_and_block(slot, file.end - origin, len)?;
        let read = self.storage.read(needed.start, block)? as usize;
        // What lies beyond the end of the file reads as zero.
        block[read..].fill(0);
        let runs = || holes.runs(0..holes.size());
        pack::copy(runs(), block, -(needed.start as i64), runs(), buffer, -(origin as i64), holes.size())
            .map_err(out_of_place)?;
        self.storage.write(file.start, &buffer[(file.start - origin) as usize..])
    }
}

/// This rank's own access.
fn own_access(machine: &(dyn Machine + Send), me: Rank) -> Result<&Access, IoError> {
    machine.access_of(me).ok_or(PROTOCOL_ERROR)
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
    match message {
        Message::Describe(_) | Message::Register(_) | Message::TakePart(_) => Call::Describe,
        Message::Grant { .. } | Message::Release { .. } => Call::Grant,
        Message::Acknowledge { .. } => Call::Acknowledge,
    }
}
