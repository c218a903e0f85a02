//! The clients' side of locks: which a client has, which of them it is using, and how it gives them back.
//!
//! A lock that was called back is not used for anything new. When what is under way below it is done, the client writes
//! out what is dirty there, forgets what it has, and gives the lock back. So all that clients have at any time is the
//! server's to grant once: nobody has what another writes.

use std::collections::BTreeMap;
use std::ops::Range;

use pio_machine::{ExtentLocks, LocksOn};
use pio_plan::Direction;

use super::client::Flushed;
use super::extents::Extents;
use super::locks::{Wish, Word, add_writes, given_back, overlap};
use super::stripes::{ObjectId, Piece};
use super::{FAR, Message, ParallelFiles, Wake};
use crate::kernel::Time;

/// What a lock is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    File(u32),
    Object(ObjectId),
}

/// The locks of a client on one object or file.
#[derive(Debug, Default)]
pub(super) struct ClientLocks {
    /// Where it may read.
    reads: Extents,
    /// Where it may write, too.
    writes: Extents,
    /// What ranks are using.
    pins: Vec<(u32, Range<u64>)>,
    /// What is to be given back when nobody uses it.
    called: Vec<Range<u64>>,
    /// Where it last read or wrote.
    last: u64,
    /// How many words of the server's it has heard, and, by number, those that overtook the next.
    heard: u64,
    early: BTreeMap<u64, Word>,
}

/// What clients and servers say of locks.
#[derive(Clone, Debug)]
pub(super) enum LockWord {
    /// A client wishes for one.
    Wish(Resource, Wish),
    /// What its server says, and the how manieth word to this client that is.
    Answer { resource: Resource, word: Word, number: u64 },
    /// A client gives one back.
    GivenBack { resource: Resource, client: u32, range: Range<u64> },
}

impl ClientLocks {
    /// Where the client may read.
    pub(super) fn readable(&self) -> &Extents {
        &self.reads
    }

    /// Where it may write.
    #[cfg(test)]
    pub(super) fn writable(&self) -> &Extents {
        &self.writes
    }

    fn allows(&self, direction: Direction, range: &Range<u64>) -> bool {
        match direction {
            Direction::Read => self.reads.covers(range),
            Direction::Write => self.writes.covers(range),
        }
    }
}

impl ParallelFiles {
    /// Whether a rank may use what a lock guards; from then on, until [`ParallelFiles::unpin`]. If not, its client wishes for
    /// the lock, and the rank's operation goes on when it has it.
    pub(super) fn pin(
        &mut self,
        rank: u32,
        node: u32,
        resource: Resource,
        direction: Direction,
        range: &Range<u64>,
    ) -> bool {
        let locks = self.client(node).locks.entry(resource).or_default();
        locks.last = range.end;
        if locks.allows(direction, range) {
            locks.pins.push((rank, range.clone()));
            return true;
        }
        let wish = Wish { client: node, rank, direction, range: range.clone() };
        let word = self.lock_words.insert(LockWord::Wish(resource, wish));
        self.send_lock_word(word);
        false
    }

    /// A rank is through with what it used.
    pub(super) fn unpin(&mut self, rank: u32, node: u32, resource: Resource) {
        let Some(locks) = self.client(node).locks.get_mut(&resource) else { return };
        locks.pins.retain(|(user, _)| *user != rank);
        let ClientLocks { pins, called, .. } = locks;
        let in_use = |range: &Range<u64>| pins.iter().any(|(_, used)| overlap(used, range));
        let (stay, free): (Vec<_>, Vec<_>) = std::mem::take(called).into_iter().partition(in_use);
        *called = stay;
        free.into_iter().for_each(|range| self.clean(node, resource, range));
    }

    /// A word about a lock is sent to whom it is for.
    pub(super) fn send_lock_word(&mut self, word: u32) {
        let server = |resource: &Resource| self.server_nodes[self.keeper(*resource) as usize];
        let (from, to) = match &self.lock_words[word] {
            LockWord::Wish(resource, wish) => (wish.client, server(resource)),
            LockWord::Answer { resource, word, .. } => (server(resource), word.client()),
            LockWord::GivenBack { resource, client, .. } => (*client, server(resource)),
        };
        self.send(from, to, 0, Message::Lock(word));
    }

    /// A word about a lock has arrived.
    pub(super) fn lock_word_arrived(&mut self, id: u32) {
        let word = self.lock_words[id].clone();
        let Some(costs) = self.costs.locks else { return };
        match word {
            LockWord::Wish(resource, _) => {
                let keeper = self.keeper(resource) as usize;
                let (_, read) = self.lock_servers[keeper].serve(self.now, costs.request);
                self.wake(read, Wake::WishRead(id))
            }
            LockWord::Answer { resource, word, number } => {
                self.lock_words.remove(id);
                self.hear(resource, word, number)
            }
            LockWord::GivenBack { resource, client, range } => {
                let durable = match resource {
                    Resource::Object(object) if costs.sync => self.durable(object, client, &range),
                    Resource::Object(_) | Resource::File(_) => self.now,
                };
                if durable > self.now {
                    self.wake(durable, Wake::Durable(id));
                } else {
                    self.take_back(id);
                }
            }
        }
    }

    /// When what a client may have written under a lock is durable.
    fn durable(&mut self, object: ObjectId, client: u32, range: &Range<u64>) -> Time {
        let table = self.lock_tables.entry(Resource::Object(object)).or_default();
        let Some(written) = self.written.get(&object).filter(|_| table.may_write(client, range)) else {
            return self.now;
        };
        let (server, target) = self.server_of(self.target_of(object));
        self.servers[server as usize].commit(&self.costs.servers, self.now, target, *written)
    }

    /// A lock is its server's again.
    pub(super) fn take_back(&mut self, id: u32) {
        let (LockWord::GivenBack { resource, client, range }, Some(costs)) =
            (self.lock_words[id].clone(), self.costs.locks)
        else {
            return;
        };
        self.lock_words.remove(id);
        let mut words = Vec::new();
        self.lock_tables.entry(resource).or_default().give_back(client, &range, &costs, &mut words);
        self.say(resource, words);
    }

    /// A client has got a word of a lock's server: it and those behind it count when all before have come.
    fn hear(&mut self, resource: Resource, word: Word, number: u64) {
        let (node, Some(ExtentLocks { yields, .. })) = (word.client(), self.costs.locks) else { return };
        self.client(node).locks.entry(resource).or_default().early.insert(number, word);
        loop {
            let locks = self.client(node).locks.entry(resource).or_default();
            let Some(word) = locks.early.remove(&locks.heard) else { return };
            locks.heard += 1;
            match word {
                Word::Granted(wish, range) => {
                    locks.reads.add(range.clone());
                    if wish.direction == Direction::Write {
                        add_writes(&mut locks.writes, range, yields);
                    }
                    self.go_on(wish.rank);
                }
                Word::CalledBack { lock, wanted, .. } => self.called_back(node, resource, &lock, &wanted),
            }
        }
    }

    /// The server of a lock has read a client's wish for it.
    pub(super) fn wish_read(&mut self, id: u32) {
        let (LockWord::Wish(resource, wish), Some(costs)) = (self.lock_words[id].clone(), self.costs.locks)
        else {
            return;
        };
        self.lock_words.remove(id);
        let mut words = Vec::new();
        self.lock_tables.entry(resource).or_default().ask(wish, &costs, &mut words);
        self.say(resource, words);
    }

    fn say(&mut self, resource: Resource, words: Vec<Word>) {
        for word in words {
            let number = self.lock_tables.entry(resource).or_default().number(word.client());
            let word = self.lock_words.insert(LockWord::Answer { resource, word, number });
            self.send_lock_word(word);
        }
    }

    /// Another rank wants a part of a lock that this one has.
    fn called_back(&mut self, node: u32, resource: Resource, lock: &Range<u64>, wanted: &Range<u64>) {
        let Some(costs) = self.costs.locks else { return };
        let locks = self.client(node).locks.entry(resource).or_default();
        let range = given_back(costs.yields, lock, wanted, locks.last);
        locks.reads.remove(range.clone());
        locks.writes.remove(range.clone());
        if locks.pins.iter().any(|(_, used)| overlap(used, &range)) {
            locks.called.push(range);
        } else {
            self.clean(node, resource, range);
        }
    }

    /// Nobody uses any more what is to be given back.
    fn clean(&mut self, node: u32, resource: Resource, range: Range<u64>) {
        let pieces = self.guarded(resource, &range);
        self.flush(node, &pieces, Flushed::GiveBack { client: node, resource, range });
    }

    /// What a client wrote under a lock that is to be given back is on its targets.
    pub(super) fn lock_is_clean(&mut self, node: u32, resource: Resource, range: Range<u64>) {
        for piece in self.guarded(resource, &range) {
            self.client(node).drop(&piece);
        }
        let Some(costs) = self.costs.locks else { return };
        let word = self.lock_words.insert(LockWord::GivenBack { resource, client: node, range });
        self.wake(self.now + costs.callback, Wake::GivesBack(word));
    }

    /// What a lock on an extent guards of each object.
    pub(super) fn guarded(&self, resource: Resource, range: &Range<u64>) -> Vec<Piece> {
        match resource {
            Resource::Object(object) => vec![Piece { object, range: range.clone() }],
            Resource::File(file) => {
                self.files[file as usize].stripes.objects(&(range.start..range.end.min(FAR)))
            }
        }
    }

    /// The lock that guards a piece of a file, and the extent of it that is needed: whole units.
    pub(super) fn lock_for(
        &self,
        file: u32,
        range: &Range<u64>,
        piece: &Piece,
    ) -> Option<(Resource, Range<u64>)> {
        let locks = self.costs.locks?;
        let (resource, range) = match locks.on {
            LocksOn::Objects => (Resource::Object(piece.object), &piece.range),
            LocksOn::Files => (Resource::File(file), range),
        };
        let whole = |offset: u64| offset / locks.unit * locks.unit;
        Some((resource, whole(range.start)..whole(range.end.saturating_add(locks.unit - 1))))
    }

    /// The object server that keeps a lock.
    fn keeper(&self, resource: Resource) -> u32 {
        match resource {
            Resource::File(file) => file % self.costs.io.count,
            Resource::Object(object) => {
                self.server_of(self.files[object.file as usize].stripes.target(object)).0
            }
        }
    }
}
