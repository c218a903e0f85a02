//! A server: the shipped state machine, driven as `serve.rs` in `pio-store` drives it, a task a connection.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pio_protocol::handshake::Greeting;
use pio_protocol::server::{Action, ConnectionId, Event, Server, Task, Work};
use pio_protocol::{Answer, ClientId, ClientProcess, Failure, Limits, Reply, ReplyBody, Request};

use super::disk::{Disk, EIO, ENOSPC, Tag, places};
use super::kernel::{MS, SECOND, TaskId, Time};
use super::network::{Ended, Message, Side, Socket};
use super::world::World;

pub(crate) struct Node {
    pub index: u32,
    pub is_up: Cell<bool>,
    pub is_slow: Cell<bool>,
    /// When it began to be as fast as it is.
    pub fast_since: Cell<Time>,
    pub machine: RefCell<Server>,
    pub disk: RefCell<Disk>,
    tasks: RefCell<Vec<TaskId>>,
}

/// What came of work: the answer, and what it read.
struct Done {
    outcome: ReplyBody,
    data: Vec<Tag>,
}

impl Node {
    pub(crate) fn new(world: &World, index: u32) -> Node {
        Node {
            index,
            is_up: Cell::new(false),
            is_slow: Cell::new(false),
            fast_since: Cell::new(0),
            machine: RefCell::new(Server::new(index, world.settings.servers, world.settings.limits)),
            disk: RefCell::new(Disk::new(index)),
            tasks: RefCell::default(),
        }
    }

    pub(crate) fn set_slow(&self, world: &World, is_slow: bool) {
        // What was begun while it was slow takes its time.
        self.fast_since.set(world.kernel.now() + 10 * SECOND);
        self.is_slow.set(is_slow);
    }

    /// Starts the server's process.
    pub(crate) fn start(self: &Rc<Node>, world: &Rc<World>) {
        let settings = &world.settings;
        *self.machine.borrow_mut() = Server::new(self.index, settings.servers, settings.limits);
        self.is_up.set(true);
        let (node, inner) = (self.clone(), world.clone());
        self.tasks.borrow_mut().push(world.kernel.spawn(async move {
            let begun = inner.kernel.now();
            loop {
                inner.kernel.sleep(500 * MS).await;
                let now_ms = (inner.kernel.now() - begun) / MS;
                node.tell(&inner, Event::Time { now_ms });
            }
        }));
    }

    /// Ends the server's process, and with its machine what was not synced.
    pub(crate) fn stop(&self, world: &World, with_its_machine: bool) {
        self.is_up.set(false);
        self.tasks.take().into_iter().for_each(|task| world.kernel.kill(task));
        world.network.server_died(&world.kernel, self.index as usize, with_its_machine);
        let mut disk = self.disk.borrow_mut();
        if with_its_machine {
            world.kernel.with_random(|random| disk.crash(random));
            world.history.borrow_mut().may_have_lost(self.index, world.kernel.now());
        }
    }

    /// A client connects.
    pub(crate) fn accept(self: &Rc<Node>, world: &Rc<World>, client: usize, socket: Socket) {
        let (node, inner) = (self.clone(), world.clone());
        self.tasks.borrow_mut().push(world.kernel.spawn(async move {
            let closed = Serving { node: &node, world: &inner, socket, has_session: false }.serve().await;
            let connection = socket.id;
            node.tell(&inner, Event::Disconnected { connection, closed });
            // Processes of the server's machine are seen to die.
            if client.is_multiple_of(2) && !inner.is_alive(client) {
                node.tell(&inner, Event::Died { client: inner.client_id(client) });
            }
            inner.network.close(&inner.kernel, socket);
            inner.network.forget(connection);
        }));
    }

    /// Tells the machine what happened on no connection of the caller, and does all that follows.
    fn tell(&self, world: &World, event: Event) {
        let mut actions = Vec::new();
        self.machine.borrow_mut().handle(event, &mut actions);
        actions.into_iter().for_each(|action| self.carry_out(world, action));
    }

    /// Does what concerns the connection of another task: breaks it.
    fn carry_out(&self, world: &World, action: Action) {
        match action {
            Action::Work(Work { client, number, .. }) => {
                self.tell(world, Event::Abandoned { client, number });
            }
            Action::Welcome { connection }
            | Action::Busy { connection }
            | Action::Full { connection }
            | Action::Send { connection, .. }
            | Action::Disconnect { connection } => self.disconnect(world, connection),
        }
    }

    fn disconnect(&self, world: &World, id: ConnectionId) {
        world.network.close(&world.kernel, Socket { id, side: Side::Server });
    }

    /// Does work, in its time; a disk does several at a time.
    async fn perform(&self, world: &World, work: &Work, data: &[Tag]) -> Done {
        let kernel = &world.kernel;
        let pause = || async {
            let most = if self.is_slow.get() { 2 * SECOND } else { MS };
            kernel.sleep(kernel.random(10..most)).await;
        };
        let none = |outcome| Done { outcome, data: Vec::new() };
        let full = || none(Err(Failure::Os(ENOSPC)));
        match &work.task {
            Task::Write { file, strips, .. } => {
                // Said now: whatever is lost from now on may be this.
                let epoch = self.disk.borrow().epoch;
                let places = places(strips.clone());
                assert_eq!(places.len(), data.len());
                let half = kernel.random(0..data.len() as u64 + 1) as usize;
                for (now, (place, tag)) in places.into_iter().zip(data).enumerate() {
                    if now == 0 || now == half {
                        pause().await;
                    }
                    if !self.disk.borrow_mut().write(file.id, place, *tag) {
                        return full();
                    }
                }
                pause().await;
                none(Ok(Answer::Written { epoch }))
            }
            Task::Read { file, strips, .. } => {
                let places = places(strips.clone());
                let half = kernel.random(0..places.len() as u64 + 1) as usize;
                let mut data = Vec::new();
                for (now, place) in places.into_iter().enumerate() {
                    if now == 0 || now == half {
                        pause().await;
                    }
                    match self.disk.borrow().read(file.id, place) {
                        Some(tag) => data.push(tag),
                        None => break,
                    }
                }
                // Said now: whatever was lost was lost before, or is not missing here.
                let (bytes, epoch) = (data.len() as u64, self.disk.borrow().epoch);
                Done { outcome: Ok(Answer::Data { bytes, epoch }), data }
            }
            Task::Length { file } => {
                pause().await;
                let disk = self.disk.borrow();
                none(Ok(Answer::Length { bytes: disk.len(file.id) as u64, epoch: disk.epoch }))
            }
            Task::SetLength { file, bytes } => {
                let epoch = self.disk.borrow().epoch;
                pause().await;
                if !self.disk.borrow_mut().set_len(file.id, *bytes as usize) {
                    return full();
                }
                none(Ok(Answer::Written { epoch }))
            }
            Task::Sync { file } => {
                let mark = self.disk.borrow().begin_sync(file.id);
                pause().await;
                let mut disk = self.disk.borrow_mut();
                if mark.is_some() && std::mem::take(&mut disk.fails) {
                    kernel.with_random(|random| disk.fail_sync(file.id, random));
                    world.history.borrow_mut().may_have_lost(self.index, kernel.now());
                    return none(Err(Failure::Os(EIO)));
                }
                disk.end_sync(file.id, mark);
                none(Ok(Answer::Written { epoch: disk.epoch }))
            }
            Task::RemovePart { file } => {
                pause().await;
                self.disk.borrow_mut().remove_part(file.id);
                none(Ok(Answer::Done))
            }
            task => {
                pause().await;
                let outcome = self.disk.borrow_mut().transaction(work.client, work.number, task);
                pause().await;
                none(outcome)
            }
        }
    }
}

/// A connection that a task serves.
struct Serving<'a> {
    node: &'a Node,
    world: &'a World,
    socket: Socket,
    has_session: bool,
}

impl Serving<'_> {
    /// From the first to the last message; says whether the other side closed it.
    async fn serve(&mut self) -> bool {
        let World { kernel, network, .. } = self.world;
        let deadline = kernel.now() + 10 * SECOND;
        let Ok(hello) = network.receive(kernel, self.socket, Some(deadline)).await else { return true };
        let Ok(Greeting::Hello { client, .. }) = Greeting::decode(&hello.head) else {
            panic!("not the greeting that was expected")
        };
        let process = ClientProcess { pid: client.0 as u32, ..ClientProcess::default() };
        let connected = Event::Connected { connection: self.socket.id, client, process };
        let mut alive = self.tell(connected, &[], false).await;
        while alive.is_ok() && self.has_session {
            alive = match network.receive(kernel, self.socket, None).await {
                Ok(message) => {
                    let Message { head, data, cut } = message;
                    let request = Request::decode(&head).expect("a request");
                    let (connection, data_bytes) = (self.socket.id, data.len() as u64);
                    let received = Event::Received { connection, request, data_bytes };
                    self.tell(received, &data, cut).await
                }
                Err(ended) => Err(ended),
            };
        }
        alive.is_err() && kernel.chance(50)
    }

    /// Tells the machine what happened on this connection, and does all that follows.
    async fn tell(&mut self, event: Event, data: &[Tag], cut: bool) -> Result<(), Ended> {
        let World { kernel, network, .. } = self.world;
        let mut todo = self.decide(event);
        let mut read = Vec::new();
        let mut result = Ok(());
        while let Some(action) = todo.pop() {
            match action {
                Action::Work(work) => {
                    let Work { client, number, .. } = work;
                    let event = if cut && matches!(work.task, Task::Write { .. }) {
                        network.broken(kernel, self.socket).await;
                        result = Err(Ended::Broken);
                        Event::Abandoned { client, number }
                    } else {
                        let done = self.node.perform(self.world, &work, data).await;
                        read = done.data;
                        Event::Done { client, number, outcome: done.outcome }
                    };
                    todo.extend(self.decide(event));
                }
                Action::Send { connection, reply } if connection == self.socket.id => {
                    result = result.and(self.answer(&reply, &mut read));
                }
                Action::Welcome { connection } if connection == self.socket.id => {
                    self.has_session = true;
                    let Limits { data_bytes, head_bytes, .. } = self.world.settings.limits;
                    let mac = [0; 32];
                    result = result.and(self.say(&Greeting::Welcome { mac, data_bytes, head_bytes }));
                }
                Action::Busy { connection } if connection == self.socket.id => {
                    result = result.and(self.say(&Greeting::Busy));
                }
                Action::Disconnect { connection } if connection == self.socket.id => {
                    self.has_session = false;
                }
                of_another => self.node.carry_out(self.world, of_another),
            }
        }
        result
    }

    fn decide(&self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.node.machine.borrow_mut().handle(event, &mut actions);
        actions.reverse();
        actions
    }

    fn answer(&self, reply: &Reply, read: &mut Vec<Tag>) -> Result<(), Ended> {
        let mut head = Vec::new();
        reply.encode(&mut head);
        let data = match reply.body {
            Ok(Answer::Data { .. }) => std::mem::take(read),
            _ => Vec::new(),
        };
        self.send(head, data)
    }

    fn say(&self, greeting: &Greeting) -> Result<(), Ended> {
        self.send(greeting.encode(), Vec::new())
    }

    fn send(&self, head: Vec<u8>, data: Vec<Tag>) -> Result<(), Ended> {
        self.world.network.send(&self.world.kernel, self.socket, Message { head, data, cut: false })
    }
}

/// A client's number as the servers know it.
pub(crate) fn id_of(client: usize) -> ClientId {
    ClientId(client as u128 + 1)
}
