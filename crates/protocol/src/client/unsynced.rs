//! What a client wrote to a file and did not sync yet: what a sync may acknowledge, and what a read may not hide.
//!
//! A server counts how often data not yet synced may have been lost: its *epoch*. Each acknowledgement carries it. Data that
//! were taken in one epoch and synced, or read, in another may be lost, and the program must learn of it.

use std::collections::BTreeMap;

use thiserror::Error;

/// A server lost data that were written and not yet synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("server {server} lost data that were written and not yet synced")]
pub struct Lost {
    /// The server that lost them.
    pub server: u32,
}

/// What was written to each server of a file and not synced since.
#[derive(Clone, Debug, Default)]
pub struct Unsynced {
    servers: BTreeMap<u32, Written>,
}

/// What was written to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    /// The epoch in which the server took it.
    epoch: u64,
    /// How many times it took something.
    writes: u64,
}

/// A sync that was begun: what it makes durable.
#[derive(Clone, Debug)]
pub struct Syncing(BTreeMap<u32, Written>);

impl Unsynced {
    /// Notes in which epoch a server took data.
    ///
    /// # Errors
    /// If it may have lost some that it took before.
    pub fn note_written(&mut self, server: u32, epoch: u64) -> Result<(), Lost> {
        let entry = self.servers.entry(server).or_insert(Written { epoch, writes: 0 });
        let same = entry.epoch == epoch;
        *entry = Written { epoch, writes: entry.writes + 1 };
        if same { Ok(()) } else { Err(Lost { server }) }
    }

    /// Checks what was read from a server in this epoch: the program must not read something else than it wrote as if nothing
    /// had happened.
    ///
    /// # Errors
    /// If the server may have lost what this client wrote.
    pub fn check(&self, server: u32, epoch: u64) -> Result<(), Lost> {
        match self.servers.get(&server) {
            Some(written) if written.epoch != epoch => Err(Lost { server }),
            _ => Ok(()),
        }
    }

    /// A sync begins: to be told before servers are asked.
    pub fn begin_sync(&self) -> Syncing {
        Syncing(self.servers.clone())
    }

    /// All servers have synced, in these epochs. A loss is told once.
    ///
    /// # Errors
    /// The first server that may have lost what was written before the sync began.
    pub fn end_sync(
        &mut self,
        syncing: Syncing,
        epochs: impl IntoIterator<Item = (u32, u64)>,
    ) -> Result<(), Lost> {
        let Syncing(written) = syncing;
        let mut epochs = epochs.into_iter();
        let lost =
            epochs.find(|(server, epoch)| written.get(server).is_some_and(|written| written.epoch != *epoch));
        // What another thread wrote meanwhile may not be synced.
        self.servers.retain(|server, now| written.get(server) != Some(now));
        lost.map_or(Ok(()), |(server, _)| Err(Lost { server }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_once_and_never_forgotten_before() {
        let mut unsynced = Unsynced::default();
        assert_eq!(unsynced.note_written(0, 1), Ok(()));
        assert_eq!(unsynced.note_written(1, 5), Ok(()));
        assert_eq!(unsynced.check(1, 6), Err(Lost { server: 1 }));
        let syncing = unsynced.begin_sync();
        assert_eq!(unsynced.end_sync(syncing, [(0, 1), (1, 6)]), Err(Lost { server: 1 }));
        assert_eq!(unsynced.check(1, 6), Ok(()));
        let syncing = unsynced.begin_sync();
        assert_eq!(unsynced.end_sync(syncing, [(0, 1), (1, 6)]), Ok(()));
        assert_eq!(unsynced.note_written(0, 1), Ok(()));
        assert_eq!(unsynced.note_written(0, 2), Err(Lost { server: 0 }));
    }

    #[test]
    fn what_is_written_during_a_sync_is_not_synced() {
        let mut unsynced = Unsynced::default();
        assert_eq!(unsynced.note_written(0, 1), Ok(()));
        let syncing = unsynced.begin_sync();
        assert_eq!(unsynced.note_written(0, 1), Ok(()));
        assert_eq!(unsynced.end_sync(syncing, [(0, 1)]), Ok(()));
        assert_eq!(unsynced.check(0, 2), Err(Lost { server: 0 }));
    }
}
