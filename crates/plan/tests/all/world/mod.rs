//! All ranks' machines, stepped by hand: messages delivered in any order that keeps each pair's own order, on a file that is
//! a vector of bytes. Ranks go from operation to operation by themselves, so that a fast one is operations ahead of a slow one.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use pio_layout::{Datatype, View};
use pio_plan::{
    Access, Action, Context, Direction, Event, Gaps, Group, Guard, Hints, Io, IoError, Message, Nodes,
    OwnHints, PerNode, Piece, Rank, Site, Slot, StateMachine, Strategy, Switch, ToldViews, Via, Views,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A message on its way.
enum Parcel {
    Message(Message),
    Data { piece: Piece, bytes: Vec<u8>, error: Option<IoError> },
}

pub(crate) struct World {
    strategy: Strategy,
    direction: Direction,
    pub file: Vec<u8>,
    /// Whether data go straight between a client's memory and the aggregator's buffer, as between ranks that share
    /// memory: a write's when they are sent, a read's when the client hears of them.
    in_place: bool,
    /// From this operation on, each rank makes its own without the others.
    pub alone_from: usize,
    /// Fails every request of this rank's aggregator.
    pub broken: Option<Rank>,
    /// Fails requests with these error numbers.
    pub refuses: fn(&Io) -> Option<i32>,
    /// Has no room for what this rank is to gather.
    pub crowded: Option<Rank>,
    context: Context,
    told: Vec<ToldViews>,
    machines: Vec<Box<dyn StateMachine + Send>>,
    /// The operation that each rank is in.
    at: Vec<usize>,
    /// By operation and rank.
    pub accesses: Vec<Vec<Access>>,
    pub memory: Vec<Vec<Vec<u8>>>,
    buffers: Vec<[BTreeMap<u64, u8>; Slot::BUFFERS]>,
    /// Whether a rank's own memory is what it gathered, in the operation that it is in.
    gathers: Vec<bool>,
    /// By operation, sender and receiver.
    mail: BTreeMap<(usize, Rank, Rank), VecDeque<Parcel>>,
    /// By operation and rank.
    pub results: Vec<Vec<Option<Result<u64, IoError>>>>,
    pending_io: Vec<(Rank, Io)>,
    pending_room: Vec<(Rank, Result<(), IoError>)>,
    /// Shared ones say so.
    locks: Vec<(Rank, Range<u64>, bool)>,
    sent: BTreeMap<&'static str, u32>,
    /// By operation and rank, messages but for data and what grants or acknowledges them.
    pub described: Vec<Vec<u32>>,
    pub requests: Vec<(Rank, Range<u64>)>,
    /// How many locks were asked for.
    pub locked: u32,
}

impl World {
    /// One operation.
    pub(crate) fn new(
        strategy: Strategy,
        direction: Direction,
        accesses: Vec<Access>,
        file: Vec<u8>,
        hints: &Hints,
    ) -> World {
        World::of_operations(strategy, direction, vec![accesses], file, hints)
    }

    /// Several, of the same number of ranks and under the same views.
    pub(crate) fn of_operations(
        strategy: Strategy,
        direction: Direction,
        accesses: Vec<Vec<Access>>,
        file: Vec<u8>,
        hints: &Hints,
    ) -> World {
        let ranks = accesses[0].len();
        let via = match strategy {
            Strategy::Ecio => Via::Servers { factor: 3, unit: 64 },
            _ => Via::Kernel,
        };
        // Where it is asked who aggregates, the ranks are dealt out to three nodes in turn.
        let nodes = hints.cb_nodes.map(|_| Nodes::of((0..ranks as u32).map(|rank| rank % 3)).into());
        let site =
            Site { ranks: ranks as u32, nodes, processors: ranks as u32, via, terms: Default::default() };
        let views = || accesses[0].iter().map(|access| access.view.clone()).collect();
        let views = site.exchanges_views(strategy, hints).then(views);
        let context = Context {
            // Whatever the accesses are: others may sieve beside them.
            guard: if ranks.is_multiple_of(2) { Guard::Shared } else { Guard::Alone },
            ..site.context(&Views { each: views, gaps: Gaps::BetweenSmallPieces }, hints, direction)
        };
        let memory = |access: &Access, rank: usize| match direction {
            Direction::Read => vec![0xEE; access.bytes() as usize],
            Direction::Write => (0..access.bytes())
                .map(|byte| ((byte + access.positions.start) as u8).wrapping_mul(7) ^ (rank as u8) << 5)
                .collect(),
        };
        let memory = |accesses: &Vec<Access>| {
            accesses.iter().enumerate().map(|(rank, access)| memory(access, rank)).collect()
        };
        let mut world = World {
            strategy,
            direction,
            file,
            in_place: false,
            alone_from: usize::MAX,
            broken: None,
            refuses: |_| None,
            crowded: None,
            pending_room: Vec::new(),
            context,
            told: (0..ranks).map(|_| ToldViews::default()).collect(),
            machines: Vec::new(),
            at: vec![0; ranks],
            memory: accesses.iter().map(memory).collect(),
            buffers: vec![Default::default(); ranks],
            gathers: vec![false; ranks],
            mail: BTreeMap::new(),
            results: vec![vec![None; ranks]; accesses.len()],
            pending_io: Vec::new(),
            locks: Vec::new(),
            sent: BTreeMap::new(),
            described: vec![vec![0; ranks]; accesses.len()],
            requests: Vec::new(),
            locked: 0,
            accesses,
        };
        world.machines = (0..ranks as u32).map(|rank| world.machine(Rank(rank))).collect();
        world
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.at.len() as u32
    }

    /// For the operation that a rank is in.
    fn machine(&self, rank: Rank) -> Box<dyn StateMachine + Send> {
        let group = Group { rank, ranks: self.ranks() };
        let access = self.access(rank).clone();
        let context = Context { told: self.told[rank.index()].clone(), ..self.context.clone() };
        if self.at[rank.index()] >= self.alone_from {
            return self.strategy.alone(rank, self.direction, access, &context);
        }
        self.strategy.collective(group, self.direction, access, &context)
    }

    /// In the operation that the rank is in.
    fn access(&self, rank: Rank) -> &Access {
        &self.accesses[self.at[rank.index()]][rank.index()]
    }

    /// A data byte of a rank's own: of the program's memory, or of what it gathered.
    fn own(&mut self, rank: Rank, is_gathered: bool, position: u64) -> &mut u8 {
        if self.gathers[rank.index()] && !is_gathered {
            return self.buffers[rank.index()][Slot::GATHERED.index()].entry(position).or_insert(0xDD);
        }
        let start = if is_gathered { 0 } else { self.access(rank).positions.start };
        &mut self.memory[self.at[rank.index()]][rank.index()][(position - start) as usize]
    }

    /// The access of a piece's client, as whoever places or gathers the data knows it. The client knows it, too, unless what tells
    /// it is still on its way, before the data.
    fn access_for(&self, other: Rank, piece: &Piece) -> Access {
        let of = |rank: Rank| self.machines[rank.index()].access_for(piece, piece.client);
        let client = of(piece.client);
        if self.in_place {
            return client.unwrap().clone();
        }
        assert!(client.is_none_or(|access| of(other) == Some(access)));
        of(other).unwrap().clone()
    }

    pub(crate) fn run(&mut self, seed: u64) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        self.in_place = random.random();
        let mut unstarted: Vec<Rank> = (0..self.machines.len() as u32).map(Rank).collect();
        loop {
            // Nothing else comes between.
            if let Some((rank, result)) = self.pending_room.pop() {
                unstarted.extend(self.step(rank, Event::Room { result }));
                continue;
            }
            self.mail.retain(|_, queue| !queue.is_empty());
            let is_awaited = |(operation, _, to): &&(usize, Rank, Rank)| {
                *operation == self.at[to.index()] && !unstarted.contains(to)
            };
            let full: Vec<_> = self.mail.keys().filter(is_awaited).copied().collect();
            let requests: Vec<usize> =
                (0..self.pending_io.len()).filter(|index| self.can_do(&self.pending_io[*index])).collect();
            let choices = unstarted.len() + full.len() + requests.len();
            if choices == 0 {
                break;
            }
            let choice = random.random_range(0..choices);
            if choice < unstarted.len() {
                let rank = unstarted.swap_remove(choice);
                unstarted.extend(self.step(rank, Event::Start));
            } else if choice < unstarted.len() + full.len() {
                let address = full[choice - unstarted.len()];
                unstarted.extend(self.deliver(address));
            } else {
                let request = requests[choice - unstarted.len() - full.len()];
                let (rank, io) = self.pending_io.remove(request);
                let result = self.carry_out(rank, io);
                unstarted.extend(self.step(rank, Event::IoDone { result }));
            }
        }
        for (operation, results) in self.results.iter().enumerate() {
            for (rank, result) in results.iter().enumerate() {
                assert!(result.is_some(), "rank {rank} never finished operation {operation}");
            }
        }
        assert!(self.mail.values().all(VecDeque::is_empty), "messages were left over");
        assert!(self.locks.is_empty(), "locks were left behind");
    }

    /// Whether a request need not wait for another rank's lock.
    fn can_do(&self, (rank, io): &(Rank, Io)) -> bool {
        let Io::Lock { file, shared } = io else { return true };
        let meets = |(owner, held, is_shared): &(Rank, Range<u64>, bool)| {
            owner != rank && held.start < file.end && file.start < held.end && !(*shared && *is_shared)
        };
        !self.locks.iter().any(meets)
    }

    /// The receiver, if it ended an operation by that and has another to begin.
    fn deliver(&mut self, (operation, from, to): (usize, Rank, Rank)) -> Option<Rank> {
        match self.mail.get_mut(&(operation, from, to)).unwrap().pop_front().unwrap() {
            Parcel::Message(message) => {
                let message = match message {
                    Message::Inside(_) => message,
                    message => Message::decode(&message.encode()).unwrap(),
                };
                self.step(to, Event::Received { from, message })
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
                self.step(to, Event::Data { from, piece, error })
            }
        }
    }

    fn step(&mut self, rank: Rank, event: Event) -> Option<Rank> {
        let at = self.at[rank.index()];
        assert!(
            self.results[at][rank.index()].is_none(),
            "rank {} is told of {event:?} after it finished",
            rank.0
        );
        let mut actions = Vec::new();
        self.machines[rank.index()].handle(event, &mut actions);
        for action in actions {
            assert!(self.results[at][rank.index()].is_none(), "rank {} acts after it finished", rank.0);
            match action {
                Action::Send { to, message } => {
                    let kind = match &message {
                        Message::Describe(_) => "describe",
                        Message::Summary(_) => "summary",
                        Message::Clients(_) => "clients",
                        Message::Ended { .. } => "ended",
                        Message::Grant { .. } => "grant",
                        Message::Release { .. } => "release",
                        Message::Acknowledge { .. } => "acknowledge",
                        Message::Place(_) => "place",
                        Message::AmongLeaders(_) => "among leaders",
                        Message::Register(_) => "register",
                        Message::TakePart { .. } => "take part",
                        Message::Inside(_) => "inside",
                    };
                    *self.sent.entry(kind).or_default() += 1;
                    if !matches!(kind, "grant" | "release" | "acknowledge") {
                        self.described[at][rank.index()] += 1;
                    }
                    self.mail.entry((at, rank, to)).or_default().push_back(Parcel::Message(message));
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
                    self.mail.entry((at, rank, to)).or_default().push_back(Parcel::Data {
                        piece,
                        bytes,
                        error,
                    });
                }
                Action::Gather { bytes } => {
                    assert!(bytes > 0 && !self.gathers[rank.index()]);
                    let result = if self.crowded == Some(rank) {
                        Err(IoError { errno: 12 })
                    } else {
                        self.gathers[rank.index()] = true;
                        self.buffers[rank.index()][Slot::GATHERED.index()].clear();
                        Ok(())
                    };
                    self.pending_room.push((rank, result));
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
                Action::Finish { result } => self.results[at][rank.index()] = Some(result),
            }
        }
        let has_more = self.results[at][rank.index()].is_some() && at + 1 < self.accesses.len();
        has_more.then(|| {
            self.at[rank.index()] += 1;
            self.gathers[rank.index()] = false;
            self.machines[rank.index()] = self.machine(rank);
            rank
        })
    }

    /// The data of a piece on the sending side.
    fn gather(&mut self, rank: Rank, piece: &Piece) -> Vec<u8> {
        match self.direction {
            Direction::Write => {
                assert_eq!(piece.client, rank);
                let is_gathered = piece.is_gathered();
                piece.positions.clone().map(|position| *self.own(rank, is_gathered, position)).collect()
            }
            Direction::Read => {
                // As the client knows it: an aggregator from whose buffer the data are taken may be ahead.
                let access = self.access_for(rank, piece);
                let buffer = &self.buffers[rank.index()][piece.slot().index()];
                let byte = |position| buffer[&access.view.offset_of(position).unwrap()];
                piece.positions.clone().map(byte).collect()
            }
        }
    }

    fn place(&mut self, aggregator: Rank, client: Rank, piece: &Piece, bytes: &[u8]) {
        assert_eq!(piece.client, client);
        let access = self.access_for(aggregator, piece);
        for (position, byte) in piece.positions.clone().zip(bytes) {
            let offset = access.view.offset_of(position).unwrap();
            assert!(piece.window.contains(&offset));
            self.buffers[aggregator.index()][piece.slot().index()].insert(offset, *byte);
        }
    }

    fn take(&mut self, client: Rank, piece: &Piece, bytes: &[u8]) {
        assert_eq!(piece.client, client);
        for (position, byte) in piece.positions.clone().zip(bytes) {
            *self.own(client, piece.is_gathered(), position) = *byte;
        }
    }

    fn carry_out(&mut self, rank: Rank, io: Io) -> Result<u64, IoError> {
        if self.broken == Some(rank) {
            return Err(IoError { errno: 28 });
        }
        if let Some(errno) = (self.refuses)(&io) {
            if let Io::Unlock { file } = &io {
                self.locks.retain(|(owner, held, _)| *owner != rank || held != file);
            }
            return Err(IoError { errno });
        }
        match io {
            Io::Lock { file, shared } => {
                self.locks.push((rank, file, shared));
                self.locked += 1;
                Ok(0)
            }
            Io::Unlock { file } => {
                let is_it = |(owner, held, _): &(Rank, Range<u64>, bool)| *owner == rank && *held == file;
                let held = self.locks.iter().position(is_it).expect("it is held");
                self.locks.remove(held);
                Ok(0)
            }
            Io::Pieces { direction: Direction::Write, positions }
            | Io::List { direction: Direction::Write, positions }
            | Io::Ship { direction: Direction::Write, positions } => {
                let access = self.machines[rank.index()].access_of(rank).unwrap().clone();
                for position in positions.clone() {
                    let byte = *self.own(rank, false, position);
                    self.write(access.view.offset_of(position).unwrap(), byte);
                }
                Ok(positions.end - positions.start)
            }
            Io::Pieces { direction: Direction::Read, positions }
            | Io::List { direction: Direction::Read, positions }
            | Io::Ship { direction: Direction::Read, positions } => {
                let access = self.machines[rank.index()].access_of(rank).unwrap().clone();
                let mut moved = 0;
                for position in positions {
                    let offset = access.view.offset_of(position).unwrap();
                    let Some(byte) = self.file.get(offset as usize).copied() else { break };
                    *self.own(rank, false, position) = byte;
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

    pub(crate) fn sent(&self, kind: &str) -> u32 {
        self.sent.get(kind).copied().unwrap_or(0)
    }
}

/// Writes with disjoint accesses must leave exactly this file.
pub(crate) fn expected_file(world: &World) -> Vec<u8> {
    let mut file = world.file.clone();
    let (accesses, memory) = (world.accesses.iter().flatten(), world.memory.iter().flatten());
    for (access, memory) in accesses.zip(memory) {
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
pub(crate) fn interleaved(
    ranks: u64,
    piece: u64,
    gap: u64,
    displacement: u64,
    pieces: &[u64],
) -> Vec<Access> {
    let access = |(rank, count): (usize, &u64)| {
        let tile = Datatype::bytes(piece).resized(0, (ranks * piece + gap) as i64).unwrap();
        let view = View::new(displacement + rank as u64 * piece, 1, tile).unwrap();
        Access { view, positions: 0..count * piece }
    };
    pieces.iter().enumerate().map(access).collect()
}

pub(crate) fn hints(cb_nodes: u32, cb_buffer_size: u64, striping_unit: Option<u64>) -> Hints {
    Hints {
        cb_nodes: Some(cb_nodes),
        cb_buffer_size: Some(cb_buffer_size),
        striping_unit,
        ind_rd_buffer_size: Some(cb_buffer_size),
        ind_wr_buffer_size: Some(cb_buffer_size),
        striping_factor: None,
        describe: None,
        // Else ROMIO goes alone where ranks that are no neighbours overlap, and its locks do not suffice.
        own: OwnHints {
            cb_read: Some(Switch::Enable),
            cb_write: Some(Switch::Enable),
            aggregators_per_node: Some(PerNode::All),
            ..OwnHints::default()
        },
    }
}
