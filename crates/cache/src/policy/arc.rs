//! ARC: blocks used once and blocks used more often, each in an LRU list, with the history of what was evicted of each;
//! what was evicted and is asked for again tells which of the two should be larger (Megiddo and Modha, FAST 2003,
//! figure 4).
//!
//! The names are the paper's: `T1` and `T2` hold the blocks used once and more often, `B1` and `B2` the histories, `p` is
//! the size that `T1` should have. A hit in a history of so many blocks adapts `p` once for each of them, but moves them
//! together.

use crate::index::{NONE, RunId};
use crate::policy::{Incoming, coldest};
use crate::runs::{Data, ListId, Rail, Runs, Traits};

const T1: ListId = 0;
const T2: ListId = 1;
const B1: ListId = 2;
const B2: ListId = 3;

pub(crate) struct Arc {
    capacity: u64,
    p: f64,
}

impl Arc {
    pub(crate) fn new(capacity: u64) -> Arc {
        Arc { capacity, p: 0.0 }
    }

    pub(crate) fn resident(&self, runs: &Runs) -> u64 {
        size(runs, T1) + size(runs, T2)
    }

    /// Case I.
    pub(crate) fn hit(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        let length = runs.get(run).length();
        runs.move_to(Rail::Main, T2, run);
        runs.join(run);
        length
    }

    pub(crate) fn admit(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        match incoming.history {
            Some(history) => self.admit_remembered(runs, incoming, history),
            None => self.admit_new(runs, incoming),
        }
    }

    /// Cases II and III, for as many blocks of a history as take the place of blocks of the same list.
    fn admit_remembered(&mut self, runs: &mut Runs, incoming: Incoming, history: RunId) -> u64 {
        let was_in_b2 = runs.get(history).list(Rail::Main) == B2;
        let mut sizes = Sizes::of(runs);
        let mut p = self.adapted(&sizes, self.p, was_in_b2);
        let from_t1 = sizes.replace_from_t1(p, was_in_b2);
        let mut length = 1;
        if self.resident(runs) >= self.capacity || incoming.evict_from.is_some() {
            let Some(victim) = replaced(runs, from_t1, incoming.evict_from) else { return 0 };
            let is_the_papers = (runs.get(victim).list(Rail::Main) == T1) == from_t1;
            let most = incoming.length.min(runs.get(victim).length());
            while is_the_papers && length < most {
                sizes.remembered_replaces(was_in_b2, from_t1);
                let next = self.adapted(&sizes, p, was_in_b2);
                if sizes.replace_from_t1(next, was_in_b2) != from_t1 {
                    break;
                }
                p = next;
                length += 1;
            }
            runs.remove_first(history, length);
            evict(runs, victim, length);
        } else {
            runs.remove_first(history, length);
        }
        self.p = p;
        add(runs, T2, Incoming { length, ..incoming })
    }

    /// The size that T1 should have after a block was found in a history.
    fn adapted(&self, sizes: &Sizes, p: f64, was_in_b2: bool) -> f64 {
        let (b1, b2) = (sizes.b1 as f64, sizes.b2 as f64);
        if was_in_b2 {
            (p - (b1 / b2).max(1.0)).max(0.0)
        } else {
            (p + (b2 / b1).max(1.0)).min(self.capacity as f64)
        }
    }

    /// Case IV.
    fn admit_new(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        let resident = self.resident(runs);
        if resident < self.capacity && incoming.evict_from.is_none() {
            let length = incoming.length.min(self.capacity - resident);
            return add(runs, T1, Incoming { length, ..incoming });
        }
        let l1 = size(runs, T1) + size(runs, B1);
        let all = resident + size(runs, B1) + size(runs, B2);
        if l1 >= self.capacity && size(runs, B1) == 0 {
            // Nothing is remembered of what leaves here.
            let Some(victim) = coldest(runs, Rail::Main, T1, incoming.evict_from)
                .or_else(|| coldest(runs, Rail::Main, T2, incoming.evict_from))
            else {
                return 0;
            };
            let length = incoming.length.min(runs.get(victim).length());
            runs.evict_first(victim, length);
            return add(runs, T1, Incoming { length, ..incoming });
        }
        let from_t1 = Sizes::of(runs).replace_from_t1(self.p, false);
        let Some(victim) = replaced(runs, from_t1, incoming.evict_from) else { return 0 };
        let forgotten = if l1 >= self.capacity {
            Some(B1)
        } else if all >= 2 * self.capacity {
            Some(B2)
        } else {
            None
        };
        let length = match incoming.length {
            1 => 1,
            length => length.min(self.alike(runs, victim, forgotten, all)),
        };
        if let Some(oldest) = forgotten.and_then(|list| runs.first(Rail::Main, list)) {
            runs.remove_first(oldest, length);
        }
        evict(runs, victim, length);
        add(runs, T1, Incoming { length, ..incoming })
    }

    /// How many blocks, one after the other, have the same fate as the next new one.
    fn alike(&self, runs: &Runs, victim: RunId, forgotten: Option<ListId>, all: u64) -> u64 {
        let mut alike = runs.get(victim).length();
        if let Some(oldest) = forgotten.and_then(|list| runs.first(Rail::Main, list)) {
            alike = alike.min(runs.get(oldest).length());
        }
        if runs.get(victim).list(Rail::Main) == T2 {
            // T1 grows by each, until it is larger than p.
            let until = (self.p.floor() as u64 + 1).saturating_sub(size(runs, T1));
            alike = alike.min(until.max(1));
        }
        // L1 grows by each, until it is as large as the cache.
        let l1 = size(runs, T1) + size(runs, B1);
        if l1 < self.capacity {
            alike = alike.min(self.capacity - l1);
        }
        // And so does all of it, until it is twice as large.
        if forgotten.is_none() {
            alike = alike.min((2 * self.capacity).saturating_sub(all).max(1));
        }
        alike
    }
}

/// How many blocks are in each list.
struct Sizes {
    t1: u64,
    t2: u64,
    b1: u64,
    b2: u64,
}

impl Sizes {
    fn of(runs: &Runs) -> Sizes {
        Sizes { t1: size(runs, T1), t2: size(runs, T2), b1: size(runs, B1), b2: size(runs, B2) }
    }

    /// Whether the paper's REPLACE takes a block of T1.
    fn replace_from_t1(&self, p: f64, was_in_b2: bool) -> bool {
        let t1 = self.t1 as f64;
        self.t1 > 0 && (t1 > p || (was_in_b2 && t1 == p)) || self.t2 == 0
    }

    /// A block of a history comes into T2, in the place of one whose history is remembered.
    fn remembered_replaces(&mut self, was_in_b2: bool, from_t1: bool) {
        *(if was_in_b2 { &mut self.b2 } else { &mut self.b1 }) -= 1;
        if from_t1 {
            (self.t1, self.b1) = (self.t1 - 1, self.b1 + 1);
        } else {
            (self.t2, self.b2) = (self.t2 - 1, self.b2 + 1);
        }
        self.t2 += 1;
    }
}

/// Whose place is taken: of that list, or of the other if none of its blocks may be evicted.
fn replaced(runs: &Runs, from_t1: bool, evict_from: Option<u32>) -> Option<RunId> {
    let (first, second) = if from_t1 { (T1, T2) } else { (T2, T1) };
    coldest(runs, Rail::Main, first, evict_from).or_else(|| coldest(runs, Rail::Main, second, evict_from))
}

fn size(runs: &Runs, list: ListId) -> u64 {
    runs.blocks(Rail::Main, list)
}

/// The first blocks of a run leave; their history is remembered.
fn evict(runs: &mut Runs, victim: RunId, length: u64) {
    runs.note_evicted(victim, length);
    let history = if runs.get(victim).list(Rail::Main) == T1 { B1 } else { B2 };
    let gone = Traits { data: Data::Gone, owner: 0, transfer: NONE, ..Traits::CLEAN };
    runs.move_first(history, victim, length, gone);
}

fn add(runs: &mut Runs, list: ListId, incoming: Incoming) -> u64 {
    runs.append(list, incoming.file, incoming.start, incoming.length, incoming.traits)
}
