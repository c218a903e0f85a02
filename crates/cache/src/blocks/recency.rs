//! LRU and MRU.

use super::order::Order;
use super::table::{Found, Slot, Table};
use super::{BlockPolicy, Missing, Slots};
use crate::runs::{ListId, Rail};

pub(crate) struct Recency {
    capacity: u64,
    most_recent_leaves: bool,
    order: Order,
}

impl Recency {
    pub(crate) fn new(capacity: u64, most_recent_leaves: bool) -> Recency {
        Recency { capacity, most_recent_leaves, order: Order::new() }
    }
}

impl BlockPolicy for Recency {
    #[inline(always)]
    fn hit(&mut self, table: &mut Table, found: Found) {
        *table.entry(found.slot).position = self.order.renew(found.position, found.slot);
    }

    #[inline(always)]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        if self.order.length() == self.capacity {
            let leaving =
                if self.most_recent_leaves { self.order.pop_last() } else { self.order.pop_first(table) };
            if let Some(leaving) = leaving {
                table.remove(leaving);
            }
        }
        self.order.push(table.insert(missing.key, missing.hash, 0, self.order.next()));
    }

    fn resident(&self) -> u64 {
        self.order.length()
    }

    #[inline(always)]
    fn make_room(&mut self, table: &mut Table) {
        self.order.make_room(|slot, position| *table.entry(slot).position = position);
    }

    fn renumber(&mut self, moved: &[Slot]) {
        self.order.renumber(moved);
    }

    fn put(&mut self, table: &mut Table, slot: Slot, _: Rail, _: ListId, _: bool) {
        *table.entry(slot).position = self.order.push(slot);
    }

    fn in_order(&self, _: Rail, _: ListId) -> Slots<'_> {
        Box::new(self.order.iter())
    }
}
