//! A delay line: what goes in comes out a fixed number of cycles later, in the same order.
//!
//! Every delay of the engine is the same for all who suffer it, so that no queue ordered by time is needed: what goes in
//! in one cycle is a batch, and comes out as one.

use std::collections::VecDeque;

/// What is on its way.
#[derive(Debug)]
pub(super) struct Line<T> {
    delay: u64,
    /// A batch for each cycle from now to the delay: that of a cycle is at its number, modulo their count.
    batches: Vec<Vec<T>>,
    /// Where what goes in now belongs.
    entrance: usize,
    /// The cycles in which something comes out.
    due: VecDeque<u64>,
}

impl<T> Line<T> {
    pub(super) fn new(delay: u64) -> Line<T> {
        let batches = (0..=delay).map(|_| Vec::new()).collect();
        let mut line = Line { delay, batches, entrance: 0, due: VecDeque::new() };
        line.begin(0);
        line
    }

    /// A cycle begins. None in which something comes out is left out.
    #[inline]
    pub(super) fn begin(&mut self, cycle: u64) {
        self.entrance = ((cycle + self.delay) % (self.delay + 1)) as usize;
    }

    /// Puts in `what` in the cycle that has begun, which is `cycle`.
    #[inline]
    pub(super) fn put(&mut self, cycle: u64, what: T) {
        let batch = &mut self.batches[self.entrance];
        if batch.is_empty() {
            self.due.push_back(cycle + self.delay);
        }
        batch.push(what);
    }

    /// Takes out what is there at `cycle`; to be given back by [`Line::give_back`], for its memory.
    #[inline]
    pub(super) fn take(&mut self, cycle: u64) -> Vec<T> {
        if self.due.front() != Some(&cycle) {
            return Vec::new();
        }
        self.due.pop_front();
        std::mem::take(&mut self.batches[(cycle % (self.delay + 1)) as usize])
    }

    /// Takes the empty memory of a batch back.
    #[inline]
    pub(super) fn give_back(&mut self, cycle: u64, mut batch: Vec<T>) {
        if batch.capacity() > 0 {
            batch.clear();
            self.batches[(cycle % (self.delay + 1)) as usize] = batch;
        }
    }

    /// When the next comes out; never, if there is none.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.due.front().copied().unwrap_or(u64::MAX)
    }
}
