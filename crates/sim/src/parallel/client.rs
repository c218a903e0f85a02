//! The client of a node: what its cache has of each object, and its requests to targets.
//!
//! Bytes that were written are dirty until a target has answered the request that brings them there. They go when there are
//! enough of them in a row for a whole request, when they take too much room, when they are flushed, or when a lock is
//! called back. [`pio_cache::Cache`] holds blocks of a fixed memory and flushes whole files; here extents come and
//! go with locks, and what is dirty is counted by target.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::cached::Cached;
use super::client_locks::{ClientLocks, Resource};
use super::extents::Extents;
use super::locks::overlap;
use super::stripes::{ObjectId, Piece};
use super::{Message, ParallelFiles, Wake};

/// The client of a node.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) objects: BTreeMap<ObjectId, Object>,
    pub(super) locks: BTreeMap<Resource, ClientLocks>,
    /// The way to each target that it has been to.
    channels: BTreeMap<u32, Channel>,
    /// What came into the cache, the oldest first, and its bytes.
    pub(super) cached: Cached,
    pub(super) cached_bytes: u64,
    /// Bytes that are newer than on their targets, and ranks that wait for there to be fewer.
    pub(super) dirty_bytes: u64,
    /// Target and object of whatever is dirty: few of all that a client has ever touched.
    pub(super) dirty_objects: BTreeSet<(u32, ObjectId)>,
    pub(super) wants_cache: VecDeque<u32>,
    /// For each file: how many writes this client knew of when it opened it, and its own behind them.
    pub(super) seen: BTreeMap<u32, u64>,
}

/// What a client has of an object.
#[derive(Debug, Default)]
pub(super) struct Object {
    /// What it can read without asking.
    pub(super) present: Extents,
    /// Those of these bytes that no request brings to the target yet.
    pub(super) dirty: Extents,
    /// Requests for it under way, or that wait for others, by transfer.
    pub(super) moving: BTreeMap<u32, Moving>,
    /// Writes that the target has answered, and how many it had when it was last asked to make them durable.
    written: u64,
    synced: u64,
}

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    pub(super) range: Range<u64>,
    pub(super) moves: Moves,
    /// What it reads is old, as the client has dropped these bytes since: who waits for it gets it, nobody else.
    pub(super) is_old: bool,
}

/// The way to a target.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    in_flight: u32,
    /// Requests that wait for others to be answered.
    ready: VecDeque<u32>,
    /// Bytes that are newer than on the target.
    pub(super) dirty_bytes: u64,
    /// Ranks that wait for there to be fewer.
    pub(super) wants_room: VecDeque<u32>,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    Reads,
    Writes,
    /// Nothing: all that the target has is to be durable.
    Syncs,
}

/// A request to a target.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    client: u32,
    piece: Piece,
    target: u32,
    moves: Moves,
    /// The object's count of writes when it went.
    written: u64,
    /// Who waits for it.
    waiters: Vec<Waiter>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Waiter {
    Operation(u32),
    Flush(u32),
}

/// Somebody waits until some dirty bytes are on their targets.
#[derive(Clone, Debug)]
pub(super) struct Flush {
    left: u32,
    then: Flushed,
}

/// What follows when they are.
#[derive(Clone, Debug)]
pub(super) enum Flushed {
    /// A rank's operation goes on.
    Operation(u32),
    /// A lock is given back.
    GiveBack { client: u32, resource: Resource, range: Range<u64> },
}

impl Client {
    /// The way to a target.
    pub(super) fn channel(&mut self, target: u32) -> &mut Channel {
        self.channels.entry(target).or_default()
    }

    /// All that it has of a file's objects.
    pub(super) fn of_file(&self, file: u32) -> Vec<Piece> {
        let objects = self.objects.range(ObjectId::of_file(file));
        objects.map(|(object, _)| Piece { object: *object, range: 0..u64::MAX }).collect()
    }

    /// The objects of a file with writes that were not made durable.
    pub(super) fn unsynced(&self, file: u32) -> Vec<ObjectId> {
        let objects = self.objects.range(ObjectId::of_file(file));
        objects.filter(|(_, has)| has.written > has.synced).map(|(object, _)| *object).collect()
    }

    /// Bytes of an object are not dirty any more: how many were.
    pub(super) fn clean(&mut self, piece: &Piece, target: u32) -> u64 {
        let Some(object) = self.objects.get_mut(&piece.object) else { return 0 };
        let cleaned = object.dirty.remove(piece.range.clone());
        if object.dirty.len() == 0 {
            self.dirty_objects.remove(&(target, piece.object));
        }
        cleaned
    }

    /// The objects with dirty bytes of a target, or of all of them, ascending.
    fn dirty(&self, of: Option<u32>) -> Vec<ObjectId> {
        let targets = of.map_or(0..=u32::MAX, |target| target..=target);
        let places = (*targets.start(), ObjectId::FIRST)..=(*targets.end(), ObjectId::LAST);
        let mut objects: Vec<ObjectId> =
            self.dirty_objects.range(places).map(|(_, object)| *object).collect();
        objects.sort_unstable();
        objects
    }
}

/// Puts a rank at the end of those who wait, unless it waits. Whether it is the next.
fn stands_in(waiting: &mut VecDeque<u32>, rank: u32) -> bool {
    if waiting.front() != Some(&rank) && !waiting.contains(&rank) {
        waiting.push_back(rank);
    }
    waiting.front() == Some(&rank)
}

/// Whether so many more bytes may be dirty. What is larger than all that may be goes alone.
fn has_room_for(bytes: u64, dirty: u64, most: u64) -> bool {
    dirty == 0 || dirty + bytes <= most
}

impl ParallelFiles {
    /// Whether a rank may make so many bytes more dirty, for the target of an object and in the cache; if not, it waits until it
    /// may. For room in the cache only those wait who are next at their targets, so that nobody waits for somebody who waits for
    /// them.
    pub(super) fn has_room(&mut self, rank: u32, node: u32, piece: &Piece) -> bool {
        let (limit, size) =
            self.costs.client.cache.as_ref().map_or((0, 0), |cache| (cache.dirty, cache.size));
        let target = self.target_of(piece.object);
        let bytes = piece.range.end - piece.range.start;
        let client = self.client(node);
        let channel = client.channel(target);
        let is_next = stands_in(&mut channel.wants_room, rank);
        if !is_next || !has_room_for(bytes, channel.dirty_bytes, limit) {
            self.write_out_all(node, Some(target));
            return false;
        }
        let is_next = stands_in(&mut client.wants_cache, rank);
        if !is_next || !has_room_for(bytes, client.dirty_bytes, size) {
            self.write_out_all(node, None);
            return false;
        }
        client.channel(target).wants_room.pop_front();
        client.wants_cache.pop_front();
        true
    }

    /// All that is dirty of a target, or of all of them, goes there.
    fn write_out_all(&mut self, node: u32, of: Option<u32>) {
        for object in self.client(node).dirty(of) {
            self.write_out(node, &Piece { object, range: 0..u64::MAX });
        }
    }

    /// Puts what a rank writes into its node's cache. As much of it goes to the target as makes whole requests.
    pub(super) fn put(&mut self, node: u32, piece: &Piece) {
        let (request, target) = (self.costs.client.request, self.target_of(piece.object));
        let capacity = self.costs.client.cache.as_ref().map_or(0, |cache| cache.size);
        let object = self.object(node, piece.object);
        let new = object.dirty.add(piece.range.clone());
        let mut row = object.dirty.around(piece.range.start).unwrap_or_default();
        let client = self.client(node);
        client.dirty_objects.insert((target, piece.object));
        client.channel(target).dirty_bytes += new;
        client.dirty_bytes += new;
        client.keep(piece, capacity);
        while row.end - row.start >= request {
            let border = (row.start / request + 1) * request;
            self.write_out(node, &Piece { object: piece.object, range: row.start..border });
            row.start = border;
        }
    }

    /// What is dirty of an object goes to its target.
    pub(super) fn write_out(&mut self, node: u32, piece: &Piece) {
        let target = self.target_of(piece.object);
        let client = self.client(node);
        let Some(object) = client.objects.get(&piece.object) else { return };
        let dirty = object.dirty.within(&piece.range);
        client.clean(piece, target);
        for range in dirty {
            self.request(node, Piece { object: piece.object, range }, Moves::Writes, None);
        }
    }

    /// Makes requests of at most the size that they may have: how many.
    pub(super) fn request(&mut self, node: u32, piece: Piece, moves: Moves, waiter: Option<Waiter>) -> u32 {
        let most = self.costs.client.request;
        let Range { mut start, end } = piece.range;
        let mut count = 0;
        while start < end {
            let border = end.min((start / most + 1) * most);
            self.add_transfer(node, Piece { object: piece.object, range: start..border }, moves, waiter);
            count += 1;
            start = border;
        }
        self.send_ready(node, self.target_of(piece.object));
        count
    }

    /// Asks the target of an object to make durable what it has.
    pub(super) fn sync(&mut self, node: u32, object: ObjectId, waiter: Waiter) {
        self.add_transfer(node, Piece { object, range: 0..0 }, Moves::Syncs, Some(waiter));
        self.send_ready(node, self.target_of(object));
    }

    fn add_transfer(&mut self, node: u32, piece: Piece, moves: Moves, waiter: Option<Waiter>) {
        let target = self.target_of(piece.object);
        let (Piece { object: id, range }, waiters) = (piece.clone(), waiter.into_iter().collect());
        let written = self.object(node, id).written;
        let transfer =
            self.transfers.insert(Transfer { client: node, piece, target, moves, written, waiters });
        self.object(node, id).moving.insert(transfer, Moving { range, moves, is_old: false });
        self.client(node).channel(target).ready.push_back(transfer);
    }

    /// Brings an extent of an object into a node's cache, unless it is there or on its way. For how many requests whoever waits
    /// has to wait.
    pub(super) fn fetch(&mut self, node: u32, piece: &Piece, waiter: Option<Waiter>) -> u32 {
        let object = self.object(node, piece.object);
        let missing = object.present.missing(&piece.range);
        let mut coming = Extents::default();
        let mut ids = Vec::new();
        let reads = |(_, moving): &(&u32, &Moving)| moving.moves == Moves::Reads && !moving.is_old;
        for (transfer, Moving { range, .. }) in object.moving.iter().filter(reads) {
            coming.add(range.clone());
            if missing.iter().any(|wanted| overlap(range, wanted)) {
                ids.push(*transfer);
            }
        }
        let mut count = 0;
        if let Some(waiter) = waiter {
            ids.iter().for_each(|id| self.transfers[*id].waiters.push(waiter));
            count = ids.len() as u32;
        }
        for wanted in missing.iter().flat_map(|range| coming.missing(range)) {
            count += self.request(node, Piece { object: piece.object, range: wanted }, Moves::Reads, waiter);
        }
        count
    }

    /// Writes out what is dirty of some pieces, and goes on when that and what is on its way is on the targets.
    pub(super) fn flush(&mut self, node: u32, pieces: &[Piece], then: Flushed) {
        let flush = self.flushes.insert(Flush { left: 0, then });
        let mut left = 0;
        for piece in pieces {
            self.write_out(node, piece);
            let Some(object) = self.client(node).objects.get(&piece.object) else { continue };
            let writes = |(transfer, moving): (&u32, &Moving)| {
                let is_one = moving.moves == Moves::Writes && overlap(&moving.range, &piece.range);
                is_one.then_some(*transfer)
            };
            for id in object.moving.iter().filter_map(writes).collect::<Vec<_>>() {
                self.transfers[id].waiters.push(Waiter::Flush(flush));
                left += 1;
            }
        }
        self.flushes[flush].left = left;
        if left == 0 {
            self.flushed(flush);
        }
    }

    fn flushed(&mut self, flush: u32) {
        let then = self.flushes[flush].then.clone();
        self.flushes.remove(flush);
        match then {
            Flushed::Operation(rank) => self.go_on(rank),
            Flushed::GiveBack { client, resource, range } => self.lock_is_clean(client, resource, range),
        }
    }

    /// Sends what may be under way at the same time.
    fn send_ready(&mut self, node: u32, target: u32) {
        let most = self.costs.client.in_flight;
        loop {
            let channel = self.client(node).channel(target);
            if channel.in_flight >= most {
                return;
            }
            let Some(id) = channel.ready.pop_front() else { return };
            channel.in_flight += 1;
            let Transfer { piece, moves, .. } = &self.transfers[id];
            let bytes = if *moves == Moves::Writes { piece.range.end - piece.range.start } else { 0 };
            let to = self.server_nodes[self.server_of(target).0 as usize];
            self.send(node, to, bytes, Message::Request(id));
        }
    }

    /// A request is at its server.
    pub(super) fn serve(&mut self, id: u32) {
        let Transfer { client, target, moves, piece, .. } = self.transfers[id].clone();
        let bytes = piece.range.end - piece.range.start;
        let (server, target) = self.server_of(target);
        let (server, costs) = (&mut self.servers[server as usize], &self.costs.servers);
        match moves {
            Moves::Reads => self.wait_for_thread(id),
            Moves::Syncs => {
                let durable = server.sync(costs, self.now, target);
                self.wake(durable, Wake::Served(id));
            }
            Moves::Writes => {
                let there = server.take_in(costs, self.now, bytes);
                self.changes(client, piece.object.file);
                if there > self.now {
                    return self.wake(there, Wake::DataIn(id));
                }
                self.wait_for_thread(id);
            }
        }
    }

    /// A read has come to its server, or the data of a write: it begins when a thread is free.
    pub(super) fn wait_for_thread(&mut self, id: u32) {
        let (server, _) = self.server_of(self.transfers[id].target);
        if self.servers[server as usize].take_thread(id) {
            self.begin(id);
        }
    }

    /// A read or a write has a thread of its server.
    fn begin(&mut self, id: u32) {
        let Transfer { target, moves, piece, .. } = &self.transfers[id];
        let (moves, object, bytes) = (*moves, piece.object, piece.range.end - piece.range.start);
        let (server, target) = self.server_of(*target);
        let (server, costs) = (&mut self.servers[server as usize], &self.costs.servers);
        if moves == Moves::Writes {
            let (taken, on_device) = server.write(costs, self.now, target, bytes);
            self.written.insert(object, on_device);
            return self.wake(taken, Wake::Served(id));
        }
        let read = server.read(costs, self.now, target, bytes);
        self.wake(read, if costs.link.is_some() { Wake::DataOut(id) } else { Wake::Served(id) });
    }

    /// The data of a read are off their device, and leave by the link of its server.
    pub(super) fn send_out(&mut self, id: u32) {
        let Transfer { target, piece, .. } = &self.transfers[id];
        let bytes = piece.range.end - piece.range.start;
        let (server, _) = self.server_of(*target);
        let gone = self.servers[server as usize].send_out(&self.costs.servers, self.now, bytes);
        self.wake(gone, Wake::Served(id));
    }

    /// A server is done with a request: the next has its thread.
    pub(super) fn served(&mut self, id: u32) {
        let Transfer { target, moves, .. } = self.transfers[id];
        let (server, _) = self.server_of(target);
        if moves != Moves::Syncs
            && let Some(next) = self.servers[server as usize].leave_thread()
        {
            self.begin(next);
        }
        self.answer(id);
    }

    /// Its server answers it.
    fn answer(&mut self, id: u32) {
        let Transfer { client, target, moves, piece, .. } = &self.transfers[id];
        let bytes = if *moves == Moves::Reads { piece.range.end - piece.range.start } else { 0 };
        let (to, from) = (*client, self.server_nodes[self.server_of(*target).0 as usize]);
        self.send(from, to, bytes, Message::Answer(id));
    }

    /// Its answer is back at the client.
    pub(super) fn answered(&mut self, id: u32) {
        let Transfer { client: node, piece, target, moves, written, waiters } = self.transfers[id].clone();
        self.transfers.remove(id);
        let cache = self.costs.client.cache.as_ref().map(|cache| cache.size);
        let bytes = piece.range.end - piece.range.start;
        let client = self.client(node);
        let object = client.objects.entry(piece.object).or_default();
        let is_old = object.moving.remove(&id).is_some_and(|moving| moving.is_old);
        match moves {
            Moves::Reads if is_old => {}
            Moves::Reads => cache.into_iter().for_each(|capacity| client.keep(&piece, capacity)),
            Moves::Writes => object.written += 1,
            Moves::Syncs => object.synced = object.synced.max(written),
        }
        let channel = client.channel(target);
        channel.in_flight -= 1;
        if moves == Moves::Writes && cache.is_some() {
            channel.dirty_bytes -= bytes;
            client.dirty_bytes -= bytes;
        }
        self.send_ready(node, target);
        for waiter in waiters {
            match waiter {
                Waiter::Operation(rank) => self.has_come(rank),
                Waiter::Flush(flush) => {
                    self.flushes[flush].left -= 1;
                    if self.flushes[flush].left == 0 {
                        self.flushed(flush);
                    }
                }
            }
        }
        self.next_go_on(node, piece.object);
    }

    /// What a node's client has of an object, from now on if it had nothing.
    fn object(&mut self, node: u32, id: ObjectId) -> &mut Object {
        self.files[id.file as usize].clients.insert(node);
        self.client(node).objects.entry(id).or_default()
    }

    pub(super) fn target_of(&self, object: ObjectId) -> u32 {
        self.files[object.file as usize].stripes.target(object)
    }
}
