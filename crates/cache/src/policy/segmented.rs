//! SLRU: LRU lists one above the other.
//!
//! A block comes into the lowest list with room, a hit moves it up by one (in the highest: to its hot end), and what
//! falls out of a list goes to the hot end of the one below. The lists have the same size; what does not divide evenly
//! is the lowest one's.

use crate::index::RunId;
use crate::policy::{Incoming, coldest};
use crate::runs::{ListId, Rail, Runs};

pub(crate) struct Segmented {
    sizes: Vec<u64>,
    capacity: u64,
    resident: u64,
}

impl Segmented {
    pub(crate) fn new(capacity: u64, segments: u8) -> Segmented {
        Segmented { sizes: segment_sizes(capacity, segments), capacity, resident: 0 }
    }

    pub(crate) fn resident(&self) -> u64 {
        self.resident
    }

    pub(crate) fn hit(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        let list = runs.get(run).list(Rail::Main);
        let length = runs.get(run).length();
        let above = list + 1;
        if usize::from(above) == self.sizes.len() {
            runs.move_to(Rail::Main, list, run);
            runs.join(run);
            return length;
        }
        let room = self.sizes[usize::from(above)] - runs.blocks(Rail::Main, above);
        // A full list sends down its coldest block for each that comes up.
        let falling = if room > 0 { None } else { runs.first(Rail::Main, above) };
        let length = length.min(falling.map_or(room, |run| runs.get(run).length()));
        let run = runs.first_blocks(run, length);
        runs.move_to(Rail::Main, above, run);
        runs.join(run);
        if let Some(falling) = falling {
            let traits = runs.get(falling).traits;
            runs.move_first(list, falling, length, traits);
        }
        length
    }

    pub(crate) fn admit(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        let mut length = incoming.length;
        if self.resident == self.capacity || incoming.evict_from.is_some() {
            let Some(victim) = self.victim(runs, incoming.evict_from) else { return 0 };
            length = length.min(runs.get(victim).length());
            runs.evict_first(victim, length);
            self.resident -= length;
        }
        let room = |list: ListId| self.sizes[usize::from(list)] - runs.blocks(Rail::Main, list);
        let Some(list) = self.lists().find(|list| room(*list) > 0) else { return 0 };
        let length = length.min(room(list));
        let added = runs.append(list, incoming.file, incoming.start, length, incoming.traits);
        self.resident += added;
        added
    }

    pub(crate) fn forget(&mut self, runs: &mut Runs, run: RunId) {
        self.resident -= runs.get(run).length();
        runs.remove(run);
    }

    /// The coldest run of the lowest list that may be evicted.
    fn victim(&self, runs: &Runs, evict_from: Option<u32>) -> Option<RunId> {
        self.lists().find_map(|list| coldest(runs, Rail::Main, list, evict_from))
    }

    fn lists(&self) -> std::ops::Range<ListId> {
        0..self.sizes.len() as ListId
    }
}

/// Blocks of each list, the lowest first: equal, and what does not divide evenly is the lowest one's.
fn segment_sizes(capacity: u64, segments: u8) -> Vec<u64> {
    let size = capacity / u64::from(segments);
    let mut sizes = vec![size; usize::from(segments)];
    sizes[0] = capacity - size * (u64::from(segments) - 1);
    sizes
}
