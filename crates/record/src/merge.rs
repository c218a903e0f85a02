//! The records of one process in order of time, in memory that does not grow with their number.
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

/// Records of a thread.
#[derive(Debug)]
struct Thread {
    /// Its number in the process.
    number: u32,
    chunks: VecDeque<Chunk>,
    /// By start.
    window: VecDeque<Record>,
}

impl Thread {
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

/// The merge of a process's threads.
pub(crate) struct Merge<'a> {
    spool: &'a Spool,
    threads: Vec<Thread>,
    /// Start of the next record, thread.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Merge<'a> {
    /// Merges streams of chunks of this spool, each with the number of its thread and the time of its first call.
    pub(crate) fn new(spool: &'a Spool, streams: impl Iterator<Item = (u32, u64, Vec<Chunk>)>) -> Merge<'a> {
        let mut merge = Merge { spool, threads: Vec::new(), heads: BinaryHeap::new() };
        for (number, first_ns, chunks) in streams {
            merge.heads.push(Reverse((first_ns, merge.threads.len())));
            merge.threads.push(Thread { number, chunks: chunks.into(), window: VecDeque::new() });
        }
        merge
    }

    /// The next record, with the number of its thread.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u32, Record)>> {
        while let Some(Reverse((_, index))) = self.heads.pop() {
            let thread = &mut self.threads[index];
            thread.fill(self.spool)?;
            let Some(record) = thread.window.pop_front() else {
                thread.window = VecDeque::new();
                continue;
            };
            thread.fill(self.spool)?;
            if let Some(next) = thread.window.front() {
                self.heads.push(Reverse((next.start_ns, index)));
            }
            return Ok(Some((thread.number, record)));
        }
        Ok(None)
    }
}
