//! What a client's cache holds, and what it drops.

use std::ops::Range;

use super::client::{Client, Moves};
use super::extents::Extents;
use super::locks::overlap;
use super::stripes::{ObjectId, Piece};
use super::{FAR, File, ParallelFiles};
use crate::kernel::Time;

impl Client {
    /// Whether all of an extent can be read without asking.
    pub(super) fn has(&self, object: ObjectId, range: &Range<u64>) -> bool {
        self.objects.get(&object).is_some_and(|object| object.present.covers(range))
    }

    /// Bytes of an object can be read here from now on. When the cache is full, the oldest that need not be written leave.
    pub(super) fn keep(&mut self, piece: &Piece, capacity: u64) {
        let object = self.objects.entry(piece.object).or_default();
        for range in object.present.missing(&piece.range) {
            self.cached.add(Piece { object: piece.object, range });
        }
        self.cached_bytes += object.present.add(piece.range.clone());
        for _ in 0..self.cached.len() {
            if self.cached_bytes <= capacity {
                break;
            }
            let Some(oldest) = self.cached.pop_oldest() else { break };
            let Some(object) = self.objects.get_mut(&oldest.object) else { continue };
            let must_stay = object.dirty.overlaps(&oldest.range)
                || object.moving.values().any(|moving| overlap(&moving.range, &oldest.range));
            if must_stay {
                self.cached.add(oldest);
            } else {
                self.cached_bytes -= object.present.remove(oldest.range);
            }
        }
    }

    /// Bytes of an object are here no longer, and are not kept if they are on their way.
    pub(super) fn drop(&mut self, piece: &Piece) {
        let Some(object) = self.objects.get_mut(&piece.object) else { return };
        self.cached_bytes -= object.present.remove(piece.range.clone());
        self.cached.remove(piece);
        let reads = object.moving.values_mut().filter(|moving| moving.moves == Moves::Reads);
        reads.filter(|moving| overlap(&moving.range, &piece.range)).for_each(|moving| moving.is_old = true);
    }

    /// Bytes of an object are cut off: what was written there and has not gone to its target does not go any more.
    fn cut_off(&mut self, piece: &Piece, target: u32) {
        self.drop(piece);
        let clean = self.clean(piece, target);
        self.dirty_bytes -= clean;
        self.channel(target).dirty_bytes -= clean;
    }

    /// All that it has of an object, or is on its way here, is old, but for what it wrote and the target does not have yet.
    fn drop_old(&mut self, object: ObjectId) {
        let Some(has) = self.objects.get(&object) else { return };
        let mut own: Extents = has.dirty.clone();
        for moving in has.moving.values().filter(|moving| moving.moves == Moves::Writes) {
            own.add(moving.range.clone());
        }
        for range in own.missing(&(0..u64::MAX)) {
            self.drop(&Piece { object, range });
        }
    }
}

impl ParallelFiles {
    /// A file ends here now, and no client has anything behind that.
    pub(crate) fn set_size(&mut self, now: Time, file: u32, size: u64) {
        self.now = now;
        self.files[file as usize].size = size.min(FAR);
        let nodes: Vec<u32> = self.files[file as usize].clients.iter().copied().collect();
        for node in nodes {
            for Piece { object, .. } in self.client(node).of_file(file) {
                let File { stripes, size, .. } = &self.files[file as usize];
                let (end, target) = (stripes.len(object, *size), stripes.target(object));
                self.client(node).cut_off(&Piece { object, range: end..u64::MAX }, target);
                self.next_go_on(node, object);
            }
        }
    }

    /// A client's write has come to a server. The client knows of its own, and no more of others' than before.
    pub(super) fn changes(&mut self, node: u32, file: u32) {
        let state = &mut self.files[file as usize];
        state.changes += 1;
        let changes = state.changes;
        let seen = self.client(node).seen.entry(file).or_default();
        if *seen + 1 == changes {
            *seen = changes;
        }
    }

    /// Without locks, a client learns at an open that others have changed a file: what it has of it is old.
    pub(super) fn look_for_changes(&mut self, node: u32, file: u32) {
        let changes = self.files[file as usize].changes;
        let client = self.client(node);
        if client.seen.insert(file, changes).unwrap_or(0) < changes {
            client.of_file(file).into_iter().for_each(|piece| client.drop_old(piece.object));
        }
    }
}
