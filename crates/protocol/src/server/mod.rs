//! A server as a state machine: what came in, what is to be done about it.
//!
//! Inside there are sessions (which requests were answered, which views have which numbers) and locks. What touches disks is
//! handed out as [`Work`], and comes back as done; data never pass through.
//!
//! What always holds: a request of a session is worked on at most once at a time and, unless it only reads, at most once
//! while its client may still repeat it; a client has one connection, and the next one begins when the work of the last
//! one is over. So nothing old can come after something new.

mod locks;
mod session;
mod work;

use std::collections::BTreeMap;

use crate::error::{Expected, Failure};
use crate::limits::Limits;
use crate::placement::{SlotStrips, owner_of};
use crate::process::{ClientId, ClientProcess};
use crate::reply::{Answer, Holder, Reply, ReplyBody};
use crate::request::{Body, FileId, FileRef, Name, Request, Selection, ViewRef};
use locks::{Locks, Queued};
use session::{Heard, Session};
pub use work::{Task, Work};

/// A connection, by any number that its driver gives it, never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What happened, told to a server by its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A client showed that it knows the token.
    Connected {
        /// Over which connection.
        connection: ConnectionId,
        /// Who.
        client: ClientId,
        /// In which process.
        process: ClientProcess,
    },
    /// A request came.
    Received {
        /// Over which connection.
        connection: ConnectionId,
        /// What is asked.
        request: Request,
        /// Bytes of data that came with it.
        data_bytes: u64,
    },
    /// Work is done.
    Done {
        /// Whose.
        client: ClientId,
        /// Of which request.
        number: u64,
        /// What came of it.
        outcome: ReplyBody,
    },
    /// Work cannot be done: its data did not come. The client will repeat the request.
    Abandoned {
        /// Whose.
        client: ClientId,
        /// Of which request.
        number: u64,
    },
    /// A connection is gone.
    Disconnected {
        /// Which.
        connection: ConnectionId,
        /// Whether the other side closed it and nothing else is known: the client died, or comes again at once.
        closed: bool,
    },
    /// The process of a client is over.
    Died {
        /// Which client.
        client: ClientId,
    },
    /// Time went by.
    Time {
        /// Milliseconds since whenever.
        now_ms: u64,
    },
}

/// What a server asks its driver to do, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The session may begin.
    Welcome {
        /// Over which connection.
        connection: ConnectionId,
    },
    /// The client's last connection still has work under way.
    Busy {
        /// Over which connection.
        connection: ConnectionId,
    },
    /// There are too many clients.
    Full {
        /// Over which connection.
        connection: ConnectionId,
    },
    /// Do this, and say [`Event::Done`]. The data of a write are those that came with the request.
    Work(Work),
    /// Answer. The data of an [`Answer::Data`] are those that the request's work read.
    Send {
        /// Over which connection.
        connection: ConnectionId,
        /// What.
        reply: Reply,
    },
    /// End a connection: the client has a newer one, or said goodbye.
    Disconnect {
        /// Which.
        connection: ConnectionId,
    },
}

/// How long a session waits for its client to come back: its locks are kept for so long.
pub const GRACE_MS: u64 = 30_000;
/// The same for one that closed its connection: if it lives, it connects again within a few milliseconds.
pub const CLOSED_GRACE_MS: u64 = 1_000;

/// A server of a store.
#[derive(Debug)]
pub struct Server {
    index: u32,
    servers: u32,
    limits: Limits,
    sessions: BTreeMap<ClientId, Session>,
    connections: BTreeMap<ConnectionId, ClientId>,
    locks: Locks,
    now_ms: u64,
}

impl Server {
    /// Server `index` of `servers`.
    pub fn new(index: u32, servers: u32, limits: Limits) -> Server {
        Server {
            index,
            servers,
            limits,
            sessions: BTreeMap::new(),
            connections: BTreeMap::new(),
            locks: Locks::default(),
            now_ms: 0,
        }
    }

    /// Takes what happened, and appends what is to be done.
    pub fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Connected { connection, client, process } => {
                self.connected(connection, client, process, actions);
            }
            Event::Received { connection, request, data_bytes } => {
                self.received(connection, request, data_bytes, actions);
            }
            Event::Done { client, number, outcome } => self.done(client, number, outcome, actions),
            Event::Abandoned { client, number } => {
                if let Some(session) = self.sessions.get_mut(&client) {
                    session.end(number);
                }
            }
            Event::Disconnected { connection, closed } => self.disconnected(connection, closed),
            Event::Died { client } => self.died(client),
            Event::Time { now_ms } => self.expire(now_ms),
        }
    }

    /// Whether a client has no connection, and is expected back.
    pub fn is_away(&self, client: ClientId) -> bool {
        self.sessions.get(&client).is_some_and(|session| session.connection.is_none())
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        client: ClientId,
        process: ClientProcess,
        actions: &mut Vec<Action>,
    ) {
        if !self.sessions.contains_key(&client) && self.sessions.len() >= self.limits.sessions as usize {
            return actions.push(Action::Full { connection });
        }
        let session = self.sessions.entry(client).or_insert_with(Session::new);
        session.process = process;
        session.grace_ms = GRACE_MS;
        if let Some(old) = session.connection.take() {
            self.connections.remove(&old);
            actions.push(Action::Disconnect { connection: old });
        }
        if session.is_working() {
            session.gone_since_ms = self.now_ms;
            return actions.push(Action::Busy { connection });
        }
        session.connection = Some(connection);
        self.connections.insert(connection, client);
        actions.push(Action::Welcome { connection });
    }

    fn received(
        &mut self,
        connection: ConnectionId,
        request: Request,
        data_bytes: u64,
        actions: &mut Vec<Action>,
    ) {
        // Of a connection that was given up: the client repeats it on its new one.
        let Some(&client) = self.connections.get(&connection) else { return };
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let number = request.number;
        match session.hear(&request, &self.limits) {
            Heard::New => {}
            Heard::Over => return,
            Heard::Answered(body) => {
                return actions.push(Action::Send { connection, reply: Reply { number, body } });
            }
        }
        let outcome = match self.prepare(client, number, request.body, data_bytes) {
            Ok(Prepared::Answer(answer)) => Ok(answer),
            Ok(Prepared::Task(task)) => {
                if let Some(session) = self.sessions.get_mut(&client) {
                    session.begin(number);
                }
                return actions.push(Action::Work(Work { client, number, task }));
            }
            Err(failure) => Err(failure),
        };
        self.answer(client, number, outcome, actions);
    }

    fn done(&mut self, client: ClientId, number: u64, outcome: ReplyBody, actions: &mut Vec<Action>) {
        if let Some(session) = self.sessions.get_mut(&client) {
            session.end(number);
        }
        self.answer(client, number, outcome, actions);
    }

    fn answer(&mut self, client: ClientId, number: u64, body: ReplyBody, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        session.remember(number, &body);
        let connection = session.connection;
        let farewell = session.farewell == Some(number);
        if let Some(connection) = connection {
            actions.push(Action::Send { connection, reply: Reply { number, body } });
        }
        if farewell {
            self.forget(client);
            if let Some(connection) = connection {
                self.connections.remove(&connection);
                actions.push(Action::Disconnect { connection });
            }
        }
    }

    fn disconnected(&mut self, connection: ConnectionId, closed: bool) {
        let Some(client) = self.connections.remove(&connection) else { return };
        if let Some(session) = self.sessions.get_mut(&client) {
            session.connection = None;
            session.gone_since_ms = self.now_ms;
            session.grace_ms = if closed { CLOSED_GRACE_MS } else { GRACE_MS };
        }
    }

    fn died(&mut self, client: ClientId) {
        if self.is_away(client)
            && let Some(session) = self.sessions.get_mut(&client)
        {
            session.grace_ms = 0;
            self.expire(self.now_ms);
        }
    }

    fn expire(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let gone = |session: &Session| {
            session.connection.is_none()
                && !session.is_working()
                && session.gone_since_ms.saturating_add(session.grace_ms) <= now_ms
        };
        let clients: Vec<ClientId> =
            self.sessions.iter().filter(|(_, session)| gone(session)).map(|(client, _)| *client).collect();
        clients.into_iter().for_each(|client| self.forget(client));
    }

    fn forget(&mut self, client: ClientId) {
        self.sessions.remove(&client);
        self.locks.release_all(client);
    }

    /// What is answered at once, and what takes a disk.
    fn prepare(
        &mut self,
        client: ClientId,
        number: u64,
        body: Body,
        data_bytes: u64,
    ) -> Result<Prepared, Failure> {
        if data_bytes > 0 && !matches!(body, Body::Write { .. }) {
            return Err(Failure::Invalid(Expected::DataLength));
        }
        let session = self.sessions.get_mut(&client).ok_or(Failure::Stale)?;
        let done = Ok(Prepared::Answer(Answer::Done));
        match body {
            Body::Lock { file, lock, shared, range } => {
                self.own(file)?;
                if self.locks.count(client) >= self.limits.locks && !self.locks.knows(client, lock) {
                    return Err(Failure::Limit);
                }
                let queued = self.locks.lock(file, client, lock, shared, range, self.now_ms);
                Ok(Prepared::Answer(queued.map_or(Answer::Done, |queued| self.wait(&queued))))
            }
            Body::Unlock { file, lock } => {
                self.own(file)?;
                self.locks.unlock(file, client, lock)?;
                done
            }
            Body::Goodbye => {
                session.farewell = Some(number);
                Ok(Prepared::Task(Task::Goodbye))
            }
            Body::Write { file, access } => {
                let strips = self.strips(client, &file, access)?;
                let bytes = self.measure(strips.clone())?;
                if bytes != data_bytes {
                    return Err(Failure::Invalid(Expected::DataLength));
                }
                Ok(Prepared::Task(Task::Write { file, strips, bytes }))
            }
            Body::Read { file, access } => {
                let strips = self.strips(client, &file, access)?;
                let bytes = self.measure(strips.clone())?;
                Ok(Prepared::Task(Task::Read { file, strips, bytes }))
            }
            Body::Create { name, exclusive, placement } => {
                if placement.servers() != self.servers {
                    return Err(Failure::Invalid(Expected::Placement));
                }
                Ok(Prepared::Task(Task::Create { name: self.named(name)?, exclusive, placement }))
            }
            Body::LookUp { name } => Ok(Prepared::Task(Task::LookUp { name: self.named(name)? })),
            Body::Unlink { name } => Ok(Prepared::Task(Task::Unlink { name: self.named(name)? })),
            Body::Link { name, file } => Ok(Prepared::Task(Task::Link { name: self.named(name)?, file })),
            Body::List { prefix, after, most } => Ok(Prepared::Task(Task::List { prefix, after, most })),
            Body::Describe { file } => Ok(Prepared::Task(Task::Describe { file: self.own(file)? })),
            Body::Forget { file } => Ok(Prepared::Task(Task::Forget { file: self.own(file)? })),
            Body::MovePointer { file, by } => {
                Ok(Prepared::Task(Task::MovePointer { file: self.own(file)?, by }))
            }
            Body::SetPointer { file, value } => {
                Ok(Prepared::Task(Task::SetPointer { file: self.own(file)?, value }))
            }
            Body::Length { file } => Ok(Prepared::Task(Task::Length { file: self.keep(file)? })),
            Body::SetLength { file, bytes } => {
                Ok(Prepared::Task(Task::SetLength { file: self.keep(file)?, bytes: fits(bytes)? }))
            }
            Body::Preallocate { file, bytes } => {
                Ok(Prepared::Task(Task::Preallocate { file: self.keep(file)?, bytes: fits(bytes)? }))
            }
            Body::Extend { file, bytes } => {
                Ok(Prepared::Task(Task::Extend { file: self.keep(file)?, bytes: fits(bytes)? }))
            }
            Body::Sync { file } => Ok(Prepared::Task(Task::Sync { file: self.keep(file)? })),
            Body::RemovePart { file } => Ok(Prepared::Task(Task::RemovePart { file: self.keep(file)? })),
            Body::Check { file } => Ok(Prepared::Task(Task::Check { file: self.keep(file)? })),
            Body::Usage => Ok(Prepared::Task(Task::Usage)),
            Body::Parts { from, most } => Ok(Prepared::Task(Task::Parts { from, most })),
        }
    }

    fn wait(&self, queued: &Queued) -> Answer {
        let process = self.sessions.get(&queued.holder).map(|session| &session.process);
        let holder = Holder {
            host: process.map(|process| process.host.clone()).unwrap_or_default(),
            pid: process.map_or(0, |process| process.pid),
            held_ms: queued.held_since_ms.map_or(0, |since| self.now_ms.saturating_sub(since)),
        };
        Answer::Wait { holder }
    }

    /// The name, if it is kept here.
    fn named(&self, name: Name) -> Result<Name, Failure> {
        match owner_of(name.as_str(), self.servers) == self.index {
            true => Ok(name),
            false => Err(Failure::Invalid(Expected::Owner)),
        }
    }

    /// The file, if its record is here.
    fn own(&self, file: FileId) -> Result<FileId, Failure> {
        if file.home() == self.index { Ok(file) } else { Err(Failure::Invalid(Expected::Owner)) }
    }

    /// The file, if a part of it is here.
    fn keep(&self, file: FileRef) -> Result<FileRef, Failure> {
        self.slot(&file).map(|_| file)
    }

    fn slot(&self, file: &FileRef) -> Result<u32, Failure> {
        let slot = file.placement.slot_of_server(self.index);
        slot.filter(|_| file.placement.servers() == self.servers).ok_or(Failure::Invalid(Expected::Placement))
    }

    fn strips(&mut self, client: ClientId, file: &FileRef, access: Selection) -> Result<SlotStrips, Failure> {
        let slot = self.slot(file)?;
        let session = self.sessions.get_mut(&client).ok_or(Failure::Stale)?;
        let positions = access.positions;
        Ok(match access.view {
            ViewRef::Whole => file.placement.strips_of(slot, &pio_layout::View::contiguous(0), positions),
            ViewRef::Numbered(number) => {
                let view = session.view(number).ok_or(Failure::UnknownView)?;
                file.placement.strips_of(slot, view, positions)
            }
            ViewRef::Listed(extents) => file.placement.strips_of(slot, &extents.view()?, positions),
            ViewRef::New(number, view) => {
                let strips = file.placement.strips_of(slot, &view, positions);
                session.keep_view(number, view, &self.limits);
                strips
            }
        })
    }

    /// Bytes of an access that are this server's, if they are not too many, nor too far apart.
    fn measure(&self, strips: SlotStrips) -> Result<u64, Failure> {
        let most_steps = u64::from(self.limits.strips);
        let mut strips = strips.within(most_steps);
        let mut bytes = 0_u64;
        for strip in strips.by_ref() {
            bytes += strip.positions.end - strip.positions.start;
            if bytes > u64::from(self.limits.data_bytes) {
                break;
            }
        }
        let is_too_much = bytes > u64::from(self.limits.data_bytes) || strips.steps() > most_steps;
        if is_too_much { Err(Failure::Limit) } else { Ok(bytes) }
    }
}

enum Prepared {
    Answer(Answer),
    Task(Task),
}

fn fits(bytes: u64) -> Result<u64, Failure> {
    if bytes <= i64::MAX as u64 { Ok(bytes) } else { Err(Failure::Invalid(Expected::Value)) }
}
