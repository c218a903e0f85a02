//! Servers that work on the ranks' own cores: a thread for each rank and server, as Pioscope's have one for each connection.
//!
//! A thread does one part of a request after the other, in the order in which they come. How long each takes is processor
//! time of its node: who has a processor when, the one scheduler of that node says.

use std::collections::{BTreeMap, VecDeque};

use pio_machine::{Duration, IoNodes};
use pio_plan::Direction;
use pio_protocol::has_whole_block;
use pio_protocol::waiting::look_out;

use super::Part;
use crate::kernel::Time;

/// The threads of all servers. Each has a number behind those of the ranks.
#[derive(Debug)]
pub(crate) struct Threads {
    ranks: u32,
    /// Of each thread: what it is to do; it works on the first.
    parts: Vec<VecDeque<Part>>,
    /// Of each thread: since when it has nothing to do, and the data of its last answer.
    idle: Vec<Option<(Time, u64)>>,
    /// Of each rank that waits for servers: since when, and the data that it sent.
    asks: Vec<Option<(Time, u64)>>,
    /// How many of a node's ranks do.
    asking: BTreeMap<u32, u32>,
    /// Of each rank: the server whose thread worked for it last.
    last: Vec<Option<u32>>,
    have_blocks: bool,
    /// By server and file: the thread that is alone in writing there, and those that wait to be.
    writers: BTreeMap<(u32, u32), VecDeque<u32>>,
}

/// What a thread does next that has done what it was to do.
pub(crate) enum Next {
    /// It writes the bytes of its part.
    Write(Part),
    /// It gives its processor away until others have written.
    Wait,
    /// It is through with its part. Another thread may write now what it has waited to write.
    End { woken: Option<(u32, Part)> },
}

impl Threads {
    /// Idle threads of so many servers; whether these keep checksums of blocks, as Pioscope's own do.
    pub(crate) fn new(ranks: u32, servers: u32, have_blocks: bool) -> Threads {
        let threads = ranks as usize * servers as usize;
        let parts = (0..threads).map(|_| VecDeque::new()).collect();
        let ranks_each = ranks as usize;
        Threads {
            ranks,
            parts,
            idle: vec![None; threads],
            asks: vec![None; ranks_each],
            asking: BTreeMap::new(),
            last: vec![None; ranks_each],
            have_blocks,
            writers: BTreeMap::new(),
        }
    }

    /// Whether a server lets nobody else write to its part of a file while it writes these bytes.
    pub(crate) fn writes_alone(&self, part: &Part) -> bool {
        let is_run = part.direction == Direction::Write && part.pieces == 0;
        self.have_blocks && is_run && has_whole_block(&(part.offset..part.offset + part.bytes))
    }

    /// A thread has done what it was to do.
    pub(crate) fn next(&mut self, number: u32) -> Next {
        let part_of = |thread: u32| self.parts[(thread - self.ranks) as usize].front().copied();
        let Some(part) = part_of(number).filter(|part| self.writes_alone(part)) else {
            return Next::End { woken: None };
        };
        let at = (part.server, part.file);
        let writers = self.writers.entry(at).or_default();
        if writers.front() != Some(&number) {
            writers.push_back(number);
            return if writers.len() == 1 { Next::Write(part) } else { Next::Wait };
        }
        writers.pop_front();
        let woken = writers.front().and_then(|&first| Some((first, part_of(first)?)));
        if woken.is_none() {
            self.writers.remove(&at);
        }
        Next::End { woken }
    }

    /// The server of each thread, in the order of their numbers.
    pub(crate) fn servers(&self) -> impl Iterator<Item = u32> {
        let ranks = self.ranks as usize;
        (0..self.parts.len()).map(move |thread| (thread / ranks) as u32)
    }

    /// A rank of a node begins to wait for servers, after it sent them so many bytes of data.
    pub(crate) fn begin_asking(&mut self, rank: u32, node: u32, now: Time, sent_bytes: u64) {
        self.asks[rank as usize] = Some((now, sent_bytes));
        *self.asking.entry(node).or_default() += 1;
    }

    /// It has all answers.
    pub(crate) fn end_asking(&mut self, rank: u32, node: u32) {
        if self.asks[rank as usize].take().is_some() {
            self.asking.entry(node).and_modify(|count| *count -= 1);
        }
    }

    /// How many processors of a node have something to do: a rank that waits and the thread that works for it take turns on one.
    /// Given is who is on processors there.
    pub(crate) fn busy(&self, node: u32, on_processors: impl Iterator<Item = u32>) -> u32 {
        let alone = on_processors.filter(|&one| self.asks[self.rank_of(one) as usize].is_none()).count();
        alone as u32 + self.asking.get(&node).copied().unwrap_or(0)
    }

    /// How long it takes to wake up the thread that is to work on a part, if it has a core for itself.
    pub(crate) fn time_to_wake(&self, part: &Part, io: &IoNodes, now: Time) -> Duration {
        let thread = self.thread_of(part);
        match self.idle[thread] {
            _ if !self.parts[thread].is_empty() => Duration::ZERO,
            Some(idle) => time_to_wake(idle, io, now),
            // It has not been up yet.
            None => io.deep_wake,
        }
    }

    /// And the rank that a part's answer is for.
    pub(crate) fn time_to_wake_asker(&self, part: &Part, io: &IoNodes, now: Time) -> Duration {
        self.asks[part.rank as usize].map_or(Duration::ZERO, |asks| time_to_wake(asks, io, now))
    }

    /// A thread begins to work on a part: whether its rank's last one was another server's.
    pub(crate) fn changes(&mut self, part: &Part) -> bool {
        self.last[part.rank as usize].replace(part.server).is_some_and(|last| last != part.server)
    }

    /// Itself, or whose thread it is.
    fn rank_of(&self, number: u32) -> u32 {
        number.checked_sub(self.ranks).map_or(number, |thread| thread % self.ranks)
    }

    fn thread_of(&self, part: &Part) -> usize {
        (part.server * self.ranks + part.rank) as usize
    }

    /// A part comes. Its thread's number, if that was idle: it is to begin.
    pub(crate) fn take_in(&mut self, part: Part) -> Option<u32> {
        let thread = self.thread_of(&part);
        self.idle[thread] = None;
        let parts = &mut self.parts[thread];
        parts.push_back(part);
        (parts.len() == 1).then_some(self.ranks + thread as u32)
    }

    /// A thread is through with a part: that one, and what it is to do next.
    pub(crate) fn end(&mut self, number: u32, now: Time) -> (Option<Part>, Option<Part>) {
        let thread = (number - self.ranks) as usize;
        let parts = &mut self.parts[thread];
        let (done, next) = (parts.pop_front(), parts.front().copied());
        if let (Some(part), None) = (done, next) {
            let sent_bytes = if part.direction == Direction::Read { part.bytes } else { 0 };
            self.idle[thread] = Some((now, sent_bytes));
        }
        (done, next)
    }
}

/// How long it takes to wake up a side that waits since then, after so many bytes of data that it sent: none as long as it looks out.
fn time_to_wake((since, sent_bytes): (Time, u64), io: &IoNodes, now: Time) -> Duration {
    let waited = now.since(since);
    if waited.picoseconds() <= look_out(sent_bytes).as_nanos() as u64 * 1000 {
        return Duration::ZERO;
    }
    io.time_to_wake(waited)
}

#[cfg(test)]
mod tests {
    use pio_machine::IoNodePlacement;

    use super::*;

    #[test]
    fn who_waits_looks_out_for_a_while_and_sleeps_and_then_fast() {
        let at = |us: u64| Time::default() + Duration::from_picoseconds(us * 1_000_000);
        let io = IoNodes {
            count: 1,
            placement: IoNodePlacement::Distributed,
            dedicated: false,
            shares_cores: true,
            wake: Duration::from_picoseconds(20_000_000),
            deep_wake: Duration::from_picoseconds(90_000_000),
            change: Duration::ZERO,
            channel: None,
        };
        let (none, wake, deep) = (Duration::ZERO, io.wake, io.deep_wake);
        let after = |us: u64| io.time_to_wake(Duration::from_picoseconds(us * 1_000_000));
        let half = Duration::from_picoseconds(wake.picoseconds() / 2);
        assert_eq!(
            [after(0), after(100), after(200), after(2000), after(9999)],
            [none, half, wake, deep, deep]
        );
        let between = after(1100);
        assert_eq!(between.picoseconds(), (wake.picoseconds() + deep.picoseconds()) / 2);
        let part = Part {
            rank: 1,
            file: 0,
            server: 0,
            number: 0,
            follows: false,
            direction: Direction::Read,
            offset: 0,
            bytes: 1 << 20,
            first_strip: 0,
            pieces: 0,
            apart: false,
            new_bytes: 0,
            answer_bytes: 0,
            syncs: false,
        };
        let small = Part { bytes: 8, ..part };
        let mut threads = Threads::new(2, 1, true);
        let waits = |threads: &Threads, part: &Part, us: &[u64]| -> Vec<Duration> {
            us.iter().map(|us| threads.time_to_wake(part, &io, at(*us))).collect()
        };
        assert_eq!(waits(&threads, &small, &[0]), [deep], "it has not been up yet");
        let thread = threads.take_in(small).unwrap();
        assert_eq!(waits(&threads, &small, &[500]), [none], "it works");
        threads.end(thread, at(500));
        assert_eq!(waits(&threads, &small, &[550, 600, 700, 2500]), [none, after(100), wake, deep]);
        // After much data it does not look out.
        threads.take_in(part);
        threads.end(thread, at(1000));
        assert_eq!(waits(&threads, &part, &[1000, 1020, 1200]), [none, after(20), wake]);
        // A rank as well.
        let asker =
            |threads: &Threads, us: [u64; 3]| us.map(|us| threads.time_to_wake_asker(&small, &io, at(us)));
        threads.begin_asking(1, 0, at(2000), 8);
        assert_eq!(asker(&threads, [2050, 2200, 4000]), [none, wake, deep]);
        threads.end_asking(1, 0);
        threads.begin_asking(1, 0, at(2000), 1 << 20);
        assert_eq!(asker(&threads, [2050, 2200, 4000]), [after(50), wake, deep]);
    }

    #[test]
    fn a_rank_that_asks_and_its_thread_are_on_one_core() {
        let mut threads = Threads::new(3, 1, true);
        assert_eq!(threads.busy(0, [0, 2].into_iter()), 2);
        threads.begin_asking(0, 0, Time::default(), 0);
        // Rank 0 asks, and its thread, number 3, works for it.
        assert_eq!(threads.busy(0, [3, 2].into_iter()), 2);
        assert_eq!(threads.busy(0, [0].into_iter()), 1);
        threads.end_asking(0, 0);
        assert_eq!(threads.busy(0, std::iter::empty()), 0);
    }
}
