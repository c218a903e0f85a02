//! OMPIO, to predict it: the MPI-IO of Open MPI (Chaarawi, Gabriel, Keller, Graham, Bosilca and Dongarra 2011), with the
//! component for collective I/O that it chooses by itself, *vulcan*, and files reached by the system's calls (*posix*), as
//! Open MPI's documentation and `ompi_info` describe them.
//!
//! A collective operation always goes through aggregators:
//!
//! 1. All ranks learn the interval that all access, how many bytes each aggregator gets, and every rank's list of pieces.
//! 2. Cycles of half of `bytes_per_agg` to write, all of it to read: bytes of data, not of the file, in the order of the
//!    file. The data of a cycle go directly between the ranks and the aggregators.
//! 3. An aggregator makes the requests of a cycle [as a rank alone does](requests), but that it also sieves to write.
//!
//! Left out: that the parts of several aggregators are counted from the file's first byte, reads of several aggregators
//! by groups of ranks, other components (on Lustre, or asked for), communicators with a Cartesian topology, cycles that overlap with
//! asynchronous requests, data that are in pieces in memory, atomic mode.

mod aggregators;
mod alone;
mod requests;

use std::collections::BTreeMap;
use std::ops::Range;

use pio_layout::{Layout, coverage};

use self::aggregators::Shown;
use crate::access::{Access, Direction, Group, IoError, Rank, Slot};
use crate::inside::{Accesses, Bounds, Gathering, Inside, Traffic, What};
use crate::machine::{Action, Event, Io, StateMachine};
use crate::message::Message;
use crate::rounds::{Tally, send_to_aggregators};
use crate::site::Context;

/// Bytes of an offset, a length or a sum; of a count.
const OFFSET: u64 = 8;
const NUMBER: u64 = 4;

/// `bytes_per_agg`, which the hint `cb_buffer_size` sets.
const BYTES_PER_AGGREGATOR: u64 = 32 << 20;

/// The stages of an operation.
const BEGINS: u64 = 0;
const ENDS: u64 = 1;
const TOTALS: u64 = 2;
const COUNTS: u64 = 3;
const PIECES: u64 = 4;
const FIRST_CYCLE: u64 = 5;

/// Bytes of the word by which a receiver takes a large message, or says that it has it.
const HANDSHAKE: u64 = 64;

/// One collective operation of one rank.
pub struct Ompio {
    group: Group,
    direction: Direction,
    access: Access,
    /// How many ranks shall aggregate, if that was said.
    cb_nodes: Option<u32>,
    bytes_per_aggregator: u64,
    /// Data bytes of a cycle.
    cycle_bytes: u64,
    gathering: Gathering,
    phase: Phase,
    /// Ascending.
    aggregators: Vec<Rank>,
    bounds: Option<Bounds>,
    /// Data bytes of each aggregator.
    totals: Vec<(Rank, u64)>,
    /// Of those with data in this aggregator's domain, itself included: which.
    clients: BTreeMap<Rank, Access>,
    /// Of each aggregator for which this rank has data, and of itself: its windows, one a cycle.
    windows: BTreeMap<Rank, Vec<Range<u64>>>,
    /// What is accessed of this aggregator's domain.
    served: Layout,
    cycles: u64,
    /// How many ranks said that buffers are free, by cycle.
    ready: BTreeMap<u64, u32>,
    /// Requests of this cycle still to be made, the last first.
    pending: Vec<Io>,
    /// Where in the file the request under way begins.
    requested: u64,
    /// Up to where the file was read in this cycle.
    read_end: u64,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    New,
    /// In the collective call that is the stage of this number.
    Gathering(u64),
    /// Waits until buffers are free for the data of this cycle.
    Waiting(u64),
    /// Waits for the data of this cycle.
    Receiving(u64),
    /// Makes the requests of this cycle.
    Requesting(u64),
    Finished,
}

/// What OMPIO does for a rank alone.
pub(crate) fn alone(rank: Rank, direction: Direction, access: Access) -> Box<dyn StateMachine + Send> {
    Box::new(alone::Alone::new(rank, direction, access))
}

impl Ompio {
    /// The machine of one rank for one operation. All ranks of the group must be given the same direction and context.
    pub fn new(group: Group, direction: Direction, access: Access, context: &Context) -> Ompio {
        let bytes = context.asked.cb_buffer_size.unwrap_or(BYTES_PER_AGGREGATOR).max(2);
        Ompio {
            group,
            direction,
            access,
            cb_nodes: context.asked.cb_nodes,
            bytes_per_aggregator: bytes,
            cycle_bytes: if direction == Direction::Write { bytes / 2 } else { bytes },
            gathering: Gathering::new(group),
            phase: Phase::New,
            aggregators: Vec::new(),
            bounds: None,
            totals: Vec::new(),
            clients: BTreeMap::new(),
            windows: BTreeMap::new(),
            served: Layout::bytes(0),
            cycles: 0,
            ready: BTreeMap::new(),
            pending: Vec::new(),
            requested: 0,
            read_end: 0,
            tally: Tally::default(),
        }
    }

    fn gather(&mut self, stage: u64, traffic: Traffic, says: What, actions: &mut Vec<Action>) {
        self.gathering.begin(stage, traffic, says, actions);
        self.phase = Phase::Gathering(stage);
        self.go_on(actions);
    }

    /// Does what can be done with what has arrived.
    fn go_on(&mut self, actions: &mut Vec<Action>) {
        match self.phase {
            Phase::Gathering(stage) if self.gathering.go_on(actions) => {
                let result = self.gathering.result();
                self.gathered(stage, result, actions);
            }
            Phase::Waiting(cycle) => {
                let ready = self.ready.get(&cycle).copied().unwrap_or(0);
                if ready >= self.to_be_ready(cycle) {
                    self.ready.remove(&cycle);
                    match self.direction {
                        Direction::Write => {
                            let window = |rank: &Rank| (*rank, self.window(*rank, cycle));
                            let windows = self.windows.keys().map(window);
                            send_to_aggregators(self.group.rank, &self.access, cycle, windows, actions);
                            self.phase = Phase::Receiving(cycle);
                            self.go_on(actions);
                        }
                        Direction::Read => self.request(cycle, actions),
                    }
                }
            }
            Phase::Receiving(cycle) if self.tally.are_all_here(cycle, self.awaited(cycle)) => {
                match self.direction {
                    Direction::Write => self.request(cycle, actions),
                    Direction::Read => {
                        let next = cycle + 1;
                        for from in self.suppliers(cycle) {
                            if !self.window(from, next).is_empty() {
                                say_ready(from, next, actions);
                            }
                        }
                        self.begin_cycle(next, actions);
                    }
                }
            }
            _ => {}
        }
    }

    /// A collective call is over, with this result.
    fn gathered(&mut self, stage: u64, result: What, actions: &mut Vec<Action>) {
        match (stage, result) {
            (BEGINS, What::Bounds(bounds)) => {
                self.bounds = Some(bounds);
                let shown = Shown::of(&self.access.view);
                let sums = What::Sums(vec![(Rank(0), shown.tile), (Rank(1), shown.piece)]);
                self.gather(ENDS, Traffic::Reduce(OFFSET), sums, actions);
            }
            (ENDS, What::Sums(sums)) => {
                let mean =
                    |index: usize| sums.get(index).map_or(0, |(_, sum)| sum / u64::from(self.group.ranks));
                let shown = Shown { tile: mean(0), piece: mean(1) };
                let (ranks, bytes) = (self.group.ranks, self.bytes_per_aggregator);
                self.aggregators = aggregators::aggregators(self.cb_nodes, shown, ranks, bytes);
                let own = |(index, rank): (usize, &Rank)| {
                    let positions = self.access.within(self.domain(index));
                    (!positions.is_empty()).then_some((*rank, positions.end - positions.start))
                };
                let totals = self.aggregators.iter().enumerate().filter_map(own).collect();
                self.gather(
                    TOTALS,
                    Traffic::Reduce(self.aggregators.len() as u64 * OFFSET),
                    What::Sums(totals),
                    actions,
                );
            }
            (TOTALS, What::Sums(totals)) => {
                self.totals = totals;
                self.gather(
                    COUNTS,
                    Traffic::Gather(self.aggregators.len() as u64 * NUMBER),
                    What::Nothing,
                    actions,
                );
            }
            (COUNTS, _) => {
                let bytes = self.access.pieces().saturating_mul(2 * OFFSET);
                let own = Accesses::of(self.group.rank, self.access.clone());
                self.gather(PIECES, Traffic::Gather(bytes), What::Accesses(own), actions);
            }
            (PIECES, What::Accesses(all)) => {
                self.divide(&all);
                self.begin_cycle(0, actions);
            }
            _ => self.fail(actions),
        }
    }

    /// The file domain of the aggregator with this number: an equal part of the interval that all access.
    fn domain(&self, index: usize) -> Range<u64> {
        let Some(bounds) = self.bounds else { return 0..0 };
        let (start, end) = (bounds.start.max(0) as u64, (bounds.end + 1).max(0) as u64);
        let share = end.saturating_sub(start).div_ceil(self.aggregators.len() as u64);
        let index = index as u64;
        let border = |index: u64| start.saturating_add(share.saturating_mul(index)).min(end.max(start));
        border(index)..border(index + 1)
    }

    /// Cuts the data of aggregators into cycles.
    fn divide(&mut self, all: &Accesses) {
        for (rank, bytes) in std::mem::take(&mut self.totals) {
            let cycles = bytes.div_ceil(self.cycle_bytes);
            self.cycles = self.cycles.max(cycles);
            let Ok(index) = self.aggregators.binary_search(&rank) else { continue };
            let domain = self.domain(index);
            let is_mine = rank == self.group.rank;
            if !is_mine && self.access.within(domain.clone()).is_empty() {
                continue;
            }
            if cycles <= 1 && !is_mine {
                self.windows.insert(rank, vec![domain]);
                continue;
            }
            let parts = all.within(&domain);
            let accessed = accessed(domain, &parts);
            let window = |cycle: u64| {
                let part = cycle_of(&accessed, cycle, self.cycle_bytes);
                part.lower_bound() as u64..part.upper_bound() as u64
            };
            self.windows.insert(rank, (0..cycles).map(window).collect());
            if is_mine {
                self.clients = parts.iter().map(|(rank, access, _)| (*rank, (*access).clone())).collect();
                self.served = accessed;
            }
        }
    }

    fn begin_cycle(&mut self, cycle: u64, actions: &mut Vec<Action>) {
        if cycle >= self.cycles {
            return self.finish(actions);
        }
        if self.direction == Direction::Write {
            for client in self.clients(cycle) {
                say_ready(client, cycle, actions);
            }
        }
        self.phase = Phase::Waiting(cycle);
        self.go_on(actions);
    }

    /// How many other ranks must say that buffers are free before this one goes on: to write, the aggregators that it
    /// has data for; to read, those that an aggregator sent data of the cycle before.
    fn to_be_ready(&self, cycle: u64) -> u32 {
        let count = match self.direction {
            Direction::Write => self.suppliers(cycle).count(),
            Direction::Read if cycle == 0 || self.window(self.group.rank, cycle).is_empty() => 0,
            Direction::Read => self.clients(cycle - 1).count(),
        };
        count as u32
    }

    /// The other ranks that have data in this aggregator's window of a cycle.
    fn clients(&self, cycle: u64) -> impl Iterator<Item = Rank> + '_ {
        let (me, window) = (self.group.rank, self.window(self.group.rank, cycle));
        let has_data = move |access: &Access| !access.within(window.clone()).is_empty();
        let clients = self.clients.iter().filter(move |(client, access)| **client != me && has_data(access));
        clients.map(|(client, _)| *client)
    }

    /// The other ranks in whose windows of a cycle this one has data.
    fn suppliers(&self, cycle: u64) -> impl Iterator<Item = Rank> + '_ {
        let me = self.group.rank;
        let has_data = move |rank: Rank| !self.access.within(self.window(rank, cycle)).is_empty();
        self.windows.keys().copied().filter(move |rank| *rank != me && has_data(*rank))
    }

    fn window(&self, aggregator: Rank, cycle: u64) -> Range<u64> {
        let window = self.windows.get(&aggregator).and_then(|windows| windows.get(cycle as usize));
        window.cloned().unwrap_or(0..0)
    }

    /// As far as the file went.
    fn send_to_clients(&mut self, cycle: u64, actions: &mut Vec<Action>) {
        let window = self.window(self.group.rank, cycle);
        let end = self.read_end.clamp(window.start, window.end);
        let read = self.tally.error().map_or(Ok(window.start..end), Err);
        self.tally.send_to_clients(self.group.rank, &self.clients, (cycle, &window), read, actions);
    }

    /// Makes the requests of a cycle, if this rank aggregates.
    fn request(&mut self, cycle: u64, actions: &mut Vec<Action>) {
        let part = cycle_of(&self.served, cycle, self.cycle_bytes);
        self.pending = requests::of_aggregator(self.direction, &part, Slot::of(cycle));
        self.pending.reverse();
        self.read_end = 0;
        self.phase = Phase::Requesting(cycle);
        self.next_request(actions);
    }

    fn next_request(&mut self, actions: &mut Vec<Action>) {
        let Phase::Requesting(cycle) = self.phase else { panic!("no request was outstanding") };
        if let Some(io) = self.pending.pop() {
            if let Io::Window { file, .. } = &io {
                self.requested = file.start;
            }
            return actions.push(Action::Io(io));
        }
        match self.direction {
            Direction::Write => self.begin_cycle(cycle + 1, actions),
            Direction::Read => {
                self.send_to_clients(cycle, actions);
                self.phase = Phase::Receiving(cycle);
                self.go_on(actions);
            }
        }
    }

    /// How many pieces of data come from other ranks in a cycle.
    fn awaited(&self, cycle: u64) -> u32 {
        let count = match self.direction {
            Direction::Write => self.clients(cycle).count(),
            Direction::Read => self.suppliers(cycle).count(),
        };
        count as u32
    }

    fn said(&mut self, from: Rank, message: Message, actions: &mut Vec<Action>) {
        let Message::Inside(inside) = message else { return self.fail(actions) };
        match inside.stage.checked_sub(FIRST_CYCLE) {
            Some(cycle) => *self.ready.entry(cycle).or_insert(0) += 1,
            None => self.gathering.take(from, inside),
        }
        self.go_on(actions);
    }

    fn fail(&mut self, actions: &mut Vec<Action>) {
        self.tally.failed(Some(IoError::PROTOCOL));
        self.finish(actions);
    }

    fn finish(&mut self, actions: &mut Vec<Action>) {
        self.phase = Phase::Finished;
        let result = self.tally.outcome(self.direction, &self.access);
        actions.push(Action::Finish { result });
    }
}

/// Tells a rank that buffers are free for the data of a cycle.
fn say_ready(to: Rank, cycle: u64, actions: &mut Vec<Action>) {
    let inside = Inside { stage: FIRST_CYCLE + cycle, bytes: HANDSHAKE, what: What::Nothing, reduces: false };
    actions.push(Action::Send { to, message: Message::Inside(inside) });
}

/// What ranks access together of an interval.
fn accessed(file: Range<u64>, parts: &[(Rank, &Access, Range<u64>)]) -> Layout {
    let parts: Vec<_> =
        parts.iter().map(|(_, access, positions)| (&access.view, positions.clone())).collect();
    let holes = coverage::holes(file.clone(), &parts);
    coverage::holes_of_layouts(file.start as i64..file.end as i64, vec![holes])
}

/// The data of a cycle.
fn cycle_of(accessed: &Layout, cycle: u64, bytes: u64) -> Layout {
    let start = cycle.saturating_mul(bytes).min(accessed.size());
    accessed.slice(start..start.saturating_add(bytes).min(accessed.size()))
}

impl StateMachine for Ompio {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let bounds = self.access.bounds();
                let own = match self.access.bytes() {
                    0 => Bounds::of(0, -1),
                    _ => Bounds::of(bounds.start as i64, bounds.end as i64 - 1),
                };
                self.gather(BEGINS, Traffic::Reduce(OFFSET), What::Bounds(own), actions);
            }
            _ if self.phase == Phase::Finished => {}
            Event::Received { from, message } => self.said(from, message, actions),
            Event::Data { piece, error, .. } => {
                self.tally.arrived(self.direction, &piece, error);
                self.go_on(actions);
            }
            Event::Room { .. } => panic!("no room was asked for"),
            Event::IoDone { result } => {
                self.tally.failed(result.err());
                if let Some(read) = result.ok().filter(|read| *read > 0) {
                    self.read_end = self.requested.saturating_add(read);
                }
                self.next_request(actions);
            }
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        if rank == self.group.rank { Some(&self.access) } else { self.clients.get(&rank) }
    }
}
