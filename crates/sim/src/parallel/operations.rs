//! What ranks want of the file system, step by step.
//!
//! A write takes its strips one after the other, as a kernel does: the lock, the rest of the pages of which it is a part,
//! room, and the bytes are in the cache. A read takes all its locks first, and fetches what is missing at the same
//! time. Without a cache, all requests go at once, and the operation is done when they are answered.

use std::collections::VecDeque;
use std::ops::Range;

use pio_plan::Direction;

use super::client::{Flushed, Moves, Waiter};
use super::client_locks::Resource;
use super::stripes::{ObjectId, Piece};
use super::{Action, FAR, File, ParallelFiles};
use crate::kernel::Time;
use crate::workload::Naming;

/// What a rank can want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Read(Range<u64>),
    Write(Range<u64>),
    /// To open the file, or to make it.
    Open {
        makes: bool,
    },
    Close,
    Resize,
    /// To have, or give back, a lock of the program.
    Lock,
    /// To know what is known of its name, or to remove that.
    Name(Naming),
    /// That all that its node wrote be durable.
    Sync,
}

/// A rank's operation under way.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) node: u32,
    pub(super) file: u32,
    pub(super) wanted: Wanted,
    pub(super) stage: Stage,
    /// Its strips, or parts of objects, that are still to be seen to.
    pub(super) left: VecDeque<Piece>,
    /// Locks that it uses.
    pub(super) pinned: Vec<Resource>,
    /// Transfers that it waits for.
    pub(super) waits_for: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It needs a lock.
    Lock,
    /// It needs the rest of the pages of which it writes a part.
    Fill,
    /// It needs room for what it writes.
    Room,
    /// It needs what it reads.
    Fetch,
    /// Its requests go to the targets, as there is no cache.
    Request,
    /// What its node wrote goes to the targets.
    Flush,
    /// That is to be durable there.
    Sync,
    /// It is the metadata servers' turn.
    Metadata,
    /// It is done when what it waits for has come.
    End,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
enum Next {
    Rank(u32),
    /// Whoever is next to have room for the target of an object.
    ForTarget(u32, ObjectId),
    /// Whoever is next to have room in the cache of a node.
    InCache(u32),
}

impl ParallelFiles {
    /// A rank wants something of a file. It wants nothing else until that is done.
    pub(crate) fn want(&mut self, now: Time, rank: u32, node: u32, file: u32, wanted: Wanted) {
        self.now = now;
        // Behind an exbibyte no file goes on: so sums of offsets do not overflow.
        let near = |range: Range<u64>| range.start.min(FAR)..range.end.min(FAR);
        let wanted = match wanted {
            Wanted::Read(range) => Wanted::Read(near(range)),
            Wanted::Write(range) => Wanted::Write(near(range)),
            other => other,
        };
        let (state, client) = (&self.files[file as usize], &self.costs.client);
        let left = match &wanted {
            Wanted::Write(range) if client.cache.is_some() => {
                split(state.stripes.pieces(range), client.request)
            }
            Wanted::Write(range) => state.stripes.objects(range),
            Wanted::Read(range) => state.stripes.objects(&(range.start..range.end.min(state.size))),
            _ => Vec::new(),
        };
        let stage = match &wanted {
            Wanted::Write(_) | Wanted::Read(_) if client.cache.is_some() => Stage::Lock,
            Wanted::Write(_) | Wanted::Read(_) => Stage::Request,
            Wanted::Sync => Stage::Flush,
            Wanted::Close if client.cache.as_ref().is_some_and(|cache| cache.flush_on_close) => Stage::Flush,
            Wanted::Open { .. } | Wanted::Close | Wanted::Resize | Wanted::Lock | Wanted::Name(_) => {
                Stage::Metadata
            }
        };
        let moves = matches!(stage, Stage::Lock | Stage::Request);
        let stage = if moves && left.is_empty() { Stage::End } else { stage };
        let left = left.into();
        let operation = Operation { node, file, wanted, stage, left, pinned: Vec::new(), waits_for: 0 };
        self.operations.insert(rank, operation);
        self.go_on(rank);
    }

    /// A rank's operation goes as far as it can; whenever it has written, whoever waits for room behind it goes first.
    pub(super) fn go_on(&mut self, rank: u32) {
        self.all_go_on(vec![Next::Rank(rank)]);
    }

    /// There is more room for the target of an object: who waits for it goes as far as it can.
    pub(super) fn next_go_on(&mut self, node: u32, object: ObjectId) {
        self.all_go_on(vec![Next::InCache(node), Next::ForTarget(node, object)]);
    }

    /// The last first.
    fn all_go_on(&mut self, mut going: Vec<Next>) {
        while let Some(next) = going.pop() {
            let Some(rank) = self.who_is(next) else { continue };
            let writes = self.operations.get(&rank).filter(|operation| operation.stage == Stage::Room);
            let written = writes.and_then(|writes| Some((writes.node, writes.left.front()?.object)));
            if !self.step(rank) {
                continue;
            }
            going.push(Next::Rank(rank));
            if let Some((node, object)) = written {
                going.extend([Next::InCache(node), Next::ForTarget(node, object)]);
            }
        }
    }

    /// Who is meant, now: whoever had a turn before may have gone on since.
    fn who_is(&mut self, next: Next) -> Option<u32> {
        let waiting = match next {
            Next::Rank(rank) => return Some(rank),
            Next::InCache(node) => &self.client(node).wants_cache,
            Next::ForTarget(node, object) => {
                let target = self.target_of(object);
                &self.client(node).channel(target).wants_room
            }
        };
        waiting.front().copied()
    }

    /// One of the transfers that it waits for has come.
    pub(super) fn has_come(&mut self, rank: u32) {
        let Some(operation) = self.operations.get_mut(&rank) else { return };
        operation.waits_for -= 1;
        if operation.waits_for == 0 {
            self.go_on(rank);
        }
    }

    /// A step of an operation: whether it can take the next one at once.
    fn step(&mut self, rank: u32) -> bool {
        let Some(operation) = self.operations.get(&rank) else { return false };
        match operation.stage {
            Stage::Lock => self.take_lock(rank),
            Stage::Fill => self.fill(rank),
            Stage::Room => self.write_piece(rank),
            Stage::Fetch => self.fetch_all(rank),
            Stage::Request => self.request_all(rank),
            Stage::Flush => {
                let (node, file) = (operation.node, operation.file);
                let pieces = self.client(node).of_file(file);
                self.go_to(rank, Stage::Sync, 0);
                self.flush(node, &pieces, Flushed::Operation(rank));
                false
            }
            Stage::Sync => self.sync_all(rank),
            Stage::Metadata => self.ask_metadata(rank),
            Stage::End => {
                self.end(rank);
                false
            }
        }
    }

    /// What is next, once so many transfers have come. Whether that is at once.
    pub(super) fn go_to(&mut self, rank: u32, stage: Stage, waits_for: u32) -> bool {
        if let Some(operation) = self.operations.get_mut(&rank) {
            (operation.stage, operation.waits_for) = (stage, waits_for);
        }
        waits_for == 0
    }

    fn take_lock(&mut self, rank: u32) -> bool {
        let Some(Operation { node, file, wanted, left, pinned, .. }) = self.operations.get(&rank) else {
            return false;
        };
        let (node, file) = (*node, *file);
        let (direction, range, next, piece) = match wanted {
            Wanted::Read(range) => (Direction::Read, range.clone(), Stage::Fetch, left.get(pinned.len())),
            Wanted::Write(range) => (Direction::Write, range.clone(), Stage::Fill, left.front()),
            _ => return false,
        };
        let Some(piece) = piece.cloned() else { return self.go_to(rank, next, 0) };
        let Some((resource, range)) = self.lock_for(file, &range, &piece) else {
            return self.go_to(rank, next, 0);
        };
        if pinned.contains(&resource) {
            return self.go_to(rank, next, 0);
        }
        if !self.pin(rank, node, resource, direction, &range) {
            return false;
        }
        if let Some(operation) = self.operations.get_mut(&rank) {
            operation.pinned.push(resource);
        }
        direction == Direction::Read || self.go_to(rank, next, 0)
    }

    /// Of pages that a write changes a part of, the rest is read, unless it is here or the file ends before.
    fn fill(&mut self, rank: u32) -> bool {
        let Some(Operation { node, left, .. }) = self.operations.get(&rank) else { return false };
        let (node, Some(piece)) = (*node, left.front().cloned()) else { return false };
        let page = self.costs.client.cache.as_ref().map_or(1, |cache| cache.page);
        let File { stripes, size, .. } = &self.files[piece.object.file as usize];
        let end = stripes.len(piece.object, *size);
        let whole = whole_pages(&piece.range, page);
        // What it writes itself need not be read.
        let around = [whole.start..piece.range.start, piece.range.end..whole.end];
        let mut count = 0;
        for rest in around.map(|rest| rest.start..rest.end.min(end)) {
            if !rest.is_empty() && !self.client(node).has(piece.object, &rest) {
                let range = whole_pages(&rest, page);
                let part = Piece { object: piece.object, range: range.start..range.end.min(end) };
                count += self.fetch(node, &part, Some(Waiter::Operation(rank)));
            }
        }
        self.go_to(rank, Stage::Room, count)
    }

    /// What it writes next goes to its node's cache, if that has room.
    fn write_piece(&mut self, rank: u32) -> bool {
        let Some(Operation { node, file, left, wanted, .. }) = self.operations.get(&rank) else {
            return false;
        };
        let (node, file, Wanted::Write(range)) = (*node, *file, wanted.clone()) else { return false };
        let Some(piece) = left.front().cloned() else { return false };
        if !self.has_room(rank, node, &piece) {
            return false;
        }
        self.put(node, &piece);
        self.grow(file, range.end);
        let Some(operation) = self.operations.get_mut(&rank) else { return false };
        operation.left.pop_front();
        let is_last = operation.left.is_empty();
        operation.stage = if is_last { Stage::End } else { Stage::Lock };
        // A lock of an object is needed no longer than its piece; one of the file guards all of them.
        operation.pinned.retain(|resource| matches!(resource, Resource::File(_)));
        if let Some((resource @ Resource::Object(_), _)) = self.lock_for(file, &range, &piece) {
            self.unpin(rank, node, resource);
        }
        true
    }

    /// A file ends no sooner than here.
    pub(crate) fn grow(&mut self, file: u32, end: u64) {
        let state = &mut self.files[file as usize];
        state.size = state.size.max(end.min(FAR));
    }

    fn request_all(&mut self, rank: u32) -> bool {
        let Some(Operation { node, file, left, wanted, .. }) = self.operations.get_mut(&rank) else {
            return false;
        };
        let (node, file, wanted) = (*node, *file, wanted.clone());
        // In the order of the file: no target waits until another has all of its own.
        let mut left = split(std::mem::take(left).into(), self.costs.client.request);
        left.sort_by_key(|piece| piece.range.start);
        let moves = if let Wanted::Write(range) = wanted {
            self.grow(file, range.end);
            Moves::Writes
        } else {
            Moves::Reads
        };
        let waiter = Some(Waiter::Operation(rank));
        let count = left.into_iter().map(|piece| self.request(node, piece, moves, waiter)).sum();
        self.go_to(rank, Stage::End, count)
    }

    fn sync_all(&mut self, rank: u32) -> bool {
        let Some(Operation { node, file, wanted, .. }) = self.operations.get(&rank) else { return false };
        let (node, file) = (*node, *file);
        let next = if *wanted == Wanted::Close { Stage::Metadata } else { Stage::End };
        let objects = self.client(node).unsynced(file);
        let waits_for = objects.len() as u32;
        objects.into_iter().for_each(|object| self.sync(node, object, Waiter::Operation(rank)));
        self.go_to(rank, next, waits_for)
    }

    /// A rank's operation is done.
    pub(super) fn end(&mut self, rank: u32) {
        let Some(Operation { node, file, wanted, pinned, .. }) = self.operations.remove(&rank) else {
            return;
        };
        pinned.into_iter().for_each(|resource| self.unpin(rank, node, resource));
        if matches!(wanted, Wanted::Open { .. }) && self.costs.locks.is_none() {
            self.look_for_changes(node, file);
        }
        self.actions.push(Action::Done { rank });
    }
}

/// Pieces of at most so many bytes: as many as go in a request.
fn split(pieces: Vec<Piece>, most: u64) -> Vec<Piece> {
    let mut parts = Vec::with_capacity(pieces.len());
    for Piece { object, range } in pieces {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / most + 1) * most);
            parts.push(Piece { object, range: start..end });
            start = end;
        }
    }
    parts
}

pub(super) fn whole_pages(range: &Range<u64>, page: u64) -> Range<u64> {
    range.start / page * page..range.end.div_ceil(page) * page
}
