//! Clock: one list in the order in which the hand meets the blocks; the mark says that a block was used since the hand
//! last passed.

use crate::index::RunId;
use crate::policy::{Incoming, evictable};
use crate::runs::{Rail, Runs, Traits};

pub(crate) struct Clock {
    capacity: u64,
}

impl Clock {
    pub(crate) fn new(capacity: u64) -> Clock {
        Clock { capacity }
    }

    pub(crate) fn hit(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        mark(runs, run, true);
        runs.get(run).length()
    }

    pub(crate) fn admit(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        let room = self.capacity - runs.blocks(Rail::Main, 0);
        let length = if room > 0 && incoming.evict_from.is_none() {
            incoming.length.min(room)
        } else {
            let Some(victim) = pass(runs, incoming.evict_from) else { return 0 };
            let length = incoming.length.min(runs.get(victim).length());
            runs.evict_first(victim, length);
            length
        };
        runs.append(0, incoming.file, incoming.start, length, incoming.traits)
    }
}

/// Moves the hand up to a run that may be evicted and was not used since it last passed. What may not be evicted keeps
/// its mark.
fn pass(runs: &mut Runs, evict_from: Option<u32>) -> Option<RunId> {
    // Once round clears every mark, so that twice round finds what there is.
    for _ in 0..2 * runs.count(Rail::Main, 0) {
        let run = runs.first(Rail::Main, 0)?;
        if evictable(runs.get(run), evict_from) {
            if !runs.get(run).traits.mark {
                return Some(run);
            }
            mark(runs, run, false);
        }
        runs.move_to(Rail::Main, 0, run);
        runs.join(run);
    }
    None
}

fn mark(runs: &mut Runs, run: RunId, mark: bool) {
    let traits = runs.get(run).traits;
    runs.set_traits(run, Traits { mark, ..traits });
}
