//! Two-phase collective I/O (del Rosario, Bordawekar and Choudhary 1993; Thakur, Gropp and Lusk 1996, section 3.3).
//!
//! The interval of the file that the ranks access together is cut into one *file domain* an aggregator. In one phase,
//! the aggregators read or write their domains in large contiguous requests, window by window of the collective
//! buffer; in the other, the ranks exchange the data with the aggregators.
//!
//! The messages of a write, for a rank that is both client and aggregator:
//!
//! 1. it describes its access to every other rank (P − 1 messages; only aggregators are told the exact bytes),
//! 2. knowing all descriptions, every rank knows all domains: it sends each aggregator its data of the first window
//!    (partners − 1 messages), and those of later windows as the aggregator grants them,
//! 3. each aggregator, when its last window is written, acknowledges to its clients.
//!
//! A read turns 2 around: an aggregator sends the data of a window and goes on when its clients have released the
//! buffer. A first window needs no grant, and a last one no release: a rank's description of the *next* operation says
//! that it is through with this one. An array that fits the collective buffers thus costs the P − 1 + (partners − 1)
//! messages a rank that Thakur counted, and the acknowledgements, which his routines did without.

use std::ops::Range;

use pio_layout::coverage;

use crate::hints::Hints;
use crate::machine::{Access, Action, Direction, Event, Group, Io, IoError, Machine, Piece, Rank};
use crate::message::{Description, Message};

/// Contiguous accesses of at least this mean size, that do not touch each other's bytes, gain nothing from a detour over
/// an aggregator's buffer: each rank then makes its own request.
const DIRECT_BYTES: u64 = 64 << 10;

/// Where data have gaps between them, parts of at least this mean size are written one by one; smaller ones cost more
/// than reading the window, completing it and writing it back.
const PART_BYTES: u64 = 16 << 10;

/// A message that the protocol does not allow at this point.
const PROTOCOL_ERROR: IoError = IoError { errno: 71 };

/// One collective read or write of one rank.
#[derive(Debug)]
pub struct TwoPhase {
    group: Group,
    direction: Direction,
    access: Access,
    aggregators: u32,
    buffer_size: u64,
    striping_unit: u64,
    /// What each rank said, own rank included.
    descriptions: Vec<Option<Description>>,
    missing: u32,
    /// Came before the last description: a faster rank is already exchanging data.
    early: Vec<Event>,
    phase: Phase,
    moved: u64,
    error: Option<IoError>,
}

#[derive(Debug)]
enum Phase {
    Describing,
    /// Every rank makes its own requests: there is nothing to exchange.
    Direct,
    Exchanging {
        suppliers: Vec<Supplier>,
        aggregator: Option<Aggregator>,
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
    index: u64,
    /// Clients (other than this rank) whose data or release must still come before the window is done.
    awaited: Vec<Rank>,
    /// Bytes between the first and the last accessed byte of the window.
    span: Range<u64>,
    state: AggregatorState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AggregatorState {
    Exchanging,
    Accessing,
    Done,
}

/// The part of the file that one aggregator reads or writes.
#[derive(Clone, Debug, PartialEq)]
struct Domain {
    file: Range<u64>,
    buffer_size: u64,
}

impl Domain {
    fn index_of(&self, offset: u64) -> u64 {
        (offset - self.file.start) / self.buffer_size
    }

    fn last_index(&self) -> u64 {
        self.index_of(self.file.end - 1)
    }

    fn window(&self, index: u64) -> Range<u64> {
        let start = self.file.start + index * self.buffer_size;
        start..start.saturating_add(self.buffer_size).min(self.file.end)
    }
}

impl TwoPhase {
    /// The machine of one rank for one operation. All ranks of the group must be given the same direction and hints.
    pub fn new(group: Group, direction: Direction, access: Access, hints: &Hints) -> TwoPhase {
        assert!(group.rank.0 < group.ranks, "rank {} of {}", group.rank.0, group.ranks);
        let mut descriptions = vec![None; group.ranks as usize];
        descriptions[group.rank.index()] = Some(Description::of(&access, true));
        TwoPhase {
            group,
            direction,
            access,
            aggregators: hints.aggregators(group.ranks),
            buffer_size: hints.buffer_size(),
            striping_unit: hints.striping_unit.unwrap_or(1),
            descriptions,
            missing: group.ranks - 1,
            early: Vec::new(),
            phase: Phase::Describing,
            moved: 0,
            error: None,
        }
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        // Each rank begins with its successor, so that not all ranks turn to rank 0 at once.
        for step in 1..self.group.ranks {
            let to = Rank((self.group.rank.0 + step) % self.group.ranks);
            let message =
                Message::Describe(Description::of(&self.access, self.aggregator_index(to).is_some()));
            actions.push(Action::Send { to, message });
        }
        if self.missing == 0 {
            self.exchange(actions);
        }
    }

    fn described(&mut self, from: Rank, description: Description, actions: &mut Vec<Action>) {
        let i_aggregate = self.aggregator_index(self.group.rank).is_some();
        let complete = description.access.is_some() || description.bytes == 0 || !i_aggregate;
        match self.descriptions.get_mut(from.index()) {
            Some(slot @ None) if complete => *slot = Some(description),
            _ => return self.fail(actions),
        }
        self.missing -= 1;
        if self.missing == 0 {
            self.exchange(actions);
            for event in std::mem::take(&mut self.early) {
                self.handle(event, actions);
            }
        }
    }

    /// All descriptions are known: decide who moves which bytes, and begin.
    fn exchange(&mut self, actions: &mut Vec<Action>) {
        if self.is_direct() {
            self.phase = Phase::Direct;
            if self.access.bytes() == 0 {
                self.finish(actions);
            } else {
                let positions = self.access.positions.clone();
                actions.push(Action::Io(Io::Pieces { direction: self.direction, positions }));
            }
            return;
        }
        let domains = self.domains();
        let sparse = self.direction == Direction::Write && self.is_sparse();
        let mut suppliers = Vec::new();
        let mut aggregator = None;
        for (index, domain) in domains.into_iter().enumerate() {
            if domain.file.is_empty() {
                continue;
            }
            let rank = self.aggregator_rank(index as u32);
            if rank == self.group.rank {
                aggregator = Some(Aggregator {
                    domain,
                    index: 0,
                    awaited: Vec::new(),
                    span: 0..0,
                    state: AggregatorState::Exchanging,
                });
                continue;
            }
            let positions = self.access.within(domain.file.clone());
            let has_data = !positions.is_empty();
            let unacknowledged = self.direction == Direction::Write && (has_data || sparse);
            if has_data || unacknowledged {
                suppliers.push(Supplier { rank, domain, positions, unacknowledged });
            }
        }
        // Again from the successor on, for balance.
        let me = self.group.rank;
        suppliers.sort_by_key(|supplier| (supplier.rank < me, supplier.rank));
        self.phase = Phase::Exchanging { suppliers, aggregator };
        if self.direction == Direction::Write {
            self.send_open_windows(actions);
        }
        self.open_window(0, actions);
        self.finish_if_done(actions);
    }

    /// Sends each aggregator the data of its first window, which needs no grant.
    fn send_open_windows(&mut self, actions: &mut Vec<Action>) {
        let Phase::Exchanging { suppliers, .. } = &mut self.phase else { return };
        for supplier in suppliers {
            supplier.send(0, self.group.rank, &self.access, actions);
        }
    }

    /// Begins this aggregator's first window at or after `index` in which anyone has data.
    fn open_window(&mut self, index: u64, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        let from =
            aggregator.domain.file.start.saturating_add(index.saturating_mul(aggregator.domain.buffer_size));
        let rest = from.min(aggregator.domain.file.end)..aggregator.domain.file.end;
        let accesses =
            || self.descriptions.iter().flatten().filter_map(|description| description.access.as_ref());
        let first = accesses().filter_map(|access| first_offset(access, rest.clone())).min();
        let Some(first) = first else {
            aggregator.state = AggregatorState::Done;
            self.acknowledge(actions);
            return;
        };
        let index = aggregator.domain.index_of(first);
        let window = aggregator.domain.window(index);
        let last = accesses().filter_map(|access| last_offset(access, window.clone())).max();
        aggregator.index = index;
        aggregator.span = first..last.map_or(window.end, |last| last + 1);
        let origin = window.start;
        let clients = clients_of(&self.descriptions, &window);
        let me = self.group.rank;
        aggregator.awaited =
            clients.iter().map(|(client, _)| *client).filter(|client| *client != me).collect();
        match self.direction {
            Direction::Write => {
                aggregator.state = AggregatorState::Exchanging;
                if index > 0 {
                    let grant = |to: &Rank| Action::Send { to: *to, message: Message::Grant { index } };
                    actions.extend(aggregator.awaited.iter().map(grant));
                }
                if let Some((client, positions)) = clients.into_iter().find(|(client, _)| *client == me) {
                    actions.push(Action::Copy { piece: Piece { client, index, window, positions } });
                }
                self.write_if_complete(actions);
            }
            Direction::Read => {
                aggregator.state = AggregatorState::Accessing;
                let file = aggregator.span.clone();
                actions.push(Action::Io(Io::Window { direction: Direction::Read, origin, file }));
            }
        }
    }

    /// Writes the window when all its data are in the collective buffer.
    fn write_if_complete(&mut self, actions: &mut Vec<Action>) {
        let sparse = self.is_sparse();
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return };
        if aggregator.state != AggregatorState::Exchanging || !aggregator.awaited.is_empty() {
            return;
        }
        aggregator.state = AggregatorState::Accessing;
        let file = aggregator.span.clone();
        let origin = aggregator.domain.window(aggregator.index).start;
        let parts: Vec<_> = self
            .descriptions
            .iter()
            .flatten()
            .filter_map(|description| description.access.as_ref())
            .map(|access| (&access.view, access.within(file.clone())))
            .collect();
        let holes = coverage::holes(file.clone(), &parts);
        actions.push(Action::Io(if holes.size() == 0 {
            Io::Window { direction: Direction::Write, origin, file }
        } else {
            // Filling gaps is safe only while no rank can have left the operation and be writing into them: that is
            // what the acknowledgements of a sparse operation, which go to all ranks, are for. (Overlapping accesses can
            // hide a gap from the sum that tells a sparse operation.)
            let interval = file.start as i64..file.end as i64;
            let parts = coverage::holes_of_layouts(interval, vec![holes.clone()]);
            let most = (parts.size() / PART_BYTES) as usize;
            if !sparse || parts.extents(0..parts.size()).take(most + 1).count() <= most {
                Io::WriteParts { origin, parts }
            } else {
                Io::FillAndWrite { origin, file, holes }
            }
        }));
    }

    /// The request for a window ended: pass its data on (read), or go to the next window (write).
    fn window_accessed(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else {
            panic!("no request was outstanding");
        };
        assert_eq!(aggregator.state, AggregatorState::Accessing, "no request was outstanding");
        let error = result.err();
        let index = aggregator.index;
        self.error = self.error.or(error);
        if self.direction == Direction::Write {
            return self.open_window(index + 1, actions);
        }
        let window = aggregator.domain.window(index);
        let end = aggregator.span.start.saturating_add(result.unwrap_or(0)).min(window.end);
        let me = self.group.rank;
        for (client, positions) in clients_of(&self.descriptions, &window) {
            let access = access_in(&self.descriptions, client);
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
        if index == aggregator.domain.last_index() {
            // Nothing comes after it that would need the buffer.
            aggregator.awaited.clear();
        }
        aggregator.state = AggregatorState::Exchanging;
        self.next_if_released(actions);
    }

    fn next_if_released(&mut self, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &self.phase else { return };
        if aggregator.state == AggregatorState::Exchanging && aggregator.awaited.is_empty() {
            self.open_window(aggregator.index + 1, actions);
        }
    }

    /// Tells the clients that their data are in the file.
    fn acknowledge(&mut self, actions: &mut Vec<Action>) {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &self.phase else { return };
        if self.direction == Direction::Read {
            return;
        }
        let sparse = self.is_sparse();
        for (rank, description) in self.descriptions.iter().enumerate() {
            let to = Rank(rank as u32);
            let access = description.as_ref().and_then(|description| description.access.as_ref());
            let has_data =
                access.is_some_and(|access| !access.within(aggregator.domain.file.clone()).is_empty());
            if to != self.group.rank && (sparse || has_data) {
                actions.push(Action::Send { to, message: Message::Acknowledge { error: self.error } });
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
            self.write_if_complete(actions);
        }
    }

    /// Strikes a client off the list of those the window waits for.
    fn client_arrived(&mut self, from: Rank, index: u64) -> bool {
        let Phase::Exchanging { aggregator: Some(aggregator), .. } = &mut self.phase else { return false };
        let place = aggregator.awaited.iter().position(|client| *client == from);
        match place {
            Some(place) if index == aggregator.index => {
                aggregator.awaited.swap_remove(place);
                true
            }
            _ => false,
        }
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
        if piece.index < supplier.domain.last_index() {
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

    fn finish_if_done(&mut self, actions: &mut Vec<Action>) {
        let Phase::Exchanging { suppliers, aggregator } = &self.phase else { return };
        let served =
            suppliers.iter().all(|supplier| supplier.positions.is_empty() && !supplier.unacknowledged);
        if served && aggregator.as_ref().is_none_or(|aggregator| aggregator.state == AggregatorState::Done) {
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
        self.error = Some(PROTOCOL_ERROR);
        self.finish(actions);
    }

    /// Whether every rank's data are contiguous, large enough, and apart from each other's.
    fn is_direct(&self) -> bool {
        let mut busy: Vec<&Description> =
            self.descriptions.iter().flatten().filter(|description| description.bytes > 0).collect();
        busy.sort_by_key(|description| description.bounds.start);
        let bytes: u64 = busy.iter().map(|description| description.bytes).fold(0, u64::saturating_add);
        busy.iter().all(|description| description.is_dense())
            && busy.windows(2).all(|pair| pair[0].bounds.end <= pair[1].bounds.start)
            && (busy.len() <= 1 || bytes / busy.len() as u64 >= DIRECT_BYTES)
    }

    /// Whether there must be gaps between the ranks' data, as far as the sum of their sizes tells every rank.
    fn is_sparse(&self) -> bool {
        let bytes = self.descriptions.iter().flatten().map(|description| description.bytes);
        let all = self.bounds();
        bytes.fold(0, u64::saturating_add) != all.end - all.start
    }

    /// The interval of the file that all ranks access together.
    fn bounds(&self) -> Range<u64> {
        let busy = || self.descriptions.iter().flatten().filter(|description| description.bytes > 0);
        let start = busy().map(|description| description.bounds.start).min().unwrap_or(0);
        start..busy().map(|description| description.bounds.end).max().unwrap_or(start)
    }

    /// The file domains, one an aggregator: equal parts, their borders on multiples of the striping unit.
    fn domains(&self) -> Vec<Domain> {
        let all = self.bounds();
        let aggregators = u64::from(self.aggregators);
        let share = (all.end - all.start).div_ceil(aggregators);
        let border = |index: u64| {
            let exact = all.start.saturating_add(share.saturating_mul(index)).min(all.end);
            if index == 0 || index == aggregators || exact == all.end {
                return exact;
            }
            let aligned = (exact / self.striping_unit).saturating_mul(self.striping_unit);
            aligned.clamp(all.start, all.end)
        };
        let domain = |index| Domain { file: border(index)..border(index + 1), buffer_size: self.buffer_size };
        (0..aggregators).map(domain).collect()
    }

    fn aggregator_rank(&self, index: u32) -> Rank {
        Rank((u64::from(index) * u64::from(self.group.ranks) / u64::from(self.aggregators)) as u32)
    }

    fn aggregator_index(&self, rank: Rank) -> Option<u32> {
        let index =
            (u64::from(rank.0) * u64::from(self.aggregators)).div_ceil(u64::from(self.group.ranks)) as u32;
        (index < self.aggregators && self.aggregator_rank(index) == rank).then_some(index)
    }
}

impl Supplier {
    /// Sends the data of the window if they come next. Whether they did.
    fn send(&mut self, index: u64, client: Rank, access: &Access, actions: &mut Vec<Action>) -> bool {
        if index > self.domain.last_index() {
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

impl Machine for TwoPhase {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match (&self.phase, event) {
            (Phase::Finished, _) => return,
            (Phase::Describing, Event::Start) => return self.start(actions),
            (Phase::Describing, Event::Received { from, message: Message::Describe(description) }) => {
                return self.described(from, description, actions);
            }
            (Phase::Describing, event) => return self.early.push(event),
            (_, Event::Start) => panic!("started twice"),
            (Phase::Direct, Event::IoDone { result }) => {
                self.error = result.err();
                self.moved = result.unwrap_or(0);
                return self.finish(actions);
            }
            (_, Event::IoDone { result }) => self.window_accessed(result, actions),
            (_, Event::Data { from, piece, error }) => self.data_arrived(from, &piece, error, actions),
            (_, Event::Received { from, message }) => match message {
                Message::Describe(_) => self.fail(actions),
                Message::Grant { index } => self.granted(from, index, actions),
                Message::Release { index } => {
                    if self.direction == Direction::Read && self.client_arrived(from, index) {
                        self.next_if_released(actions);
                    } else {
                        self.fail(actions);
                    }
                }
                Message::Acknowledge { error } => self.acknowledged(from, error, actions),
            },
        }
        self.finish_if_done(actions);
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        if rank == self.group.rank { Some(&self.access) } else { access_in(&self.descriptions, rank) }
    }
}

fn access_in(descriptions: &[Option<Description>], rank: Rank) -> Option<&Access> {
    descriptions.get(rank.index())?.as_ref()?.access.as_ref()
}

/// The ranks that have data in the window, and which.
fn clients_of(descriptions: &[Option<Description>], window: &Range<u64>) -> Vec<(Rank, Range<u64>)> {
    let part = |(rank, description): (usize, &Option<Description>)| {
        let positions = description.as_ref()?.access.as_ref()?.within(window.clone());
        (!positions.is_empty()).then_some((Rank(rank as u32), positions))
    };
    descriptions.iter().enumerate().filter_map(part).collect()
}

fn first_offset(access: &Access, file: Range<u64>) -> Option<u64> {
    let positions = access.within(file);
    if positions.is_empty() { None } else { access.view.offset_of(positions.start) }
}

fn last_offset(access: &Access, file: Range<u64>) -> Option<u64> {
    let positions = access.within(file);
    if positions.is_empty() { None } else { access.view.offset_of(positions.end - 1) }
}
