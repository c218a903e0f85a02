//! SLRU: LRU lists one above the other. The state of a block is the number of its list.

use super::order::Order;
use super::table::{MAIN, Slot, Table};
use super::{BlockPolicy, ListId, Missing, Slots, segment_sizes};

pub(crate) struct Segmented {
    capacity: u64,
    /// The lowest is the first.
    lists: Vec<List>,
}

struct List {
    /// In blocks.
    size: u64,
    order: Order<MAIN>,
}

impl List {
    #[inline]
    fn has_room(&self) -> bool {
        self.order.length() < self.size
    }
}

impl Segmented {
    pub(crate) fn new(capacity: u64, segments: u8) -> Segmented {
        let sizes = segment_sizes(capacity, segments).into_iter();
        Segmented { capacity, lists: sizes.map(|size| List { size, order: Order::new() }).collect() }
    }
}

impl BlockPolicy for Segmented {
    #[inline]
    fn hit(&mut self, table: &mut Table, slot: Slot) {
        let list = table.state(slot);
        let [this, above, ..] = &mut self.lists[usize::from(list)..] else {
            return self.lists[usize::from(list)].order.renew(table, slot);
        };
        this.order.take(table, slot);
        // A full list sends down its coldest block for each that comes up.
        let falling = if above.has_room() { None } else { above.order.pop_first(table) };
        table.set_state(slot, list + 1);
        above.order.push(table, slot);
        if let Some(falling) = falling {
            table.set_state(falling, list);
            this.order.push(table, falling);
        }
    }

    #[inline]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        if table.count() == self.capacity
            && let Some(leaving) = self.lists.iter_mut().find_map(|list| list.order.pop_first(table))
        {
            table.remove(leaving);
        }
        let list = self.lists.iter().position(List::has_room).unwrap_or(0);
        let slot = table.insert(missing.key, missing.hash, list as ListId);
        self.lists[list].order.push(table, slot);
    }

    fn resident(&self) -> u64 {
        self.lists.iter().map(|list| list.order.length()).sum()
    }

    #[inline]
    fn make_room(&mut self, table: &mut Table) {
        for list in &mut self.lists {
            list.order.make_room(table);
        }
    }

    fn renumber(&mut self, moved: &[Slot]) {
        for list in &mut self.lists {
            list.order.renumber(moved);
        }
    }

    fn put(&mut self, table: &mut Table, slot: Slot, _: usize, list: ListId, _: bool) {
        table.set_state(slot, list);
        self.lists[usize::from(list)].order.push(table, slot);
    }

    fn in_order(&self, _: usize, list: ListId) -> Slots<'_> {
        Box::new(self.lists[usize::from(list)].order.iter())
    }
}
