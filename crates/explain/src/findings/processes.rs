//! What each process does as a whole.

use pio_trace::{Flags, Op};

use super::cost::Cost;
use super::limits::{SMALL, THINK_NS};
use crate::bandwidth::Covered;
use crate::tally::Seen;

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessState {
    pub(crate) ranked: bool,
    /// Time in calls that are charged.
    pub(crate) covered: Covered,
    /// Bytes that it has read and written so far: the clock by which reuse is measured.
    pub(crate) clock: u64,
    /// What the program moved, of a rank: by whether it was written, and whether together with others.
    asked: [[Cost; 2]; 2],
    /// Requests at the files by the power of two of the nanoseconds they took, of a rank.
    durations: [u32; 40],
    turn: Turn,
    /// All its reads and writes at the files, of a rank.
    pub(crate) at_files: Cost,
    /// Time in these.
    covered_at_files: Covered,
}

/// I/O and thinking by turns.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    io_ns: u64,
    think_ns: u64,
    turns: u64,
    overlap_ns: u64,
    cost: Cost,
}

impl Turn {
    /// If it was thought since the last request: what was computed then could have gone on during the I/O before.
    fn end(&mut self) {
        if self.think_ns < THINK_NS {
            return;
        }
        if self.io_ns > 0 {
            self.turns += 1;
            self.overlap_ns = self.overlap_ns.saturating_add(self.io_ns.min(self.think_ns));
        }
        (self.io_ns, self.think_ns) = (0, 0);
    }
}

impl ProcessState {
    pub(crate) fn new(ranked: bool) -> ProcessState {
        ProcessState {
            ranked,
            covered: Covered::default(),
            clock: 0,
            asked: Default::default(),
            durations: [0; 40],
            turn: Turn::default(),
            at_files: Cost::default(),
            covered_at_files: Covered::default(),
        }
    }

    /// Takes note of a read or write at the files, whoever caused it. Only ranks are compared.
    #[inline]
    pub(crate) fn add_at_files(&mut self, event: &Seen<'_>) {
        if !self.ranked {
            return;
        }
        // Where its threads are at the files together, that time counts once.
        let own_ns = self.covered_at_files.add(event.start_ns, event.end_ns()).1;
        self.at_files.add(&event.overlapped(own_ns));
        let power = (64 - event.elapsed_ns.leading_zeros() as usize).min(self.durations.len() - 1);
        self.durations[power] = self.durations[power].saturating_add(1);
    }

    /// Takes note of a read or write of the program.
    #[inline]
    pub(crate) fn add_asked(&mut self, event: &Seen<'_>) {
        self.clock = self.clock.saturating_add(event.bytes);
        if self.ranked {
            let (writes, together) = (event.op() == Op::Write, event.flags.contains(Flags::COLLECTIVE));
            self.asked[usize::from(writes)][usize::from(together)].add(event);
        }
    }

    /// What a rank wrote for the program.
    pub(crate) fn writes(&self) -> Cost {
        let [_, [mut writes, together]] = self.asked;
        writes.merge(&together);
        writes
    }

    /// What the program moved without others, of a rank.
    pub(crate) fn alone(&self) -> Cost {
        let [[mut alone, _], [writes, _]] = self.asked;
        alone.merge(&writes);
        alone
    }

    /// CPU time before a call of the program.
    pub(crate) fn think(&mut self, think_ns: u64) {
        self.turn.think_ns = self.turn.think_ns.saturating_add(think_ns);
    }

    /// A request with which nothing is wrong, but that the program waits for it.
    pub(crate) fn wait(&mut self, event: &Seen<'_>) {
        if event.bytes < SMALL {
            return;
        }
        self.turn.end();
        self.turn.io_ns = self.turn.io_ns.saturating_add(event.own_ns);
        self.turn.cost.add(event);
    }

    /// What of its latest request was waiting for other ranks: it cannot be hidden behind computing.
    pub(crate) fn waited_for_ranks(&mut self, time_ns: u64) {
        self.turn.io_ns = self.turn.io_ns.saturating_sub(time_ns);
        self.turn.cost.take_away(time_ns);
    }

    /// Turns of I/O and thinking, the time that both could have shared, nanoseconds, and the requests.
    pub(crate) fn overlap(&self) -> (u64, u64, Cost) {
        let mut turn = self.turn;
        turn.end();
        (turn.turns, turn.overlap_ns, turn.cost)
    }

    /// Power of two of the nanoseconds of its median request.
    pub(crate) fn median_power(&self) -> usize {
        let half = self.durations.iter().map(|&count| u64::from(count)).sum::<u64>() / 2;
        let mut before = 0;
        self.durations
            .iter()
            .position(|&count| {
                before += u64::from(count);
                before > half
            })
            .unwrap_or(0)
    }
}
