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
use pio_protocol::{Answer, ClientId, Limits, Process, ReplyBody, Request};

use crate::auth::{Role, Token};
use crate::disk::{Buffers, Disks, Past};
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
    let disks = Disks::open(&settings.folders, settings.index, settings.servers, None)?;
    Ok(start_on(disks, settings, listeners))
}

/// The same, on disks that were opened already: those of the settings.
pub fn start_on(
    (disks, past): (Disks, Past),
    settings: Settings,
    listeners: Vec<Box<dyn Listener>>,
) -> Running {
    let shared = Arc::new(Shared {
        machine: Mutex::new(Server::new(settings.index, settings.servers, settings.limits)),
        disks,
        past,
        settings,
        connections: Mutex::default(),
        away: Mutex::default(),
        next: AtomicU64::new(1),
        stopping: AtomicBool::new(false),
        budget: Budget { free: Mutex::new(BUDGET_BYTES), more: Condvar::new() },
    });
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
    past: Past,
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
    process: Process,
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
        lock(&shared.machine).handle(Event::Time { now_ms }, &mut Vec::new());
    }
}

/// A connection, from its first to its last message.
fn serve(
    shared: &Shared,
    id: ConnectionId,
    mut connection: Box<dyn Connection>,
    peer: &mut Option<Peer>,
) -> io::Result<()> {
    connection.set_timeouts(Some(GREETING_PATIENCE), Some(GREETING_PATIENCE))?;
    if !welcome(shared, id, &mut *connection, peer)? {
        return Ok(());
    }
    connection.set_timeouts(Some(PATIENCE), Some(PATIENCE))?;
    connection.set_limits(&shared.settings.limits);
    let (mut head, mut buffers) = (Vec::new(), Buffers::default());
    let mut written = Vec::new();
    loop {
        if !written.is_empty() && (written.len() >= MOST_TOGETHER || !connection.has_come()) {
            connection.send_heads(&written)?;
            written.clear();
        }
        let data_len = match connection.receive(&mut head) {
            // A program may compute for days between two requests.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
            result => result?,
        };
        let request = Request::decode(&head)?;
        let _taken = shared.budget.take(data_len as u64);
        let event = Event::Received { connection: id, request, data_bytes: data_len as u64 };
        if !carry_out(shared, id, &mut *connection, event, &mut buffers, &mut written)? {
            return connection.send_heads(&written);
        }
        if head.capacity() > 64 << 10 || lock(&shared.connections).len() > MOST_WITH_MEMORY {
            (head, buffers) = (Vec::new(), Buffers::default());
            connection.trim();
        }
    }
}

/// The greeting; false if there will be no session.
fn welcome(
    shared: &Shared,
    id: ConnectionId,
    connection: &mut dyn Connection,
    peer: &mut Option<Peer>,
) -> io::Result<bool> {
    let Settings { index, token, limits, .. } = &shared.settings;
    let Some((conversation, process)) = greet::receive(connection, token, *index)? else { return Ok(false) };
    let mut actions = Vec::new();
    let client = conversation.client;
    *peer = Some(Peer { client, in_sight: process::is_in_sight(&process), process: process.clone() });
    let event = Event::Connected { connection: id, client, process };
    lock(&shared.machine).handle(event, &mut actions);
    let mut welcome = false;
    for action in actions {
        let greeting = match action {
            Action::Disconnect { connection } => {
                shared.disconnect(connection);
                continue;
            }
            Action::Welcome { .. } => {
                welcome = true;
                Greeting::Welcome {
                    mac: token.proof(Role::Server, &conversation),
                    epoch: shared.disks.epoch(),
                    instance: shared.past.instance,
                    data_bytes: limits.data_bytes,
                    head_bytes: limits.head_bytes,
                }
            }
            Action::Busy { .. } => Greeting::Busy,
            _ => Greeting::Refused { reason: "too many clients".into() },
        };
        greet::say(connection, &greeting)?;
    }
    Ok(welcome)
}

/// Does what follows from an event of a connection; false if it is over. Acknowledgements of writes are put into `written`.
fn carry_out(
    shared: &Shared,
    id: ConnectionId,
    connection: &mut dyn Connection,
    event: Event,
    buffers: &mut Buffers,
    written: &mut Vec<Vec<u8>>,
) -> io::Result<bool> {
    let mut actions = Vec::new();
    lock(&shared.machine).handle(event, &mut actions);
    // The work of a request is done here and now: so requests of a connection are done in order.
    let (mut working, mut lent) = (None, false);
    if let Some(Action::Work(work)) = actions.first() {
        working = Some(shared.budget.take(work.reads()));
        let event = work_on(shared, work, connection, buffers, &mut lent)?;
        actions.clear();
        lock(&shared.machine).handle(event, &mut actions);
    }
    let mut going_on = true;
    for action in actions {
        match action {
            // The client may have a newer connection by now: then it asks again there.
            Action::Send { connection: to, reply } if to == id => {
                let mut head = Vec::with_capacity(32);
                reply.encode(&mut head);
                match reply.body {
                    Ok(Answer::Written { .. }) => written.push(head),
                    body => send(connection, &head, &body, buffers, lent)?,
                }
            }
            Action::Disconnect { connection } => {
                going_on &= connection != id;
                shared.disconnect(connection);
            }
            _ => {}
        }
    }
    drop(working);
    Ok(going_on)
}

/// Does work; what breaks the connection meanwhile does not leave the work undone for ever. What was read is in memory
/// that the connection lent, if it did.
fn work_on(
    shared: &Shared,
    work: &Work,
    connection: &mut dyn Connection,
    buffers: &mut Buffers,
    lent: &mut bool,
) -> io::Result<Event> {
    let Work { client, number, .. } = *work;
    let data = match work.task {
        Task::Write { .. } => connection.receive_summed(),
        Task::Read { bytes, .. } => {
            let room = connection.lend(bytes as usize);
            *lent = room.is_some();
            let outcome = shared.disks.perform(work, Summed::default(), room, buffers);
            return Ok(Event::Done { client, number, outcome });
        }
        _ => Ok(Summed::default()),
    };
    match data {
        Ok(data) => {
            let outcome = shared.disks.perform(work, data, None, buffers);
            connection.release();
            Ok(Event::Done { client, number, outcome })
        }
        Err(error) => {
            let event = Event::Abandoned { client, number };
            lock(&shared.machine).handle(event, &mut Vec::new());
            Err(error)
        }
    }
}

fn send(
    connection: &mut dyn Connection,
    head: &[u8],
    body: &ReplyBody,
    buffers: &Buffers,
    lent: bool,
) -> io::Result<()> {
    match *body {
        Ok(Answer::Data { bytes }) if lent => connection.send_lent(head, bytes as usize),
        Ok(Answer::Data { bytes }) => connection.send(head, &[IoSlice::new(&buffers.data[..bytes as usize])]),
        _ => connection.send(head, &[]),
    }
}

impl Shared {
    /// A connection ended: with this error, if it was not we who ended it.
    fn left(&self, connection: ConnectionId, peer: Option<Peer>, error: Option<io::Error>) {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let by_peer = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
        let watched = peer.filter(|peer| peer.in_sight);
        let closed = watched.is_none() && error.is_some_and(|error| by_peer.contains(&error.kind()));
        lock(&self.machine).handle(Event::Disconnected { connection, closed }, &mut Vec::new());
        lock(&self.away).extend(watched);
    }

    /// A process that is ending closes its connections a moment before it is over.
    fn look_for_the_dead(&self) {
        let mut away = std::mem::take(&mut *lock(&self.away));
        away.retain(|Peer { client, process, .. }| {
            let mut machine = lock(&self.machine);
            let waits = machine.is_away(*client);
            if waits && process::is_over(process) {
                machine.handle(Event::Died { client: *client }, &mut Vec::new());
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
