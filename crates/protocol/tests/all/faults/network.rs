//! Connections: messages take their time, in order; a connection may be cut in the middle of a message, and either end may
//! hear of it late.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::Poll;

use pio_protocol::server::ConnectionId;

use super::disk::Tag;
use super::kernel::{Kernel, MS, SECOND, TaskId, Time};

/// When an end hears of it that the other end's machine is gone, and nothing is sent: keepalive.
const KEEPALIVE: Time = 40 * SECOND;

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub head: Vec<u8>,
    pub data: Vec<Tag>,
    /// The connection was cut in the middle of the data.
    pub cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Socket {
    pub id: ConnectionId,
    pub side: Side,
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Broken,
    TimedOut,
}

#[derive(Default)]
struct End {
    inbox: VecDeque<(Time, Message)>,
    /// When it hears that the connection is no more.
    broken_at: Option<Time>,
    waiter: Option<TaskId>,
}

struct Wire {
    client: usize,
    server: usize,
    ends: [End; 2],
    /// Nothing that is sent arrives.
    dead: bool,
}

#[derive(Default)]
pub(crate) struct Network {
    wires: RefCell<BTreeMap<ConnectionId, Wire>>,
    next: Cell<u64>,
    /// Nothing passes between a client and a server until then.
    partitions: RefCell<BTreeMap<(usize, usize), Time>>,
}

impl Network {
    /// A new connection: the client's end and the server's.
    pub(crate) fn connect(&self, client: usize, server: usize) -> (Socket, Socket) {
        self.next.set(self.next.get() + 1);
        let id = ConnectionId(self.next.get());
        let wire = Wire { client, server, ends: Default::default(), dead: false };
        self.wires.borrow_mut().insert(id, wire);
        (Socket { id, side: Side::Client }, Socket { id, side: Side::Server })
    }

    /// Until when nothing passes between them.
    pub(crate) fn partitioned(&self, client: usize, server: usize) -> Time {
        self.partitions.borrow().get(&(client, server)).copied().unwrap_or(0)
    }

    /// Whether a connection works and did since `start`, as far as the network goes.
    pub(crate) fn is_sound(&self, socket: Socket, start: Time) -> bool {
        let wires = self.wires.borrow();
        wires.get(&socket.id).is_some_and(|wire| {
            let ends = wire.ends.iter().all(|end| end.broken_at.is_none());
            !wire.dead && ends && self.partitioned(wire.client, wire.server) <= start
        })
    }

    pub(crate) fn part(&self, client: usize, server: usize, until: Time) {
        self.partitions.borrow_mut().insert((client, server), until);
    }

    /// Puts a message on its way; an error if this end knows that the connection is no more.
    pub(crate) fn send(&self, kernel: &Kernel, socket: Socket, message: Message) -> Result<(), Ended> {
        let mut wires = self.wires.borrow_mut();
        let wire = wires.get_mut(&socket.id).ok_or(Ended::Broken)?;
        let now = kernel.now();
        if wire.ends[socket.side as usize].broken_at.is_some_and(|at| at <= now) {
            return Err(Ended::Broken);
        }
        if wire.dead {
            return Ok(());
        }
        let slow = if kernel.chance(3) { 50 * MS } else { MS };
        let parted = self.partitioned(wire.client, wire.server);
        let end = &mut wire.ends[1 - socket.side as usize];
        let last = end.inbox.back().map_or(0, |(at, _)| *at);
        let at = (now + kernel.random(20..slow)).max(parted).max(last);
        end.inbox.push_back((at, message));
        wake(kernel, end, at);
        Ok(())
    }

    /// The next message, or what there is instead of it.
    pub(crate) async fn receive(
        &self,
        kernel: &Kernel,
        socket: Socket,
        deadline: Option<Time>,
    ) -> Result<Message, Ended> {
        if let Some(deadline) = deadline {
            kernel.wake_at(deadline, kernel.running());
        }
        poll_fn(|_| {
            let mut wires = self.wires.borrow_mut();
            let Some(wire) = wires.get_mut(&socket.id) else { return Poll::Ready(Err(Ended::Broken)) };
            let end = &mut wire.ends[socket.side as usize];
            let now = kernel.now();
            end.waiter = None;
            if end.inbox.front().is_some_and(|(at, _)| *at <= now) {
                return Poll::Ready(end.inbox.pop_front().map(|(_, message)| message).ok_or(Ended::Broken));
            }
            if end.inbox.is_empty() && end.broken_at.is_some_and(|at| at <= now) {
                return Poll::Ready(Err(Ended::Broken));
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Poll::Ready(Err(Ended::TimedOut));
            }
            end.waiter = Some(kernel.running());
            let next = end.inbox.front().map(|(at, _)| *at).or(end.broken_at);
            if let Some(next) = next {
                kernel.wake_at(next, kernel.running());
            }
            Poll::Pending
        })
        .await
    }

    /// Waits until this end hears that the connection is no more, for a minute at most.
    pub(crate) async fn broken(&self, kernel: &Kernel, socket: Socket) {
        let end = kernel.now() + 60 * SECOND;
        while self.receive(kernel, socket, Some(end)).await.is_ok() {}
    }

    /// This end gives the connection up; the other hears of it behind what was sent.
    pub(crate) fn close(&self, kernel: &Kernel, socket: Socket) {
        let mut wires = self.wires.borrow_mut();
        let Some(wire) = wires.get_mut(&socket.id) else { return };
        let now = kernel.now();
        let own = &mut wire.ends[socket.side as usize];
        own.inbox.clear();
        break_end(kernel, own, now);
        if wire.dead {
            return;
        }
        let parted = self.partitioned(wire.client, wire.server);
        let at = (now + kernel.random(20..MS)).max(parted);
        break_end(kernel, &mut wire.ends[1 - socket.side as usize], at);
    }

    /// Cuts a connection: of what is on its way, some arrives, the last of it perhaps in part.
    pub(crate) fn cut(&self, kernel: &Kernel, id: ConnectionId) {
        let mut wires = self.wires.borrow_mut();
        let Some(wire) = wires.get_mut(&id) else { return };
        wire.dead = true;
        let silent = kernel.random(0..4);
        for (side, end) in (0..).zip(&mut wire.ends) {
            truncate(kernel, end);
            let last = end.inbox.back().map_or(0, |(at, _)| *at);
            // Half-open: one of them hears nothing.
            let late = if side == silent { KEEPALIVE } else { kernel.random(20..5 * MS) };
            break_end(kernel, end, (kernel.now() + late).max(last));
        }
    }

    /// A server is gone. Its clients hear of it at once if its machine still runs, else when they have sent something for
    /// nothing, or never.
    pub(crate) fn server_died(&self, kernel: &Kernel, server: usize, with_its_machine: bool) {
        for wire in self.wires.borrow_mut().values_mut().filter(|wire| wire.server == server) {
            wire.ends[Side::Server as usize].inbox.clear();
            wire.ends[Side::Server as usize].broken_at = Some(kernel.now());
            if wire.dead {
                continue;
            }
            wire.dead = true;
            let end = &mut wire.ends[Side::Client as usize];
            truncate(kernel, end);
            let late = match with_its_machine {
                true => [kernel.random(MS..3 * SECOND), KEEPALIVE][kernel.random(0..2) as usize],
                false => kernel.random(20..MS),
            };
            let last = end.inbox.back().map_or(0, |(at, _)| *at);
            break_end(kernel, end, (kernel.now() + late).max(last));
        }
    }

    /// A client is gone: its connections are closed, or if its machine went with it, nothing is heard of it any more.
    pub(crate) fn client_died(&self, kernel: &Kernel, client: usize, with_its_machine: bool) {
        for wire in self.wires.borrow_mut().values_mut().filter(|wire| wire.client == client) {
            wire.ends[Side::Client as usize].broken_at = Some(kernel.now());
            if wire.dead {
                continue;
            }
            let end = &mut wire.ends[Side::Server as usize];
            let late = if with_its_machine { KEEPALIVE } else { kernel.random(20..MS) };
            wire.dead = true;
            break_end(kernel, end, kernel.now() + late);
        }
    }

    /// The connections that work, as far as anybody knows.
    pub(crate) fn open(&self) -> Vec<ConnectionId> {
        self.wires.borrow().iter().filter(|(_, wire)| !wire.dead).map(|(id, _)| *id).collect()
    }

    /// Forgets a connection that nobody uses any more.
    pub(crate) fn forget(&self, id: ConnectionId) {
        let mut wires = self.wires.borrow_mut();
        let unused = |wire: &Wire| wire.ends[Side::Client as usize].broken_at.is_some();
        if wires.get(&id).is_some_and(unused) {
            wires.remove(&id);
        }
    }
}

fn break_end(kernel: &Kernel, end: &mut End, at: Time) {
    let at = end.broken_at.map_or(at, |before| before.min(at));
    end.broken_at = Some(at);
    wake(kernel, end, at);
}

fn wake(kernel: &Kernel, end: &End, at: Time) {
    if let Some(waiter) = end.waiter {
        kernel.wake_at(at, waiter);
    }
}

/// What was on its way arrives up to some point.
fn truncate(kernel: &Kernel, end: &mut End) {
    let keep = kernel.random(0..end.inbox.len() as u64 + 1) as usize;
    let torn = end.inbox.get(keep).cloned();
    end.inbox.truncate(keep);
    if let Some((at, message)) = torn
        && !message.data.is_empty()
        && kernel.chance(50)
    {
        end.inbox.push_back((at, Message { cut: true, ..message }));
    }
}
