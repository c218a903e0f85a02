//! Locks on parts of a file.

use std::collections::VecDeque;
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
    held: Vec<Lock>,
    waiting: VecDeque<Lock>,
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
        let free = lock.is_free(&self.held);
        if free {
            self.held.push(lock);
        } else {
            self.waiting.push_back(lock);
        }
        free
    }

    /// Takes a lock back. Who has one now that waited.
    fn give_back(&mut self, rank: u32, range: &Range<u64>) -> Vec<u32> {
        self.held.retain(|held| held.rank != rank || held.range != *range);
        let mut given = Vec::new();
        let Locks { held, waiting } = self;
        waiting.retain(|lock| {
            let free = lock.is_free(held);
            if free {
                held.push(lock.clone());
                given.push(lock.rank);
            }
            !free
        });
        given
    }
}

impl Lock {
    /// Whether those that are held allow it.
    fn is_free(&self, held: &[Lock]) -> bool {
        let range = &self.range;
        let allows = |held: &Lock| {
            held.shared && self.shared || held.range.end <= range.start || range.end <= held.range.start
        };
        held.iter().all(allows)
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
    use super::*;

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
