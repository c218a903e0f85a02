//! LRU and MRU.

use super::order::Order;
use super::table::{MAIN, Slot, Table};
use super::{BlockPolicy, ListId, Missing, Slots};

pub(crate) struct Recency {
    capacity: u64,
    most_recent_leaves: bool,
    order: Order<MAIN>,
}

impl Recency {
    pub(crate) fn new(capacity: u64, most_recent_leaves: bool) -> Recency {
        Recency { capacity, most_recent_leaves, order: Order::new() }
    }
}

impl BlockPolicy for Recency {
    #[inline]
    fn hit(&mut self, table: &mut Table, slot: Slot) {
        self.order.renew(table, slot);
    }

    #[inline]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        if self.order.length() == self.capacity {
            let leaving =
                if self.most_recent_leaves { self.order.pop_last() } else { self.order.pop_first(table) };
            if let Some(leaving) = leaving {
                table.remove(leaving);
            }
        }
        let slot = table.insert(missing.key, missing.hash, 0);
        self.order.push(table, slot);
    }

    fn resident(&self) -> u64 {
        self.order.length()
    }

    #[inline]
    fn make_room(&mut self, table: &mut Table) {
        self.order.make_room(table);
    }

    fn renumber(&mut self, moved: &[Slot]) {
        self.order.renumber(moved);
    }

    fn put(&mut self, table: &mut Table, slot: Slot, _: usize, _: ListId, _: bool) {
        self.order.push(table, slot);
    }

    fn in_order(&self, _: usize, _: ListId) -> Slots<'_> {
        Box::new(self.order.iter())
    }
}
