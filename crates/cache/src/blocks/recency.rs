//! LRU and MRU.

use super::order::Order;
use super::table::{Found, Slot, Table};
use super::{BlockPolicy, Missing, Slots};
use crate::runs::{ListId, Rail};

pub(crate) struct Recency<O> {
    capacity: u64,
    most_recent_leaves: bool,
    order: O,
}

impl<O: Order> Recency<O> {
    pub(crate) fn new(table: &Table, capacity: u64, most_recent_leaves: bool) -> Recency<O> {
        Recency { capacity, most_recent_leaves, order: O::of(table) }
    }
}

impl<O: Order> BlockPolicy for Recency<O> {
    #[inline(always)]
    fn hit(&mut self, table: &mut Table, found: Found) {
        self.order.renew(table, found);
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
        self.order.push_new(table.insert(missing.key, missing.hash, 0, self.order.next()));
    }

    fn resident(&self) -> u64 {
        self.order.length()
    }

    #[inline(always)]
    fn make_room(&mut self, table: &mut Table) {
        self.order.make_room(table);
    }

    fn renumber(&mut self, table: &Table, moved: &[Slot]) {
        self.order.renumber(table, moved);
    }

    fn put(&mut self, table: &mut Table, slot: Slot, _: Rail, _: ListId, _: bool) {
        self.order.push(table, slot);
    }

    fn in_order(&self, _: Rail, _: ListId) -> Slots<'_> {
        Box::new(self.order.iter())
    }
}
