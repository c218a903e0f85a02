//! The event queue: what happens next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::kernel::Time;

/// Happenings in order of time; those of the same time in the order in which they were added.
#[derive(Debug)]
pub struct Events<T> {
    heap: BinaryHeap<Entry<T>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T> {
    time: Time,
    number: u64,
    what: T,
}

impl<T> Events<T> {
    /// None yet.
    pub fn new() -> Events<T> {
        Events { heap: BinaryHeap::new(), added: 0 }
    }

    /// Adds what is to happen at `time`.
    pub fn add(&mut self, time: Time, what: T) {
        self.heap.push(Entry { time, number: self.added, what });
        self.added += 1;
    }

    /// When something happens next; nothing if there is nothing left.
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.time)
    }

    /// Takes out what happens next.
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.heap.pop().map(|entry| (entry.time, entry.what))
    }
}

impl<T> Default for Events<T> {
    fn default() -> Events<T> {
        Events::new()
    }
}

impl<T> Ord for Entry<T> {
    /// The earliest is the greatest, as the heap gives the greatest first.
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_first_and_ties_in_order_of_adding() {
        let mut events = Events::new();
        for (time, what) in [(5, 'd'), (1, 'a'), (5, 'e'), (1, 'b'), (3, 'c')] {
            events.add(Time(time), what);
        }
        let order: String = std::iter::from_fn(|| events.pop()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcde");
    }
}
