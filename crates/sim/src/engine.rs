//! The simulator: ranks that run their programs on shared hardware.
//!
//! A rank does one thing at a time, as the real library's driver does: it computes, or waits for its own request to
//! the file system, or waits for a message. Everything that takes time ends with an event; what follows it is in the
//! rank's [`Then`].
//!
//! In the trace, as in the real library's, a message event lasts from when its sending begins until the rank sends the
//! next one, makes a request to the file system, or leaves the operation. The last description thus includes waiting for
//! the others' descriptions, the last data waiting for the others' data. What a rank does after a request and before it
//! sends again belongs to no event.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use pio_machine::{Duration, Machine, Storage};
use pio_plan::{Context, Direction, Hints, Site, Strategy, ToldViews};
use pio_trace::HandleId;

mod after_work;
mod cold_reads;
mod connections;
mod devices;
mod dropped_pages;
mod first_writes;
mod hints_in_force;
mod locks;
mod meetings;
mod memories;
mod messages;
mod operations;
mod pages;
mod parallel;
mod past_cache;
mod processor_cache;
mod program;
mod requests;
mod scattered;
mod server_threads;
mod shared;
mod side_by_side;
mod sites;
mod store_requests;
mod trace;
mod views;
mod write_back;
mod write_locks;

use crate::error::SimError;
use crate::hardware::Hardware;
use crate::io_node::IoNodeError;
use crate::kernel::{self, Events, Simulation, Slab, Time};
use crate::network::{self, MessageId, Network};
use crate::output::Output;
use crate::parallel::{Message, ParallelFiles, Wake};
use crate::prediction::{Prediction, Tally};
use crate::process::{Delivery, Process, Then};
use crate::processors::{Processors, RankTurn};
use crate::server::{Part, Threads};
use crate::shared_files::SharedFiles;
use crate::terms::terms;
use crate::workload::{What, Workload};
use cold_reads::ColdReaders;
use connections::Connections;
use devices::Devices;
use hints_in_force::HintsInForce;
use memories::Memories;
use pages::Pages;
use processor_cache::ProcessorCaches;
use store_requests::StoreLinks;
use views::Round;
use write_back::DirtyPages;
use write_locks::WriteLock;

/// What can be chosen beside machine and strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Ranks on each node, filling node after node. By default one, or as many as it takes to have room for all.
    pub ranks_per_node: Option<u32>,
    /// How many times faster than where the workload was recorded the program computes between its calls.
    pub cpu_speed: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { ranks_per_node: None, cpu_speed: 1.0 }
    }
}

/// How far a simulation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Simulated time, seconds.
    pub simulated_seconds: f64,
    /// Calls begun, of all ranks.
    pub calls_begun: u64,
    /// Calls in all.
    pub calls: u64,
}

/// Predicts how long `workload` takes on `machine`. Writes what happens as a trace to `trace`, and tells `progress` now
/// and then.
///
/// # Errors
/// If the workload names what it does not have, or cannot end (ranks wait for each other), or the trace cannot be written.
pub fn simulate(
    machine: &Machine,
    workload: &Workload,
    strategy: Strategy,
    hints: &Hints,
    options: &Options,
    trace: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Prediction, SimError> {
    workload.check()?;
    let workload = &*workload.on(machine);
    let nodes = &machine.nodes;
    let mut run = |tick: Duration, trace: Option<&Path>| {
        let mut engine = Engine::new(machine, workload, strategy, hints, options, tick, &mut *progress)?;
        if let Some(path) = trace {
            engine.output = Some(Output::create(path, engine.tables())?);
        }
        engine.run()
    };
    let first = run(Duration::ZERO, trace)?;
    if (first.ranks_per_node <= nodes.cores && !machine.storage.shares_cores())
        || nodes.slice >= nodes.quantum
    {
        return Ok(first);
    }
    // When the ticks come that end the turns of ranks, nobody knows.
    let mut runs = vec![(first, Duration::ZERO)];
    for part in 1..TICKS {
        let tick = Duration::from_picoseconds(nodes.quantum.picoseconds() * part / TICKS);
        runs.push((run(tick, None)?, tick));
    }
    runs.sort_by_key(|(run, _)| run.io_time_mean);
    let (middle, tick) = runs.swap_remove(runs.len() / 2);
    match trace {
        Some(trace) if tick != Duration::ZERO => run(tick, Some(trace)),
        _ => Ok(middle),
    }
}

/// Runs of a simulation in which ranks share processors, with ticks at other times: the one in the middle counts.
const TICKS: u64 = 5;

/// Takes the machine of a rank's read, write or exchange of views, and gives the one that is to be driven in its place.
pub type Replace<'a> =
    dyn Fn(u32, Box<dyn pio_plan::StateMachine + Send>) -> Box<dyn pio_plan::StateMachine + Send> + 'a;

/// As [`simulate`], without a trace; each read, write and exchange of views of a rank is carried out by what `replace` makes
/// of the strategy's machine: one that listens to it, say.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with(
    machine: &Machine,
    workload: &Workload,
    strategy: Strategy,
    hints: &Hints,
    options: &Options,
    replace: &Replace,
) -> Result<Prediction, SimError> {
    workload.check()?;
    let workload = &*workload.on(machine);
    let mut ignore = |_| {};
    let mut engine = Engine::new(machine, workload, strategy, hints, options, Duration::ZERO, &mut ignore)?;
    engine.replace = Some(replace);
    engine.run()
}

/// Of what routers choose by chance: a trace is predicted alike every time.
const SEED: u64 = 1;

/// Calls `progress` after so many turns of the network and of what happens outside it.
const PROGRESS_TURNS: u64 = 1 << 16;

/// Of I/O servers on the ranks' cores: their memory alone is some hundred megabytes.
const MOST_THREADS: u64 = 1 << 22;

/// The engine's models. The network goes first: it must not be behind when something is sent.
const NETWORK: usize = 0;
const MODELS: usize = 2;

struct Engine<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    strategy: Strategy,
    hints: &'a Hints,
    hints_in_force: HintsInForce,
    cpu_speed: f64,
    ranks_per_node: u32,
    /// What a request takes a server's thread longer or shorter for how many ranks a node has.
    by_ranks: server_threads::ByRanks,
    now: Time,
    /// When the last of the ranks that have ended did. What goes on behind their backs goes on after that.
    ended: Time,
    events: Events<Happening>,
    hardware: Hardware,
    /// Of servers that work on the ranks' cores, if these do.
    threads: Option<Threads>,
    /// The file system that the nodes share, if files are in one.
    shared: Option<SharedFiles>,
    /// The same, if its parts are known.
    parallel: Option<ParallelFiles>,
    processors: Processors,
    network: Box<dyn Network>,
    /// What the network carries.
    cargo: Slab<Cargo>,
    /// What has arrived, and what servers have done; kept only for their room.
    delivered: Vec<network::Delivery>,
    served: Vec<Result<Part, IoNodeError>>,
    /// Why the simulation cannot go on.
    failure: Option<SimError>,
    processes: Vec<Process>,
    /// How many of them, from the first on, have finished.
    finished: usize,
    /// Whether failed disks are rebuilt beside what ranks do.
    rebuilds: bool,
    /// Of each group of ranks.
    sites: Vec<Site>,
    /// For each group: what its latest operations went by, the last one first.
    contexts: Vec<VecDeque<(operations::ContextOf, Arc<Context>)>>,
    files: Vec<FileState>,
    /// Of each node whose ranks have written.
    dirty: BTreeMap<u32, DirtyPages>,
    cold_readers: ColdReaders,
    devices: Devices,
    /// Files that no rank writes, but some wait for.
    files_wanted: Vec<u32>,
    /// Of each node whose processes have accessed files, where that counts.
    processor_caches: BTreeMap<u32, ProcessorCaches>,
    /// Messages under way or in a mailbox.
    deliveries: Slab<Option<Delivery>>,
    /// For each collective open: the views that its ranks set.
    views: BTreeMap<u64, Vec<Round>>,
    /// For each rank and collective open: how many views it has set.
    views_set: BTreeMap<(u32, u64), usize>,
    /// For each rank and collective open: operations begun.
    operations: BTreeMap<(u32, u64), u64>,
    /// For each rank and collective open: what ranks told each other of the views in force.
    told: BTreeMap<(u32, u64), ToldViews>,
    /// What the automatic choice keeps in mind.
    memories: Memories,
    /// How many ranks wait for the others where all met unrecorded.
    at_rendezvous: u32,
    /// For each collective open: the ranks that wait in an open, close or view for the others.
    meetings: BTreeMap<u64, Vec<u32>>,
    /// The POSIX handle under each MPI-IO handle.
    physical: Vec<HandleId>,
    /// What ranks asked servers that speak the protocol of our own.
    links: StoreLinks,
    /// When those want a processor whom the one that has its turn has just woken on its own node: it sleeps after that.
    awake_at: Option<Time>,
    /// Whether they are connected, and through which memory.
    connections: Connections,
    replace: Option<&'a Replace<'a>>,
    tally: Tally,
    output: Option<Output>,
    /// How often the network, or what happens outside it, had its turn.
    turns: u64,
    progress: &'a mut dyn FnMut(Progress),
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// What a rank waited for is done.
    Resume(u32),
    /// A rank's turn on a processor is over.
    Turn(RankTurn),
    /// Who has woken another on its node goes to sleep, unless it goes on.
    Sleep(u32),
    /// What the network carried, or what need not leave its node, is there.
    Arrived(Cargo),
    /// Something happens in a server.
    Server(u32),
    /// The directory server is done with a rank's request.
    DirectoryDone(u32),
    /// A server has put the pieces that came in their places.
    Placed(Part),
    /// It has picked out the pieces that go.
    Picked(Part),
    /// A parallel file system wanted to be woken.
    Files(Wake),
}

/// What goes from node to node.
#[derive(Clone, Copy, Debug)]
enum Cargo {
    /// A message between ranks.
    Message(u32),
    /// A rank's request, on its way to the server: with the data, if it is a write.
    Request(Part),
    /// The server's answer: with the data, if it is a read.
    Answer(Part),
    /// A request to the directory server, which is busy with it for so long.
    Directory(u32, Duration),
    /// Its answer.
    DirectoryAnswer(u32),
    /// What the nodes of a parallel file system send each other.
    Files(Message),
}

struct FileState {
    /// How it is dealt out to I/O nodes, if there are such.
    dealt: Option<sites::Dealt>,
    /// Where only one rank at a time can write it.
    write_lock: WriteLock,
    locks: locks::Locks,
    /// Whether nobody has opened it yet that may have to make it.
    is_new: bool,
    /// Whether it is being written anew: what it had was cut off when it was opened.
    is_rewritten: bool,
    /// Whether it was there before, and memory does not have it.
    is_cold: bool,
    /// Where it ends, as far as the engine knows: a file system that the nodes share knows for itself.
    end: u64,
    /// Pages that were written or read.
    touched: Pages,
    /// Those that were written since it was last synced, and their bytes.
    dirty: Pages,
    dirty_bytes: u64,
    /// Of these, those in blocks that servers must sum.
    unsummed_bytes: u64,
    /// Until when what was synced is on its way to the device.
    synced_at: Time,
    /// Of each server that was to write since then, or to make its part: from when on it does.
    begun: BTreeMap<u32, Time>,
    /// Whether servers have parts of it.
    has_parts: bool,
}

impl FileState {
    /// How many bytes of an interval a call finds, or makes: a read gets none beyond the file's end.
    fn there(&mut self, direction: Direction, offset: u64, bytes: u64) -> u64 {
        match direction {
            Direction::Read => self.end.saturating_sub(offset).min(bytes),
            Direction::Write => {
                self.end = self.end.max(offset.saturating_add(bytes));
                bytes
            }
        }
    }
}

impl<'a> Engine<'a> {
    fn new(
        machine: &'a Machine,
        workload: &'a Workload,
        strategy: Strategy,
        hints: &'a Hints,
        options: &Options,
        tick: Duration,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Engine<'a>, SimError> {
        let wrong = |what, found: String, expected: String| {
            Err(SimError::Workload { workload: workload.name.clone(), what, found, expected })
        };
        let ranks = workload.ranks();
        let nodes = machine.nodes.count;
        let least = ranks.div_ceil(nodes);
        let per_node = options.ranks_per_node.unwrap_or(least);
        if per_node < least {
            let expected = format!("at least {least}, as {ranks} ranks share {nodes} nodes");
            return wrong("ranks_per_node", per_node.to_string(), expected);
        }
        if !(options.cpu_speed.is_finite() && options.cpu_speed > 0.0) {
            return wrong("cpu_speed", options.cpu_speed.to_string(), "a number above 0".to_owned());
        }
        let hardware = Hardware::new(machine)?;
        let process = |rank| Process { node: hardware.compute_node(rank / per_node), ..Process::default() };
        let processes: Vec<_> = (0..ranks).map(process).collect();
        let terms = terms(machine).into();
        let site = |members: &Vec<u32>| sites::of_group(machine, &terms, &processes, members);
        let sites: Vec<Site> = workload.groups.iter().map(site).collect();
        let (servers, have_blocks) =
            (hardware.servers.len() as u32, store_requests::speak_protocol(&machine.storage));
        if machine.storage.shares_cores() && u64::from(ranks) * u64::from(servers) > MOST_THREADS {
            let machine = machine.name.clone();
            return Err(SimError::Threads { machine, servers, ranks, most: MOST_THREADS });
        }
        let threads = machine.storage.shares_cores().then(|| Threads::new(ranks, servers, have_blocks));
        let of_threads = threads.iter().flat_map(Threads::servers);
        let of_threads = of_threads.map(|server| hardware.servers[server as usize].node);
        let on: Vec<u32> = processes.iter().map(|process| process.node).chain(of_threads).collect();
        let made = workload.made_files();
        let hints_in_force = HintsInForce::new(workload, strategy, hints);
        let file = |index: usize| FileState {
            dealt: sites::dealt(
                machine,
                strategy,
                hints_in_force.of_file(index as u32),
                &workload.files[index].path,
                index,
            ),
            write_lock: WriteLock::default(),
            locks: locks::Locks::default(),
            is_new: made[index],
            is_rewritten: false,
            is_cold: workload.cold_files.contains(&(index as u32)),
            end: end_at_first(made[index]),
            touched: Pages::default(),
            dirty: Pages::default(),
            dirty_bytes: 0,
            unsummed_bytes: 0,
            synced_at: Time::default(),
            begun: BTreeMap::new(),
            has_parts: !made[index],
        };
        let mut next_handle = workload.handles.len() as u32;
        let mut physical = |index: usize| match workload.handles[index].group {
            Some(_) => {
                next_handle += 1;
                HandleId(next_handle - 1)
            }
            None => HandleId(index as u32),
        };
        let unreplayed = (0..ranks as usize)
            .map(|rank| workload.unreplayed.get(rank).map_or(0, |time| time.picoseconds()));
        let views = views::of(workload, &|open| {
            let group = workload.handles[open.index()].group;
            let hints = hints_in_force.of_open(workload.handles[open.index()].collective);
            group.is_some_and(|group| sites[group as usize].exchanges_views(strategy, hints))
        });
        Ok(Engine {
            by_ranks: server_threads::ByRanks::of(machine, per_node.min(ranks)),
            machine,
            workload,
            strategy,
            hints,
            cpu_speed: options.cpu_speed,
            ranks_per_node: per_node.min(ranks),
            now: Time::default(),
            ended: Time::default(),
            events: Events::new(),
            contexts: workload.groups.iter().map(|_| VecDeque::new()).collect(),
            sites,
            files: (0..workload.files.len()).map(file).collect(),
            hints_in_force,
            dirty: BTreeMap::new(),
            cold_readers: ColdReaders::default(),
            devices: Devices::default(),
            files_wanted: Vec::new(),
            processor_caches: BTreeMap::new(),
            network: network::described(&machine.network, hardware.nodes(), &hardware.dedicated(), SEED)
                .map_err(|source| SimError::Network { machine: machine.name.clone(), source })?,
            cargo: Slab::new(),
            shared: shared_files(machine, &made),
            parallel: parallel::described(machine, &hardware, workload, &made),
            delivered: Vec::new(),
            served: Vec::new(),
            failure: None,
            hardware,
            threads,
            processors: Processors::new(machine, &on, tick),
            processes,
            finished: 0,
            rebuilds: machine
                .io_node
                .as_ref()
                .is_some_and(|node| node.disks.raid.as_ref().is_some_and(|raid| raid.rebuild.is_some())),
            deliveries: Slab::new(),
            views,
            views_set: BTreeMap::new(),
            operations: BTreeMap::new(),
            told: BTreeMap::new(),
            memories: Memories::default(),
            at_rendezvous: 0,
            meetings: BTreeMap::new(),
            physical: (0..workload.handles.len()).map(&mut physical).collect(),
            links: StoreLinks::default(),
            awake_at: None,
            connections: Connections::default(),
            replace: None,
            tally: Tally { io_time: unreplayed.collect(), ..Tally::default() },
            output: None,
            turns: 0,
            progress,
        })
    }

    fn run(mut self) -> Result<Prediction, SimError> {
        for rank in 0..self.workload.ranks() {
            self.next_step(rank);
        }
        kernel::run(&mut self)?;
        self.check_finished()?;
        if let Some(output) = self.output.take() {
            output.finish(
                &self.processes.iter().map(|process| process.since.nanoseconds()).collect::<Vec<_>>(),
            )?;
        }
        Ok(self.prediction())
    }

    /// Lets the network carry on to where something has arrived, and takes it.
    fn carry(&mut self, until: Time) {
        let mut delivered = std::mem::take(&mut self.delivered);
        self.network.advance(until, &mut delivered);
        for delivery in delivered.drain(..) {
            // One that overtook an earlier one of its nodes is handed over after it.
            self.now = self.now.max(delivery.last_byte);
            let cargo = self.cargo[delivery.message.0];
            self.cargo.remove(delivery.message.0);
            self.arrived(cargo);
        }
        self.delivered = delivered;
    }

    /// After something has happened: whether the simulation can go on, and who wants to know of it.
    fn look_around(&mut self) -> Result<(), SimError> {
        if self.now == Time::NEVER {
            return Err(SimError::TooLong { machine: self.machine.name.clone() });
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        while self.processes.get(self.finished).is_some_and(|process| process.finished) {
            self.finished += 1;
        }
        self.turns += 1;
        if self.turns.is_multiple_of(PROGRESS_TURNS) {
            let calls = self.workload.programs.iter().map(|program| program.len() as u64).sum();
            let calls_begun = self.processes.iter().map(|process| process.begun as u64).sum();
            let simulated_seconds = self.now.since(Time::default()).seconds();
            (self.progress)(Progress { simulated_seconds, calls_begun, calls });
        }
        self.settle_output()
    }

    fn prediction(self) -> Prediction {
        let ranks = self.workload.ranks();
        let io_times = &self.tally.io_time;
        let sum: u128 = io_times.iter().map(|time| u128::from(*time)).sum();
        let unreplayed: u128 =
            self.workload.unreplayed.iter().map(|time| u128::from(time.picoseconds())).sum();
        let moves = &self.workload.unreplayed_moves;
        Prediction {
            workload: self.workload.name.clone(),
            machine: self.machine.name.clone(),
            strategy: self.strategy,
            hints: self.hints.to_text(),
            ranks,
            ranks_per_node: self.ranks_per_node,
            makespan: self.ended.since(Time::default()),
            io_time_mean: Duration::from_picoseconds((sum / u128::from(ranks)) as u64),
            unreplayed_mean: Duration::from_picoseconds((unreplayed / u128::from(ranks)) as u64),
            io_time_max: Duration::from_picoseconds(io_times.iter().copied().max().unwrap_or(0)),
            moving: self.tally.moving().saturating_add(moves.time),
            bytes_read: self.tally.bytes_read.saturating_add(moves.bytes_read),
            bytes_written: self.tally.bytes_written.saturating_add(moves.bytes_written),
            operations: self.tally.totals.into_values().collect(),
            calls: self.tally.calls,
            sizes: self.tally.sizes,
            servers: match &self.parallel {
                Some(files) => files.done(),
                None => self.hardware.servers.iter().map(|server| server.done).collect(),
            },
            bytes_between_nodes: self.tally.bytes_between_nodes,
            simulated_events: self.turns,
        }
    }

    fn check_finished(&self) -> Result<(), SimError> {
        let waits = self.processes.iter().position(|process| !process.finished);
        let Some(rank) = waits else { return Ok(()) };
        let steps = self.workload.programs[rank].len();
        Err(SimError::Stuck { rank: rank as u32, step: self.processes[rank].begun, steps })
    }

    fn settle_output(&mut self) -> Result<(), SimError> {
        let Some(output) = &mut self.output else { return Ok(()) };
        if output.is_full() {
            let running = self.processes.iter().filter(|process| !process.finished);
            let oldest = running.map(|process| process.since).min().unwrap_or(self.now);
            output.settle(oldest.min(self.now).nanoseconds())?;
        }
        Ok(())
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Resume(rank) => self.resume(rank),
            Happening::Turn(turn) => self.end_turn(turn),
            Happening::Sleep(rank) => self.sleep(rank),
            Happening::Arrived(cargo) => self.arrived(cargo),
            Happening::DirectoryDone(rank) => {
                let node = self.processes[rank as usize].node;
                self.ship(self.directory_node(), node, 0, Cargo::DirectoryAnswer(rank));
            }
            Happening::Server(server) => self.carry_on(server),
            Happening::Placed(part) => self.take_in(part),
            Happening::Picked(part) => self.send_back(part),
            Happening::Files(wake) => {
                if let Some(files) = &mut self.parallel {
                    files.woken(self.now, wake);
                }
                self.carry_out();
            }
        }
    }

    /// Sends what has so many bytes from node to node. What stays in its node does not cross the network.
    fn ship(&mut self, from: u32, to: u32, bytes: u64, cargo: Cargo) {
        if from == to {
            let wake = self.time_to_wake(&cargo);
            let there = self.now + self.machine.messages.local_latency + wake;
            if self.threads.is_some()
                && wake == Duration::ZERO
                && matches!(cargo, Cargo::Request(_) | Cargo::Answer(_))
            {
                self.awake_at = Some(there);
            }
            return self.events.add(there, Happening::Arrived(cargo));
        }
        self.tally.bytes_between_nodes += bytes;
        let id = self.cargo.insert(cargo);
        self.network.send(self.now, MessageId(id), from, to, bytes);
    }

    /// Until a server's thread, or a rank of its node, goes on with what it is sent, if a core must be woken for it.
    fn time_to_wake(&self, cargo: &Cargo) -> Duration {
        let (Cargo::Request(part) | Cargo::Answer(part)) = cargo else { return Duration::ZERO };
        let (Some(io), Some(threads)) = (self.machine.storage.io_nodes(), &self.threads) else {
            return Duration::ZERO;
        };
        let node = self.processes[part.rank as usize].node;
        let has_cores_left =
            || threads.busy(node, self.processors.beside(part.rank)) < self.machine.nodes.cores;
        let time = match cargo {
            Cargo::Request(_) => threads.time_to_wake(part, io, self.now),
            _ => threads.time_to_wake_asker(part, io, self.now),
        };
        if time > Duration::ZERO && has_cores_left() { time } else { Duration::ZERO }
    }

    /// All of it is at its node.
    fn arrived(&mut self, cargo: Cargo) {
        if let Cargo::Request(part) = &cargo
            && let Some(later) = self.begins_later(part)
        {
            return self.events.add(later, Happening::Arrived(cargo));
        }
        match cargo {
            Cargo::Message(id) => {
                let Some(to) = self.deliveries[id].as_ref().map(|it| it.to) else { return };
                let process = &mut self.processes[to as usize];
                process.mailbox.push_back(id);
                if std::mem::take(&mut process.idle) {
                    self.message_came(to);
                }
            }
            Cargo::Request(part) if self.threads.is_some() => self.hand_to_thread(part),
            Cargo::Request(part) if part.pieces > 0 && part.direction == Direction::Write => {
                let placed = self.place(part);
                self.events.add(placed, Happening::Placed(part));
            }
            Cargo::Request(part) => self.take_in(part),
            Cargo::Answer(part) => self.answered(part),
            Cargo::Directory(rank, service) => {
                let separate = matches!(self.machine.storage, Storage::Striped { separate_closes: true, .. });
                let done = match self.step(rank) {
                    What::Close(_) if separate => self.hardware.separate_close(self.now, service),
                    _ => self.hardware.directory(self.now, service),
                };
                self.events.add(done, Happening::DirectoryDone(rank));
            }
            Cargo::DirectoryAnswer(rank) => self.resume(rank),
            Cargo::Files(message) => {
                if let Some(files) = &mut self.parallel {
                    files.arrived(self.now, message);
                }
                self.carry_out();
            }
        }
    }

    /// What a rank waited for is done.
    fn resume(&mut self, rank: u32) {
        let then = std::mem::take(&mut self.processes[rank as usize].then);
        match then {
            Then::Continue => self.advance(rank),
            Then::Depart(id) => {
                self.depart(id);
                self.advance(rank);
            }
            Then::Take(id) => {
                if let Some(delivery) = self.deliveries[id].take() {
                    self.deliveries.remove(id);
                    self.take(rank, delivery);
                }
            }
            Then::TakeFile => self.take_file_again(rank),
            Then::Issue => self.issue(rank),
            Then::SendParts => self.send_parts(rank),
            Then::SendPart => self.send_copied(rank),
            Then::TakeParts => self.go_on_taking(rank),
            Then::Turn => self.call(rank),
            Then::Granted => self.begin_part(rank),
            Then::Answered => self.go_on_asking(rank),
            Then::Moved => self.moved(rank),
            Then::Complete => self.complete(rank),
            Then::Directory => self.ask_directory(rank),
            Then::Flush => self.flush(rank),
            Then::Lock { shared } => self.lock(rank, shared),
            Then::Unlock => self.unlock(rank),
            Then::Think => self.think(rank),
            Then::Pause => self.pause(rank),
            Then::Begin => self.begin(rank),
            // To see that all have come, a rank needs a processor.
            Then::Leave => self.compute(rank, Duration::ZERO, Then::End),
            Then::End => self.end(rank, 0),
        }
    }

    /// Keeps a processor busy for a rank, and goes on with `then`.
    fn compute(&mut self, rank: u32, duration: Duration, then: Then) {
        let process = &mut self.processes[rank as usize];
        (process.then, process.spins) = (then, false);
        self.keep_busy(rank, duration);
    }

    /// Keeps a processor busy for a rank or a server's thread.
    fn keep_busy(&mut self, rank: u32, duration: Duration) {
        let events = &mut self.events;
        self.processors
            .compute(rank, self.now, duration, |turn| events.add(turn.at(), Happening::Turn(turn)));
    }

    fn end_turn(&mut self, turn: RankTurn) {
        let events = &mut self.events;
        let begin = |turn: RankTurn| events.add(turn.at(), Happening::Turn(turn));
        let Some(rank) = self.processors.end_turn(self.now, turn, begin) else { return };
        self.awake_at = None;
        let spins = match self.processes.get(rank as usize) {
            Some(_) => {
                self.resume(rank);
                self.processes[rank as usize].spins
            }
            None => {
                self.thread_is_through(rank);
                false
            }
        };
        if spins {
            let events = &mut self.events;
            let begin = |turn: RankTurn| events.add(turn.at(), Happening::Turn(turn));
            self.processors.spin(rank, self.now, begin);
        } else if let Some(awake_at) = self.awake_at.take() {
            self.events.add(awake_at, Happening::Sleep(rank));
        } else {
            self.sleep(rank);
        }
    }

    /// A rank, or a server's thread, gives its processor away, if it has nothing to do there.
    fn sleep(&mut self, rank: u32) {
        let events = &mut self.events;
        self.processors.release(rank, self.now, |turn| events.add(turn.at(), Happening::Turn(turn)));
    }
}

/// Where a file ends at the beginning. What the program makes is empty; how long others are is not known: nobody makes them longer.
fn end_at_first(is_made: bool) -> u64 {
    if is_made { 0 } else { u64::MAX }
}

/// The file system that the nodes of a machine share, if they do.
fn shared_files(machine: &Machine, made: &[bool]) -> Option<SharedFiles> {
    let Storage::Shared(costs) = &machine.storage else { return None };
    let sizes = made.iter().copied().map(end_at_first).collect();
    Some(SharedFiles::new(costs, machine.all_nodes(), sizes))
}

impl Simulation<MODELS> for Engine<'_> {
    type Error = SimError;

    fn next_times(&self) -> [Option<Time>; MODELS] {
        [self.network.next_time(), self.events.next_time()]
    }

    /// A rebuild of disks can go on for weeks after the last rank, and its end is not asked for. Whatever else goes on does not
    /// take long, and is counted.
    fn is_over(&self, _next: Time) -> bool {
        self.rebuilds && self.finished == self.processes.len()
    }

    fn proceed(&mut self, model: usize, until: Time) -> Result<(), SimError> {
        if model == NETWORK {
            self.carry(until);
        } else if let Some((now, happening)) = self.events.pop() {
            self.now = now;
            self.happen(happening);
            self.look_at_files();
        }
        self.look_around()
    }
}
