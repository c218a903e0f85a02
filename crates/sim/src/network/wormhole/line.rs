//! A delay line: what goes in comes out a fixed number of cycles later, in the same order.
//!
//! Every delay of the engine is the same for all who suffer it, so that no queue ordered by time is needed: what goes in
//! in one cycle is a batch, and comes out as one.

use std::collections::VecDeque;

/// What is on its way.
#[derive(Debug)]
pub(super) struct Line<T> {
    delay: u64,
    /// The cycle that has begun, and what went in since.
    cycle: u64,
    entering: Vec<T>,
    /// The cycles in which something comes out, each with its batch.
    batches: VecDeque<(u64, Vec<T>)>,
    /// The memory of a batch that came out.
    spare: Vec<Vec<T>>,
}

impl<T> Line<T> {
    pub(super) fn new(delay: u64) -> Line<T> {
        Line { delay, cycle: 0, entering: Vec::new(), batches: VecDeque::new(), spare: Vec::new() }
    }

    /// A cycle begins. None in which something comes out is left out.
    #[inline]
    pub(super) fn begin(&mut self, cycle: u64) {
        self.close();
        self.cycle = cycle;
    }

    /// Puts in `what` in the cycle that has begun.
    #[inline]
    pub(super) fn put(&mut self, what: T) {
        self.entering.push(what);
    }

    /// Takes out what is there in the cycle that has begun; to be given back by [`Line::give_back`], for its memory.
    #[inline]
    pub(super) fn take(&mut self) -> Vec<T> {
        if self.delay == 0 {
            self.close();
        }
        match self.batches.front() {
            Some((due, _)) if *due == self.cycle => {
                self.batches.pop_front().map(|(_, batch)| batch).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Takes the memory of a batch back.
    #[inline]
    pub(super) fn give_back(&mut self, mut batch: Vec<T>) {
        if batch.capacity() > 0 {
            batch.clear();
            self.spare.push(batch);
        }
    }

    /// When the next comes out; never, if there is none.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        let entered = if self.entering.is_empty() { u64::MAX } else { self.cycle + self.delay };
        self.batches.front().map_or(entered, |(due, _)| *due)
    }

    /// What has gone in is a batch.
    #[inline]
    fn close(&mut self) {
        if !self.entering.is_empty() {
            let empty = self.spare.pop().unwrap_or_default();
            let batch = std::mem::replace(&mut self.entering, empty);
            self.batches.push_back((self.cycle + self.delay, batch));
        }
    }
}
