//! ROMIO's collective I/O, to predict it: extended two-phase I/O (Thakur and Choudhary 1996) as Thakur, Gropp and Lusk
//! describe it ("Data sieving and collective I/O in ROMIO", 1999) and the user's guide of ROMIO names its hints.
//!
//! 1. All ranks learn where each other's accesses begin and end. Where none begins before the one of the rank below ends, each
//!    rank goes on [alone](mod@alone), unless `romio_cb_read` or `romio_cb_write` says otherwise.
//! 2. The interval that all access is divided among the aggregators. Every rank tells each of them which pieces it has in
//!    its domain: an offset and a length each.
//! 3. Round after round of `cb_buffer_size` bytes, all ranks tell each other how much they will send, and an aggregator gets
//!    the data and writes its window in one request, or reads it and sends them. A window to write that has gaps is read
//!    before. The windows of a domain begin where its data begin.
//! 4. After a write, all ranks learn whether it went well.
//!
//! The ranks are in step in every round, and nothing overlaps.
//!
//! Left out: what file systems of their own do (Lustre, GPFS), data that are in pieces in memory, atomic mode.

mod alone;
mod domains;

use std::collections::BTreeMap;
use std::ops::Range;

use pio_layout::coverage;

use crate::access::{Access, Direction, Group, IoError, Rank, Slot};
use crate::inside::{Bounds, Gathering, Inside, Traffic, What};
use crate::machine::{Action, Event, Io, StateMachine};
use crate::message::Message;
use crate::own_hints::Switch;
use crate::rounds::{Tally, send_to_aggregators};
use crate::site::Context;

/// Bytes of an offset or a length.
const OFFSET: u64 = 8;
/// Bytes of a size, a count, an outcome.
const NUMBER: u64 = 4;

/// The stages of an operation; each round has one of its own.
const BEGINS: u64 = 0;
const ENDS: u64 = 1;
const COUNTS: u64 = 2;
const PIECES: u64 = 3;
const ROUNDS: u64 = 4;
const OUTCOME: u64 = 5;
const FIRST_ROUND: u64 = 6;

/// How often the ranks of a collective write that is exchanged reduce something: how many rounds there are, and whether all
/// went well. Those of a read have only the first.
pub const REDUCTIONS_OF_A_WRITE: u64 = 2;

/// One collective operation of one rank.
pub struct Romio {
    group: Group,
    direction: Direction,
    access: Access,
    context: Context,
    gathering: Gathering,
    phase: Phase,
    /// Where the accesses begin and end.
    bounds: Option<Bounds>,
    /// Those in which this rank has data, and its own.
    domains: Vec<Domain>,
    /// Of those with data in this rank's domain, itself included: which.
    clients: BTreeMap<Rank, Access>,
    /// How many there will be.
    clients_expected: u64,
    /// From the first to the last byte that they access.
    served: Range<u64>,
    rounds: u64,
    /// What the last read request got.
    read: Result<u64, IoError>,
    tally: Tally,
}

/// An aggregator's part of the file.
#[derive(Debug)]
struct Domain {
    rank: Rank,
    file: Range<u64>,
    /// Where its windows begin; none if nobody accesses it, or it is not known yet.
    origin: Option<u64>,
}

enum Phase {
    New,
    /// In the collective call that is the stage of this number.
    Gathering(u64),
    /// Waits for what clients say of their pieces.
    Describing,
    /// Reads the window of this round.
    Reading(u64),
    /// Waits for the data of this round.
    Receiving(u64),
    Writing(u64),
    Alone(Box<alone::Alone>),
    Finished,
}

/// What ROMIO does for a rank alone.
pub(crate) fn alone(
    rank: Rank,
    direction: Direction,
    access: Access,
    context: &Context,
) -> Box<dyn StateMachine + Send> {
    Box::new(alone::Alone::new(rank, direction, access, &context.asked))
}

impl Romio {
    /// The machine of one rank for one operation. All ranks of the group must be given the same direction and context.
    pub fn new(group: Group, direction: Direction, access: Access, context: &Context) -> Romio {
        Romio {
            group,
            direction,
            access,
            context: context.clone(),
            gathering: Gathering::new(group),
            phase: Phase::New,
            bounds: None,
            domains: Vec::new(),
            clients: BTreeMap::new(),
            clients_expected: 0,
            served: 0..0,
            rounds: 0,
            read: Ok(0),
            tally: Tally::default(),
        }
    }

    fn switch(&self) -> Switch {
        let own = &self.context.asked.own;
        let switch = match self.direction {
            Direction::Read => own.cb_read,
            Direction::Write => own.cb_write,
        };
        switch.unwrap_or(Switch::Automatic)
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        if self.switch() == Switch::Disable {
            return self.go_alone(actions);
        }
        let own = own_bounds(&self.access);
        self.gather(BEGINS, Traffic::Gather(OFFSET), What::Bounds(own), actions);
    }

    fn go_alone(&mut self, actions: &mut Vec<Action>) {
        let (rank, access) = (self.group.rank, self.access.clone());
        let mut machine = alone::Alone::new(rank, self.direction, access, &self.context.asked);
        machine.handle(Event::Start, actions);
        self.phase = Phase::Alone(Box::new(machine));
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
            Phase::Describing if self.clients.len() as u64 == self.clients_expected => {
                self.described(actions)
            }
            Phase::Receiving(round) if self.tally.are_all_here(round, self.awaited(round)) => {
                self.received(round, actions);
            }
            _ => {}
        }
    }

    /// A collective call is over, with this result.
    fn gathered(&mut self, stage: u64, result: What, actions: &mut Vec<Action>) {
        match (stage, result) {
            (BEGINS, What::Bounds(bounds)) => {
                self.bounds = Some(bounds);
                self.gather(ENDS, Traffic::Gather(OFFSET), What::Nothing, actions);
            }
            (ENDS, _) => self.divide(actions),
            (COUNTS, What::Sums(counts)) => {
                let own = counts.binary_search_by_key(&self.group.rank, |(rank, _)| *rank);
                self.clients_expected = own.map_or(0, |own| counts[own].1);
                self.describe(actions);
            }
            (ROUNDS, What::Rounds(rounds, origins)) => {
                for domain in &mut self.domains {
                    let place = origins.binary_search_by_key(&domain.rank, |(rank, _)| *rank);
                    domain.origin = place.ok().map(|place| origins[place].1);
                }
                self.rounds = rounds;
                self.begin_round(0, actions);
            }
            (OUTCOME, _) => self.finish(actions),
            (stage, _) if stage >= FIRST_ROUND => self.told_sizes(stage - FIRST_ROUND, actions),
            _ => self.fail(actions),
        }
    }

    /// Whether to go alone; else the file domains, and how many will say what to each aggregator.
    fn divide(&mut self, actions: &mut Vec<Action>) {
        let Some(bounds) = self.bounds else { return self.fail(actions) };
        if self.switch() == Switch::Automatic && !bounds.is_interleaved {
            return self.go_alone(actions);
        }
        let aggregators = domains::aggregators(&self.context, self.group.ranks);
        let start = u64::try_from(bounds.start).unwrap_or(0);
        let file = start..u64::try_from(bounds.end + 1).unwrap_or(0).max(start);
        let parts = domains::domains(file, aggregators.len() as u32, self.context.asked.striping_unit);
        let mut counts: Vec<(Rank, u64)> = Vec::new();
        for (rank, file) in aggregators.into_iter().zip(parts) {
            let has_data = !self.access.within(file.clone()).is_empty();
            if has_data {
                counts.push((rank, 1));
            }
            if has_data || rank == self.group.rank {
                self.domains.push(Domain { rank, file, origin: None });
            }
        }
        counts.sort_unstable();
        self.gather(COUNTS, Traffic::Exchange(NUMBER), What::Sums(counts), actions);
    }

    /// Tells each aggregator which pieces this rank has in its domain.
    fn describe(&mut self, actions: &mut Vec<Action>) {
        for domain in &self.domains {
            let positions = self.access.within(domain.file.clone());
            if positions.is_empty() {
                continue;
            }
            if domain.rank == self.group.rank {
                self.clients.insert(domain.rank, self.access.clone());
                continue;
            }
            let part = Access { view: self.access.view.clone(), positions };
            let bytes = part.pieces().saturating_mul(2 * OFFSET);
            let what = What::Access(self.access.clone());
            let inside = Inside { stage: PIECES, bytes, what, reduces: false };
            actions.push(Action::Send { to: domain.rank, message: Message::Inside(inside) });
        }
        self.phase = Phase::Describing;
        self.go_on(actions);
    }

    /// This aggregator knows what its clients have.
    fn described(&mut self, actions: &mut Vec<Action>) {
        let own = self.domains.iter().find(|domain| domain.rank == self.group.rank);
        let file = own.map_or(0..0, |domain| domain.file.clone());
        let part = |access: &Access| {
            let positions = access.within(file.clone());
            Access { view: access.view.clone(), positions }.bounds()
        };
        let bounds = || self.clients.values().map(part);
        let start = bounds().map(|bounds| bounds.start).min().unwrap_or(0);
        self.served = start..bounds().map(|bounds| bounds.end).max().unwrap_or(start);
        let rounds = (self.served.end - start).div_ceil(self.buffer_size());
        let origin = if rounds > 0 { vec![(self.group.rank, start)] } else { Vec::new() };
        self.gather(ROUNDS, Traffic::Reduce(NUMBER), What::Rounds(rounds, origin), actions);
    }

    fn begin_round(&mut self, mut round: u64, actions: &mut Vec<Action>) {
        // With nobody else to wait for, rounds without data are nothing at all.
        while self.group.ranks == 1 && round < self.rounds && !self.has_data(round) {
            round += 1;
        }
        if round >= self.rounds {
            return match self.direction {
                Direction::Write => {
                    self.gather(OUTCOME, Traffic::Reduce(NUMBER), What::Nothing, actions);
                }
                Direction::Read => self.finish(actions),
            };
        }
        if self.direction == Direction::Read && self.has_data(round) {
            return self.request(round, Direction::Read, actions);
        }
        self.tell_sizes(round, actions);
    }

    fn tell_sizes(&mut self, round: u64, actions: &mut Vec<Action>) {
        self.gather(FIRST_ROUND + round, Traffic::Exchange(NUMBER), What::Nothing, actions);
    }

    /// All know how much goes from whom to whom.
    fn told_sizes(&mut self, round: u64, actions: &mut Vec<Action>) {
        if self.direction == Direction::Write && self.has_data(round) && self.has_gaps(round) {
            return self.request(round, Direction::Read, actions);
        }
        self.exchange(round, actions);
    }

    /// One request for all of this rank's window of a round.
    fn request(&mut self, round: u64, direction: Direction, actions: &mut Vec<Action>) {
        let file = self.window(round);
        let (slot, origin) = (Slot::of(round), file.start);
        actions.push(Action::Io(Io::Window { direction, slot, origin, file }));
        self.phase = match direction {
            Direction::Read => Phase::Reading(round),
            Direction::Write => Phase::Writing(round),
        };
    }

    fn accessed(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        self.tally.failed(result.err());
        match self.phase {
            Phase::Reading(round) => {
                self.read = result;
                match self.direction {
                    Direction::Read => self.tell_sizes(round, actions),
                    Direction::Write => self.exchange(round, actions),
                }
            }
            Phase::Writing(round) => self.begin_round(round + 1, actions),
            _ => panic!("no request was outstanding"),
        }
    }

    /// The data of a round go off.
    fn exchange(&mut self, round: u64, actions: &mut Vec<Action>) {
        match self.direction {
            Direction::Write => {
                let (client, size) = (self.group.rank, self.buffer_size());
                let windows = self.domains.iter().map(|domain| (domain.rank, domain.window(round, size)));
                send_to_aggregators(client, &self.access, round, windows, actions);
            }
            Direction::Read => self.send_to_clients(round, actions),
        }
        self.phase = Phase::Receiving(round);
        self.go_on(actions);
    }

    /// As far as the file went.
    fn send_to_clients(&mut self, round: u64, actions: &mut Vec<Action>) {
        let window = self.window(round);
        let read = self.read.map(|read| window.start..window.start.saturating_add(read).min(window.end));
        self.tally.send_to_clients(self.group.rank, &self.clients, (round, &window), read, actions);
    }

    /// All data of a round are here.
    fn received(&mut self, round: u64, actions: &mut Vec<Action>) {
        if self.direction == Direction::Write && self.has_data(round) {
            return self.request(round, Direction::Write, actions);
        }
        self.begin_round(round + 1, actions);
    }

    /// How many pieces of data come from other ranks in a round.
    fn awaited(&self, round: u64) -> u32 {
        let me = self.group.rank;
        let count = match self.direction {
            Direction::Write => {
                let window = self.window(round);
                let has_data = |access: &Access| !access.within(window.clone()).is_empty();
                self.clients.iter().filter(|(client, access)| **client != me && has_data(access)).count()
            }
            Direction::Read => {
                let size = self.buffer_size();
                let has_data = |domain: &Domain| !self.access.within(domain.window(round, size)).is_empty();
                self.domains.iter().filter(|domain| domain.rank != me && has_data(domain)).count()
            }
        };
        count as u32
    }

    /// This rank's own window of a round.
    fn window(&self, round: u64) -> Range<u64> {
        window(&self.served, round, self.buffer_size())
    }

    fn has_data(&self, round: u64) -> bool {
        let window = self.window(round);
        self.clients.values().any(|access| !access.within(window.clone()).is_empty())
    }

    fn has_gaps(&self, round: u64) -> bool {
        let window = self.window(round);
        let parts: Vec<_> =
            self.clients.values().map(|access| (&access.view, access.within(window.clone()))).collect();
        !coverage::covers(window, &parts)
    }

    fn buffer_size(&self) -> u64 {
        self.context.asked.cb_buffer_size.unwrap_or(crate::hints::Hints::DEFAULT_CB_BUFFER_SIZE).max(1)
    }

    fn said(&mut self, from: Rank, message: Message, actions: &mut Vec<Action>) {
        match message {
            Message::Inside(Inside { stage: PIECES, what: What::Access(access), .. }) => {
                self.clients.insert(from, access);
            }
            Message::Inside(inside) => self.gathering.take(from, inside),
            _ => return self.fail(actions),
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

impl Domain {
    fn window(&self, round: u64, size: u64) -> Range<u64> {
        match self.origin {
            Some(origin) => window(&(origin..self.file.end), round, size),
            None => self.file.start..self.file.start,
        }
    }
}

fn window(all: &Range<u64>, round: u64, size: u64) -> Range<u64> {
    let start = all.start.saturating_add(round.saturating_mul(size)).min(all.end);
    start..start.saturating_add(size).min(all.end)
}

/// Where ROMIO says that an access begins and ends. One without data has a begin, too, and ends before it: right before it
/// where the view has no gaps, else at the file's first byte.
fn own_bounds(access: &Access) -> Bounds {
    let offset = |position| access.view.offset_of(position).and_then(|offset| i64::try_from(offset).ok());
    let start = offset(access.positions.start).unwrap_or(0);
    if access.bytes() > 0 {
        return Bounds::of(start, offset(access.positions.end - 1).unwrap_or(start));
    }
    let is_whole = access.view.is_contiguous_over(0..u64::MAX);
    Bounds::of(start, if is_whole { start - 1 } else { 0 })
}

impl StateMachine for Romio {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match (&mut self.phase, event) {
            (Phase::Alone(machine), event) => machine.handle(event, actions),
            (Phase::New, Event::Start) => self.start(actions),
            (_, Event::Start) => panic!("started twice"),
            (Phase::Finished, _) => {}
            (_, Event::Received { from, message }) => self.said(from, message, actions),
            (_, Event::Data { piece, error, .. }) => {
                self.tally.arrived(self.direction, &piece, error);
                self.go_on(actions);
            }
            (_, Event::IoDone { result }) => self.accessed(result, actions),
            (_, Event::Room { .. }) => panic!("no room was asked for"),
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        if rank == self.group.rank { Some(&self.access) } else { self.clients.get(&rank) }
    }
}
