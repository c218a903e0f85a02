//! Carries out what a strategy asks for, with real messages, shared memory and files, until it is finished.
//!
//! Data travel in one of two ways. Between ranks that share memory, a client copies its piece straight between the
//! program's memory and its place in the aggregator's collective buffer; the message only says that it is there. Else
//! the bytes go in the message. The strategy's protocol tells when a buffer may be used again.
//!
//! | message | bytes |
//! |---|---|
//! | said | `0`, a message of the strategy |
//! | data in place | `1`, the piece |
//! | data | `2`, the piece, its bytes in data order |

use std::collections::VecDeque;

use std::ops::Range;

use pio_layout::{Layout, LayoutError, coverage, pack};
use pio_plan::{Access, Action, Direction, Event, Io, IoError, Machine, Message, Piece, Rank, Slot};

use super::channel::Channel;
use super::memory::Memory;
use super::message_log::{Call, MessageLog};
use super::patience::Patience;
use super::requests;
use super::storage::Storage;

const SAID: u8 = 0;
const DATA_IN_PLACE: u8 = 1;
const DATA: u8 = 2;

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
        Driver { channel, storage, memory, machine, direction, me, tag, actions, fresh, log, failure: None }
    }

    /// Runs the operation to its end: bytes moved to or from this rank's memory.
    pub fn run(mut self) -> Result<u64, IoError> {
        let outcome = self.work();
        self.channel.tally.program += outcome.unwrap_or(0);
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
                match action {
                    Action::Send { to, message } => self.say(to, &message)?,
                    Action::SendData { to, piece, error } => self.send_data(to, &piece, error)?,
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
        let mut bytes = vec![SAID];
        bytes.append(&mut message.encode());
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
        let mut patience = Patience::new();
        loop {
            self.progress_sends()?;
            if self.channel.sending.is_empty() {
                return Ok(());
            }
            patience.wait(&self.channel.communicator);
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
        let mut patience =
            if self.storage.servers() == 0 { Patience::without_servers() } else { Patience::new() };
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
            patience.wait(&self.channel.communicator);
        }
    }

    fn understand(&mut self, from: Rank, bytes: &[u8]) -> Result<Event, IoError> {
        let Some((kind, mut rest)) = bytes.split_first() else { return Err(PROTOCOL_ERROR) };
        if *kind == SAID {
            let message = Message::decode(rest).map_err(|_| PROTOCOL_ERROR)?;
            return Ok(Event::Received { from, message });
        }
        let (piece, error) = Piece::decode(&mut rest).map_err(|_| PROTOCOL_ERROR)?;
        if error.is_none() {
            let placed = match (*kind, self.direction) {
                // The client put them where they belong.
                (DATA_IN_PLACE, Direction::Write) => Ok(()),
                (DATA_IN_PLACE, Direction::Read) => self.take_in_place(from, &piece),
                (DATA, Direction::Write) => self.put_into_own(from, &piece, rest),
                (DATA, Direction::Read) => self.put_into_memory(&piece, rest),
                _ => return Err(PROTOCOL_ERROR),
            };
            self.note(placed);
        }
        Ok(Event::Data { from, piece, error })
    }

    // --- Data ---

    fn send_data(&mut self, to: Rank, piece: &Piece, error: Option<IoError>) -> Result<(), IoError> {
        let start_ns = self.log.begin();
        let len = piece.positions.end - piece.positions.start;
        let in_place = match self.direction {
            _ if error.is_some() => true,
            Direction::Write => self.channel.shares_with(to.0) && self.put_in_place(to, piece)?,
            // The client takes them itself.
            Direction::Read => self.channel.shares_with(to.0),
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + if in_place { 0 } else { len as usize });
        bytes.push(if in_place { DATA_IN_PLACE } else { DATA });
        piece.encode(error, &mut bytes);
        self.channel.tally.messages += bytes.len() as u64;
        self.channel.tally.data += if error.is_some() { 0 } else { len };
        if !in_place {
            let head = bytes.len();
            bytes.resize(head + len as usize, 0);
            let packed = match self.direction {
                Direction::Write => self.pack_from_memory(piece, &mut bytes[head..]),
                Direction::Read => self.pack_from_own(to, piece, &mut bytes[head..]),
            };
            self.note(packed);
        }
        self.send(to, bytes)?;
        self.log.sent(Call::Data, to.0, if error.is_some() { 0 } else { len }, start_ns);
        Ok(())
    }

    fn copy(&mut self, piece: &Piece) -> Result<(), IoError> {
        let access = own_access(self.machine, self.me)?;
        let start = start_in(access, piece)?;
        let positions = piece.positions.clone();
        let window = piece.window.start;
        if positions.is_empty() {
            return Ok(());
        }
        let buffer = self.channel.own(piece.slot(), piece.window.end - window)?;
        match self.direction {
            Direction::Write => self.memory.copy_to(start, &access.view, positions, buffer, window),
            Direction::Read => self.memory.copy_from(start, &access.view, positions, buffer, window),
        }
        .map_err(out_of_place)
    }

    /// Writes a piece of this rank into another's buffer. False if there is no memory for that.
    fn put_in_place(&mut self, to: Rank, piece: &Piece) -> Result<bool, IoError> {
        let access = own_access(self.machine, self.me)?;
        let start = start_in(access, piece)?;
        let window = piece.window.start;
        let Ok(buffer) = self.channel.buffer_of(to.0, piece.slot(), piece.window.end - window) else {
            return Ok(false);
        };
        self.memory
            .copy_to(start, &access.view, piece.positions.clone(), buffer, window)
            .map_err(out_of_place)?;
        Ok(true)
    }

    /// Reads a piece of this rank from another's buffer.
    fn take_in_place(&mut self, from: Rank, piece: &Piece) -> Result<(), IoError> {
        let access = own_access(self.machine, self.me)?;
        let start = start_in(access, piece)?;
        let window = piece.window.start;
        let buffer = self.channel.buffer_of(from.0, piece.slot(), piece.window.end - window)?;
        self.memory
            .copy_from(start, &access.view, piece.positions.clone(), buffer, window)
            .map_err(out_of_place)
    }

    fn pack_from_memory(&mut self, piece: &Piece, stream: &mut [u8]) -> Result<(), IoError> {
        let access = own_access(self.machine, self.me)?;
        let start = start_in(access, piece)?;
        self.memory.pack(start..start + stream.len() as u64, stream).map_err(out_of_place)
    }

    fn put_into_memory(&mut self, piece: &Piece, stream: &[u8]) -> Result<(), IoError> {
        let access = own_access(self.machine, self.me)?;
        let start = start_in(access, piece)?;
        self.memory.unpack(start..start + stream.len() as u64, stream).map_err(out_of_place)
    }

    fn pack_from_own(&mut self, client: Rank, piece: &Piece, stream: &mut [u8]) -> Result<(), IoError> {
        let access = self.machine.access_of(client).ok_or(PROTOCOL_ERROR)?;
        let window = piece.window.start;
        let buffer = self.channel.own(piece.slot(), piece.window.end - window)?;
        let runs = access.view.runs(piece.positions.clone());
        pack::pack(runs, buffer, -(window as i64), stream).map_err(out_of_place)
    }

    fn put_into_own(&mut self, client: Rank, piece: &Piece, stream: &[u8]) -> Result<(), IoError> {
        let access = self.machine.access_of(client).ok_or(PROTOCOL_ERROR)?;
        let window = piece.window.start;
        let buffer = self.channel.own(piece.slot(), piece.window.end - window)?;
        let runs = access.view.runs(piece.positions.clone());
        pack::unpack(runs, buffer, -(window as i64), stream).map_err(out_of_place)
    }

    // --- The file ---

    fn request(&mut self, io: &Io) -> Result<u64, IoError> {
        match io {
            Io::Pieces { .. } | Io::List { .. } | Io::Ship { .. } | Io::Lock { .. } | Io::Unlock { .. } => {
                let access = own_access(self.machine, self.me)?;
                requests::carry_out(self.storage, io, access, self.memory, &mut self.channel.block)
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
