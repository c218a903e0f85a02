//! Locks of ranges of files, first come first served.
//!
//! A lock that cannot be had at once waits its turn; its client asks again. One that waits blocks those that come later
//! and overlap it, so that nobody waits for ever.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::Failure;
use crate::process::ClientId;
use crate::request::FileId;

#[derive(Debug)]
struct Lock {
    client: ClientId,
    number: u64,
    shared: bool,
    range: Range<u64>,
    /// Since when it is held; `None` while it waits.
    held_since_ms: Option<u64>,
}

/// Where a lock stands that cannot be had yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// Whose the first of the earlier ones is that exclude it: one that is held, if any is.
    pub(super) holder: ClientId,
    /// Since when it is held.
    pub(super) held_since_ms: Option<u64>,
}

impl Lock {
    fn is(&self, client: ClientId, number: u64) -> bool {
        self.client == client && self.number == number
    }

    fn excludes(&self, other: &Lock) -> bool {
        !(self.shared && other.shared)
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}

/// All locks, of each file in the order in which they were asked for.
#[derive(Debug, Default)]
pub(super) struct Locks {
    files: BTreeMap<FileId, Vec<Lock>>,
}

impl Locks {
    /// Asks for a lock, or again for it; `None` if it is had.
    pub(super) fn lock(
        &mut self,
        file: FileId,
        client: ClientId,
        number: u64,
        shared: bool,
        range: Range<u64>,
        now_ms: u64,
    ) -> Option<Queued> {
        let locks = self.files.entry(file).or_default();
        let at = locks.iter().position(|lock| lock.is(client, number)).unwrap_or_else(|| {
            locks.push(Lock { client, number, shared, range, held_since_ms: None });
            locks.len() - 1
        });
        let earlier = || locks[..at].iter().filter(|earlier| earlier.excludes(&locks[at]));
        let held = earlier().find(|earlier| earlier.held_since_ms.is_some());
        let Some(first) = held.or_else(|| earlier().next()) else {
            locks[at].held_since_ms.get_or_insert(now_ms);
            return None;
        };
        let (holder, held_since_ms) = (first.client, first.held_since_ms);
        Some(Queued { holder, held_since_ms })
    }

    pub(super) fn unlock(&mut self, file: FileId, client: ClientId, number: u64) -> Result<(), Failure> {
        let locks = self.files.get_mut(&file).ok_or(Failure::NotLocked)?;
        let at = locks.iter().position(|lock| lock.is(client, number)).ok_or(Failure::NotLocked)?;
        locks.remove(at);
        if locks.is_empty() {
            self.files.remove(&file);
        }
        Ok(())
    }

    pub(super) fn release_all(&mut self, client: ClientId) {
        for locks in self.files.values_mut() {
            locks.retain(|lock| lock.client != client);
        }
        self.files.retain(|_, locks| !locks.is_empty());
    }

    pub(super) fn knows(&self, client: ClientId, number: u64) -> bool {
        self.files.values().flatten().any(|lock| lock.is(client, number))
    }

    pub(super) fn count(&self, client: ClientId) -> u32 {
        self.files.values().flatten().filter(|lock| lock.client == client).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(1);

    fn queued(holder: ClientId, held_since_ms: Option<u64>) -> Option<Queued> {
        Some(Queued { holder, held_since_ms })
    }

    #[test]
    fn overlapping_locks_take_turns() {
        let mut locks = Locks::default();
        let (a, b, c) = (ClientId(1), ClientId(2), ClientId(3));
        assert_eq!(locks.lock(FILE, a, 1, false, 0..10, 100), None);
        assert_eq!(locks.lock(FILE, b, 1, false, 5..15, 200), queued(a, Some(100)));
        // Behind the one that waits, though nobody holds it.
        assert_eq!(locks.lock(FILE, c, 1, false, 12..20, 300), queued(b, None));
        assert_eq!(locks.lock(FILE, a, 2, false, 20..30, 400), None);
        locks.unlock(FILE, a, 1).unwrap();
        assert_eq!(locks.lock(FILE, b, 1, false, 5..15, 500), None);
        assert_eq!(locks.lock(FILE, b, 1, false, 5..15, 600), None);
        assert_eq!(locks.lock(FILE, c, 1, false, 12..20, 700), queued(b, Some(500)));
        locks.release_all(b);
        assert_eq!(locks.lock(FILE, c, 1, false, 12..20, 800), None);
        assert_eq!(locks.unlock(FILE, b, 1), Err(Failure::NotLocked));
    }

    #[test]
    fn readers_share() {
        let mut locks = Locks::default();
        let id = ClientId;
        assert_eq!(locks.lock(FILE, id(1), 1, true, 0..10, 1), None);
        assert_eq!(locks.lock(FILE, id(2), 1, true, 0..10, 2), None);
        assert_eq!(locks.lock(FILE, id(3), 1, false, 0..10, 3), queued(id(1), Some(1)));
        assert_eq!(locks.lock(FILE, id(4), 1, true, 0..10, 4), queued(id(3), None));
    }
}
