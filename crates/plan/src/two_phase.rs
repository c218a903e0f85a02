//! Two-phase collective I/O (del Rosario, Bordawekar and Choudhary 1993; Thakur, Gropp and Lusk 1996, section 3.3), and
//! its view-based form (Blas, Isaila, Singh and Carretero 2008).
//!
//! The interval of the file that the ranks access together is cut into one *file domain* an aggregator. In one phase,
//! the aggregators read or write their domains in large contiguous requests, window by window of the collective
//! buffers; in the other, the ranks exchange the data with the aggregators.
//!
//! The messages of a write, for a rank that is both client and aggregator:
//!
//! 1. it [describes](crate::descriptions) its access: to every other rank (P − 1 messages; only aggregators are told the exact
//!    bytes), or to the aggregators in whose domains it has data, after all ranks have added up what they access,
//! 2. knowing what all access together, every rank knows all domains: it sends each aggregator its data of the first two windows
//!    (partners − 1 messages if there is one), and those of later windows as the aggregator grants them,
//! 3. each aggregator, when its last window is written, acknowledges to its clients. Where there are gaps, all ranks end
//!    [together](crate::ending). Else a rank that has nothing in a domain is perhaps through before that is written, and may be sieving around
//!    it in its next operation: the aggregator then locks the windows that it writes.
//!
//! A read turns 2 around: an aggregator sends the data of a window, and uses its buffer again when its clients have
//! released it. A first or second window needs no grant, and the last two no release: a rank's description of the
//! *next* operation, or its part of the sums there, says that it is through with this one. An array that fits the collective buffers thus costs the
//! P − 1 + (partners − 1) messages a rank that Thakur counted, and the acknowledgements, which his routines did without.
//!
//! An aggregator has two buffers, and windows take turns at them. While one window is in a request to the file, clients
//! put their data of the next into the other buffer (or take theirs of the one before out of it).
//!
//! View-based: the ranks registered their views when they set them, and step 1 says a range of positions, a few bytes,
//! in place of a view. Who describes accesses to aggregators alone does so of itself from the second operation on.

use std::collections::VecDeque;
use std::ops::Range;

use pio_layout::coverage;

use crate::access::{Access, Direction, Group, IoError, Piece, Rank, Slot};
use crate::beside::Beside;
use crate::descriptions::{Clients, Descriptions};
use crate::direct::is_direct;
use crate::domain::{Domain, Domains, Part};
use crate::ending::Ending;
use crate::guard::Guard;
use crate::hints::Hints;
use crate::machine::{Action, Event, Io, StateMachine};
use crate::message::Message;
use crate::sieving::Sieving;
use crate::site::Context;
use crate::through_leaders::ThroughLeaders;
use crate::tree::Tree;

/// Where data have gaps between them, parts of at least this mean size are written one by one; smaller ones cost more
/// than reading the window, completing it and writing it back.
const PART_BYTES: u64 = 16 << 10;

/// One collective read or write of one rank.
#[derive(Debug)]
pub struct TwoPhase {
    group: Group,
    direction: Direction,
    access: Access,
    domains: Domains,
    /// How to keep out ranks that are through, and may be sieving in their next operation.
    guard: Guard,
    /// Whether others may write into the gaps of a window.
    locks: bool,
    /// What each rank said, own rank included.
    descriptions: Descriptions,
    /// What it goes by, if there are leaders that may carry it out.
    led: Option<Box<Context>>,
    phase: Phase,
    moved: u64,
    error: Option<IoError>,
}

#[derive(Debug)]
enum Phase {
    Describing,
    /// Every rank makes its own requests: there is nothing to exchange.
    Direct,
    /// The same, with a lock: a rank that is through may be sieving in its next operation.
    DirectWithLock(Box<Sieving>),
    /// Leaders do it for all.
    ThroughLeaders(Box<ThroughLeaders>),
    Exchanging {
        suppliers: Vec<Supplier>,
        aggregator: Option<Aggregator>,
        /// If no rank may leave before all aggregators are done.
        ending: Option<Ending>,
    },
    Finished,
}

/// An aggregator as one of its clients sees it.
#[derive(Debug)]
struct Supplier {
    rank: Rank,
    domain: Domain,
    /// Data bytes of this rank's view that are still to be exchanged.
    positions: Range<u64>,
    /// Whether an acknowledgement must still come.
    unacknowledged: bool,
}

/// This rank's own work as an aggregator.
#[derive(Debug)]
struct Aggregator {
    domain: Domain,
    /// The first window that was not yet looked at.
    next: u64,
    /// Whether that one has data.
    is_next: bool,
    /// Those that have a collective buffer, in order; each has another one.
    open: VecDeque<Window>,
    /// The request to the file that is outstanding: for the first window (write), or the last (read).
    accessing: Option<Accessing>,
    /// Who has or gets data in the domain, this rank among them, where they must hear that these are written.
    clients: Vec<Rank>,
    /// How to keep out ranks that may be sieving around what is written.
    guard: Guard,
    done: bool,
}

/// A request to the file for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accessing {
    Locking,
    /// Moves the data, perhaps under a lock that is to be given back.
    Moving {
        is_locked: bool,
    },
    Unlocking,
}

/// A window that has a collective buffer.
#[derive(Debug)]
struct Window {
    index: u64,
    /// Clients (other than this rank) whose data or release must still come before it is done.
    awaited: Vec<Rank>,
    /// Whose data it has, this rank's among them.
    clients: Clients,
    /// Bytes between the first and the last accessed byte.
    span: Range<u64>,
}

impl TwoPhase {
    /// The machine of one rank for one operation. All ranks of the group must be given the same direction and context.
    pub fn new(group: Group, direction: Direction, access: Access, context: &Context) -> TwoPhase {
        TwoPhase::begun(Descriptions::new(group, &access, context), group, direction, access, context)
    }

    /// The same, where all ranks know already in which interval of the file their accesses lie.
    pub(crate) fn within(
        bounds: Range<u64>,
        group: Group,
        direction: Direction,
        access: Access,
        context: &Context,
    ) -> TwoPhase {
        let descriptions = Descriptions::within(Some(bounds), group, &access, context);
        TwoPhase::begun(descriptions, group, direction, access, context)
    }

    /// The same, where descriptions have been exchanged already, perhaps.
    pub(crate) fn begun(
        descriptions: Descriptions,
        group: Group,
        direction: Direction,
        access: Access,
        context: &Context,
    ) -> TwoPhase {
        assert!(group.rank.0 < group.ranks, "rank {} of {}", group.rank.0, group.ranks);
        TwoPhase {
            group,
            direction,
            access,
            domains: Domains::new(context, group.ranks),
            // Nobody sieves large pieces.
            guard: match context.contiguous || context.servers > 0 {
                true => Guard::Open,
                false => context.guard_of(direction),
            },
            locks: context.beside == Beside::Independent,
            descriptions,
            led: context.leaders.is_some().then(|| Box::new(context.clone())),
            phase: Phase::Describing,
            moved: 0,
            error: None,
        }
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        self.descriptions.tell(actions);
        if self.descriptions.are_summed() {
            self.exchange(actions);
        }
    }

    fn described(&mut self, from: Rank, message: Message, actions: &mut Vec<Action>) {
        if self.descriptions.take(from, message, actions).is_err() {
            return self.fail(actions);
        }
        match self.phase {
            Phase::Describing if self.descriptions.are_summed() => self.exchange(actions),
            Phase::Exchanging { .. } => self.begin_to_aggregate(actions),
            _ => {}
        }
    }

    /// What all ranks access together is known: decide who moves which bytes, and begin.
    pub(crate) fn exchange(&mut self, actions: &mut Vec<Action>) {
        let operation = self.descriptions.operation(self.direction);
        if is_direct(&operation, self.domains.are_aligned()) {
            self.phase = Phase::Direct;
            if self.access.bytes() == 0 {
                self.finish(actions);
            } else if self.guard != Guard::Open {
                let (rank, access) = (self.group.rank, self.access.clone());
                let alone = Sieving::new(rank, self.direction, access, &Hints::default(), self.guard);
                self.phase = Phase::DirectWithLock(Box::new(alone));
                self.go_on_alone(Event::Start, actions);
            } else {
                let positions = self.access.positions.clone();
                actions.push(Action::Io(Io::Pieces { direction: self.direction, positions }));
            }
            return;
        }
        if let Some(context) = &self.led
            && let Some(leaders) = &context.leaders
            && leaders.teams(&context.hints).are_worth_it(
                &operation,
                self.domains.buffer_size(),
                &context.terms,
            )
        {
            let (group, direction) = (self.group, self.direction);
            let access = self.access.clone();
            let mut led =
                ThroughLeaders::new(group, direction, access, context, leaders, &mut self.descriptions);
            led.begin(&context.told, actions);
            self.phase = Phase::ThroughLeaders(Box::new(led));
            for event in std::mem::take(&mut self.descriptions.early) {
                self.handle(event, actions);
            }
            return;
        }
        let me = self.group.rank;
        let bounds = self.descriptions.bounds();
        let mut parts = self.domains.parts_of(&self.access, &bounds);
        // Again from the successor on, for balance.
        parts.sort_by_key(|part| (part.rank <= me, part.rank));
        self.descriptions.tell_aggregators(&parts, actions);
        let mut suppliers = self.suppliers(parts, &bounds);
        if self.direction == Direction::Write {
            // The first two windows need no grant.
            for supplier in &mut suppliers {
                for index in 0..Slot::COUNT as u64 {
                    supplier.send(index, me, &self.access, actions);
                }
            }
        }
        let own_domain = self.domains.index_of(me).map(|index| self.domains.domain(&bounds, index));
        let aggregator = own_domain.filter(|domain| !domain.file.is_empty()).map(Aggregator::of);
        let ends_together = self.is_sparse() && !self.descriptions.are_told_to_all();
        let ending = ends_together.then(|| Ending::new(Tree::of(self.group)));
        self.phase = Phase::Exchanging { suppliers, aggregator, ending };
        self.begin_to_aggregate(actions);
    }

    /// The other aggregators that have or get data of this rank, and those that it must wait for.
    fn suppliers(&self, parts: Vec<Part>, bounds: &Range<u64>) -> Vec<Supplier> {
        let me = self.group.rank;
        let told_to_all = self.descriptions.are_told_to_all();
        let is_sparse = self.is_sparse();
        let unacknowledged = self.direction == Direction::Write && (told_to_all || !is_sparse);
        let others = parts.into_iter().filter(|part| part.rank != me);
        let mut suppliers: Vec<Supplier> = others
            .map(|Part { rank, domain, positions, .. }| Supplier { rank, domain, positions, unacknowledged })
            .collect();
        if is_sparse && told_to_all {
            for index in 0..self.domains.count() {
                let (rank, domain) = (self.domains.rank_of(index), self.domains.domain(bounds, index));
                let is_known = rank == me || suppliers.iter().any(|supplier| supplier.rank == rank);
                if !is_known && !domain.file.is_empty() {
                    suppliers.push(Supplier { rank, domain, positions: 0..0, unacknowledged });
                }
            }
        }
        suppliers
    }

    /// Whether there are gaps between the data that the ranks write.
    fn is_sparse(&self) -> bool {
        self.direction == Direction::Write && self.descriptions.are_sparse()
    }

    /// Once all clients have described their accesses, an aggregator begins.
    fn begin_to_aggregate(&mut self, actions: &mut Vec<Action>) {
        if !self.descriptions.are_complete() {
            return;
        }
        self.know_clients();
        self.aggregate(actions);
        self.finish_if_done(actions);
        for event in std::mem::take(&mut self.descriptions.early) {
            self.handle(event, actions);
        }
    }

    /// Whom an aggregator acknowledges to, and whether others are through before it is, and may be sieving around its windows: a
    /// sieve that read before a window was written, and writes back after, would undo it. Who waits for the acknowledgement cannot
    /// be; where there are gaps, that is every rank.
    fn know_clients(&mut self) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        if self.direction == Direction::Write && !self.descriptions.are_sparse() {
            let clients = self.descriptions.clients_of(&aggregator.domain.file);
            aggregator.clients = clients.into_iter().map(|(client, _)| client).collect();
            let all_wait = aggregator.clients.len() == self.group.ranks as usize;
            aggregator.guard = if all_wait { Guard::Open } else { self.guard };
        }
    }

    fn go_on_alone(&mut self, event: Event, actions: &mut Vec<Action>) {
        let Phase::DirectWithLock(alone) = &mut self.phase else { return };
        alone.handle(event, actions);
        if matches!(actions.last(), Some(Action::Finish { .. })) {
            self.phase = Phase::Finished;
        }
    }

    /// Does what this aggregator can do now.
    fn aggregate(&mut self, actions: &mut Vec<Action>) {
        match self.direction {
            Direction::Write => self.aggregate_write(actions),
            Direction::Read => self.aggregate_read(actions),
        }
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        let through = aggregator.next > aggregator.domain.last_index() && aggregator.open.is_empty();
        if through && aggregator.accessing.is_none() && !aggregator.done {
            aggregator.done = true;
            self.acknowledge(actions);
        }
    }

    /// Opens windows as long as there are free buffers, and writes the first if all its data are there.
    fn aggregate_write(&mut self, actions: &mut Vec<Action>) {
        while self.open_window() {
            let Phase::Exchanging { aggregator: Some(aggregator), .. } = &self.phase else { return };
            let Some(opened) = aggregator.open.back() else { return };
            let index = opened.index;
            if index >= Slot::COUNT as u64 {
                let grant = |to: &Rank| Action::Send { to: *to, message: Message::Grant { index } };
                actions.extend(opened.awaited.iter().map(grant));
            }
            let me = self.group.rank;
            if let Some((client, positions)) =
                opened.clients.iter().find(|(client, _)| *client == me).cloned()
            {
                let window = aggregator.domain.window(index);
                actions.push(Action::Copy { piece: Piece { client, index, window, positions } });
            }
        }
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        let ready = aggregator.open.front().filter(|window| window.awaited.is_empty());
        if let Some(window) = ready.filter(|_| aggregator.accessing.is_none()) {
            if aggregator.guard == Guard::Open {
                return self.write_window(false, actions);
            }
            actions.push(Action::Io(aggregator.guard.lock(window.span.clone())));
            aggregator.accessing = Some(Accessing::Locking);
        }
    }

    /// Writes the first window, which has all its data.
    fn write_window(&mut self, is_locked: bool, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        let Some(window) = aggregator.open.front() else { return };
        let origin = aggregator.domain.window(window.index).start;
        actions.push(Action::Io(write_request(&self.descriptions, window, origin, self.locks)));
        aggregator.accessing = Some(Accessing::Moving { is_locked });
    }

    /// Reads the next window if there is a free buffer.
    fn aggregate_read(&mut self, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &self.phase else { return };
        if aggregator.accessing.is_some() || !self.open_window() {
            return;
        }
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        let Some(window) = aggregator.open.back() else { return };
        let (slot, file) = (Slot::of(window.index), window.span.clone());
        let origin = aggregator.domain.window(window.index).start;
        aggregator.accessing = Some(Accessing::Moving { is_locked: false });
        actions.push(Action::Io(Io::Window { direction: Direction::Read, slot, origin, file }));
    }

    /// Gives the next window in which anyone has data a buffer, if its buffer is free. Whether there is one more open.
    fn open_window(&mut self) -> bool {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return false };
        let domain = &aggregator.domain;
        let last = domain.last_index();
        // All clients are asked which window is next: not before a buffer is free.
        if aggregator.next > last || aggregator.is_blocked() {
            return false;
        }
        let mut window = domain.window(aggregator.next);
        let mut parts: Vec<_> = self.descriptions.parts_in(&window).collect();
        if parts.is_empty() {
            let rest = domain.from(aggregator.next);
            let firsts = self.descriptions.parts_in(&rest).filter_map(first_offset);
            let Some(first) = firsts.min() else {
                aggregator.next = last + 1;
                return false;
            };
            aggregator.next = domain.index_of(first);
            window = domain.window(aggregator.next);
            parts = self.descriptions.parts_in(&window).collect();
        }
        aggregator.is_next = true;
        if aggregator.is_blocked() {
            return false;
        }
        let span = span_of(&parts, &window);
        let clients: Clients = parts.into_iter().map(|(client, _, positions)| (client, positions)).collect();
        let me = self.group.rank;
        let awaited = clients.iter().map(|(client, _)| *client).filter(|client| *client != me).collect();
        let index = aggregator.next;
        aggregator.open.push_back(Window { index, awaited, clients, span });
        aggregator.next = index + 1;
        aggregator.is_next = false;
        true
    }

    /// A request for a window ended: go on with the next one for it, or pass its data on (read), or give its buffer free (write).
    fn accessed(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else {
            panic!("no request was outstanding");
        };
        match aggregator.accessing.take() {
            None => panic!("no request was outstanding"),
            Some(Accessing::Locking) => match result {
                Ok(_) => return self.write_window(true, actions),
                Err(error) if error.says_that_nothing_can_be_locked() => {
                    // Nobody sieves there.
                    aggregator.guard = Guard::Open;
                    return self.write_window(false, actions);
                }
                // The window stays unwritten.
                Err(error) => self.error = self.error.or(Some(error)),
            },
            Some(Accessing::Moving { is_locked }) => {
                self.error = self.error.or(result.err());
                if let Some(window) = aggregator.open.front().filter(|_| is_locked) {
                    actions.push(Action::Io(Io::Unlock { file: window.span.clone() }));
                    aggregator.accessing = Some(Accessing::Unlocking);
                    return;
                }
            }
            // Who lost the lock meanwhile may have been undone by another.
            Some(Accessing::Unlocking) => self.error = self.error.or(result.err()),
        }
        match self.direction {
            Direction::Write => drop(aggregator.open.pop_front()),
            Direction::Read => self.pass_on(result, actions),
        }
        self.aggregate(actions);
    }

    /// Sends the data of the window that was read last to its clients.
    fn pass_on(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        let Some(read) = aggregator.open.back() else { return };
        let (index, error) = (read.index, result.err());
        let window = aggregator.domain.window(index);
        let end = read.span.start.saturating_add(result.unwrap_or(0)).min(window.end);
        let me = self.group.rank;
        for (client, positions) in read.clients.iter().cloned() {
            let access = self.descriptions.access_of(client);
            let here = access
                .map_or(0..0, |access| access.view.positions_within(positions.clone(), window.start..end));
            let positions = if here.is_empty() { positions.start..positions.start } else { here };
            let moved = positions.end - positions.start;
            let piece = Piece { client, index, window: window.clone(), positions };
            if client != me {
                actions.push(Action::SendData { to: client, piece, error });
            } else if error.is_none() {
                actions.push(Action::Copy { piece });
                self.moved += moved;
            }
        }
        if !aggregator.domain.reuses_buffer_of(index) || aggregator.open.back().is_some_and(Window::is_free) {
            aggregator.open.pop_back();
        }
    }

    /// Tells the clients that their data are in the file.
    fn acknowledge(&mut self, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &self.phase else { return };
        if self.direction == Direction::Read {
            return;
        }
        let tell = |to| Action::Send { to, message: Message::Acknowledge { error: self.error } };
        let me = self.group.rank;
        match (self.descriptions.are_sparse(), self.descriptions.are_told_to_all()) {
            (true, true) => actions.extend((0..self.group.ranks).map(Rank).filter(|to| *to != me).map(tell)),
            (true, false) => {}
            (false, _) => {
                actions.extend(aggregator.clients.iter().copied().filter(|to| *to != me).map(tell));
            }
        }
    }

    fn data_arrived(&mut self, from: Rank, piece: &Piece, error: Option<IoError>, actions: &mut Vec<Action>) {
        let valid = match self.direction {
            Direction::Write => self.client_arrived(from, piece.index),
            Direction::Read => self.window_arrived(from, piece, error, actions),
        };
        if !valid {
            return self.fail(actions);
        }
        if self.direction == Direction::Write {
            self.aggregate(actions);
        }
    }

    /// Strikes a client off the list of those a window waits for.
    fn client_arrived(&mut self, from: Rank, index: u64) -> bool {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return false };
        let Some(window) = aggregator.open.iter_mut().find(|window| window.index == index) else {
            return false;
        };
        match window.awaited.iter().position(|client| *client == from) {
            Some(place) => {
                window.awaited.swap_remove(place);
                true
            }
            None => false,
        }
    }

    /// A client has its data of a window that was read.
    fn released(&mut self, from: Rank, index: u64, actions: &mut Vec<Action>) {
        if self.direction != Direction::Read || !self.client_arrived(from, index) {
            return self.fail(actions);
        }
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        aggregator.open.retain(|window| window.index != index || !window.is_free());
        self.aggregate(actions);
    }

    /// Data of a read came from an aggregator.
    fn window_arrived(
        &mut self,
        from: Rank,
        piece: &Piece,
        error: Option<IoError>,
        actions: &mut Vec<Action>,
    ) -> bool {
        let Phase::Exchanging { suppliers, .. } = &mut self.phase else { return false };
        let Some(supplier) = suppliers.iter_mut().find(|supplier| supplier.rank == from) else {
            return false;
        };
        if piece.index > supplier.domain.last_index() {
            return false;
        }
        let expected = self
            .access
            .view
            .positions_within(supplier.positions.clone(), supplier.domain.window(piece.index));
        if expected.start != supplier.positions.start
            || expected.is_empty()
            || piece.positions.end > expected.end
        {
            return false;
        }
        supplier.positions.start = expected.end;
        if supplier.domain.reuses_buffer_of(piece.index) {
            actions.push(Action::Send { to: from, message: Message::Release { index: piece.index } });
        }
        self.moved += piece.positions.end - piece.positions.start;
        self.error = self.error.or(error);
        true
    }

    fn granted(&mut self, from: Rank, index: u64, actions: &mut Vec<Action>) {
        let Phase::Exchanging { suppliers, .. } = &mut self.phase else { return self.fail(actions) };
        let sent = match suppliers.iter_mut().find(|supplier| supplier.rank == from) {
            Some(supplier) => supplier.send(index, self.group.rank, &self.access, actions),
            None => false,
        };
        if !sent {
            self.fail(actions);
        }
    }

    fn acknowledged(&mut self, from: Rank, error: Option<IoError>, actions: &mut Vec<Action>) {
        let Phase::Exchanging { suppliers, .. } = &mut self.phase else { return self.fail(actions) };
        match suppliers.iter_mut().find(|supplier| supplier.rank == from) {
            Some(supplier) if supplier.unacknowledged && supplier.positions.is_empty() => {
                supplier.unacknowledged = false;
                self.error = self.error.or(error);
            }
            _ => self.fail(actions),
        }
    }

    /// Some ranks, or all, are through with an operation that all end together.
    fn ended(&mut self, from: Rank, error: Option<IoError>, actions: &mut Vec<Action>) {
        let Phase::Exchanging { ending: Some(ending), .. } = &mut self.phase else {
            return self.fail(actions);
        };
        if ending.take(from, error).is_err() {
            self.fail(actions);
        }
    }

    fn finish_if_done(&mut self, actions: &mut Vec<Action>) {
        let Phase::Exchanging { suppliers, aggregator, ending } = &mut self.phase else { return };
        let served =
            suppliers.iter().all(|supplier| supplier.positions.is_empty() && !supplier.unacknowledged);
        let done = served
            && self.descriptions.are_complete()
            && aggregator.as_ref().is_none_or(|aggregator| aggregator.done);
        let Some(ending) = ending else {
            return if done {
                self.finish(actions)
            };
        };
        if let Some(error) = ending.go_on(done, self.error, actions) {
            self.error = error;
            self.finish(actions);
        }
    }

    fn finish(&mut self, actions: &mut Vec<Action>) {
        let moved = match self.direction {
            Direction::Write => self.access.bytes(),
            Direction::Read => self.moved,
        };
        self.phase = Phase::Finished;
        actions.push(Action::Finish { result: self.error.map_or(Ok(moved), Err) });
    }

    fn fail(&mut self, actions: &mut Vec<Action>) {
        self.error = Some(IoError::PROTOCOL);
        self.finish(actions);
    }
}

impl Aggregator {
    fn of(domain: Domain) -> Aggregator {
        let open = VecDeque::with_capacity(Slot::COUNT);
        let (clients, guard) = (Vec::new(), Guard::Open);
        Aggregator { domain, next: 0, is_next: false, open, accessing: None, clients, guard, done: false }
    }

    /// Whether the next window with data cannot have a buffer now.
    fn is_blocked(&self) -> bool {
        let is_open = |slot| self.open.iter().any(|window| Slot::of(window.index) == slot);
        self.open.len() == Slot::COUNT || (self.is_next && is_open(Slot::of(self.next)))
    }
}

impl Window {
    /// Whether nobody needs its buffer any more.
    fn is_free(&self) -> bool {
        self.awaited.is_empty()
    }
}

impl Supplier {
    /// Sends the data of the window if they come next. Whether they did.
    fn send(&mut self, index: u64, client: Rank, access: &Access, actions: &mut Vec<Action>) -> bool {
        if self.positions.is_empty() || index > self.domain.last_index() {
            return false;
        }
        let window = self.domain.window(index);
        let positions = access.view.positions_within(self.positions.clone(), window.clone());
        if positions.is_empty() || positions.start != self.positions.start {
            return false;
        }
        self.positions.start = positions.end;
        actions.push(Action::SendData {
            to: self.rank,
            piece: Piece { client, index, window, positions },
            error: None,
        });
        true
    }
}

impl StateMachine for TwoPhase {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match (&self.phase, event) {
            (Phase::Finished, _) => return,
            (Phase::Describing, Event::Start) => return self.start(actions),
            (Phase::Describing | Phase::Exchanging { .. }, Event::Received { from, message })
                if Descriptions::concern(&message) =>
            {
                return self.described(from, message, actions);
            }
            (Phase::Describing, event) => return self.descriptions.early.push(event),
            (Phase::ThroughLeaders(_), event) => {
                if let Phase::ThroughLeaders(led) = &mut self.phase {
                    led.handle(event, actions);
                }
                return;
            }
            (_, Event::Start) => panic!("started twice"),
            (Phase::Exchanging { .. }, event) if !self.descriptions.are_complete() => {
                return self.descriptions.early.push(event);
            }
            (Phase::DirectWithLock(_), event @ Event::IoDone { .. }) => {
                return self.go_on_alone(event, actions);
            }
            (Phase::Direct, Event::IoDone { result }) => {
                self.error = result.err();
                self.moved = result.unwrap_or(0);
                return self.finish(actions);
            }
            (_, Event::IoDone { result }) => self.accessed(result, actions),
            (_, Event::Room { .. }) => panic!("no room was asked for"),
            (_, Event::Data { from, piece, error }) => self.data_arrived(from, &piece, error, actions),
            (_, Event::Received { from, message }) => match message {
                Message::Describe(_)
                | Message::TakePart { .. }
                | Message::Summary(_)
                | Message::Clients(_)
                | Message::Register(_)
                | Message::Place(_)
                | Message::AmongLeaders(_)
                | Message::Inside(_) => self.fail(actions),
                Message::Ended { error } => self.ended(from, error, actions),
                Message::Grant { index } => self.granted(from, index, actions),
                Message::Release { index } => self.released(from, index, actions),
                Message::Acknowledge { error } => self.acknowledged(from, error, actions),
            },
        }
        self.finish_if_done(actions);
    }

    fn place_of(&self, rank: Rank) -> Option<&Access> {
        if let Phase::ThroughLeaders(led) = &self.phase { led.place_of(rank) } else { None }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        if let Phase::ThroughLeaders(led) = &self.phase {
            return led.access_of(rank);
        }
        if rank == self.group.rank { Some(&self.access) } else { self.descriptions.access_of(rank) }
    }
}

/// How to write what is in a collective buffer.
fn write_request(descriptions: &Descriptions, window: &Window, origin: u64, locks: bool) -> Io {
    let (slot, file) = (Slot::of(window.index), window.span.clone());
    let holes = descriptions.holes(file.clone(), &window.clients);
    if holes.size() == 0 {
        return Io::Window { direction: Direction::Write, slot, origin, file };
    }
    // Filling gaps is safe only while no rank can have left the operation and be writing into them: that is what the
    // acknowledgements of a sparse operation, which go to all ranks, are for. (Overlapping accesses can hide a gap
    // from the sum that tells a sparse operation.)
    let interval = file.start as i64..file.end as i64;
    let parts = coverage::holes_of_layouts(interval, vec![holes.clone()]);
    let most = (parts.size() / PART_BYTES) as usize;
    if !descriptions.are_sparse() || parts.extents(0..parts.size()).take(most + 1).count() <= most {
        Io::WriteParts { slot, origin, parts }
    } else {
        Io::FillAndWrite { slot, origin, file, holes, locks }
    }
}

/// What clients have in a window.
type Parts<'a> = [(Rank, &'a Access, Range<u64>)];

/// What of the window lies between the first and the last byte that clients have there.
fn span_of(parts: &Parts<'_>, window: &Range<u64>) -> Range<u64> {
    let (mut first, mut end) = (None, None);
    for (_, access, positions) in parts {
        // Nothing begins before the window or ends behind it: who is found to do so there need not be looked for further.
        if first != Some(window.start) {
            first = first.into_iter().chain(access.view.offset_of(positions.start)).min();
        }
        if end != Some(window.end) {
            end = end.max(access.view.offset_of(positions.end - 1).map(|last| last + 1));
        }
    }
    first.unwrap_or(window.start)..end.unwrap_or(window.end)
}

/// Where the data of a client begin, that are some.
fn first_offset((_, access, positions): (Rank, &Access, Range<u64>)) -> Option<u64> {
    access.view.offset_of(positions.start)
}
