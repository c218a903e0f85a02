//! Locks on parts of a file.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use pio_machine::{Duration, Storage};
use pio_plan::Io;

use super::{Cargo, Engine};
use crate::parallel::Wanted;
use crate::process::{Locked, Then};
use crate::workload::What;

/// The locks of a file.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: Held,
    waiting: VecDeque<Lock>,
}

/// The locks that ranks have: where each begins and ends, and whose it is.
#[derive(Debug, Default)]
struct Held {
    /// No two overlap: in order of their beginnings, they are in order of their ends, too.
    alone: BTreeSet<(u64, u64, u32)>,
    shared: BTreeSet<(u64, u64, u32)>,
    /// No shared one has been longer.
    longest_shared: u64,
}

/// A rank's lock of an interval.
#[derive(Clone, Debug)]
struct Lock {
    rank: u32,
    range: Range<u64>,
    shared: bool,
}

impl Locks {
    /// Whether the rank has the lock now; else it is in line.
    fn ask(&mut self, lock: Lock) -> bool {
        let free = self.held.allows(&lock);
        if free {
            self.held.add(&lock);
        } else {
            self.waiting.push_back(lock);
        }
        free
    }

    /// Takes a lock back. Who has one now that waited.
    fn give_back(&mut self, rank: u32, range: &Range<u64>) -> Vec<u32> {
        self.held.remove(rank, range);
        let (mut given, mut places) = (Vec::new(), Vec::new());
        for (place, lock) in self.waiting.iter().enumerate() {
            // Who waited for another lock waits for it still.
            let waited_for_it = lock.range.start < range.end && range.start < lock.range.end;
            if !waited_for_it || !self.held.allows(lock) {
                continue;
            }
            self.held.add(lock);
            given.push(lock.rank);
            places.push(place);
            if !lock.shared && lock.range.start <= range.start && range.end <= lock.range.end {
                break;
            }
        }
        self.leave_line(&places);
        given
    }

    /// Takes those in these places out of the line.
    fn leave_line(&mut self, places: &[usize]) {
        // One of many who want the same: it is at the front.
        if let [place] = places {
            self.waiting.remove(*place);
            return;
        }
        let mut places = places.iter().peekable();
        let mut place = 0..;
        if places.peek().is_some() {
            self.waiting.retain(|_| {
                let here = place.next();
                places.next_if(|next| Some(**next) == here).is_none()
            });
        }
    }
}

impl Held {
    /// Whether a lock can be had beside them.
    fn allows(&self, lock: &Lock) -> bool {
        let Range { start, end } = lock.range;
        let ends_behind = |held: &(u64, u64, u32)| held.1 > start;
        if self.alone.range(..(end, 0, 0)).next_back().is_some_and(ends_behind) {
            return false;
        }
        let from = start.saturating_sub(self.longest_shared);
        lock.shared || !self.shared.range((from, 0, 0)..(end, 0, 0)).rev().any(ends_behind)
    }

    fn add(&mut self, lock: &Lock) {
        let Range { start, end } = lock.range;
        if lock.shared {
            self.longest_shared = self.longest_shared.max(end - start);
            self.shared.insert((start, end, lock.rank));
        } else {
            self.alone.insert((start, end, lock.rank));
        }
    }

    fn remove(&mut self, rank: u32, range: &Range<u64>) {
        let held = (range.start, range.end, rank);
        self.alone.remove(&held);
        self.shared.remove(&held);
    }
}

impl Engine<'_> {
    /// The word that a rank wants a lock, or is through with it, goes to where locks are kept: to the directory's node,
    /// to the shared file system, to a metadata server, or, where storage is local, into the kernel.
    pub(super) fn ask_for_lock(&mut self, rank: u32, then: Then) {
        if let Storage::Shared(costs) = &self.machine.storage {
            return self.ask_shared(rank, costs.lock, then);
        }
        if self.parallel.is_some() {
            let Some(file) = self.accessed_file(rank) else { return };
            return self.want(rank, file, Wanted::Lock, then);
        }
        if self.hardware.servers.is_empty() {
            return self.compute(rank, self.machine.calls.seek, then);
        }
        let process = &mut self.processes[rank as usize];
        process.then = then;
        let node = process.node;
        self.ship(node, self.directory_node(), 0, Cargo::Directory(rank, Duration::ZERO));
    }

    /// Gives a rank the lock it asked for, or lets it wait.
    pub(super) fn lock(&mut self, rank: u32, shared: bool) {
        let Some(range) = self.processes[rank as usize].lock.take() else { return };
        let Some(file) = self.accessed_file(rank) else { return };
        if self.files[file as usize].locks.ask(Lock { rank, range, shared }) {
            self.io_done(rank, 0);
        }
    }

    /// Takes a lock back, and gives those that waited for it theirs.
    pub(super) fn unlock(&mut self, rank: u32) {
        let Some(range) = self.processes[rank as usize].lock.take() else { return };
        let Some(file) = self.accessed_file(rank) else { return };
        for waiting in self.files[file as usize].locks.give_back(rank, &range) {
            self.io_done(waiting, 0);
        }
        self.io_done(rank, 0);
    }

    /// Locks an interval, makes a request, and unlocks it again.
    pub(super) fn request_with_lock(&mut self, rank: u32, file: Range<u64>, io: Io) {
        let process = &mut self.processes[rank as usize];
        (process.lock, process.locked) = (Some(file.clone()), Locked::Locking(file, io));
        self.ask_for_lock(rank, Then::Lock { shared: false });
    }

    /// What a rank asked for is done: goes on with what is done under a lock, if that is not all; else the bytes that were moved.
    pub(super) fn go_on_with_lock(&mut self, rank: u32, moved: u64) -> Option<u64> {
        let process = &mut self.processes[rank as usize];
        match std::mem::take(&mut process.locked) {
            Locked::No => return Some(moved),
            Locked::Unlocking(moved) => return Some(moved),
            Locked::Locking(file, io) => {
                process.locked = Locked::Requesting(file);
                self.begin_io(rank, io);
            }
            Locked::Requesting(file) => {
                (process.lock, process.locked) = (Some(file), Locked::Unlocking(moved));
                self.ask_for_lock(rank, Then::Unlock);
            }
        }
        None
    }

    /// The file of the call that a rank is in.
    fn accessed_file(&self, rank: u32) -> Option<u32> {
        match self.step(rank) {
            What::Access { handle, .. } => Some(self.workload.handles[handle.index()].file),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A list of locks that are held, and a list of those that wait: each is compared with each.
    #[derive(Default)]
    struct Lists {
        held: Vec<Lock>,
        waiting: Vec<Lock>,
    }

    impl Lists {
        fn allow(&self, lock: &Lock) -> bool {
            let apart =
                |held: &Lock| held.range.end <= lock.range.start || lock.range.end <= held.range.start;
            self.held.iter().all(|held| held.shared && lock.shared || apart(held))
        }

        fn ask(&mut self, lock: Lock) -> bool {
            let free = self.allow(&lock);
            let list = if free { &mut self.held } else { &mut self.waiting };
            list.push(lock);
            free
        }

        fn give_back(&mut self, rank: u32, range: &Range<u64>) -> Vec<u32> {
            self.held.retain(|held| held.rank != rank || held.range != *range);
            let mut given = Vec::new();
            for lock in std::mem::take(&mut self.waiting) {
                let rank = lock.rank;
                if self.ask(lock) {
                    given.push(rank);
                }
            }
            given
        }
    }

    proptest! {
        /// Each rank asks for a lock, and gives back the one that it has, in any order.
        #[test]
        fn locks_are_given_as_by_comparing_all(
            turns in prop::collection::vec((0..8_u32, 0..40_u64, 0..20_u64, any::<bool>()), 0..200),
        ) {
            let (mut locks, mut lists) = (Locks::default(), Lists::default());
            for (rank, start, length, shared) in turns {
                if let Some(held) = lists.held.iter().find(|held| held.rank == rank).cloned() {
                    prop_assert_eq!(locks.give_back(rank, &held.range), lists.give_back(rank, &held.range));
                } else if lists.waiting.iter().all(|waiting| waiting.rank != rank) {
                    let lock = Lock { rank, range: start..start + length, shared };
                    prop_assert_eq!(locks.ask(lock.clone()), lists.ask(lock));
                }
            }
        }
    }

    #[test]
    fn who_waits_gets_what_is_given_back_in_order() {
        let mut locks = Locks::default();
        let mut ask = |rank, range| locks.ask(Lock { rank, range, shared: false });
        assert!(ask(0, 0..10));
        assert!(ask(1, 10..20));
        assert!(!ask(2, 5..15));
        assert!(!ask(3, 0..5));
        assert_eq!(locks.give_back(0, &(0..10)), [3]);
        assert_eq!(locks.give_back(1, &(10..20)), [2]);
        assert_eq!(locks.give_back(2, &(5..15)), [0_u32; 0]);
    }

    #[test]
    fn who_shares_waits_for_those_alone_that_do_not() {
        let mut locks = Locks::default();
        let mut ask = |rank, range, shared| locks.ask(Lock { rank, range, shared });
        assert!(ask(0, 0..10, true));
        assert!(ask(1, 0..10, true));
        assert!(!ask(2, 5..15, false));
        // As in the kernel: nobody waits for those that only wait themselves.
        assert!(ask(3, 5..15, true));
        assert_eq!(locks.give_back(0, &(0..10)), [0_u32; 0]);
        assert_eq!(locks.give_back(1, &(0..10)), [0_u32; 0]);
        assert_eq!(locks.give_back(3, &(5..15)), [2]);
        let mut ask = |rank, range, shared| locks.ask(Lock { rank, range, shared });
        assert!(!ask(0, 0..10, true) && !ask(1, 0..10, true));
        assert_eq!(locks.give_back(2, &(5..15)), [0, 1]);
    }
}
