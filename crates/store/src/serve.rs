//! Runs a server: a thread a connection, the state machine between them, and the disks.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pio_protocol::handshake::Greeting;
use pio_protocol::server::{Action, ConnectionId, Event, Server, Task, Work};
use pio_protocol::{Answer, ClientId, ClientProcess, Limits, Reply, Request};

use crate::auth::{Conversation, Role, Token};
use crate::disk::{Buffers, Disks};
use crate::error::StoreError;
use crate::greet;
use crate::process;
use crate::transport::{Breaker, Connection, Listener, Summed};

/// How long a stranger may take to show the token.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may take nothing of what it asked for, or say nothing in the middle of a message.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of data that all connections together work on.
const BUDGET_BYTES: u64 = 512 << 20;
/// Acknowledgements of writes that wait to be sent together, while more messages of the client are there: to wake it up for
/// each costs as much as to take in a message. Fewer than a client has on their way, or it would stop.
const MOST_TOGETHER: usize = 4;
/// With more connections than that, memory is not kept from message to message.
const MOST_WITH_MEMORY: usize = 64;

/// What a server needs to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which server of the store.
    pub index: u32,
    /// Of how many.
    pub servers: u32,
    /// Where it keeps its parts of files; names and records in the first.
    pub folders: Vec<PathBuf>,
    /// The store's token.
    pub token: Token,
    /// What it allows.
    pub limits: Limits,
}

/// A server that runs in threads of this process.
pub struct Running {
    shared: Arc<Shared>,
    addresses: Vec<String>,
    wakers: Vec<Breaker>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Starts a server whose clients come in through `listeners`.
///
/// # Errors
/// If its folders cannot be used.
pub fn start(settings: Settings, listeners: Vec<Box<dyn Listener>>) -> Result<Running, StoreError> {
    let (disks, _) = Disks::open(&settings.folders, settings.index, settings.servers, None, false)?;
    Ok(start_on(disks, settings, listeners))
}

/// The same, on disks that were opened already: those of the settings.
pub fn start_on(disks: Disks, settings: Settings, listeners: Vec<Box<dyn Listener>>) -> Running {
    let shared = Arc::new(Shared::new(disks, settings));
    let addresses = listeners.iter().map(|listener| listener.address().to_owned()).collect();
    let wakers = listeners.iter().map(|listener| listener.waker()).collect();
    let mut threads: Vec<JoinHandle<()>> = listeners
        .into_iter()
        .map(|listener| {
            let shared = shared.clone();
            thread::spawn(move || accept(&shared, listener))
        })
        .collect();
    let clock = shared.clone();
    threads.push(thread::spawn(move || tick(&clock)));
    Running { shared, addresses, wakers, threads }
}

impl Running {
    /// What clients connect to, one a listener.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// How many files and folders others could read when the server was started; now they cannot.
    pub fn made_private(&self) -> u64 {
        self.shared.disks.made_private()
    }

    /// Breaks all connections and ends the threads. What was not synced stays as it is: so ends a killed server too.
    pub fn stop(mut self) {
        self.end();
    }

    /// Waits for ever: the server ends with its process.
    pub fn wait(mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.wakers.iter().for_each(|wake| wake());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let connections: Vec<_> =
            std::mem::take(&mut *lock(&self.shared.connections)).into_values().collect();
        connections.iter().for_each(|served| (served.breaker)());
        for served in connections {
            let _ = served.thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end();
        }
    }
}

struct Shared {
    machine: Mutex<Server>,
    disks: Disks,
    settings: Settings,
    connections: Mutex<BTreeMap<ConnectionId, Served>>,
    /// Clients whose connection ended, in processes whose end would be seen.
    away: Mutex<Vec<Peer>>,
    next: AtomicU64,
    stopping: AtomicBool,
    budget: Budget,
}

/// Who is at the other end of a connection.
struct Peer {
    client: ClientId,
    process: ClientProcess,
    /// Whether its process runs where we would see its end.
    in_sight: bool,
}

/// A connection that a thread serves.
struct Served {
    breaker: Breaker,
    thread: JoinHandle<()>,
}

/// Bytes of data that may be worked on.
struct Budget {
    free: Mutex<u64>,
    more: Condvar,
}

impl Budget {
    /// Waits for its turn to work on so many bytes, which the guard gives back.
    fn take(&self, bytes: u64) -> Taken<'_> {
        let bytes = bytes.min(BUDGET_BYTES);
        let mut free = lock(&self.free);
        while *free < bytes {
            free = self.more.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= bytes;
        Taken { budget: self, bytes }
    }
}

struct Taken<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *lock(&self.budget.free) += self.bytes;
        self.budget.more.notify_all();
    }
}

fn accept(shared: &Arc<Shared>, mut listener: Box<dyn Listener>) {
    while !shared.stopping.load(Ordering::SeqCst) {
        let Ok(connection) = listener.accept() else {
            // Out of descriptors, most likely: some will be closed.
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(breaker) = connection.breaker() else { continue };
        let id = ConnectionId(shared.next.fetch_add(1, Ordering::SeqCst));
        let mut connections = lock(&shared.connections);
        if connections.len() >= shared.settings.limits.connections as usize {
            continue;
        }
        let in_thread = shared.clone();
        let thread = thread::Builder::new().spawn(move || {
            let mut peer = None;
            // Whatever ends a connection: the client will come again if it wants to.
            let ended = serve(&in_thread, id, connection, &mut peer);
            in_thread.left(id, peer, ended.err());
            lock(&in_thread.connections).remove(&id);
        });
        if let Ok(thread) = thread {
            connections.insert(id, Served { breaker, thread });
        }
    }
}

fn tick(shared: &Shared) {
    let start = Instant::now();
    while !shared.stopping.load(Ordering::SeqCst) {
        let idle = lock(&shared.away).is_empty();
        thread::sleep(if idle { Duration::from_millis(100) } else { Duration::from_millis(10) });
        shared.look_for_the_dead();
        let now_ms = start.elapsed().as_millis() as u64;
        shared.tell(Event::Time { now_ms });
    }
}

/// A connection, from its first to its last message.
fn serve(
    shared: &Shared,
    id: ConnectionId,
    connection: Box<dyn Connection>,
    peer: &mut Option<Peer>,
) -> io::Result<()> {
    let mut serving = Serving::new(shared, id, connection);
    serving.greet(peer)?;
    let mut head = Vec::new();
    while serving.has_session {
        serving.send_acknowledgements()?;
        let data_len = match serving.connection.receive(&mut head) {
            // A program may compute for days between two requests.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
            result => result?,
        };
        let request = Request::decode(&head)?;
        let _taken = shared.budget.take(data_len as u64);
        serving.tell(Event::Received { connection: id, request, data_bytes: data_len as u64 })?;
        if head.capacity() > 64 << 10 || lock(&shared.connections).len() > MOST_WITH_MEMORY {
            head = Vec::new();
            serving.trim();
        }
    }
    if serving.written.is_empty() { Ok(()) } else { serving.connection.send_heads(&serving.written) }
}

/// A connection, and what its thread works with.
struct Serving<'a> {
    shared: &'a Shared,
    id: ConnectionId,
    connection: Box<dyn Connection>,
    /// What was said in the greeting: the proof is of it.
    conversation: Option<Conversation>,
    /// Whether requests may come.
    has_session: bool,
    /// What broke the connection.
    broken: Option<io::Error>,
    buffers: Buffers,
    /// Whether the data of the last read are in memory that the connection lent.
    lent: bool,
    /// Acknowledgements of writes that wait to be sent.
    written: Vec<Vec<u8>>,
    /// What is to be done, the next last.
    todo: Vec<Action>,
    /// What follows from an event.
    actions: Vec<Action>,
}

impl Serving<'_> {
    fn new(shared: &Shared, id: ConnectionId, connection: Box<dyn Connection>) -> Serving<'_> {
        Serving {
            shared,
            id,
            connection,
            conversation: None,
            has_session: false,
            broken: None,
            buffers: Buffers::default(),
            lent: false,
            written: Vec::new(),
            todo: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// The greeting; after it, there is a session or there will be none.
    fn greet(&mut self, peer: &mut Option<Peer>) -> io::Result<()> {
        let Settings { index, token, limits, .. } = &self.shared.settings;
        self.connection.set_timeouts(Some(GREETING_PATIENCE), Some(GREETING_PATIENCE))?;
        let Some((conversation, process)) = greet::receive(&mut *self.connection, token, *index)? else {
            return Ok(());
        };
        let client = conversation.client;
        *peer = Some(Peer { client, in_sight: process::is_in_sight(&process), process: process.clone() });
        self.conversation = Some(conversation);
        self.tell(Event::Connected { connection: self.id, client, process })?;
        self.connection.set_timeouts(Some(PATIENCE), Some(PATIENCE))?;
        self.connection.set_limits(limits);
        Ok(())
    }

    /// Sends the acknowledgements that wait, unless more of them may come to be sent together.
    fn send_acknowledgements(&mut self) -> io::Result<()> {
        if !self.written.is_empty() && (self.written.len() >= MOST_TOGETHER || !self.connection.has_come()) {
            self.connection.send_heads(&self.written)?;
            self.written.clear();
        }
        Ok(())
    }

    fn trim(&mut self) {
        self.buffers = Buffers::default();
        self.connection.trim();
    }

    /// Tells the machine what happened on this connection, and does all that follows.
    fn tell(&mut self, event: Event) -> io::Result<()> {
        self.decide(event);
        self.carry_out()
    }

    fn decide(&mut self, event: Event) {
        lock(&self.shared.machine).handle(event, &mut self.actions);
        self.todo.extend(self.actions.drain(..).rev());
    }

    /// Does all that is to be done, in order; what follows from it comes before what comes behind it. A connection that
    /// breaks meanwhile keeps nothing else from being done.
    fn carry_out(&mut self) -> io::Result<()> {
        let mut working = None;
        while let Some(action) = self.todo.pop() {
            match action {
                Action::Work(work) => {
                    // The work of a request is done here and now: so requests of a connection are done in order.
                    drop(working.take());
                    working = Some(self.shared.budget.take(work.reads()));
                    let event = self.work_on(&work);
                    self.decide(event);
                }
                Action::Send { connection, reply } if connection == self.id => {
                    let sent = self.answer(reply);
                    self.note(sent);
                }
                Action::Welcome { connection } if connection == self.id => {
                    self.has_session = true;
                    let greeting = self.welcome();
                    self.say(greeting);
                }
                Action::Busy { connection } if connection == self.id => self.say(Some(Greeting::Busy)),
                Action::Full { connection } if connection == self.id => {
                    self.say(Some(Greeting::Refused { reason: "too many clients".into() }));
                }
                Action::Disconnect { connection } if connection == self.id => {
                    self.has_session = false;
                    self.shared.disconnect(connection);
                }
                of_another => self.shared.carry_out(of_another),
            }
        }
        drop(working);
        self.broken.take().map_or(Ok(()), Err)
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.broken.get_or_insert(error);
        }
    }

    fn say(&mut self, greeting: Option<Greeting>) {
        let said = greeting.map_or(Ok(()), |greeting| greet::say(&mut *self.connection, &greeting));
        self.note(said);
    }

    fn welcome(&self) -> Option<Greeting> {
        let Settings { token, limits, .. } = &self.shared.settings;
        Some(Greeting::Welcome {
            mac: token.proof(Role::Server, self.conversation.as_ref()?),
            data_bytes: limits.data_bytes,
            head_bytes: limits.head_bytes,
        })
    }

    /// Does work; what breaks the connection meanwhile does not leave the work undone for ever.
    fn work_on(&mut self, work: &Work) -> Event {
        let Work { client, number, .. } = *work;
        let data = match work.task {
            Task::Write { .. } => self.connection.receive_summed(),
            Task::Read { bytes, .. } => {
                let room = self.connection.lend(bytes as usize);
                self.lent = room.is_some();
                let outcome = self.shared.disks.perform(work, Summed::default(), room, &mut self.buffers);
                return Event::Done { client, number, outcome };
            }
            _ => Ok(Summed::default()),
        };
        match data {
            Ok(data) => {
                let outcome = self.shared.disks.perform(work, data, None, &mut self.buffers);
                self.connection.release();
                Event::Done { client, number, outcome }
            }
            Err(error) => {
                self.broken.get_or_insert(error);
                Event::Abandoned { client, number }
            }
        }
    }

    /// Sends an answer over this connection, or keeps it to be sent with others.
    fn answer(&mut self, reply: Reply) -> io::Result<()> {
        let mut head = Vec::with_capacity(32);
        reply.encode(&mut head);
        match reply.body {
            Ok(Answer::Written { .. }) => {
                self.written.push(head);
                Ok(())
            }
            Ok(Answer::Data { bytes, .. }) if self.lent => self.connection.send_lent(&head, bytes as usize),
            Ok(Answer::Data { bytes, .. }) => {
                let data = &self.buffers.data[..bytes as usize];
                self.connection.send(&head, &[IoSlice::new(data)])
            }
            _ => self.connection.send(&head, &[]),
        }
    }
}

impl Shared {
    fn new(disks: Disks, settings: Settings) -> Shared {
        Shared {
            machine: Mutex::new(Server::new(settings.index, settings.servers, settings.limits)),
            disks,
            settings,
            connections: Mutex::default(),
            away: Mutex::default(),
            next: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            budget: Budget { free: Mutex::new(BUDGET_BYTES), more: Condvar::new() },
        }
    }

    /// Tells the machine what happened on no connection of this thread, and does all that follows.
    fn tell(&self, event: Event) {
        let mut actions = Vec::new();
        lock(&self.machine).handle(event, &mut actions);
        actions.into_iter().for_each(|action| self.carry_out(action));
    }

    /// Does what concerns a connection that another thread serves: nobody else can send over it. So it is broken; its client
    /// comes again, repeats what was not answered, and is answered then.
    fn carry_out(&self, action: Action) {
        match action {
            Action::Work(Work { client, number, .. }) => self.tell(Event::Abandoned { client, number }),
            Action::Welcome { connection }
            | Action::Busy { connection }
            | Action::Full { connection }
            | Action::Send { connection, .. }
            | Action::Disconnect { connection } => self.disconnect(connection),
        }
    }

    /// A connection ended: with this error, if it was not we who ended it.
    fn left(&self, connection: ConnectionId, peer: Option<Peer>, error: Option<io::Error>) {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let by_peer = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
        let watched = peer.filter(|peer| peer.in_sight);
        let closed = watched.is_none() && error.is_some_and(|error| by_peer.contains(&error.kind()));
        self.tell(Event::Disconnected { connection, closed });
        lock(&self.away).extend(watched);
    }

    /// A process that is ending closes its connections a moment before it is over.
    fn look_for_the_dead(&self) {
        let mut away = std::mem::take(&mut *lock(&self.away));
        away.retain(|Peer { client, process, .. }| {
            let waits = lock(&self.machine).is_away(*client);
            if waits && process::is_over(process) {
                // It cannot come back in between: it is dead.
                self.tell(Event::Died { client: *client });
                return false;
            }
            waits
        });
        lock(&self.away).extend(away);
    }

    fn disconnect(&self, connection: ConnectionId) {
        if let Some(served) = lock(&self.connections).get(&connection) {
            (served.breaker)();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use pio_protocol::{FileId, FileRef, Placement};

    use super::*;
    use crate::transport::{TcpListener, Transport};

    fn shared(folder: &std::path::Path) -> Shared {
        let settings = Settings {
            index: 0,
            servers: 1,
            folders: vec![folder.join("server")],
            token: Token::load_or_create(&folder.join("token")).unwrap(),
            limits: Limits::DEFAULT,
        };
        let (disks, _) = Disks::open(&settings.folders, 0, 1, None, false).unwrap();
        Shared::new(disks, settings)
    }

    /// Whatever the machine asks for, in whatever order: work behind an answer, answers for connections of other threads.
    #[test]
    fn every_action_is_carried_out_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared(folder.path());
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.address().to_owned();
        let mut client =
            Transport::Tcp.connect(&address, &shared.settings.token, Duration::from_secs(10)).unwrap();
        client.set_timeouts(Some(Duration::from_secs(10)), None).unwrap();
        let (own, other) = (ConnectionId(1), ConnectionId(2));
        let broken = Arc::new(AtomicU64::new(0));
        let count = broken.clone();
        let breaker: Breaker = Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        lock(&shared.connections).insert(other, Served { breaker, thread: thread::spawn(|| ()) });
        let mut serving = Serving::new(&shared, own, listener.accept().unwrap());
        let process = ClientProcess::default();
        let connected = Event::Connected { connection: own, client: ClientId(7), process };
        lock(&shared.machine).handle(connected, &mut Vec::new());
        let reply = |number| Reply { number, body: Ok(Answer::Done) };
        let file = FileRef { id: FileId::new(0, 1), placement: Placement::new(64, 1, 0, 1).unwrap() };
        let work = Work { client: ClientId(7), number: 8, task: Task::Length { file } };
        serving.todo = vec![
            Action::Disconnect { connection: other },
            Action::Send { connection: own, reply: reply(9) },
            Action::Work(work),
            Action::Send { connection: other, reply: reply(1) },
            Action::Send { connection: own, reply: reply(7) },
        ];
        serving.carry_out().unwrap();
        let mut head = Vec::new();
        for expected in
            [reply(7), Reply { number: 8, body: Ok(Answer::Length { bytes: 0, epoch: 1 }) }, reply(9)]
        {
            client.receive(&mut head).unwrap();
            assert_eq!(Reply::decode(&head).unwrap(), expected);
        }
        assert_eq!(broken.load(Ordering::SeqCst), 2);
        // Work that no thread has the data of is not under way for ever: the client comes in again.
        let number = 10;
        let length = Request { number, answered: number, body: pio_protocol::Body::Length { file } };
        serving.decide(Event::Received { connection: own, request: length, data_bytes: 0 });
        shared.carry_out(serving.todo.pop().unwrap());
        serving
            .tell(Event::Connected {
                connection: own,
                client: ClientId(7),
                process: ClientProcess::default(),
            })
            .unwrap();
        assert!(serving.has_session);
    }
}
