//! Strategies against a byte-by-byte reference: all ranks' machines, stepped by hand, messages delivered in any order
//! that keeps each pair's own order, on a file that is a vector of bytes.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use pio_layout::{Datatype, View};
use pio_plan::{
    Access, Action, Context, Direction, Event, Gaps, Group, Hints, Io, IoError, Message, Nodes, OwnHints,
    PerNode, Piece, Rank, Site, Slot, StateMachine, Strategy, Switch, Via, ViewExchange, Views,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A message on its way.
enum Parcel {
    Message(Message),
    Data { piece: Piece, bytes: Vec<u8>, error: Option<IoError> },
}

struct World {
    direction: Direction,
    file: Vec<u8>,
    /// Whether data go straight between a client's memory and the aggregator's buffer, as between ranks that share
    /// memory: a write's when they are sent, a read's when the client hears of them.
    in_place: bool,
    /// Fails every request of this rank's aggregator.
    broken: Option<Rank>,
    machines: Vec<Box<dyn StateMachine + Send>>,
    accesses: Vec<Access>,
    memory: Vec<Vec<u8>>,
    buffers: Vec<[BTreeMap<u64, u8>; Slot::COUNT]>,
    mail: BTreeMap<(Rank, Rank), VecDeque<Parcel>>,
    results: Vec<Option<Result<u64, IoError>>>,
    pending_io: Vec<(Rank, Io)>,
    locks: Vec<(Rank, Range<u64>)>,
    sent: BTreeMap<&'static str, u32>,
    requests: Vec<(Rank, Range<u64>)>,
}

impl World {
    fn new(
        strategy: Strategy,
        direction: Direction,
        accesses: Vec<Access>,
        file: Vec<u8>,
        hints: &Hints,
    ) -> World {
        let ranks = accesses.len() as u32;
        // All ranks' operations of strategies that need not work together are as if each rank made its own.
        let views =
            strategy.exchanges_views().then(|| accesses.iter().map(|access| access.view.clone()).collect());
        let via = match strategy {
            Strategy::Ecio => Via::Servers { factor: 3, unit: 64 },
            _ => Via::Kernel,
        };
        // Where it is asked who aggregates, the ranks are dealt out to three nodes in turn.
        let nodes = hints.cb_nodes.map(|_| Nodes::of((0..ranks).map(|rank| rank % 3)).into());
        let site = Site { ranks, nodes, processors: ranks, via, terms: Default::default() };
        let context = Context {
            // Whatever the accesses are: others may sieve beside them.
            guarded: true,
            ..site.context(&Views { each: views, gaps: Gaps::BetweenSmallPieces }, hints, direction)
        };
        let machine = |(rank, access): (usize, &Access)| {
            let group = Group { rank: Rank(rank as u32), ranks };
            strategy.collective(group, direction, access.clone(), &context)
        };
        let memory = accesses.iter().enumerate().map(|(rank, access)| match direction {
            Direction::Read => vec![0xEE; access.bytes() as usize],
            Direction::Write => {
                (0..access.bytes()).map(|byte| (byte as u8).wrapping_mul(7) ^ (rank as u8) << 5).collect()
            }
        });
        World {
            direction,
            file,
            in_place: false,
            broken: None,
            machines: accesses.iter().enumerate().map(machine).collect(),
            memory: memory.collect(),
            buffers: vec![Default::default(); ranks as usize],
            mail: BTreeMap::new(),
            results: vec![None; ranks as usize],
            pending_io: Vec::new(),
            locks: Vec::new(),
            sent: BTreeMap::new(),
            requests: Vec::new(),
            accesses,
        }
    }

    fn run(&mut self, seed: u64) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        self.in_place = random.random();
        let mut unstarted: Vec<Rank> = (0..self.machines.len() as u32).map(Rank).collect();
        loop {
            let full: Vec<(Rank, Rank)> = self
                .mail
                .iter()
                .filter(|(pair, queue)| !queue.is_empty() && !unstarted.contains(&pair.1))
                .map(|(pair, _)| *pair)
                .collect();
            let requests: Vec<usize> =
                (0..self.pending_io.len()).filter(|index| self.can_do(&self.pending_io[*index])).collect();
            let choices = unstarted.len() + full.len() + requests.len();
            if choices == 0 {
                break;
            }
            let choice = random.random_range(0..choices);
            if choice < unstarted.len() {
                let rank = unstarted.swap_remove(choice);
                self.step(rank, Event::Start);
            } else if choice < unstarted.len() + full.len() {
                let pair = full[choice - unstarted.len()];
                self.deliver(pair);
            } else {
                let request = requests[choice - unstarted.len() - full.len()];
                let (rank, io) = self.pending_io.remove(request);
                let result = self.carry_out(rank, io);
                self.step(rank, Event::IoDone { result });
            }
        }
        for (rank, result) in self.results.iter().enumerate() {
            assert!(result.is_some(), "rank {rank} never finished");
        }
        assert!(self.mail.values().all(VecDeque::is_empty), "messages were left over");
        assert!(self.locks.is_empty(), "locks were left behind");
    }

    /// Whether a request need not wait for another rank's lock.
    fn can_do(&self, (rank, io): &(Rank, Io)) -> bool {
        let Io::Lock { file } = io else { return true };
        let meets = |(owner, held): &(Rank, Range<u64>)| {
            owner != rank && held.start < file.end && file.start < held.end
        };
        !self.locks.iter().any(meets)
    }

    fn deliver(&mut self, (from, to): (Rank, Rank)) {
        match self.mail.get_mut(&(from, to)).unwrap().pop_front().unwrap() {
            Parcel::Message(message) => {
                let message = match message {
                    Message::Inside(_) => message,
                    message => Message::decode(&message.encode()).unwrap(),
                };
                self.step(to, Event::Received { from, message });
            }
            Parcel::Data { piece, bytes, error } => {
                match self.direction {
                    Direction::Write if self.in_place => {}
                    Direction::Write => self.place(to, from, &piece, &bytes),
                    Direction::Read if self.in_place && error.is_none() => {
                        let bytes = self.gather(from, &piece);
                        self.take(to, &piece, &bytes);
                    }
                    Direction::Read => self.take(to, &piece, &bytes),
                }
                self.step(to, Event::Data { from, piece, error });
            }
        }
    }

    fn step(&mut self, rank: Rank, event: Event) {
        assert!(
            self.results[rank.index()].is_none(),
            "rank {} is told of {event:?} after it finished",
            rank.0
        );
        let mut actions = Vec::new();
        self.machines[rank.index()].handle(event, &mut actions);
        for action in actions {
            assert!(self.results[rank.index()].is_none(), "rank {} acts after it finished", rank.0);
            match action {
                Action::Send { to, message } => {
                    let kind = match &message {
                        Message::Describe(_) => "describe",
                        Message::Grant { .. } => "grant",
                        Message::Release { .. } => "release",
                        Message::Acknowledge { .. } => "acknowledge",
                        Message::Register(_) => "register",
                        Message::TakePart { .. } => "take part",
                        Message::Inside(_) => "inside",
                    };
                    *self.sent.entry(kind).or_default() += 1;
                    self.mail.entry((rank, to)).or_default().push_back(Parcel::Message(message));
                }
                Action::SendData { to, piece, error } => {
                    *self.sent.entry("data").or_default() += 1;
                    let bytes = match self.direction {
                        Direction::Read if self.in_place || error.is_some() => Vec::new(),
                        _ => self.gather(rank, &piece),
                    };
                    if self.in_place && self.direction == Direction::Write {
                        self.place(to, rank, &piece, &bytes);
                    }
                    self.mail.entry((rank, to)).or_default().push_back(Parcel::Data { piece, bytes, error });
                }
                Action::Copy { piece } => {
                    let bytes = self.gather(rank, &piece);
                    match self.direction {
                        Direction::Write => self.place(rank, rank, &piece, &bytes),
                        Direction::Read => self.take(rank, &piece, &bytes),
                    }
                }
                Action::Io(io) => {
                    assert!(!self.pending_io.iter().any(|(of, _)| *of == rank), "two requests at once");
                    self.pending_io.push((rank, io));
                }
                Action::Finish { result } => self.results[rank.index()] = Some(result),
            }
        }
    }

    /// The data of a piece on the sending side.
    fn gather(&self, rank: Rank, piece: &Piece) -> Vec<u8> {
        match self.direction {
            Direction::Write => {
                assert_eq!(piece.client, rank);
                let start = self.accesses[rank.index()].positions.start;
                piece
                    .positions
                    .clone()
                    .map(|position| self.memory[rank.index()][(position - start) as usize])
                    .collect()
            }
            Direction::Read => {
                let access = &self.accesses[piece.client.index()];
                assert_eq!(self.machines[rank.index()].access_of(piece.client), Some(access));
                piece
                    .positions
                    .clone()
                    .map(|position| {
                        self.buffers[rank.index()][piece.slot().index()]
                            [&access.view.offset_of(position).unwrap()]
                    })
                    .collect()
            }
        }
    }

    fn place(&mut self, aggregator: Rank, client: Rank, piece: &Piece, bytes: &[u8]) {
        let access = self.accesses[client.index()].clone();
        if !self.in_place {
            assert_eq!(self.machines[aggregator.index()].access_of(client), Some(&access));
        }
        for (position, byte) in piece.positions.clone().zip(bytes) {
            let offset = access.view.offset_of(position).unwrap();
            assert!(piece.window.contains(&offset));
            self.buffers[aggregator.index()][piece.slot().index()].insert(offset, *byte);
        }
    }

    fn take(&mut self, client: Rank, piece: &Piece, bytes: &[u8]) {
        assert_eq!(piece.client, client);
        let start = self.accesses[client.index()].positions.start;
        for (position, byte) in piece.positions.clone().zip(bytes) {
            self.memory[client.index()][(position - start) as usize] = *byte;
        }
    }

    fn carry_out(&mut self, rank: Rank, io: Io) -> Result<u64, IoError> {
        if self.broken == Some(rank) {
            return Err(IoError { errno: 28 });
        }
        match io {
            Io::Lock { file } => {
                self.locks.push((rank, file));
                Ok(0)
            }
            Io::Unlock { file } => {
                let held =
                    self.locks.iter().position(|lock| *lock == (rank, file.clone())).expect("it is held");
                self.locks.remove(held);
                Ok(0)
            }
            Io::Pieces { direction: Direction::Write, positions }
            | Io::List { direction: Direction::Write, positions }
            | Io::Ship { direction: Direction::Write, positions } => {
                for position in positions.clone() {
                    let offset = self.accesses[rank.index()].view.offset_of(position).unwrap();
                    let byte = self.memory[rank.index()]
                        [(position - self.accesses[rank.index()].positions.start) as usize];
                    self.write(offset, byte);
                }
                Ok(positions.end - positions.start)
            }
            Io::Pieces { direction: Direction::Read, positions }
            | Io::List { direction: Direction::Read, positions }
            | Io::Ship { direction: Direction::Read, positions } => {
                let start = self.accesses[rank.index()].positions.start;
                let mut moved = 0;
                for position in positions {
                    let offset = self.accesses[rank.index()].view.offset_of(position).unwrap();
                    let Some(byte) = self.file.get(offset as usize) else { break };
                    self.memory[rank.index()][(position - start) as usize] = *byte;
                    moved += 1;
                }
                Ok(moved)
            }
            Io::Window { direction: Direction::Write, slot, file, .. } => {
                self.requests.push((rank, file.clone()));
                for offset in file.clone() {
                    let byte = self.buffers[rank.index()][slot.index()][&offset];
                    self.write(offset, byte);
                }
                self.buffers[rank.index()][slot.index()].clear();
                Ok(file.end - file.start)
            }
            Io::Window { direction: Direction::Read, slot, file, .. } => {
                self.requests.push((rank, file.clone()));
                // To write, data of other ranks may be there already.
                if self.direction == Direction::Read {
                    self.buffers[rank.index()][slot.index()].clear();
                }
                let end = file.end.min(self.file.len() as u64).max(file.start);
                for offset in file.clone() {
                    let byte = self.file.get(offset as usize).copied().unwrap_or(0);
                    self.buffers[rank.index()][slot.index()].entry(offset).or_insert(byte);
                }
                Ok(end - file.start)
            }
            Io::WriteParts { slot, parts, .. } => {
                for part in parts.extents(0..parts.size()) {
                    for offset in part.offset as u64..part.offset as u64 + part.len {
                        let byte = self.buffers[rank.index()][slot.index()][&offset];
                        self.write(offset, byte);
                    }
                }
                self.buffers[rank.index()][slot.index()].clear();
                Ok(parts.size())
            }
            Io::FillAndWrite { slot, file, holes, .. } => {
                for hole in holes.extents(0..holes.size()) {
                    for offset in hole.offset as u64..hole.offset as u64 + hole.len {
                        assert!(
                            !self.buffers[rank.index()][slot.index()].contains_key(&offset),
                            "a hole holds data"
                        );
                        let byte = self.file.get(offset as usize).copied().unwrap_or(0);
                        self.buffers[rank.index()][slot.index()].insert(offset, byte);
                    }
                }
                for offset in file.clone() {
                    let byte = self.buffers[rank.index()][slot.index()][&offset];
                    self.write(offset, byte);
                }
                self.buffers[rank.index()][slot.index()].clear();
                Ok(file.end - file.start)
            }
        }
    }

    fn write(&mut self, offset: u64, byte: u8) {
        let at = offset as usize;
        if self.file.len() <= at {
            self.file.resize(at + 1, 0);
        }
        self.file[at] = byte;
    }

    fn sent(&self, kind: &str) -> u32 {
        self.sent.get(kind).copied().unwrap_or(0)
    }
}

/// Writes with disjoint accesses must leave exactly this file.
fn expected_file(world: &World) -> Vec<u8> {
    let mut file = world.file.clone();
    for (access, memory) in world.accesses.iter().zip(&world.memory) {
        for (position, byte) in access.positions.clone().zip(memory) {
            let offset = access.view.offset_of(position).unwrap() as usize;
            if file.len() <= offset {
                file.resize(offset + 1, 0);
            }
            file[offset] = *byte;
        }
    }
    file
}

/// Ranks that own every `ranks`-th piece, with `gap` unowned bytes a round.
fn interleaved(ranks: u64, piece: u64, gap: u64, displacement: u64, pieces: &[u64]) -> Vec<Access> {
    let access = |(rank, count): (usize, &u64)| {
        let tile = Datatype::bytes(piece).resized(0, (ranks * piece + gap) as i64).unwrap();
        let view = View::new(displacement + rank as u64 * piece, 1, tile).unwrap();
        Access { view, positions: 0..count * piece }
    };
    pieces.iter().enumerate().map(access).collect()
}

fn hints(cb_nodes: u32, cb_buffer_size: u64, striping_unit: Option<u64>) -> Hints {
    Hints {
        cb_nodes: Some(cb_nodes),
        cb_buffer_size: Some(cb_buffer_size),
        striping_unit,
        ind_rd_buffer_size: Some(cb_buffer_size),
        ind_wr_buffer_size: Some(cb_buffer_size),
        striping_factor: None,
        // Else ROMIO goes alone where ranks that are no neighbours overlap, and its locks do not suffice.
        own: OwnHints {
            cb_read: Some(Switch::Enable),
            cb_write: Some(Switch::Enable),
            aggregators_per_node: Some(PerNode::All),
            ..OwnHints::default()
        },
    }
}

fn strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
    let others = proptest::sample::select([&Strategy::ALL[..], &Strategy::OWN].concat());
    prop_oneof![2 => others, 1 => Just(Strategy::TwoPhase)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn writes_leave_the_expected_file(
        strategy in strategy(),
        pieces in proptest::collection::vec(0u64..20, 1..7),
        piece in 1u64..9, gap in prop_oneof![Just(0u64), 1u64..40], displacement in 0u64..50,
        old in 0usize..900, cb_nodes in 1u32..8, buffer in 1u64..300, unit in proptest::option::of(1u64..64), seed: u64,
    ) {
        let accesses = interleaved(pieces.len() as u64, piece, gap, displacement, &pieces);
        let old: Vec<u8> = (0..old).map(|at| at as u8 | 1).collect();
        let mut world = World::new(strategy, Direction::Write, accesses, old, &hints(cb_nodes, buffer, unit));
        let expected = expected_file(&world);
        world.run(seed);
        prop_assert_eq!(&world.file, &expected);
        for (result, access) in world.results.iter().zip(&world.accesses) {
            prop_assert_eq!(result.unwrap(), Ok(access.bytes()));
        }
    }

    #[test]
    fn reads_bring_what_the_file_holds(
        strategy in strategy(),
        parts in proptest::collection::vec((0u64..60, 1u64..9, 0u64..30, 0u64..40), 1..7),
        size in 0usize..900, cb_nodes in 1u32..8, buffer in 1u64..300, seed: u64,
    ) {
        // Accesses of a read may overlap and lie beyond the end of the file.
        let accesses: Vec<Access> = parts.iter().map(|(displacement, piece, gap, bytes)| {
            let tile = Datatype::bytes(*piece).resized(0, (piece + gap) as i64).unwrap();
            Access { view: View::new(*displacement, 1, tile).unwrap(), positions: 3..3 + bytes * 3 }
        }).collect();
        let file: Vec<u8> = (0..size).map(|at| at as u8 | 1).collect();
        let mut world = World::new(strategy, Direction::Read, accesses, file, &hints(cb_nodes, buffer, None));
        world.run(seed);
        for (rank, access) in world.accesses.iter().enumerate() {
            let held: Vec<u8> = access.positions.clone()
                .map_while(|position| world.file.get(access.view.offset_of(position).unwrap() as usize).copied()).collect();
            prop_assert_eq!(world.results[rank].unwrap(), Ok(held.len() as u64));
            prop_assert_eq!(&world.memory[rank][..held.len()], &held[..]);
            prop_assert!(world.memory[rank][held.len()..].iter().all(|byte| *byte == 0xEE));
        }
    }

    #[test]
    fn overlapping_writes_touch_nothing_else(
        strategy in strategy(),
        parts in proptest::collection::vec((0u64..60, 1u64..9, 0u64..30, 0u64..40), 2..6),
        cb_nodes in 1u32..8, buffer in 1u64..300, seed: u64,
    ) {
        let accesses: Vec<Access> = parts.iter().map(|(displacement, piece, gap, bytes)| {
            let tile = Datatype::bytes(*piece).resized(0, (piece + gap) as i64).unwrap();
            Access { view: View::new(*displacement, 1, tile).unwrap(), positions: 0..*bytes }
        }).collect();
        let old = vec![0xAA; 700];
        let mut world = World::new(strategy, Direction::Write, accesses, old, &hints(cb_nodes, buffer, None));
        world.run(seed);
        let mut allowed: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (access, memory) in world.accesses.iter().zip(&world.memory) {
            for (position, byte) in access.positions.clone().zip(memory) {
                allowed.entry(access.view.offset_of(position).unwrap()).or_default().push(*byte);
            }
        }
        for (offset, byte) in world.file.iter().enumerate() {
            match allowed.get(&(offset as u64)) {
                Some(bytes) => prop_assert!(bytes.contains(byte)),
                None => prop_assert_eq!(*byte, if offset < 700 { 0xAA } else { 0 }),
            }
        }
    }

    #[test]
    fn an_aggregator_that_cannot_write_is_known_to_its_clients(
        pieces in proptest::collection::vec(1u64..20, 2..7), buffer in 8u64..300, seed: u64,
    ) {
        let ranks = pieces.len() as u64;
        let mut world = World::new(
            Strategy::TwoPhase, Direction::Write, interleaved(ranks, 4, 0, 0, &pieces), Vec::new(), &hints(1, buffer, None),
        );
        world.broken = Some(Rank(0));
        world.run(seed);
        for result in &world.results {
            prop_assert_eq!(result.unwrap(), Err(IoError { errno: 28 }));
        }
    }
}

#[test]
fn a_block_distributed_array_costs_thakurs_messages() {
    // 128 x 128 x 64 reals over 2 x 2 x 2 processes, after a header of 24 bytes (Thakur et al. 1996, section 4).
    let element = Datatype::bytes(4);
    let accesses: Vec<Access> = (0..8_u64)
        .map(|rank| {
            let starts = [(rank % 2) * 64, (rank / 2 % 2) * 64, rank / 4 * 32];
            let tile = Datatype::subarray(
                &[128, 128, 64],
                &[64, 64, 32],
                &starts,
                pio_layout::Order::Fortran,
                &element,
            )
            .unwrap();
            Access { view: View::new(24, 4, tile).unwrap(), positions: 0..64 * 64 * 32 * 4 }
        })
        .collect();
    let mut world = World::new(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &Hints::default());
    let expected = expected_file(&world);
    world.run(1);
    assert!(world.file == expected);
    assert_eq!(world.sent("describe"), 8 * 7);
    assert_eq!(world.sent("data"), 8 * 3);
    assert_eq!(world.sent("acknowledge"), 8 * 3);
    assert_eq!(world.sent("grant") + world.sent("release"), 0);
    // "a single write operation each": 512 KB.
    world.requests.sort_by_key(|(rank, _)| *rank);
    let slabs: Vec<_> = (0..8)
        .map(|rank| (Rank(rank), 24 + u64::from(rank) * 524_288..24 + u64::from(rank + 1) * 524_288))
        .collect();
    assert_eq!(world.requests, slabs);
}

#[test]
fn large_contiguous_parts_are_written_where_they_are() {
    let accesses: Vec<Access> = (0..4_u64)
        .map(|rank| Access { view: View::contiguous(rank * 100_000), positions: 0..100_000 })
        .collect();
    let mut world = World::new(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &Hints::default());
    let expected = expected_file(&world);
    world.run(1);
    assert!(world.file == expected);
    assert_eq!((world.sent("describe"), world.sent("data")), (12, 0));
}

#[test]
fn registered_views_are_not_said_again() {
    let accesses = interleaved(4, 4, 0, 24, &[50; 4]);
    let mut machines: Vec<ViewExchange> = (0..4)
        .map(|rank| {
            ViewExchange::new(Group { rank: Rank(rank), ranks: 4 }, accesses[rank as usize].view.clone())
        })
        .collect();
    let mut mail = Vec::new();
    for (rank, machine) in machines.iter_mut().enumerate() {
        let mut actions = Vec::new();
        machine.handle(Event::Start, &mut actions);
        mail.extend(actions.into_iter().map(|action| (Rank(rank as u32), action)));
    }
    let mut finished = 0;
    while let Some((from, action)) = mail.pop() {
        match action {
            Action::Send { to, message } => {
                let mut actions = Vec::new();
                machines[to.index()].handle(Event::Received { from, message }, &mut actions);
                mail.extend(actions.into_iter().map(|action| (to, action)));
            }
            Action::Finish { result } => {
                assert_eq!(result, Ok(0));
                finished += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(finished, 4);
    for machine in machines {
        let views = machine.views().unwrap();
        assert!(views.iter().eq(accesses.iter().map(|access| &access.view)));
    }

    let described = |strategy| {
        let mut world =
            World::new(strategy, Direction::Write, accesses.clone(), Vec::new(), &hints(4, 64, None));
        world.run(3);
        (world.sent("describe"), world.sent("take part"))
    };
    assert_eq!(described(Strategy::TwoPhase), (12, 0));
    assert_eq!(described(Strategy::ViewBased), (0, 12));
}

#[test]
fn a_window_is_exchanged_while_the_one_before_is_written() {
    // One aggregator, two clients, eight windows: while the aggregator has a request for a window outstanding, the
    // client is granted the next one but that.
    let accesses = interleaved(2, 4, 0, 0, &[128; 2]);
    let site = Site { ranks: 2, nodes: None, processors: 2, via: Via::Kernel, terms: Default::default() };
    let views = Views { each: None, gaps: Gaps::BetweenSmallPieces };
    let context = site.context(&views, &hints(1, 128, None), Direction::Write);
    let group = |rank| Group { rank: Rank(rank), ranks: 2 };
    let mut aggregator =
        Strategy::TwoPhase.collective(group(0), Direction::Write, accesses[0].clone(), &context);
    let mut client = Strategy::TwoPhase.collective(group(1), Direction::Write, accesses[1].clone(), &context);
    let (mut a, mut c) = (Vec::new(), Vec::new());
    aggregator.handle(Event::Start, &mut a);
    client.handle(Event::Start, &mut c);
    let (mut granted, mut outstanding, mut exchanged_meanwhile) = (Vec::new(), false, 0);
    loop {
        let mut moved = false;
        for action in std::mem::take(&mut a) {
            moved = true;
            match action {
                Action::Send { message, .. } => {
                    if let Message::Grant { index } = message {
                        granted.push(index);
                    }
                    client.handle(Event::Received { from: Rank(0), message }, &mut c);
                }
                Action::Io(_) => outstanding = true,
                _ => {}
            }
        }
        for action in std::mem::take(&mut c) {
            moved = true;
            match action {
                Action::Send { message, .. } => {
                    aggregator.handle(Event::Received { from: Rank(1), message }, &mut a)
                }
                Action::SendData { piece, error, .. } => {
                    exchanged_meanwhile += u32::from(outstanding);
                    aggregator.handle(Event::Data { from: Rank(1), piece, error }, &mut a);
                }
                _ => {}
            }
        }
        if !moved && !std::mem::take(&mut outstanding) {
            break;
        } else if !moved {
            aggregator.handle(Event::IoDone { result: Ok(128) }, &mut a);
        }
    }
    assert_eq!(granted, [2, 3, 4, 5, 6, 7]);
    assert!(exchanged_meanwhile >= 6, "{exchanged_meanwhile}");
}
