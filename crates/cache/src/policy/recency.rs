//! LRU and MRU: one list in the order of the last use, of which one end leaves.

use crate::index::RunId;
use crate::policy::{Incoming, coldest, evictable};
use crate::runs::{Data, Rail, Runs};

pub(crate) struct Recency {
    capacity: u64,
    most_recent_leaves: bool,
}

impl Recency {
    pub(crate) fn least(capacity: u64) -> Recency {
        Recency { capacity, most_recent_leaves: false }
    }

    pub(crate) fn most(capacity: u64) -> Recency {
        Recency { capacity, most_recent_leaves: true }
    }

    pub(crate) fn hit(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        let length = runs.get(run).length();
        runs.move_to(Rail::Main, 0, run);
        runs.join(run);
        length
    }

    pub(crate) fn admit(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        let room = self.capacity - runs.blocks(Rail::Main, 0);
        if room > 0 && incoming.evict_from.is_none() {
            let length = incoming.length.min(room);
            return add(runs, incoming, incoming.start, length);
        }
        if self.most_recent_leaves {
            admit_for_most_recent(runs, incoming)
        } else {
            admit_for_least(runs, incoming)
        }
    }
}

fn admit_for_least(runs: &mut Runs, incoming: Incoming) -> u64 {
    let Some(victim) = coldest(runs, Rail::Main, 0, incoming.evict_from) else { return 0 };
    let length = incoming.length.min(runs.get(victim).length());
    runs.evict_first(victim, length);
    add(runs, incoming, incoming.start, length)
}

fn admit_for_most_recent(runs: &mut Runs, incoming: Incoming) -> u64 {
    let Some(victim) = hottest(runs, incoming.evict_from) else { return 0 };
    if incoming.traits.data == Data::Clean {
        // Each of the new blocks makes room for the next: only the last one stays.
        let victim = runs.last_blocks(victim, 1);
        runs.evict_first(victim, 1);
        add(runs, incoming, incoming.start + incoming.length - 1, 1);
        return incoming.length;
    }
    let length = incoming.length.min(runs.get(victim).length());
    let victim = runs.last_blocks(victim, length);
    runs.evict_first(victim, length);
    add(runs, incoming, incoming.start, length)
}

/// The most recently used run that may be evicted.
fn hottest(runs: &Runs, evict_from: Option<u32>) -> Option<RunId> {
    let mut run = runs.last(Rail::Main, 0)?;
    while !evictable(runs.get(run), evict_from) {
        run = runs.previous(Rail::Main, run)?;
    }
    Some(run)
}

fn add(runs: &mut Runs, incoming: Incoming, start: u64, length: u64) -> u64 {
    runs.append(0, incoming.file, start, length, incoming.traits)
}
