//! The event queue: what happens next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::time::Time;

/// Happenings in order of time; those of the same time in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Events<T> {
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
    pub(crate) fn new() -> Events<T> {
        Events { heap: BinaryHeap::new(), added: 0 }
    }

    pub(crate) fn add(&mut self, time: Time, what: T) {
        self.heap.push(Entry { time, number: self.added, what });
        self.added += 1;
    }

    pub(crate) fn next(&mut self) -> Option<(Time, T)> {
        self.heap.pop().map(|entry| (entry.time, entry.what))
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
        let order: String = std::iter::from_fn(|| events.next()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcde");
    }
}
