//! Clock: the blocks in the order in which the hand meets them; what comes in takes the place of what leaves.

use super::table::{Found, Slot, State, Table};
use super::{BlockPolicy, Missing, Slots};
use crate::runs::{ListId, Rail};

/// Used since the hand last passed.
const USED: State = 1;

/// The hand brings blocks into the processor's cache that are so far ahead of it.
const AHEAD: usize = 48;

pub(crate) struct Clock {
    capacity: u64,
    ring: Vec<Slot>,
    /// Where in the ring the next block is that the hand meets.
    hand: usize,
}

impl Clock {
    pub(crate) fn new(capacity: u64) -> Clock {
        Clock { capacity, ring: Vec::new(), hand: 0 }
    }

    #[inline(always)]
    fn advance(&mut self, table: &Table) {
        self.hand = if self.hand + 1 == self.ring.len() { 0 } else { self.hand + 1 };
        if let Some(ahead) = self.ring.get(self.hand + AHEAD) {
            table.prefetch_slot(*ahead);
        }
    }
}

impl BlockPolicy for Clock {
    #[inline(always)]
    fn hit(&mut self, table: &mut Table, found: Found) {
        *table.entry(found.slot).state = USED;
    }

    #[inline(always)]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        if self.resident() < self.capacity {
            self.ring.push(table.insert(missing.key, missing.hash, 0, 0));
            return;
        }
        while std::mem::take(table.entry(self.ring[self.hand]).state) == USED {
            self.advance(table);
        }
        table.remove(self.ring[self.hand]);
        self.ring[self.hand] = table.insert(missing.key, missing.hash, 0, 0);
        self.advance(table);
    }

    fn resident(&self) -> u64 {
        self.ring.len() as u64
    }

    #[inline(always)]
    fn make_room(&mut self, _: &mut Table) {}

    fn renumber(&mut self, _: &Table, moved: &[Slot]) {
        for slot in &mut self.ring {
            *slot = moved[*slot as usize];
        }
    }

    fn put(&mut self, table: &mut Table, slot: Slot, _: Rail, _: ListId, mark: bool) {
        *table.entry(slot).state = if mark { USED } else { 0 };
        self.ring.push(slot);
    }

    fn in_order(&self, _: Rail, _: ListId) -> Slots<'_> {
        let (before, from_hand) = self.ring.split_at(self.hand);
        Box::new(from_hand.iter().chain(before).copied())
    }

    fn mark(&self, state: State) -> bool {
        state == USED
    }
}
