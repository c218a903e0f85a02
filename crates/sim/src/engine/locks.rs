//! Locks on parts of a file.

use std::collections::VecDeque;
use std::ops::Range;

use pio_machine::{Duration, Storage};

use super::{Cargo, Engine};
use crate::parallel::Wanted;
use crate::process::Then;
use crate::workload::What;

/// The locks of a file.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: Vec<(u32, Range<u64>)>,
    waiting: VecDeque<(u32, Range<u64>)>,
}

impl Locks {
    /// Whether the rank has the lock now; else it is in line.
    fn ask(&mut self, rank: u32, range: Range<u64>) -> bool {
        let free = is_free(&self.held, &range);
        if free {
            self.held.push((rank, range));
        } else {
            self.waiting.push_back((rank, range));
        }
        free
    }

    /// Takes a lock back. Who has one now that waited.
    fn give_back(&mut self, rank: u32, range: &Range<u64>) -> Vec<u32> {
        self.held.retain(|(owner, held)| *owner != rank || held != range);
        let mut given = Vec::new();
        let Locks { held, waiting } = self;
        waiting.retain(|(rank, range)| {
            let free = is_free(held, range);
            if free {
                held.push((*rank, range.clone()));
                given.push(*rank);
            }
            !free
        });
        given
    }
}

fn is_free(held: &[(u32, Range<u64>)], range: &Range<u64>) -> bool {
    held.iter().all(|(_, held)| held.end <= range.start || range.end <= held.start)
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
    pub(super) fn lock(&mut self, rank: u32) {
        let Some(range) = self.processes[rank as usize].lock.take() else { return };
        let Some(file) = self.accessed_file(rank) else { return };
        if self.files[file as usize].locks.ask(rank, range) {
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
        assert!(locks.ask(0, 0..10));
        assert!(locks.ask(1, 10..20));
        assert!(!locks.ask(2, 5..15));
        assert!(!locks.ask(3, 0..5));
        assert_eq!(locks.give_back(0, &(0..10)), [3]);
        assert_eq!(locks.give_back(1, &(10..20)), [2]);
        assert_eq!(locks.give_back(2, &(5..15)), [0_u32; 0]);
    }
}
