//! Reads through a client's cache: what is missing, and what is fetched before anybody asks for it.

use std::ops::Range;

use super::client::Waiter;
use super::client_locks::Resource;
use super::operations::{Operation, Stage, Wanted, whole_pages};
use super::stripes::Piece;
use super::{File, ParallelFiles};

/// How a rank reads a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadAhead {
    /// Where it goes on, if it reads forwards.
    next: u64,
    window: u64,
    /// How far has been fetched.
    until: u64,
}

impl ParallelFiles {
    /// Fetches what a read needs and its node does not have. Whether the read is done at once.
    pub(super) fn fetch_all(&mut self, rank: u32) -> bool {
        let Some(Operation { node, file, left, wanted, .. }) = self.operations.get_mut(&rank) else {
            return false;
        };
        let (node, file, Wanted::Read(range)) = (*node, *file, wanted.clone()) else { return false };
        let left = std::mem::take(left);
        let page = self.costs.client.cache.as_ref().map_or(1, |cache| cache.page);
        let mut count = 0;
        for piece in left {
            let File { stripes, size, .. } = &self.files[file as usize];
            let (end, whole) = (stripes.len(piece.object, *size), whole_pages(&piece.range, page));
            let whole = Piece { object: piece.object, range: whole.start..whole.end.min(end) };
            count += self.fetch(node, &whole, Some(Waiter::Operation(rank)));
        }
        self.go_to(rank, Stage::End, count);
        self.look_ahead(rank, node, file, &range);
        count == 0
    }

    /// Who reads on where it stopped gets what follows before it asks for it: twice as much each time.
    fn look_ahead(&mut self, rank: u32, node: u32, file: u32, range: &Range<u64>) {
        let request = self.costs.client.request;
        let most = self.costs.client.cache.as_ref().map_or(0, |cache| cache.read_ahead);
        let ahead = self.read_ahead.entry((rank, file)).or_default();
        if range.start == ahead.next {
            ahead.window = (2 * ahead.window).max(request).min(most);
        } else {
            (ahead.window, ahead.until) = (0, 0);
        }
        ahead.next = range.end;
        // In whole requests, so that each read does not ask for a little more.
        let target = range.end.saturating_add(ahead.window) / request * request;
        let wanted = ahead.until.max(range.end)..target.min(self.files[file as usize].size);
        if wanted.is_empty() {
            return;
        }
        ahead.until = target;
        for piece in self.files[file as usize].stripes.objects(&wanted) {
            for range in self.readable(node, file, &wanted, &piece) {
                self.fetch(node, &Piece { object: piece.object, range }, None);
            }
        }
    }

    /// What of a piece a client may read with the locks that it has: nobody asks for a lock to read ahead.
    fn readable(&mut self, node: u32, file: u32, wanted: &Range<u64>, piece: &Piece) -> Vec<Range<u64>> {
        let Some((resource, range)) = self.lock_for(file, wanted, piece) else {
            return vec![piece.range.clone()];
        };
        let locks = self.client(node).locks.entry(resource).or_default();
        match resource {
            Resource::Object(_) => locks.readable().within(&piece.range),
            Resource::File(_) if locks.readable().covers(&range) => vec![piece.range.clone()],
            Resource::File(_) => Vec::new(),
        }
    }
}
