//! A delay line: what goes in comes out a fixed number of cycles later, in the same order.
//!
//! Every delay of the engine is the same for all who suffer it, so that no queue ordered by time is needed.

use std::collections::VecDeque;

/// What is on its way, and when it is there.
#[derive(Debug)]
pub(super) struct Line<T> {
    delay: u64,
    queue: VecDeque<(u64, T)>,
}

impl<T> Line<T> {
    pub(super) fn new(delay: u64) -> Line<T> {
        Line { delay, queue: VecDeque::new() }
    }

    /// Puts in `what` at `cycle`, which never is before that of the one put in last.
    #[inline]
    pub(super) fn put(&mut self, cycle: u64, what: T) {
        let due = cycle + self.delay;
        debug_assert!(self.queue.back().is_none_or(|(last, _)| *last <= due), "a delay line keeps the order");
        self.queue.push_back((due, what));
    }

    /// Takes out the next that is there at `cycle`.
    #[inline]
    pub(super) fn take(&mut self, cycle: u64) -> Option<T> {
        match self.queue.front() {
            Some((due, _)) if *due <= cycle => self.queue.pop_front().map(|(_, what)| what),
            _ => None,
        }
    }

    /// When the next comes out; never, if there is none.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.queue.front().map_or(u64::MAX, |(due, _)| *due)
    }
}
