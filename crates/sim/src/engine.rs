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

use pio_layout::{Striping, View};
use pio_machine::{Duration, Machine, Storage};
use pio_plan::{
    Access, Action, Context, Direction, Event as PlanEvent, Group, Hints, Io, Message, Piece, Rank, Strategy,
    ViewExchange,
};
use pio_trace::{Call, Event, Flags, HandleId, Layer, ProcessId, Tables, Target};

mod locks;
mod scattered;
mod views;

use views::Views;

use crate::error::SimError;
use crate::hardware::{Hardware, parts};
use crate::kernel::{Events, Time};
use crate::network::{self, MessageId, Network};
use crate::output::Output;
use crate::prediction::{Prediction, Tally};
use crate::process::{
    Content, Delivery, Key, Naming, Process, Request, Requests, Running, Scattered, Sending, Then, Transfer,
};
use crate::server::Part;
use crate::workload::{What, Workload};

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
    let mut engine = Engine::new(machine, workload, strategy, hints, options)?;
    if let Some(path) = trace {
        engine.output = Some(Output::create(path, engine.tables())?);
    }
    engine.run(progress)
}

/// Of what routers choose by chance: a trace is predicted alike every time.
const SEED: u64 = 1;

/// Calls `progress` after so many events.
const PROGRESS_EVENTS: u64 = 1 << 16;

struct Engine<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    strategy: Strategy,
    hints: &'a Hints,
    cpu_speed: f64,
    ranks_per_node: u32,
    now: Time,
    events: Events<Happening>,
    hardware: Hardware,
    network: Box<dyn Network>,
    /// What the network carries, and the places that are free.
    cargo: Vec<Option<Cargo>>,
    free_cargo: Vec<u32>,
    /// What has arrived, and what servers have done; kept only for their room.
    delivered: Vec<network::Delivery>,
    served: Vec<Part>,
    /// Why the simulation cannot go on.
    failure: Option<SimError>,
    processes: Vec<Process>,
    files: Vec<FileState>,
    /// Messages under way or in a mailbox, and the places that are free.
    deliveries: Vec<Option<Delivery>>,
    free_deliveries: Vec<u32>,
    /// For each collective open: the views that its ranks set.
    views: BTreeMap<u64, Views>,
    /// For each rank and collective open: how many views it has set.
    views_set: BTreeMap<(u32, u64), usize>,
    /// For each rank and collective open: operations begun.
    operations: BTreeMap<(u32, u64), u64>,
    /// The POSIX handle under each MPI-IO handle.
    physical: Vec<HandleId>,
    tally: Tally,
    output: Option<Output>,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// What a rank waited for is done.
    Resume(u32),
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
}

struct FileState {
    striping: Option<Striping>,
    /// The rank that writes and those that wait for it, where only one can write.
    writer: Option<u32>,
    waiting: VecDeque<u32>,
    locks: locks::Locks,
}

impl<'a> Engine<'a> {
    fn new(
        machine: &'a Machine,
        workload: &'a Workload,
        strategy: Strategy,
        hints: &'a Hints,
        options: &Options,
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
        let processes = (0..ranks).map(process).collect();
        let file = |index: usize| FileState {
            striping: striping_of(machine, index),
            writer: None,
            waiting: VecDeque::new(),
            locks: locks::Locks::default(),
        };
        let mut next_handle = workload.handles.len() as u32;
        let mut physical = |index: usize| match workload.handles[index].group {
            Some(_) => {
                next_handle += 1;
                HandleId(next_handle - 1)
            }
            None => HandleId(index as u32),
        };
        Ok(Engine {
            machine,
            workload,
            strategy,
            hints,
            cpu_speed: options.cpu_speed,
            ranks_per_node: per_node.min(ranks),
            now: Time::default(),
            events: Events::new(),
            processes,
            files: (0..workload.files.len()).map(file).collect(),
            network: network::described(&machine.network, hardware.nodes(), SEED)?,
            cargo: Vec::new(),
            free_cargo: Vec::new(),
            delivered: Vec::new(),
            served: Vec::new(),
            failure: None,
            hardware,
            deliveries: Vec::new(),
            free_deliveries: Vec::new(),
            views: views::of(workload, strategy),
            views_set: BTreeMap::new(),
            operations: BTreeMap::new(),
            physical: (0..workload.handles.len()).map(&mut physical).collect(),
            tally: Tally { io_time: vec![0; ranks as usize], ..Tally::default() },
            output: None,
        })
    }

    fn run(mut self, progress: &mut dyn FnMut(Progress)) -> Result<Prediction, SimError> {
        let calls = self.workload.programs.iter().map(|program| program.len() as u64).sum();
        for rank in 0..self.workload.ranks() {
            self.next_step(rank);
        }
        let mut handled = 0_u64;
        while let Some(time) = self.next() {
            if time == Time::NEVER {
                return Err(SimError::TooLong { machine: self.machine.name.clone() });
            }
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            handled += 1;
            if handled.is_multiple_of(PROGRESS_EVENTS) {
                let calls_begun = self.processes.iter().map(|process| process.begun as u64).sum();
                let simulated_seconds = time.since(Time::default()).seconds();
                progress(Progress { simulated_seconds, calls_begun, calls });
            }
            self.settle_output()?;
        }
        self.check_finished()?;
        if let Some(output) = self.output.take() {
            output.finish(
                &self.processes.iter().map(|process| process.since.nanoseconds()).collect::<Vec<_>>(),
            )?;
        }
        Ok(self.prediction(handled))
    }

    /// Lets what comes first happen: in the network, or here. When that was.
    fn next(&mut self) -> Option<Time> {
        let own = self.events.next_time();
        if self.network.next_time().is_some_and(|time| own.is_none_or(|own| time <= own)) {
            let mut delivered = std::mem::take(&mut self.delivered);
            self.network.advance(own.unwrap_or(Time::NEVER), &mut delivered);
            for delivery in delivered.drain(..) {
                self.now = delivery.last_byte;
                if let Some(cargo) = self.cargo[delivery.message.0 as usize].take() {
                    self.free_cargo.push(delivery.message.0);
                    self.arrived(cargo);
                }
            }
            self.delivered = delivered;
            return Some(self.now);
        }
        let (time, happening) = self.events.pop()?;
        self.now = time;
        self.happen(happening);
        Some(time)
    }

    fn prediction(self, simulated_events: u64) -> Prediction {
        let ranks = self.workload.ranks();
        let io_times = &self.tally.io_time;
        let sum: u128 = io_times.iter().map(|time| u128::from(*time)).sum();
        Prediction {
            workload: self.workload.name.clone(),
            machine: self.machine.name.clone(),
            strategy: self.strategy,
            hints: self.hints.to_text(),
            ranks,
            ranks_per_node: self.ranks_per_node,
            makespan: self.now.since(Time::default()),
            io_time_mean: Duration::from_picoseconds((sum / u128::from(ranks)) as u64),
            io_time_max: Duration::from_picoseconds(io_times.iter().copied().max().unwrap_or(0)),
            bytes_read: self.tally.bytes_read,
            bytes_written: self.tally.bytes_written,
            operations: self.tally.totals.into_values().collect(),
            sizes: self.tally.sizes,
            servers: self.hardware.servers.iter().map(|server| server.done).collect(),
            simulated_events,
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
            Happening::Arrived(cargo) => self.arrived(cargo),
            Happening::DirectoryDone(rank) => {
                let node = self.processes[rank as usize].node;
                self.ship(self.directory_node(), node, 0, Cargo::DirectoryAnswer(rank));
            }
            Happening::Server(server) => self.carry_on(server),
            Happening::Placed(part) => self.take_in(part),
            Happening::Picked(part) => self.send_back(part),
        }
    }

    /// Sends what has so many bytes from node to node. What stays in its node does not cross the network.
    fn ship(&mut self, from: u32, to: u32, bytes: u64, cargo: Cargo) {
        if from == to {
            let there = self.now + self.machine.messages.local_latency;
            return self.events.add(there, Happening::Arrived(cargo));
        }
        let id = match self.free_cargo.pop() {
            Some(id) => id,
            None => {
                self.cargo.push(None);
                self.cargo.len() as u32 - 1
            }
        };
        self.cargo[id as usize] = Some(cargo);
        self.network.send(self.now, MessageId(id), from, to, bytes);
    }

    /// All of it is at its node.
    fn arrived(&mut self, cargo: Cargo) {
        match cargo {
            Cargo::Message(id) => {
                let Some(to) = self.deliveries[id as usize].as_ref().map(|it| it.to) else { return };
                let process = &mut self.processes[to as usize];
                process.mailbox.push_back(id);
                if std::mem::take(&mut process.idle) {
                    self.advance(to);
                }
            }
            Cargo::Request(part) if part.pieces > 0 && part.direction == Direction::Write => {
                let placed = self.place(part);
                self.events.add(placed, Happening::Placed(part));
            }
            Cargo::Request(part) => self.take_in(part),
            Cargo::Answer(part) => self.answered(part),
            Cargo::Directory(rank, service) => {
                let done = self.hardware.directory(self.now, service);
                self.events.add(done, Happening::DirectoryDone(rank));
            }
            Cargo::DirectoryAnswer(rank) => self.resume(rank),
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
                if let Some(delivery) = self.deliveries[id as usize].take() {
                    self.free_deliveries.push(id);
                    self.take(rank, delivery);
                }
            }
            Then::Issue => self.issue(rank),
            Then::Complete => self.complete(rank),
            Then::Directory => self.ask_directory(rank),
            Then::Lock => self.lock(rank),
            Then::Unlock => self.unlock(rank),
            Then::Begin => self.begin(rank),
            Then::End => self.end(rank, 0),
        }
    }

    /// Keeps the rank's core busy, and goes on with `then`.
    fn compute(&mut self, rank: u32, duration: Duration, then: Then) {
        let node = self.processes[rank as usize].node;
        let done = self.hardware.compute(node, rank, self.now, duration);
        self.processes[rank as usize].then = then;
        self.events.add(done, Happening::Resume(rank));
    }

    // --- The program of a rank ---

    /// Goes on to the next call: thinks, then begins it.
    fn next_step(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let Some(step) = self.workload.programs[rank as usize].get(process.begun) else {
            process.finished = true;
            process.since = self.now;
            return;
        };
        process.begun += 1;
        process.since = self.now;
        process.then = Then::Begin;
        let think = if self.cpu_speed == 1.0 {
            step.think
        } else {
            Duration::from_seconds(step.think.seconds() / self.cpu_speed)
        };
        process.think_ns = think.picoseconds() / 1000;
        self.events.add(self.now + think, Happening::Resume(rank));
    }

    fn step(&self, rank: u32) -> &'a What {
        &self.workload.programs[rank as usize][self.processes[rank as usize].begun - 1].what
    }

    fn begin(&mut self, rank: u32) {
        let calls = &self.machine.calls;
        let now = self.now;
        let process = &mut self.processes[rank as usize];
        process.since = now;
        process.running = Running::Simple;
        match self.step(rank) {
            What::Open(_) => self.compute(rank, calls.open, Then::Directory),
            What::Close(_) => self.compute(rank, calls.close, Then::Directory),
            What::Seek(..) => self.compute(rank, calls.seek, Then::End),
            What::SetView(handle, view) => self.set_view(rank, *handle, *view),
            What::Access { handle, direction, view, positions, collective, .. } => {
                let view = &self.workload.views[view.index()];
                let access = Access { view: view.clone(), positions: positions.clone() };
                self.begin_access(rank, *handle, *direction, access, *collective);
            }
            What::Request { handle, call, direction, offset, bytes } => {
                let extents = View::contiguous(*offset).extents(0..*bytes);
                let requests = Requests::Extents(*direction, extents);
                self.transfer(rank, *handle, Some(*call), requests);
            }
            What::Broadcast { root, .. } => self.begin_broadcast(rank, *root),
        }
    }

    /// The call is over: note it, and go on.
    fn end(&mut self, rank: u32, moved: u64) {
        self.end_message(rank);
        let process = &mut self.processes[rank as usize];
        process.running = Running::Nothing;
        let (since, operation) = (process.since, process.operation + 1);
        let elapsed = self.now.since(since);
        let what = self.step(rank);
        let mut event = self.event(rank, Call::MpiBarrier, since);
        event.think_ns = process_think(&self.processes[rank as usize]);
        event.operation = operation;
        match what {
            What::Open(handle) | What::Close(handle) => {
                let opens = matches!(what, What::Open(_));
                let (mpi, posix) =
                    if opens { (Call::MpiFileOpen, Call::Open) } else { (Call::MpiFileClose, Call::Close) };
                self.tally.count(posix, 0, elapsed);
                self.tally.called(rank, posix.op(), 0, elapsed);
                if self.workload.handles[handle.index()].group.is_some() {
                    self.processes[rank as usize].operation = operation;
                    self.write(Event {
                        call: mpi,
                        handle: Some(*handle),
                        flags: Flags::COLLECTIVE,
                        ..event.clone()
                    });
                    event.flags = Flags::PHYSICAL;
                    event.think_ns = 0;
                } else {
                    event.operation = 0;
                }
                self.write(Event { call: posix, handle: Some(self.physical[handle.index()]), ..event });
            }
            What::SetView(handle, view) => {
                self.processes[rank as usize].operation = operation;
                let call = Call::MpiFileSetView;
                self.tally.count(call, 0, elapsed);
                self.tally.called(rank, call.op(), 0, elapsed);
                let target = Target::View { view: *view, position: 0 };
                let flags = Flags::COLLECTIVE;
                self.write(Event { call, handle: Some(*handle), target, flags, ..event });
            }
            What::Seek(handle, call) => {
                self.tally.count(*call, 0, elapsed);
                self.tally.called(rank, call.op(), 0, elapsed);
                if call.layer() == Layer::MpiIo {
                    self.processes[rank as usize].operation = operation;
                } else {
                    event.operation = 0;
                }
                self.write(Event { call: *call, handle: Some(*handle), ..event });
            }
            What::Access { handle, call, view, positions, collective, .. } => {
                self.processes[rank as usize].operation = operation;
                self.tally.called(rank, call.op(), moved, elapsed);
                let target = Target::View { view: *view, position: positions.start };
                let flags = if *collective { Flags::COLLECTIVE } else { Flags::NONE };
                let (size, result) = (positions.end - positions.start, moved as i64);
                self.write(Event {
                    call: *call,
                    handle: Some(*handle),
                    target,
                    flags,
                    size,
                    result,
                    ..event
                });
            }
            What::Request { call, .. } => {
                self.tally.called(rank, call.op(), moved, elapsed);
            }
            What::Broadcast { root, bytes } => {
                self.tally.count(Call::MpiBcast, *bytes, elapsed);
                let target = Target::Peer { rank: *root };
                event.operation = 0;
                let flags = Flags::COLLECTIVE;
                self.write(Event {
                    call: Call::MpiBcast,
                    target,
                    flags,
                    size: *bytes,
                    result: *bytes as i64,
                    ..event
                });
            }
        }
        self.next_step(rank);
    }

    /// Goes on with what a rank is in: the strategy's actions, then the messages that have come for it.
    fn advance(&mut self, rank: u32) {
        loop {
            let process = &mut self.processes[rank as usize];
            if let Running::Broadcast { key, has_data, children } = &mut process.running {
                if !*has_data {
                    return self.take_next(rank);
                }
                let (key, child) = (*key, children.pop_front());
                match child {
                    Some(to) => return self.pass_on(rank, to, key),
                    None => return self.end(rank, 0),
                }
            }
            if let Some(action) = process.actions.pop_front() {
                if self.perform(rank, action) {
                    continue;
                }
                return;
            }
            return self.take_next(rank);
        }
    }

    /// Takes in the first message of the operation that the rank is in, or waits for one.
    fn take_next(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let key = match &process.running {
            Running::Operation { key, .. } | Running::Broadcast { key, .. } => *key,
            Running::Nothing | Running::Simple => return,
        };
        let deliveries = &self.deliveries;
        let mine = |id: &u32| deliveries[*id as usize].as_ref().is_some_and(|delivery| delivery.key == key);
        let Some(place) = process.mailbox.iter().position(mine) else {
            process.idle = true;
            return;
        };
        let Some(id) = process.mailbox.remove(place) else { return };
        let cost = self.receive_cost(rank, id);
        self.compute(rank, cost, Then::Take(id));
    }

    fn take(&mut self, rank: u32, delivery: Delivery) {
        let process = &mut self.processes[rank as usize];
        match (&mut process.running, delivery.what) {
            (Running::Broadcast { has_data, .. }, _) => *has_data = true,
            (Running::Operation { machine, group, .. }, what) => {
                let members = &self.workload.groups[*group as usize];
                let from = Rank(members.binary_search(&delivery.from).unwrap_or(0) as u32);
                let event = match what {
                    Content::Message(message) => PlanEvent::Received { from, message },
                    Content::Data(piece, error) => PlanEvent::Data { from, piece, error },
                    Content::Broadcast => return,
                };
                let mut actions = Vec::new();
                machine.handle(event, &mut actions);
                process.actions.extend(actions);
            }
            (Running::Nothing | Running::Simple, _) => {}
        }
        self.advance(rank);
    }

    // --- Operations ---

    fn begin_access(
        &mut self,
        rank: u32,
        handle: HandleId,
        direction: Direction,
        access: Access,
        collective: bool,
    ) {
        let open = &self.workload.handles[handle.index()];
        let group = open.group.unwrap_or(0);
        let members = &self.workload.groups[group as usize];
        let number = members.binary_search(&rank).unwrap_or(0) as u32;
        let mut key = Key { of: open.collective, count: 0 };
        let context = self.context(rank, key.of);
        let machine: Box<dyn pio_plan::Machine + Send> = if collective {
            let count = self.operations.entry((rank, key.of)).or_insert(0);
            *count += 1;
            key.count = *count;
            let us = Group { rank: Rank(number), ranks: members.len() as u32 };
            self.strategy.collective(us, direction, access, &context)
        } else {
            self.strategy.alone(Rank(number), direction, access, &context)
        };
        self.run_machine(rank, machine, key, group, number);
    }

    /// What an operation of a rank on a collective open goes by.
    fn context(&self, rank: u32, collective: u64) -> Context {
        // Servers that understand views are what this strategy takes for granted; others make do with any.
        let servers = if self.strategy == Strategy::Ecio { self.hardware.servers.len() as u32 } else { 0 };
        let number = self.views_set.get(&(rank, collective)).copied().unwrap_or(0);
        let round = self.views.get(&collective).and_then(|views| views.round(number));
        Context {
            hints: self.hints.clone(),
            views: round.and_then(|round| round.each.clone()),
            servers,
            guarded: round.is_some_and(|round| round.has_gaps && round.ranks > 1),
            // Before the first view is set, every rank sees all bytes.
            contiguous: round.is_none_or(|round| !round.has_gaps),
            shared_memory: false,
            processors: None,
        }
    }

    /// Sets a rank's view, and tells the others if the strategy does that.
    fn set_view(&mut self, rank: u32, handle: HandleId, view: pio_trace::ViewId) {
        let open = &self.workload.handles[handle.index()];
        let Some(group) = open.group else { return self.compute(rank, Duration::ZERO, Then::End) };
        *self.views_set.entry((rank, open.collective)).or_insert(0) += 1;
        if !self.strategy.exchanges_views() {
            return self.compute(rank, Duration::ZERO, Then::End);
        }
        let members = &self.workload.groups[group as usize];
        let number = members.binary_search(&rank).unwrap_or(0) as u32;
        let count = self.operations.entry((rank, open.collective)).or_insert(0);
        *count += 1;
        let key = Key { of: open.collective, count: *count };
        let us = Group { rank: Rank(number), ranks: members.len() as u32 };
        let view = self.workload.views[view.index()].clone();
        self.run_machine(rank, Box::new(ViewExchange::new(us, view)), key, group, number);
    }

    fn run_machine(
        &mut self,
        rank: u32,
        mut machine: Box<dyn pio_plan::Machine + Send>,
        key: Key,
        group: u32,
        number: u32,
    ) {
        let mut actions = Vec::new();
        machine.handle(PlanEvent::Start, &mut actions);
        let process = &mut self.processes[rank as usize];
        process.actions.extend(actions);
        process.running = Running::Operation { machine, key, group, number };
        self.advance(rank);
    }

    /// Carries out an action. Whether the rank can go on at once.
    fn perform(&mut self, rank: u32, action: Action) -> bool {
        let Running::Operation { key, group, number, .. } = &self.processes[rank as usize].running else {
            return true;
        };
        let (key, group, number) = (*key, *group, *number);
        match action {
            Action::Send { to, message } => {
                let call = call_of(&message);
                let bytes = message.encode().len() as u64;
                let to = self.workload.groups[group as usize][to.index()];
                self.begin_message(rank, call, to, bytes);
                let delivery = Delivery { key, from: rank, to, bytes, what: Content::Message(message) };
                self.send(rank, delivery, Duration::ZERO);
            }
            Action::SendData { to, piece, error } => {
                let mut head = Vec::new();
                piece.encode(error, &mut head);
                let data = piece.positions.end - piece.positions.start;
                let bytes = data + head.len() as u64;
                // An aggregator gathers the pieces from its buffer; a client's data are in one piece.
                let pack =
                    if piece.client.0 == number { Duration::ZERO } else { self.copy_cost(rank, &piece) };
                let to = self.workload.groups[group as usize][to.index()];
                self.begin_message(rank, Call::StrategyData, to, data);
                let delivery = Delivery { key, from: rank, to, bytes, what: Content::Data(piece, error) };
                self.send(rank, delivery, pack);
            }
            Action::Copy { piece } => {
                let cost = self.copy_cost(rank, &piece);
                self.compute(rank, cost, Then::Continue);
            }
            Action::Io(io) => self.begin_io(rank, io),
            Action::Finish { result } => self.end(rank, result.unwrap_or(0)),
        }
        false
    }

    fn begin_io(&mut self, rank: u32, io: Io) {
        self.end_message(rank);
        if let Io::Lock { file } | Io::Unlock { file } = &io {
            self.processes[rank as usize].lock = Some(file.clone());
            let then = if matches!(io, Io::Lock { .. }) { Then::Lock } else { Then::Unlock };
            return self.ask_for_lock(rank, then);
        }
        let Running::Operation { machine, number, .. } = &self.processes[rank as usize].running else {
            return;
        };
        let scattered = |direction, positions, naming| {
            let access = machine.access_of(Rank(*number))?;
            // Without servers, each piece is a request of its own.
            if self.hardware.servers.is_empty() {
                return Some(Requests::Extents(direction, access.view.extents(positions)));
            }
            let access = Access { view: access.view.clone(), positions };
            Some(Requests::Scattered(direction, Some(Scattered { access, naming })))
        };
        let requests = match io {
            Io::List { direction, positions } => match scattered(direction, positions, Naming::List) {
                Some(requests) => requests,
                None => return,
            },
            Io::Ship { direction, positions } => match scattered(direction, positions, Naming::View) {
                Some(requests) => requests,
                None => return,
            },
            Io::Lock { .. } | Io::Unlock { .. } => return,
            Io::Pieces { direction, positions } => match machine.access_of(Rank(*number)) {
                Some(access) => Requests::Extents(direction, access.view.extents(positions)),
                None => return,
            },
            Io::Window { direction, file, .. } => {
                let bytes = file.end - file.start;
                Requests::Extents(direction, View::contiguous(file.start).extents(0..bytes))
            }
            Io::WriteParts { parts, .. } => {
                Requests::Extents(Direction::Write, parts.extents(0..parts.size()))
            }
            Io::FillAndWrite { file, holes, .. } => {
                let (first, last) = (holes.lower_bound() as u64, holes.upper_bound() as u64);
                Requests::FillAndWrite {
                    gaps: Some((first, last - first)),
                    whole: Some((file.start, file.end - file.start)),
                }
            }
        };
        let (What::Access { handle, .. } | What::Request { handle, .. }) = self.step(rank) else { return };
        self.transfer(rank, *handle, None, requests);
    }

    /// What it costs to move a piece between a collective buffer, where it is scattered, and one contiguous run.
    fn copy_cost(&self, rank: u32, piece: &Piece) -> Duration {
        let Running::Operation { machine, .. } = &self.processes[rank as usize].running else {
            return Duration::ZERO;
        };
        let Some(access) = machine.access_of(piece.client) else { return Duration::ZERO };
        let pieces: u64 = access.view.runs(piece.positions.clone()).map(|run| run.count).sum();
        self.copy_time(piece.positions.end - piece.positions.start, pieces)
    }

    fn copy_time(&self, bytes: u64, pieces: u64) -> Duration {
        time_to_copy(&self.machine.nodes.copy, bytes, pieces)
    }

    // --- Messages ---

    fn begin_broadcast(&mut self, rank: u32, root: u32) {
        let count = self.operations.entry((rank, Key::WORLD)).or_insert(0);
        *count += 1;
        let key = Key { of: Key::WORLD, count: *count };
        let ranks = self.workload.ranks();
        let number = (rank + ranks - root % ranks) % ranks;
        // A binomial tree: number n passes on to n + 2^k for every 2^k above n.
        let first = if number == 0 { 0 } else { number.ilog2() + 1 };
        let children = (first..32).map(|power| number as u64 + (1_u64 << power));
        let children = children.take_while(|child| *child < u64::from(ranks));
        let children: VecDeque<u32> =
            children.map(|child| ((child + u64::from(root % ranks)) % u64::from(ranks)) as u32).collect();
        self.processes[rank as usize].running = Running::Broadcast { key, has_data: number == 0, children };
        self.advance(rank);
    }

    fn pass_on(&mut self, rank: u32, to: u32, key: Key) {
        let What::Broadcast { bytes, .. } = self.step(rank) else { return };
        let delivery = Delivery { key, from: rank, to, bytes: *bytes, what: Content::Broadcast };
        self.send(rank, delivery, Duration::ZERO);
    }

    /// Keeps the sender's core busy, `extra` included; then the message goes off.
    fn send(&mut self, rank: u32, delivery: Delivery, extra: Duration) {
        let cost = self.machine.messages.send.picoseconds().saturating_add(extra.picoseconds());
        let id = match self.free_deliveries.pop() {
            Some(id) => {
                self.deliveries[id as usize] = Some(delivery);
                id
            }
            None => {
                self.deliveries.push(Some(delivery));
                self.deliveries.len() as u32 - 1
            }
        };
        self.compute(rank, Duration::from_picoseconds(cost), Then::Depart(id));
    }

    fn depart(&mut self, id: u32) {
        let Some(delivery) = &self.deliveries[id as usize] else { return };
        let (from, to) =
            (self.processes[delivery.from as usize].node, self.processes[delivery.to as usize].node);
        self.ship(from, to, delivery.bytes, Cargo::Message(id));
    }

    /// The receiver's processor time: the message's own, unpacking data into a collective buffer, and, within a node,
    /// the copy out of the sender's memory.
    fn receive_cost(&self, rank: u32, id: u32) -> Duration {
        let Some(delivery) = &self.deliveries[id as usize] else { return Duration::ZERO };
        let process = &self.processes[rank as usize];
        let unpacked = match (&delivery.what, &process.running) {
            (Content::Data(piece, _), Running::Operation { number, .. }) if piece.client.0 != *number => {
                Some(self.copy_cost(rank, piece))
            }
            _ => None,
        };
        let is_local = self.processes[delivery.from as usize].node == process.node;
        let copy = match unpacked {
            Some(cost) => cost,
            None if is_local => self.copy_time(delivery.bytes, 1),
            None => Duration::ZERO,
        };
        let sum = self.machine.messages.receive.picoseconds().saturating_add(copy.picoseconds());
        Duration::from_picoseconds(sum)
    }

    /// A message event begins, and the one before it ends.
    fn begin_message(&mut self, rank: u32, call: Call, peer: u32, bytes: u64) {
        self.end_message(rank);
        self.processes[rank as usize].sending = Some(Sending { call, peer, bytes, start: self.now });
    }

    fn end_message(&mut self, rank: u32) {
        let Some(sending) = self.processes[rank as usize].sending.take() else { return };
        self.tally.count(sending.call, sending.bytes, self.now.since(sending.start));
        let operation = self.processes[rank as usize].operation + 1;
        self.write(Event {
            target: Target::Peer { rank: sending.peer },
            size: sending.bytes,
            result: sending.bytes as i64,
            flags: Flags::PHYSICAL,
            operation,
            ..self.event(rank, sending.call, sending.start)
        });
    }

    // --- Requests ---

    fn transfer(&mut self, rank: u32, handle: HandleId, call: Option<Call>, requests: Requests) {
        let file = self.workload.handles[handle.index()].file;
        let physical = call.is_none();
        self.processes[rank as usize].transfer = Some(Transfer {
            requests,
            current: None,
            scattered: None,
            parts_left: 0,
            moved: 0,
            file,
            handle: self.physical[handle.index()],
            call,
            physical,
        });
        self.next_request(rank);
    }

    fn next_request(&mut self, rank: u32) {
        let now = self.now;
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let Some((direction, offset, bytes, scattered)) = transfer.requests.next() else {
            return self.transferred(rank);
        };
        transfer.scattered = scattered;
        transfer.current = Some(Request { direction, offset, bytes, start: now });
        let file = transfer.file;
        let exclusive = matches!(self.machine.storage, Storage::Local { exclusive_writes: true });
        if exclusive && direction == Direction::Write {
            let file = &mut self.files[file as usize];
            if file.writer.is_some() {
                file.waiting.push_back(rank);
                return;
            }
            file.writer = Some(rank);
        }
        self.call(rank, direction, bytes);
    }

    /// The processor time of a call: before the data of a write go off. That of a read follows when they are here.
    fn call(&mut self, rank: u32, direction: Direction, bytes: u64) {
        let (access, moves) = match direction {
            Direction::Read => {
                (&self.machine.calls.read, matches!(self.machine.storage, Storage::Local { .. }))
            }
            Direction::Write => (&self.machine.calls.write, true),
        };
        let moving = if moves { access.bandwidth.time_of(bytes) } else { Duration::ZERO };
        let cost = [access.call, moving, self.analysis_time(rank, direction)]
            .iter()
            .fold(0_u64, |sum, part| sum.saturating_add(part.picoseconds()));
        self.compute(rank, Duration::from_picoseconds(cost), Then::Issue);
    }

    /// The request goes off to the servers, if there are any.
    fn issue(&mut self, rank: u32) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let Some(request) = transfer.current else { return };
        let file = transfer.file;
        let Some(striping) = self.files[file as usize].striping else {
            self.release_file(rank);
            return self.complete(rank);
        };
        if let Some(scattered) = transfer.scattered.take() {
            return self.issue_scattered(rank, file, request.direction, striping, &scattered);
        }
        let node = self.processes[rank as usize].node;
        let mut count = 0;
        for (server, bytes, first_strip) in parts(&striping, request.offset, request.bytes) {
            let offset = striping.len_of_server(server, request.offset);
            let part = Part {
                rank,
                file,
                server,
                direction: request.direction,
                offset,
                bytes,
                first_strip,
                pieces: 0,
            };
            let server_node = self.hardware.servers[server as usize].node;
            let message = self.control_bytes();
            let sent = if request.direction == Direction::Write { message + bytes } else { message };
            self.ship(node, server_node, sent, Cargo::Request(part));
            count += 1;
        }
        match &mut self.processes[rank as usize].transfer {
            Some(transfer) if count > 0 => transfer.parts_left = count,
            _ => self.complete(rank),
        }
    }

    /// A server takes in a part.
    fn take_in(&mut self, part: Part) {
        let now = self.now;
        let arrived = self.hardware.servers[part.server as usize].arrive(now, part);
        self.note_failure(arrived);
        self.arm(part.server);
    }

    /// Sees to it that a server is looked after when something happens in it.
    fn arm(&mut self, number: u32) {
        let server = &mut self.hardware.servers[number as usize];
        if let Some(time) = server.next_time().filter(|time| server.armed.is_none_or(|armed| *time < armed)) {
            server.armed = Some(time);
            self.events.add(time, Happening::Server(number));
        }
    }

    /// A server carries on to this moment.
    fn carry_on(&mut self, number: u32) {
        let server = &mut self.hardware.servers[number as usize];
        if server.armed != Some(self.now) {
            return;
        }
        server.armed = None;
        let mut done = std::mem::take(&mut self.served);
        let advanced = server.advance(self.now, &mut done);
        self.note_failure(advanced);
        for part in done.drain(..) {
            self.served(part);
        }
        self.served = done;
        self.arm(number);
    }

    /// What a server refuses ends the simulation.
    fn note_failure(&mut self, outcome: Result<(), SimError>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
    }

    /// A server has its part of a request done: the bytes that were read, or the word that all is written, go back.
    fn served(&mut self, part: Part) {
        if part.pieces > 0 && part.direction == Direction::Read {
            let picked = self.place(part);
            return self.events.add(picked, Happening::Picked(part));
        }
        self.send_back(part);
    }

    fn send_back(&mut self, part: Part) {
        let from = self.hardware.servers[part.server as usize].node;
        let to = self.processes[part.rank as usize].node;
        let bytes = if part.direction == Direction::Read { part.bytes } else { self.control_bytes() };
        self.ship(from, to, bytes, Cargo::Answer(part));
    }

    fn answered(&mut self, part: Part) {
        let Some(transfer) = &mut self.processes[part.rank as usize].transfer else { return };
        transfer.parts_left -= 1;
        if transfer.parts_left > 0 {
            return;
        }
        let bytes = transfer.current.map_or(0, |request| request.bytes);
        match part.direction {
            Direction::Read => {
                let moving = self.machine.calls.read.bandwidth.time_of(bytes);
                self.compute(part.rank, moving, Then::Complete);
            }
            Direction::Write => self.complete(part.rank),
        }
    }

    /// The next rank may write the file.
    fn release_file(&mut self, rank: u32) {
        let Some(transfer) = &self.processes[rank as usize].transfer else { return };
        let file = &mut self.files[transfer.file as usize];
        if file.writer != Some(rank) {
            return;
        }
        file.writer = file.waiting.pop_front();
        let Some(next) = file.writer else { return };
        let request = self.processes[next as usize].transfer.as_ref().and_then(|transfer| transfer.current);
        if let Some(request) = request {
            self.call(next, request.direction, request.bytes);
        }
    }

    /// A request is done: note it, and make the next one.
    fn complete(&mut self, rank: u32) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let Some(request) = transfer.current.take() else { return };
        let fills = matches!(transfer.requests, Requests::FillAndWrite { .. });
        if !(fills && request.direction == Direction::Read) {
            transfer.moved += request.bytes;
        }
        let call = transfer.call.unwrap_or(match request.direction {
            Direction::Read => Call::Pread,
            Direction::Write => Call::Pwrite,
        });
        let (handle, physical) = (transfer.handle, transfer.physical);
        self.tally.count(call, request.bytes, self.now.since(request.start));
        let mut event = Event {
            handle: Some(handle),
            target: Target::Extent { offset: request.offset },
            size: request.bytes,
            result: request.bytes as i64,
            ..self.event(rank, call, request.start)
        };
        if physical {
            event.flags = Flags::PHYSICAL;
            event.operation = self.processes[rank as usize].operation + 1;
        } else {
            event.think_ns = self.processes[rank as usize].think_ns;
        }
        self.write(event);
        self.next_request(rank);
    }

    /// All requests are done: tell who asked for them.
    fn transferred(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let Some(transfer) = process.transfer.take() else { return };
        if !matches!(process.running, Running::Operation { .. }) {
            return self.end(rank, transfer.moved);
        }
        self.io_done(rank, transfer.moved);
    }

    /// Tells a rank's strategy that what it asked for is done.
    fn io_done(&mut self, rank: u32, moved: u64) {
        let process = &mut self.processes[rank as usize];
        let Running::Operation { machine, .. } = &mut process.running else { return };
        let mut actions = Vec::new();
        machine.handle(PlanEvent::IoDone { result: Ok(moved) }, &mut actions);
        process.actions.extend(actions);
        self.advance(rank);
    }

    /// Opens and closes: after the call's own time, that of the directory server, if there is one.
    fn ask_directory(&mut self, rank: u32) {
        let (Storage::Striped { open, close, .. } | Storage::IoNodes { open, close, .. }) =
            &self.machine.storage
        else {
            return self.end(rank, 0);
        };
        let service = if matches!(self.step(rank), What::Open(_)) { *open } else { *close };
        if service == Duration::ZERO {
            return self.end(rank, 0);
        }
        self.processes[rank as usize].then = Then::End;
        let node = self.processes[rank as usize].node;
        self.ship(node, self.directory_node(), 0, Cargo::Directory(rank, service));
    }

    /// Bytes of a message to or from a server that carries no data.
    fn control_bytes(&self) -> u64 {
        match &self.machine.storage {
            Storage::IoNodes { request, .. } => *request,
            Storage::Local { .. } | Storage::Striped { .. } => 0,
        }
    }

    /// The directory is on the first server's node.
    fn directory_node(&self) -> u32 {
        self.hardware.servers.first().map_or(0, |server| server.node)
    }

    // --- The trace ---

    /// An event that ends now, with nothing but its times.
    fn event(&self, rank: u32, call: Call, start: Time) -> Event {
        let start_ns = start.nanoseconds();
        Event {
            call,
            process: ProcessId(rank),
            thread: 0,
            handle: None,
            target: Target::None,
            memory: None,
            size: 0,
            result: 0,
            start_ns,
            elapsed_ns: self.now.nanoseconds() - start_ns,
            think_ns: 0,
            flags: Flags::NONE,
            operation: 0,
        }
    }

    fn write(&mut self, event: Event) {
        if let Some(output) = &mut self.output {
            output.push(event);
        }
    }

    fn tables(&self) -> Tables {
        let workload = self.workload;
        let process = |rank: u32| pio_trace::Process {
            rank: Some(rank),
            pid: rank,
            host: format!("node{}", self.processes[rank as usize].node),
            command: workload.name.clone(),
            start_ns: 0,
            end_ns: None,
        };
        let handle = |open: &crate::workload::Open, physical: bool| {
            let group = open.group.filter(|_| !physical);
            pio_trace::Handle {
                file: pio_trace::FileId(open.file),
                process: ProcessId(open.rank),
                ranks: group.map_or(1, |group| workload.groups[group as usize].len() as u32),
                collective: if group.is_some() { open.collective } else { 0 },
            }
        };
        let mut handles: Vec<_> = workload.handles.iter().map(|open| handle(open, false)).collect();
        let below = workload.handles.iter().filter(|open| open.group.is_some());
        handles.extend(below.map(|open| handle(open, true)));
        let note = |key: &str, value: String| (key.to_owned(), value);
        Tables {
            job: format!("{} on {}", workload.name, self.machine.name),
            notes: vec![
                note("simulator", format!("pio-sim {}", env!("CARGO_PKG_VERSION"))),
                note("machine", self.machine.name.clone()),
                note("strategy", self.strategy.to_string()),
                note("hints", self.hints.to_text()),
            ],
            epoch_ns: 0,
            processes: (0..workload.ranks()).map(process).collect(),
            files: workload.files.clone(),
            handles,
            views: workload.views.clone(),
            datatypes: Vec::new(),
        }
    }
}

/// How long a processor takes to move pieces.
fn time_to_copy(copy: &pio_machine::Copy, bytes: u64, pieces: u64) -> Duration {
    let moving = copy.bandwidth.time_of(bytes).picoseconds();
    Duration::from_picoseconds(moving.saturating_add(copy.piece.picoseconds().saturating_mul(pieces)))
}

/// Think time of the call that a rank is in, nanoseconds.
fn process_think(process: &Process) -> u64 {
    process.think_ns
}

/// How a file is dealt out: file after file begins on the next server, so that the first strips of many small files are
/// not all on one.
fn striping_of(machine: &Machine, file: usize) -> Option<Striping> {
    let (io, strip) = (machine.storage.io_nodes()?, machine.storage.strip()?);
    let first = (file as u64 % u64::from(io.count)) as u32;
    Striping::new(strip, io.count, first).ok()
}

fn call_of(message: &Message) -> Call {
    match message {
        Message::Describe(_) | Message::Register(_) | Message::TakePart(_) => Call::StrategyDescribe,
        Message::Grant { .. } | Message::Release { .. } => Call::StrategyGrant,
        Message::Acknowledge { .. } => Call::StrategyAcknowledge,
    }
}
