//! All threads of all processes, in order of time, in memory that does not grow with the number of records.
//!
//! A thread's records lie almost in order of their start: a call's record is written when it returns, and only a call
//! within a call (an MPI message that a strategy reports late) comes out of turn. So each thread keeps a window of
//! records, sorted; the threads are merged by the first of each window. A thread's window is filled when its first
//! call's time has come and given back after its last.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use crate::spool::{self, Chunk, Record, Spool};

/// Records that are looked at together: more than any call has inside it that is not in order.
const WINDOW: usize = 256;

/// A thread to merge.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Index of its process, for the caller.
    pub process: usize,
    /// Its number in the process.
    pub number: u32,
    /// Added to its clock to get the wall clock.
    pub shift_ns: i128,
    chunks: VecDeque<Chunk>,
    /// By start.
    window: VecDeque<Record>,
}

impl Thread {
    /// A thread with these chunks.
    pub(crate) fn new(process: usize, number: u32, shift_ns: i128, chunks: Vec<Chunk>) -> Thread {
        Thread { process, number, shift_ns, chunks: chunks.into(), window: VecDeque::new() }
    }

    fn fill(&mut self, spool: &Spool) -> io::Result<()> {
        if self.window.len() >= WINDOW || self.chunks.is_empty() {
            return Ok(());
        }
        while self.window.len() < WINDOW
            && let Some(chunk) = self.chunks.pop_front()
        {
            let bytes = spool.read_found(chunk)?;
            let calls =
                spool::records(&bytes).map(|(record, _)| record).filter(|record| record.call < spool::ADOPT);
            self.window.extend(calls);
        }
        // Stable: calls that start together stay in their order.
        self.window.make_contiguous().sort_by_key(|record| record.start_ns);
        Ok(())
    }
}

/// The merge.
pub(crate) struct Merge<'a> {
    spools: &'a [Spool],
    threads: Vec<Thread>,
    /// Wall clock of the next record, thread.
    heads: BinaryHeap<Reverse<(i128, usize)>>,
}

impl<'a> Merge<'a> {
    /// Merges `threads`, each with the time of its first call by its own clock. `spools` are those of the processes that
    /// the threads name.
    pub(crate) fn new(spools: &'a [Spool], threads: Vec<(u64, Thread)>) -> Merge<'a> {
        let mut heads = BinaryHeap::new();
        let mut all = Vec::new();
        for (first_ns, thread) in threads {
            heads.push(Reverse((i128::from(first_ns) + thread.shift_ns, all.len())));
            all.push(thread);
        }
        Merge { spools, threads: all, heads }
    }

    /// The next record, with its thread and its start by the wall clock.
    pub(crate) fn next(&mut self) -> io::Result<Option<(&Thread, i128, Record)>> {
        while let Some(Reverse((_, index))) = self.heads.pop() {
            let thread = &mut self.threads[index];
            thread.fill(&self.spools[thread.process])?;
            let Some(record) = thread.window.pop_front() else { continue };
            let start_ns = i128::from(record.start_ns) + thread.shift_ns;
            thread.fill(&self.spools[thread.process])?;
            if let Some(next) = thread.window.front() {
                self.heads.push(Reverse((i128::from(next.start_ns) + thread.shift_ns, index)));
            }
            return Ok(Some((&self.threads[index], start_ns, record)));
        }
        Ok(None)
    }
}
