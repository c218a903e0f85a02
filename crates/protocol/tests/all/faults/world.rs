//! Clients, servers, what goes wrong, and what is checked at the end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use pio_protocol::{ClientId, Limits};

use super::client::Client;
use super::disk::Tag;
use super::history::{FILE_BYTES, History, Reader};
use super::kernel::{Kernel, MS, SECOND, TaskId, Time};
use super::network::Network;
use super::server::{Node, id_of};

/// How long clients may take once nothing goes wrong any more.
const CALM: Time = 900 * SECOND;

/// What is the same all the time.
pub(crate) struct Settings {
    pub servers: u32,
    pub clients: usize,
    pub limits: Limits,
    pub timeout: Duration,
    pub chunk_bytes: u64,
    pub window: usize,
    pub steps: u64,
    /// Until when things go wrong, and how long it is between two of them on average.
    pub faults_until: Time,
    pub fault_every: Time,
    pub verbose: bool,
}

pub(crate) struct World {
    pub kernel: Kernel,
    pub network: Network,
    pub history: RefCell<History>,
    pub settings: Settings,
    nodes: RefCell<Vec<Rc<Node>>>,
    clients: RefCell<Vec<Option<TaskId>>>,
    /// Clients that have ended their program, or died.
    ended: Cell<usize>,
}

/// What a run came to: to see that it was no empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub events: u64,
    pub ended: Time,
    pub reads: u64,
    pub faults: u64,
}

impl World {
    fn new(seed: u64, verbose: bool) -> Rc<World> {
        let kernel = Kernel::new(seed);
        let limits = Limits {
            views: kernel.random(1..4) as u32,
            data_bytes: kernel.random(8..120) as u32,
            unacknowledged: 16,
            ..Limits::DEFAULT
        };
        let settings = Settings {
            servers: kernel.random(1..5) as u32,
            clients: kernel.random(1..5) as usize,
            limits,
            timeout: Duration::from_millis(kernel.random(400..3000)),
            chunk_bytes: kernel.random(4..100),
            window: kernel.random(1..6) as usize,
            steps: kernel.random(5..40),
            faults_until: kernel.random(1..8) * SECOND,
            fault_every: [3 * MS, 20 * MS, 200 * MS][kernel.random(0..3) as usize],
            verbose,
        };
        Rc::new(World {
            kernel,
            network: Network::default(),
            history: RefCell::default(),
            settings,
            nodes: RefCell::default(),
            clients: RefCell::default(),
            ended: Cell::new(0),
        })
    }

    /// A whole run.
    pub(crate) fn run(seed: u64, verbose: bool) -> Outcome {
        let world = World::new(seed, verbose);
        for index in 0..world.settings.servers {
            let node = Rc::new(Node::new(&world, index));
            node.start(&world);
            world.nodes.borrow_mut().push(node);
        }
        for index in 0..world.settings.clients {
            let inner = world.clone();
            let task = world.kernel.spawn(async move {
                Client::new(&inner, index).run().await;
                inner.ends(index);
            });
            world.clients.borrow_mut().push(Some(task));
        }
        let faults = Rc::new(Cell::new(0));
        let (inner, count) = (world.clone(), faults.clone());
        world.kernel.spawn(async move { inner.go_wrong(&count).await });
        let over = || world.ended.get() == world.settings.clients;
        if !world.kernel.run(world.settings.faults_until + CALM, over) {
            for node in world.nodes.borrow().iter() {
                world.log(|| format!("server {}: {:#?}", node.index, node.machine.borrow()));
            }
            let waiting = (0..world.settings.clients).filter(|client| world.is_alive(*client));
            panic!("clients wait for ever: {:?}", waiting.collect::<Vec<_>>());
        }
        world.judge();
        let reads = world.history.borrow().reads;
        // Tasks hold the world, and the world them.
        world.nodes.borrow().iter().for_each(|node| node.stop(&world, false));
        world.kernel.clear();
        Outcome { events: world.kernel.events(), ended: world.kernel.now(), reads, faults: faults.get() }
    }

    pub(crate) fn node(&self, index: u32) -> Rc<Node> {
        self.nodes.borrow()[index as usize].clone()
    }

    pub(crate) fn client_id(&self, client: usize) -> ClientId {
        id_of(client)
    }

    pub(crate) fn is_alive(&self, client: usize) -> bool {
        self.clients.borrow()[client].is_some()
    }

    pub(crate) fn log(&self, what: impl FnOnce() -> String) {
        if self.settings.verbose {
            println!("{:>12} {}", self.kernel.now(), what());
        }
    }

    fn ends(&self, client: usize) -> Option<TaskId> {
        let task = self.clients.borrow_mut()[client].take();
        self.ended.set(self.ended.get() + usize::from(task.is_some()));
        self.log(|| format!("client {client} is over"));
        task
    }

    /// What was acknowledged after a sync is on the disks, whatever of the rest a crash takes.
    fn judge(&self) {
        for crash in [false, true] {
            if crash {
                self.nodes.borrow().iter().for_each(|node| node.stop(self, true));
            }
            let living = self.history.borrow().living();
            for (file, placement) in living {
                let striping = placement.striping();
                let byte_on_disk = |byte: u64| -> (u64, Tag) {
                    let node = self.node(placement.server_of_slot(striping.server_of(byte)));
                    let place = striping.server_offset(byte) as usize;
                    (byte, node.disk.borrow().read(file, place).unwrap_or(0))
                };
                let bytes: Vec<(u64, Tag)> = (0..FILE_BYTES).map(byte_on_disk).collect();
                let now = self.kernel.now();
                let reader = Reader { client: None, start: now, end: now };
                self.history.borrow_mut().read(reader, file, &bytes);
            }
        }
        self.history.borrow().judge(|file| self.node(file.home()).disk.borrow().pointer(file));
    }

    /// Until it is enough.
    async fn go_wrong(self: &Rc<World>, count: &Cell<u64>) {
        let kernel = &self.kernel;
        loop {
            kernel.sleep(kernel.random(1..2 * self.settings.fault_every)).await;
            if kernel.now() >= self.settings.faults_until {
                break;
            }
            count.set(count.get() + 1);
            let node = self.node(kernel.random(0..self.settings.servers.into()) as u32);
            let client = kernel.random(0..self.settings.clients as u64) as usize;
            match kernel.random(0..100) {
                0..45 => self.cut_a_connection(),
                45..60 => self.stop(&node, false),
                60..72 => self.stop(&node, true),
                72..78 => {
                    node.set_slow(self, !node.is_slow.get());
                    self.log(|| format!("server {} is slow: {}", node.index, node.is_slow.get()));
                }
                78..84 => {
                    let mut disk = node.disk.borrow_mut();
                    disk.is_full = !disk.is_full;
                    self.log(|| format!("server {} is full: {}", node.index, disk.is_full));
                }
                84..90 => {
                    node.disk.borrow_mut().fails = true;
                    self.log(|| format!("the next sync of server {} fails", node.index));
                }
                90..98 => {
                    let until = kernel.now() + kernel.random(MS..4 * SECOND);
                    self.network.part(client, node.index as usize, until);
                    self.log(|| format!("nothing passes between client {client} and server {}", node.index));
                }
                _ => self.kill(client),
            }
        }
        for node in self.nodes.borrow().iter() {
            if node.is_slow.get() {
                node.set_slow(self, false);
            }
            let mut disk = node.disk.borrow_mut();
            (disk.is_full, disk.fails) = (false, false);
        }
    }

    fn cut_a_connection(&self) {
        let open = self.network.open();
        if !open.is_empty() {
            let id = open[self.kernel.random(0..open.len() as u64) as usize];
            self.log(|| format!("{id:?} is cut"));
            self.network.cut(&self.kernel, id);
        }
    }

    /// Ends a server, which starts again.
    fn stop(self: &Rc<World>, node: &Rc<Node>, with_its_machine: bool) {
        if !node.is_up.get() {
            return;
        }
        self.log(|| format!("server {} stops, its machine too: {with_its_machine}", node.index));
        node.stop(self, with_its_machine);
        let (inner, node) = (self.clone(), node.clone());
        self.kernel.spawn(async move {
            inner.kernel.sleep(inner.kernel.random(MS..700 * MS)).await;
            inner.log(|| format!("server {} starts", node.index));
            node.start(&inner);
        });
    }

    fn kill(&self, client: usize) {
        if let Some(task) = self.ends(client) {
            self.kernel.kill(task);
            let with_its_machine = self.kernel.chance(40);
            self.network.client_died(&self.kernel, client, with_its_machine);
        }
    }
}
