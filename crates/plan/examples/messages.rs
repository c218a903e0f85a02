//! What ranks say to each other in one collective write, by the number of ranks: all ranks' machines stepped by hand, without
//! data and without a file.
//!
//! `cargo run --release -p pio-plan --example messages` prints it for 1,024, 4,096 and 16,384 ranks, 128 on each node, of which one
//! aggregates and speaks for the others: two-phase I/O, for 1,024 ranks what ROMIO sends, as its model has it, and for 16,384 what is
//! sent without leaders. Each line is of a process of its own, which the command begins, so that its memory can be told.

use std::collections::VecDeque;
use std::error::Error;
use std::process::Command;

use pio_layout::{Datatype, LayoutError, View};
use pio_plan::{
    Access, Action, Context, Describe, Direction, Event, Gaps, Group, Hints, Io, Message, Nodes, Rank, Site,
    StateMachine, Strategy, ToldViews, Tree, Via, Views,
};

pub(crate) const RANKS_PER_NODE: u32 = 128;
const PIECES: u64 = 64;
const PIECE_BYTES: u64 = 40;

/// Who writes which pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Ranks take turns piece by piece: each has data for every aggregator.
    Everywhere,
    /// Each has a part of the file of its own, every other piece of it: for one aggregator, or two. Gaps are left.
    Blocks,
}

impl Pattern {
    fn view(self, rank: u64, ranks: u64) -> Result<View, LayoutError> {
        let piece = Datatype::bytes(PIECE_BYTES);
        match self {
            Pattern::Everywhere => {
                View::new(rank * PIECE_BYTES, 1, piece.resized(0, (ranks * PIECE_BYTES) as i64)?)
            }
            Pattern::Blocks => {
                View::new(rank * PIECES * PIECE_BYTES * 2, 1, piece.resized(0, PIECE_BYTES as i64 * 2)?)
            }
        }
    }
}

/// What one rank sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Messages of the descriptions.
    pub(crate) describing: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Messages with data.
    pub(crate) data: u64,
    /// Messages that say that data are in the file.
    pub(crate) ends: u64,
    /// Ranks that data went to, and of a leader those for whom it speaks.
    pub(crate) partners: u64,
}

/// What the ranks sent in one operation.
pub(crate) struct Job {
    pub(crate) each: Vec<Sent>,
    /// Of the longest chain of messages, each of which waited for the one before.
    pub(crate) steps: u64,
    machines: Vec<Box<dyn StateMachine + Send>>,
    events: VecDeque<(Rank, u64, Event)>,
    heard: Vec<u64>,
    last_partner: Vec<Option<Rank>>,
}

impl Job {
    /// The operations of a file of so many ranks, so many of them on each node, one after the other.
    pub(crate) fn operations(
        strategy: Strategy,
        (ranks, ranks_per_node): (u32, u32),
        pattern: Pattern,
        describe: Option<Describe>,
        operations: u64,
    ) -> Result<Vec<Job>, LayoutError> {
        let nodes = Nodes::of((0..ranks).map(|rank| rank / ranks_per_node));
        let nodes = Some(nodes.into());
        let site = Site { ranks, nodes, processors: ranks, via: Via::Kernel, terms: Default::default() };
        let views = Views { each: None, gaps: Gaps::BetweenSmallPieces };
        let context = site.context(&views, &Hints { describe, ..Hints::default() }, Direction::Write);
        let told: Vec<ToldViews> = (0..ranks).map(|_| ToldViews::default()).collect();
        let job = |number| Job::run(strategy, ranks, pattern, number, &context, &told);
        (0..operations).map(job).collect()
    }

    fn run(
        strategy: Strategy,
        ranks: u32,
        pattern: Pattern,
        number: u64,
        context: &Context,
        told: &[ToldViews],
    ) -> Result<Job, LayoutError> {
        let bytes = PIECES * PIECE_BYTES;
        let machine = |rank: u32| {
            let view = pattern.view(u64::from(rank), u64::from(ranks))?;
            let access = Access { view, positions: number * bytes..(number + 1) * bytes };
            let context = Context { told: told[rank as usize].clone(), ..context.clone() };
            Ok(strategy.collective(Group { rank: Rank(rank), ranks }, Direction::Write, access, &context))
        };
        let mut job = Job {
            each: vec![Sent::default(); ranks as usize],
            steps: 0,
            machines: (0..ranks).map(machine).collect::<Result<_, LayoutError>>()?,
            events: (0..ranks).map(|rank| (Rank(rank), 0, Event::Start)).collect(),
            heard: vec![0; ranks as usize],
            last_partner: vec![None; ranks as usize],
        };
        let mut finished = 0;
        let mut actions = Vec::new();
        while let Some((rank, step, event)) = job.events.pop_front() {
            let heard = &mut job.heard[rank.index()];
            *heard = step.max(*heard);
            job.steps = job.steps.max(*heard);
            job.machines[rank.index()].handle(event, &mut actions);
            for action in actions.drain(..) {
                finished += u32::from(matches!(action, Action::Finish { result: Ok(_) }));
                job.carry_out(rank, action);
            }
        }
        assert_eq!(finished, ranks, "every rank ends");
        Ok(job)
    }

    fn carry_out(&mut self, rank: Rank, action: Action) {
        let step = self.heard[rank.index()] + 1;
        let sent = &mut self.each[rank.index()];
        match action {
            Action::Send { to, message } => {
                match among(&message) {
                    Message::Acknowledge { .. } | Message::Ended { .. } => sent.ends += 1,
                    Message::Grant { .. } | Message::Release { .. } => {}
                    _ => {
                        sent.describing += 1;
                        sent.bytes += message.size();
                    }
                }
                self.events.push_back((to, step, Event::Received { from: rank, message }));
            }
            Action::SendData { to, piece, error } => {
                sent.data += 1;
                if self.last_partner[rank.index()].replace(to) != Some(to) {
                    sent.partners += 1;
                }
                // A leader tells those for whom it speaks where their data belong.
                self.each[to.index()].partners += u64::from(piece.is_gathered());
                self.events.push_back((to, step, Event::Data { from: rank, piece, error }));
            }
            Action::Io(io) => {
                let bytes = match io {
                    Io::Window { file, .. } | Io::FillAndWrite { file, .. } => file.end - file.start,
                    Io::Pieces { positions, .. } => positions.end - positions.start,
                    _ => 0,
                };
                self.events.push_back((rank, step - 1, Event::IoDone { result: Ok(bytes) }));
            }
            Action::Gather { .. } => {
                self.events.push_back((rank, step - 1, Event::Room { result: Ok(()) }));
            }
            Action::Copy { .. } | Action::Finish { .. } => {}
        }
    }

    /// The most of any rank, and the mean.
    pub(crate) fn most_and_mean(&self, of: impl Fn(&Sent) -> u64) -> (u64, f64) {
        let sum: u64 = self.each.iter().map(&of).sum();
        (self.each.iter().map(of).max().unwrap_or(0), sum as f64 / self.each.len() as f64)
    }
}

/// What leaders say to each other counts as what any ranks do.
fn among(message: &Message) -> &Message {
    if let Message::AmongLeaders(message) = message { message } else { message }
}

const CASES: [(Strategy, u32, Option<Describe>); 5] = [
    (Strategy::TwoPhase, 1024, None),
    (Strategy::Romio, 1024, None),
    (Strategy::TwoPhase, 4096, None),
    (Strategy::TwoPhase, 16_384, None),
    (Strategy::TwoPhase, 16_384, Some(Describe::Aggregators)),
];
const PATTERNS: [Pattern; 2] = [Pattern::Everywhere, Pattern::Blocks];

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    if let [pattern, case] = arguments[..] {
        return Ok(print(PATTERNS[pattern], CASES[case])?);
    }
    println!(
        "One collective write, {PIECES} pieces of {PIECE_BYTES} bytes a rank, {RANKS_PER_NODE} ranks a node; a second one after it."
    );
    println!(
        "Of a rank, most (mean): messages of descriptions, their bytes, messages with data, and those at the end; partners,"
    );
    println!(
        "with which it exchanges data. The sums of descriptions are up to 2 log2 P of its messages: log."
    );
    println!("Steps: messages that waited for each other. Memory: of all that a rank keeps in both, KiB.\n");
    println!(
        "{:<11} {:<10} {:<12} {:>6} {:>6} {:>3} {:>13} {:>15} {:>10} {:>11} {:>11} {:>6} {:>7}",
        "pattern",
        "strategy",
        "pio_describe",
        "ranks",
        "write",
        "log",
        "describing",
        "bytes",
        "data",
        "partners",
        "end",
        "steps",
        "memory"
    );
    for pattern in 0..PATTERNS.len() {
        for case in 0..CASES.len() {
            let case = [pattern, case].map(|number| number.to_string());
            let status = Command::new(std::env::current_exe()?).args(case).status()?;
            if !status.success() {
                return Err(format!("a case ended with {status}").into());
            }
        }
    }
    Ok(())
}

fn print(
    pattern: Pattern,
    (strategy, ranks, describe): (Strategy, u32, Option<Describe>),
) -> Result<(), LayoutError> {
    let before = memory_kib("VmRSS:");
    // The second time, aggregators know the views.
    let jobs = Job::operations(strategy, (ranks, RANKS_PER_NODE), pattern, describe, 2)?;
    let memory = memory_kib("VmHWM:").saturating_sub(before) as f64 / f64::from(ranks);
    for (number, job) in (1..).zip(&jobs) {
        let cell = |of: fn(&Sent) -> u64| {
            let (most, mean) = job.most_and_mean(of);
            format!("{most} ({mean:.0})")
        };
        println!(
            "{:<11} {:<10} {:<12} {:>6} {:>6} {:>3} {:>13} {:>15} {:>10} {:>11} {:>11} {:>6} {:>7.1}",
            format!("{pattern:?}").to_lowercase(),
            strategy.name(),
            describe.map_or("", Describe::name),
            ranks,
            number,
            2 * Tree::depth(ranks),
            cell(|sent| sent.describing),
            cell(|sent| sent.bytes),
            cell(|sent| sent.data),
            cell(|sent| sent.partners),
            cell(|sent| sent.ends),
            job.steps,
            memory
        );
    }
    Ok(())
}

/// What the kernel says of this process, KiB; 0 where it does not.
fn memory_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
