//! A parallel file system at work: clients with caches, strips on the targets of object servers, locks on extents, metadata
//! servers, journals. `docs/design/parallel-file-systems.md` tells how they act together.
//!
//! It is told what ranks ask for, what has arrived at a node, and that a time has come, and says what is to be sent, when it
//! wants to be woken, and which rank's wish is done. It has no clock and no network of its own: the engine's carry its
//! messages, beside those of ranks.

mod cache;
mod cached;
mod client;
mod client_locks;
mod extents;
mod locks;
mod metadata;
mod object_server;
mod operations;
mod reads;
mod stripes;
#[cfg(test)]
pub(crate) mod tests;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use pio_machine::ParallelFiles as Costs;

use crate::kernel::{Queue, Slab, Time};
use crate::prediction::ServerTotal;
use client::{Client, Flush, Transfer};
use client_locks::{LockWord, Resource};
use locks::LockTable;
use metadata::Metadata;
use object_server::ObjectServer;
use operations::Operation;
use reads::ReadAhead;
use stripes::{ObjectId, Stripes};

pub(crate) use operations::Wanted;

/// What the nodes of a parallel file system send each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// A client's request to a target, with the data of a write.
    Request(u32),
    /// Its answer, with the data of a read.
    Answer(u32),
    /// A word about a lock.
    Lock(u32),
    /// A rank's operation for a metadata server.
    Metadata(u32),
    /// It is done.
    MetadataAnswer(u32),
}

/// What it wants to be woken for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake {
    /// The data of a write have passed the link of its server.
    DataIn(u32),
    /// The data of a read are off their device.
    DataOut(u32),
    /// A server is done with a request.
    Served(u32),
    /// It has read a client's wish for a lock.
    WishRead(u32),
    /// A client is ready to give a lock back.
    GivesBack(u32),
    /// What was written under a lock that was given back is durable.
    Durable(u32),
    /// A metadata server is done with a rank's operation.
    MetadataDone(u32),
}

/// What is to be done for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// To carry so many bytes from a node to another.
    Send { from: u32, to: u32, bytes: u64, message: Message },
    /// To wake it.
    Wake { at: Time, wake: Wake },
    /// To tell a rank that what it wanted is done.
    Done { rank: u32 },
}

/// The file system. What is to be done is in `actions`, in order, after each call.
#[derive(Debug)]
pub(crate) struct ParallelFiles {
    costs: Costs,
    now: Time,
    pub(crate) actions: Vec<Action>,
    /// Node of each object server. Those of metadata servers are the same, by turns.
    server_nodes: Vec<u32>,
    servers: Vec<ObjectServer>,
    metadata: Metadata,
    /// Of each node.
    clients: BTreeMap<u32, Client>,
    files: Vec<File>,
    lock_tables: BTreeMap<Resource, LockTable>,
    /// Of each object server, what reads clients' wishes for locks.
    lock_servers: Vec<Queue>,
    /// What goes to and fro between clients and targets.
    transfers: Slab<Transfer>,
    flushes: Slab<Flush>,
    lock_words: Slab<LockWord>,
    /// When the last write of each object is on its device.
    written: BTreeMap<ObjectId, Time>,
    /// What each rank has wanted that is not done.
    operations: BTreeMap<u32, Operation>,
    /// Of each rank and file.
    read_ahead: BTreeMap<(u32, u32), ReadAhead>,
}

/// What is known of a file.
#[derive(Debug)]
struct File {
    stripes: Stripes,
    /// Where it ends.
    size: u64,
    /// How many writes of it have come to its servers.
    changes: u64,
    /// Nodes whose clients have had anything of it.
    clients: BTreeSet<u32>,
}

/// Behind all files.
const FAR: u64 = 1 << 60;

impl ParallelFiles {
    /// A file system whose object servers are on these nodes. `files`: path of each, and its bytes when the program begins.
    pub(crate) fn new<'a>(
        costs: &Costs,
        server_nodes: Vec<u32>,
        files: impl Iterator<Item = (&'a str, u64)> + Clone,
    ) -> ParallelFiles {
        let file = |(number, (_, size)): (usize, (&str, u64))| File {
            stripes: Stripes::new(costs, number as u32),
            size: size.min(FAR),
            changes: 0,
            clients: BTreeSet::new(),
        };
        ParallelFiles {
            now: Time::default(),
            actions: Vec::new(),
            servers: server_nodes.iter().map(|_| ObjectServer::new(&costs.servers)).collect(),
            metadata: Metadata::new(&costs.metadata, files.clone().map(|(path, _)| path)),
            clients: BTreeMap::new(),
            files: files.enumerate().map(file).collect(),
            lock_tables: BTreeMap::new(),
            lock_servers: vec![Queue::default(); server_nodes.len()],
            transfers: Slab::new(),
            flushes: Slab::new(),
            lock_words: Slab::new(),
            written: BTreeMap::new(),
            operations: BTreeMap::new(),
            read_ahead: BTreeMap::new(),
            costs: costs.clone(),
            server_nodes,
        }
    }

    /// A message has arrived.
    pub(crate) fn arrived(&mut self, now: Time, message: Message) {
        self.now = now;
        match message {
            Message::Request(transfer) => self.serve(transfer),
            Message::Answer(transfer) => self.answered(transfer),
            Message::Lock(word) => self.lock_word_arrived(word),
            Message::Metadata(rank) => self.serve_metadata(rank),
            Message::MetadataAnswer(rank) => self.end(rank),
        }
    }

    /// A time has come.
    pub(crate) fn woken(&mut self, now: Time, wake: Wake) {
        self.now = now;
        match wake {
            Wake::DataIn(transfer) => self.wait_for_thread(transfer),
            Wake::DataOut(transfer) => self.send_out(transfer),
            Wake::Served(transfer) => self.served(transfer),
            Wake::WishRead(word) => self.wish_read(word),
            Wake::GivesBack(word) => self.send_lock_word(word),
            Wake::Durable(word) => self.take_back(word),
            Wake::MetadataDone(rank) => self.answer_metadata(rank),
        }
    }

    /// What each object server has done.
    pub(crate) fn done(&self) -> Vec<ServerTotal> {
        self.servers.iter().map(|server| server.done).collect()
    }

    fn send(&mut self, from: u32, to: u32, bytes: u64, message: Message) {
        self.actions.push(Action::Send { from, to, bytes, message });
    }

    fn wake(&mut self, at: Time, wake: Wake) {
        self.actions.push(Action::Wake { at, wake });
    }

    fn client(&mut self, node: u32) -> &mut Client {
        self.clients.entry(node).or_default()
    }

    /// The object server of a target, and the target's number there.
    fn server_of(&self, target: u32) -> (u32, u32) {
        // Neighbouring targets are on different servers, so that a file with few is on many servers.
        (target % self.costs.io.count, target / self.costs.io.count)
    }
}
