//! SLRU: LRU lists one above the other. The state of a block is the number of its list.

use super::order::Order;
use super::table::{Found, Slot, Table};
use super::{BlockPolicy, Missing, Slots, segment_sizes};
use crate::runs::{ListId, Rail};

pub(crate) struct Segmented<O> {
    capacity: u64,
    /// The lowest is the first.
    lists: Vec<List<O>>,
}

struct List<O> {
    /// In blocks.
    size: u64,
    order: O,
}

impl<O: Order> List<O> {
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.order.length() < self.size
    }
}

impl<O: Order> Segmented<O> {
    pub(crate) fn new(table: &Table, capacity: u64, segments: u8) -> Segmented<O> {
        let sizes = segment_sizes(capacity, segments).into_iter();
        Segmented { capacity, lists: sizes.map(|size| List { size, order: O::of(table) }).collect() }
    }
}

impl<O: Order> BlockPolicy for Segmented<O> {
    #[inline(always)]
    fn hit(&mut self, table: &mut Table, found: Found) {
        let list = found.state;
        let [this, above, ..] = &mut self.lists[usize::from(list)..] else {
            self.lists[usize::from(list)].order.renew(table, found);
            return;
        };
        // A full list sends down its coldest block for each that comes up.
        let falling = if above.has_room() { None } else { above.order.pop_first(table) };
        this.order.take(found);
        above.order.push(table, found.slot);
        *table.entry(found.slot).state = list + 1;
        if let Some(falling) = falling {
            this.order.push(table, falling);
            *table.entry(falling).state = list;
        }
    }

    #[inline(always)]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        // Of a full cache every list is full, and the lowest is of at least a block.
        let list = if table.count() == self.capacity {
            if let Some(leaving) = self.lists[0].order.pop_first(table) {
                table.remove(leaving);
            }
            0
        } else {
            self.lists.iter().position(List::has_room).unwrap_or(0)
        };
        let order = &mut self.lists[list].order;
        order.push_new(table.insert(missing.key, missing.hash, list as ListId, order.next()));
    }

    fn resident(&self) -> u64 {
        self.lists.iter().map(|list| list.order.length()).sum()
    }

    #[inline(always)]
    fn make_room(&mut self, table: &mut Table) {
        for list in &mut self.lists {
            list.order.make_room(table);
        }
    }

    fn renumber(&mut self, table: &Table, moved: &[Slot]) {
        for list in &mut self.lists {
            list.order.renumber(table, moved);
        }
    }

    fn put(&mut self, table: &mut Table, slot: Slot, _: Rail, list: ListId, _: bool) {
        *table.entry(slot).state = list;
        self.lists[usize::from(list)].order.push(table, slot);
    }

    fn in_order(&self, _: Rail, list: ListId) -> Slots<'_> {
        Box::new(self.lists[usize::from(list)].order.iter())
    }
}
