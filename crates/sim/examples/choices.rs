//! What the automatic choice loses on wide nodes: collective reads and writes under each strategy and under `auto`, predicted on
//! described machines with nodes of 8, 32 and 128 cores, a rank on each core. Beside what each strategy takes is what the cost model
//! thinks, by which `auto` chooses.
//!
//! `cargo run --release -p pio-sim --example choices [MACHINE [RANKS]…]` prints it for another machine, and other numbers of ranks.

use std::error::Error;
use std::sync::Arc;

use pio_layout::{Datatype, View};
use pio_machine::{Duration, Machine};
use pio_plan::cost::{Operation, Setting, possible};
use pio_plan::{Access, Description, Direction, Gaps, Hints, Nodes, Site, Strategy, Via, Views};
use pio_sim::workload::{Open, Step, What, find};
use pio_sim::{Options, Workload, simulate, terms};
use pio_trace::{Call, File, HandleId, ViewId};

const MACHINE: &str = "dragonfly-2048";
const CORES: [u32; 3] = [8, 32, 128];
const RANKS: [u32; 3] = [64, 256, 1024];
const STRATEGIES: [Strategy; 4] =
    [Strategy::Independent, Strategy::Sieving, Strategy::List, Strategy::TwoPhase];
/// Operations of a file: before the first, ranks do not know how long they wait for each other.
const OPERATIONS: u64 = 8;

/// What each rank has of the file in an operation.
#[derive(Clone, Copy)]
struct Pattern {
    pieces: u64,
    piece_bytes: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Ranks take turns piece by piece.
    InTurn,
    /// Each has a part of its own, of which it has every other piece.
    OwnPart,
}

const PATTERNS: [Pattern; 6] = [
    Pattern { pieces: 1, piece_bytes: 400, place: Place::InTurn },
    Pattern { pieces: 64, piece_bytes: 40, place: Place::InTurn },
    Pattern { pieces: 1024, piece_bytes: 40, place: Place::InTurn },
    Pattern { pieces: 64, piece_bytes: 4000, place: Place::InTurn },
    Pattern { pieces: 64, piece_bytes: 40, place: Place::OwnPart },
    Pattern { pieces: 64, piece_bytes: 4000, place: Place::OwnPart },
];

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| MACHINE.to_owned());
    let asked: Vec<u32> = std::env::args().skip(2).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let ranks = if asked.is_empty() { RANKS.to_vec() } else { asked };
    println!(
        "ms of {OPERATIONS} operations, and what the cost model thinks they take; times the best strategy's time that auto's is\n"
    );
    let mut losses = Vec::new();
    for cores in CORES {
        let mut machine = Machine::built_in(&name)?;
        machine.nodes.cores = cores;
        println!("{name}, {cores} cores a node");
        print!("{:>5} {:<28}", "ranks", "pieces of each");
        STRATEGIES.iter().for_each(|strategy| print!(" {:>19}", strategy.name()));
        println!(" {:>9} {:>6}", "auto", "times");
        let before = losses.len();
        for ranks in &ranks {
            for scene in scenes(*ranks)? {
                losses.push(scene.print(&machine, *ranks)?);
            }
        }
        summary(&losses[before..]);
    }
    print!("all: ");
    summary(&losses);
    Ok(())
}

fn summary(losses: &[f64]) {
    let mut losses = losses.to_vec();
    losses.sort_by(f64::total_cmp);
    let mean = losses.iter().map(|loss| loss.ln()).sum::<f64>() / losses.len().max(1) as f64;
    let at = |part: usize| losses.get((losses.len() * part / 10).min(losses.len().saturating_sub(1)));
    println!(
        "auto over best: geometric mean {:.3}, nine of ten up to {:.2}, most {:.2}\n",
        mean.exp(),
        at(9).unwrap_or(&1.0),
        losses.last().unwrap_or(&1.0)
    );
}

/// A workload of one file, written or read.
pub(crate) struct Scene {
    pub(crate) name: String,
    direction: Direction,
    workload: Workload,
}

pub(crate) fn scenes(ranks: u32) -> Result<Vec<Scene>, Box<dyn Error>> {
    let mut scenes = Vec::new();
    for pattern in PATTERNS {
        for direction in [Direction::Write, Direction::Read] {
            let place = if pattern.place == Place::InTurn { "in turn" } else { "own part" };
            let verb = if direction == Direction::Write { "write" } else { "read" };
            let name = format!("{verb} {} x {} B, {place}", pattern.pieces, pattern.piece_bytes);
            scenes.push(Scene { name, direction, workload: pattern.workload(ranks, direction)? });
        }
    }
    let given = [("ranks", ranks.to_string()), ("mesh", "64".to_owned()), ("dumps", OPERATIONS.to_string())];
    let given = given.into_iter().chain([("compute", "0 s".to_owned()), ("verify", "no".to_owned())]);
    let given: Vec<_> = given.map(|(key, value)| (key.to_owned(), value)).collect();
    let workload = find("bt-io")?.build(&given, 1)?;
    scenes.push(Scene { name: "write bt-io, mesh of 64".to_owned(), direction: Direction::Write, workload });
    Ok(scenes)
}

impl Scene {
    /// Milliseconds under a strategy, a rank on each core.
    pub(crate) fn time(
        &self,
        machine: &Machine,
        ranks: u32,
        strategy: Strategy,
    ) -> Result<f64, Box<dyn Error>> {
        let options = Options { ranks_per_node: Some(machine.nodes.cores.min(ranks)), ..Options::default() };
        let hints = Hints::default();
        let found = simulate(machine, &self.workload, strategy, &hints, &options, None, &mut |_| {})?;
        Ok(found.makespan.seconds() * 1e3)
    }

    /// Prints a line; how many times the best strategy's time auto's is.
    fn print(&self, machine: &Machine, ranks: u32) -> Result<f64, Box<dyn Error>> {
        print!("{ranks:>5} {:<28}", self.name);
        let thought = self.thought(machine, ranks);
        let mut best = f64::INFINITY;
        for strategy in STRATEGIES {
            let found = self.time(machine, ranks, strategy)?;
            best = best.min(found);
            let thought = thought.iter().find(|(known, _)| *known == strategy);
            let thought = thought.map_or("-".to_owned(), |(_, ms)| format!("{ms:.2}"));
            print!(" {found:>9.2} ({thought:>7})");
        }
        let auto = self.time(machine, ranks, Strategy::Auto)?;
        println!(" {auto:>9.2} {:>6.2}", auto / best);
        Ok(auto / best)
    }

    /// What the cost model thinks of each strategy, milliseconds.
    fn thought(&self, machine: &Machine, ranks: u32) -> Vec<(Strategy, f64)> {
        let terms = Arc::new(terms(machine));
        let nodes = Nodes::of((0..ranks).map(|rank| rank / machine.nodes.cores));
        let (nodes, via) = (Some(nodes.into()), Via::Kernel);
        let site = Site { ranks, nodes, processors: ranks, via, terms: terms.clone() };
        let views = &self.workload.views;
        let gaps = views.iter().map(Gaps::of).max().unwrap_or(Gaps::None);
        let context = site.context(&Views { each: None, gaps }, &Hints::default(), self.direction);
        let first = |rank: usize| {
            let mut steps = self.workload.programs[rank].iter();
            let positions = steps.find_map(|step| match &step.what {
                What::Access { positions, .. } => Some(positions.clone()),
                _ => None,
            });
            Description::of(
                &Access { view: views[rank].clone(), positions: positions.unwrap_or(0..0) },
                false,
            )
        };
        let descriptions: Vec<Description> = (0..ranks as usize).map(first).collect();
        let operation = Operation::of(self.direction, ranks, &descriptions);
        let setting = Setting::of(&context, self.direction, ranks);
        let estimates = possible(&operation, &setting, &terms);
        estimates.iter().map(|one| (one.strategy, one.seconds() * OPERATIONS as f64 * 1e3)).collect()
    }
}

impl Pattern {
    fn view(self, rank: u64, ranks: u64) -> Result<View, Box<dyn Error>> {
        let piece = Datatype::bytes(self.piece_bytes);
        let (displacement, extent) = match self.place {
            Place::InTurn => (rank * self.piece_bytes, ranks * self.piece_bytes),
            Place::OwnPart => (rank * self.pieces * self.piece_bytes * 2 * OPERATIONS, self.piece_bytes * 2),
        };
        Ok(View::new(displacement, 1, piece.resized(0, extent as i64)?)?)
    }

    /// Every rank opens the file, sets its view, and makes its calls, each behind the one before.
    fn workload(self, ranks: u32, direction: Direction) -> Result<Workload, Box<dyn Error>> {
        let bytes = self.pieces * self.piece_bytes;
        let call = match direction {
            Direction::Write => Call::MpiFileWriteAtAll,
            Direction::Read => Call::MpiFileReadAtAll,
        };
        let program = |rank: u32| {
            let (handle, view) = (HandleId(rank), ViewId(rank));
            let access = |number: u64| {
                let positions = number * bytes..(number + 1) * bytes;
                What::Access { handle, call, direction, view, positions, collective: true }
            };
            let calls = [What::Open(handle), What::SetView(handle, view)].into_iter();
            let calls = calls.chain((0..OPERATIONS).map(access)).chain([What::Close(handle)]);
            calls.map(|what| Step { think: Duration::ZERO, idle: Duration::ZERO, what }).collect()
        };
        Ok(Workload {
            name: "pattern".to_owned(),
            files: vec![File { path: "/data".to_owned() }],
            handles: (0..ranks).map(|rank| Open { file: 0, rank, group: Some(0), collective: 1 }).collect(),
            views: (0..ranks).map(|rank| self.view(rank.into(), ranks.into())).collect::<Result<_, _>>()?,
            groups: vec![(0..ranks).collect()],
            programs: (0..ranks).map(program).collect(),
            ..Workload::default()
        })
    }
}
