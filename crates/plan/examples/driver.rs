//! The smallest driver of the strategies: all ranks in one thread, messages in a queue, the file a vector of bytes.
//!
//! `cargo run -p pio-plan --example driver` writes a file of four ranks' interleaved pieces under every strategy, checks it
//! byte by byte, and prints what each strategy asked for. A new strategy works here before the library or the simulator
//! know of it.

use std::collections::{BTreeMap, VecDeque};

use pio_layout::{Datatype, LayoutError, View};
use pio_plan::{
    Access, Action, Direction, Event, Gaps, Group, Hints, Io, Nodes, Piece, Rank, Site, Slot, StateMachine,
    Strategy, Via, Views,
};

const RANKS: u32 = 4;
const PIECES: u64 = 1000;
const PIECE_BYTES: u64 = 16;

/// One rank: its machine, its data, its two collective buffers.
struct Process {
    machine: Box<dyn StateMachine + Send>,
    access: Access,
    memory: Vec<u8>,
    buffers: [BTreeMap<u64, u8>; Slot::COUNT],
    is_done: bool,
}

/// All ranks, what is under way between them, and the file.
struct Job {
    processes: Vec<Process>,
    events: VecDeque<(Rank, Event)>,
    file: Vec<u8>,
    /// Who has the file's lock, and behind it who waits for it.
    lock: VecDeque<Rank>,
    messages: u64,
    requests: u64,
}

pub(crate) fn main() -> Result<(), LayoutError> {
    println!("{RANKS} ranks write {PIECES} pieces of {PIECE_BYTES} bytes each, by turns\n");
    println!("{:<12} {:>8} {:>11}", "strategy", "messages", "I/O actions");
    for strategy in Strategy::ALL {
        let mut job = Job::new(strategy)?;
        job.run();
        job.check();
        println!("{:<12} {:>8} {:>11}", strategy.name(), job.messages, job.requests);
    }
    Ok(())
}

/// Every rank's view: one piece in so many.
fn view(rank: u32) -> Result<View, LayoutError> {
    let turn = i64::from(RANKS) * PIECE_BYTES as i64;
    View::new(u64::from(rank) * PIECE_BYTES, 1, Datatype::bytes(PIECE_BYTES).resized(0, turn)?)
}

fn byte_of(rank: u32, position: u64) -> u8 {
    (position as u8).wrapping_mul(7) ^ (rank as u8) << 5
}

impl Job {
    fn new(strategy: Strategy) -> Result<Job, LayoutError> {
        let views = (0..RANKS).map(view).collect::<Result<Vec<View>, _>>()?;
        // Servers take views; every other strategy gets a plain file of one node.
        let via = match strategy {
            Strategy::Ecio => Via::Servers { factor: 2, unit: 4096 },
            _ => Via::Kernel,
        };
        let site = Site {
            ranks: RANKS,
            nodes: Some(Nodes::of([0; RANKS as usize]).into()),
            processors: RANKS,
            via,
            terms: Default::default(),
        };
        let known = Views {
            each: site.exchanges_views(strategy, &Hints::default()).then(|| views.clone().into()),
            gaps: views.iter().map(Gaps::of).max().unwrap_or(Gaps::None),
        };
        let context = site.context(&known, &Hints::default(), Direction::Write);
        let process = |(rank, view): (u32, View)| {
            let access = Access { view, positions: 0..PIECES * PIECE_BYTES };
            let group = Group { rank: Rank(rank), ranks: RANKS };
            Process {
                machine: strategy.collective(group, Direction::Write, access.clone(), &context),
                memory: access.positions.clone().map(|position| byte_of(rank, position)).collect(),
                access,
                buffers: Default::default(),
                is_done: false,
            }
        };
        Ok(Job {
            processes: (0..).zip(views).map(process).collect(),
            events: (0..RANKS).map(|rank| (Rank(rank), Event::Start)).collect(),
            file: vec![0; (u64::from(RANKS) * PIECES * PIECE_BYTES) as usize],
            lock: VecDeque::new(),
            messages: 0,
            requests: 0,
        })
    }

    /// Hands out events until nothing is under way.
    fn run(&mut self) {
        while let Some((rank, event)) = self.events.pop_front() {
            let mut actions = Vec::new();
            self.processes[rank.index()].machine.handle(event, &mut actions);
            for action in actions {
                self.carry_out(rank, action);
            }
        }
    }

    fn carry_out(&mut self, rank: Rank, action: Action) {
        match action {
            Action::Send { to, message } => {
                self.messages += 1;
                self.events.push_back((to, Event::Received { from: rank, message }));
            }
            Action::SendData { to, piece, error } => {
                self.messages += 1;
                self.place(to, &piece);
                self.events.push_back((to, Event::Data { from: rank, piece, error }));
            }
            Action::Copy { piece } => self.place(rank, &piece),
            Action::Gather { .. } => panic!("there are leaders where there are several nodes"),
            // One lock for all intervals: who asks for one waits for its turn.
            Action::Io(Io::Lock { .. }) => {
                self.lock.push_back(rank);
                if self.lock.len() == 1 {
                    self.events.push_back((rank, Event::IoDone { result: Ok(0) }));
                }
            }
            Action::Io(Io::Unlock { .. }) => {
                self.lock.pop_front();
                let next = self.lock.front().copied();
                for rank in [rank].into_iter().chain(next) {
                    self.events.push_back((rank, Event::IoDone { result: Ok(0) }));
                }
            }
            Action::Io(io) => {
                let result = Ok(self.request(rank, io));
                self.events.push_back((rank, Event::IoDone { result }));
            }
            Action::Finish { result } => {
                assert_eq!(result, Ok(PIECES * PIECE_BYTES));
                self.processes[rank.index()].is_done = true;
            }
        }
    }

    /// A piece of a client's data, put where it belongs in the aggregator's collective buffer.
    fn place(&mut self, aggregator: Rank, piece: &Piece) {
        let bytes = self.bytes_of(piece.client, piece.positions.clone());
        self.processes[aggregator.index()].buffers[piece.slot().index()].extend(bytes);
    }

    /// Offsets in the file, and bytes, of some data of a rank.
    fn bytes_of(&self, rank: Rank, positions: std::ops::Range<u64>) -> Vec<(u64, u8)> {
        let Process { access, memory, .. } = &self.processes[rank.index()];
        let place = |position| access.view.offset_of(position).zip(memory.get(position as usize).copied());
        positions.filter_map(place).collect()
    }

    /// Carries out a request to the file; says how many bytes it moved.
    fn request(&mut self, rank: Rank, io: Io) -> u64 {
        self.requests += 1;
        let bytes = match io {
            Io::Pieces { positions, .. } | Io::List { positions, .. } | Io::Ship { positions, .. } => {
                self.bytes_of(rank, positions)
            }
            Io::Window { slot, file, direction: Direction::Read, .. } => {
                let held = file.clone().zip(self.file[file.start as usize..file.end as usize].to_vec());
                self.processes[rank.index()].buffers[slot.index()] = held.collect();
                return file.end - file.start;
            }
            Io::Window { slot, .. } | Io::WriteParts { slot, .. } | Io::FillAndWrite { slot, .. } => {
                std::mem::take(&mut self.processes[rank.index()].buffers[slot.index()]).into_iter().collect()
            }
            Io::Lock { .. } | Io::Unlock { .. } => return 0,
        };
        for &(offset, byte) in &bytes {
            self.file[offset as usize] = byte;
        }
        bytes.len() as u64
    }

    /// Every byte of the file is the one that its rank wrote.
    fn check(&self) {
        assert!(self.processes.iter().all(|process| process.is_done));
        for (offset, byte) in (0..).zip(&self.file) {
            let (piece, within): (u64, u64) = (offset / PIECE_BYTES, offset % PIECE_BYTES);
            let (turn, rank) = (piece / u64::from(RANKS), piece % u64::from(RANKS));
            assert_eq!(*byte, byte_of(rank as u32, turn * PIECE_BYTES + within), "at {offset}");
        }
    }
}
