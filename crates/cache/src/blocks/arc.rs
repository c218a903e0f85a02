//! ARC (Megiddo and Modha, FAST 2003, figure 4), in the paper's names.
//!
//! What leaves T1 is the coldest of it and becomes the hottest of B1, so the two are one order, L1, and only where T1
//! begins moves; T2 and B2 are L2 likewise. The state of a block says in which of these it is, its position in which part.

use super::log::Log;
use super::order::Order;
use super::table::{Found, Slot, State, Table};
use super::{BlockPolicy, Missing, Slots};
use crate::runs::{ListId, Rail};

/// States, and numbers of what is here of L1 and of L2 among the lists of runs. What is remembered has the next two.
const L1: State = 0;
const L2: State = 1;

pub(crate) struct Arc {
    capacity: u64,
    pub p: f64,
    lists: [List; 2],
}

/// What is remembered, and hotter than that what is here.
struct List {
    order: Log,
    /// Where in the order begins what is here.
    here_from: usize,
    here: u64,
}

impl BlockPolicy for Arc {
    #[inline(always)]
    fn is_here(&self, found: &Found) -> bool {
        let list = self.list(found.state);
        list.order.is_behind(list.here_from, found.position)
    }

    /// Case I.
    #[inline(always)]
    fn hit(&mut self, table: &mut Table, found: Found) {
        self.list_mut(found.state).here -= 1;
        self.move_to_l2(table, found);
    }

    #[inline(always)]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        match missing.history {
            Some(history) => self.remembered(table, history),
            None => self.new_block(table, missing),
        }
    }

    fn resident(&self) -> u64 {
        self.lists.iter().map(|list| list.here).sum()
    }

    #[inline(always)]
    fn make_room(&mut self, table: &mut Table) {
        for list in &mut self.lists {
            if list.order.make_room(|slot, position| *table.entry(slot).position = position) {
                list.here_from = list.remembered() as usize;
            }
        }
    }

    fn renumber(&mut self, _: &Table, moved: &[Slot]) {
        for list in &mut self.lists {
            list.order.renumber(moved);
        }
    }

    /// What is remembered comes before what is here.
    fn put(&mut self, table: &mut Table, slot: Slot, _: Rail, number: ListId, _: bool) {
        let list = self.list_mut(number % 2);
        let entry = table.entry(slot);
        *entry.state = number % 2;
        *entry.position = list.order.push(slot);
        if number <= L2 {
            list.here += 1;
        } else {
            list.here_from = list.order.end();
        }
    }

    fn in_order(&self, _: Rail, number: ListId) -> Slots<'_> {
        let list = self.list(number % 2);
        let remembered = list.remembered() as usize;
        if number <= L2 {
            Box::new(list.order.iter().skip(remembered))
        } else {
            Box::new(list.order.iter().take(remembered))
        }
    }
}

impl Arc {
    pub(crate) fn new(capacity: u64) -> Arc {
        let lists = [(); 2].map(|()| List { order: Log::new(), here_from: 0, here: 0 });
        Arc { capacity, p: 0.0, lists }
    }

    /// Cases II and III.
    #[inline(always)]
    fn remembered(&mut self, table: &mut Table, history: Found) {
        let [b1, b2] = [L1, L2].map(|list| self.list(list).remembered() as f64);
        let was_in_b2 = history.state == L2;
        self.p = if was_in_b2 {
            (self.p - (b1 / b2).max(1.0)).max(0.0)
        } else {
            (self.p + (b2 / b1).max(1.0)).min(self.capacity as f64)
        };
        self.replace(was_in_b2);
        self.move_to_l2(table, history);
    }

    /// Case IV.
    #[inline(always)]
    fn new_block(&mut self, table: &mut Table, missing: Missing) {
        let [l1, l2] = &mut self.lists;
        if l1.order.length() == self.capacity {
            // Of what leaves T1 when B1 is empty nothing is remembered.
            if l1.remembered() > 0 {
                l1.forget_coldest(table);
                self.replace(false);
            } else {
                l1.forget_coldest(table);
                l1.here -= 1;
            }
        } else if l1.here + l2.here == self.capacity {
            if table.count() == 2 * self.capacity {
                l2.forget_coldest(table);
            }
            self.replace(false);
        }
        let [l1, _] = &mut self.lists;
        l1.order.push(table.insert(missing.key, missing.hash, L1, l1.order.next()));
        l1.here += 1;
    }

    /// REPLACE.
    #[inline(always)]
    fn replace(&mut self, was_in_b2: bool) {
        let [l1, l2] = &mut self.lists;
        // Signed, as processors convert them.
        let t1 = l1.here as i64 as f64;
        let from_t1 = t1 > 0.0 && (t1 > self.p || was_in_b2 && t1 == self.p);
        let list = if from_t1 || l2.here == 0 { l1 } else { l2 };
        if list.here > 0 {
            list.here_from = list.order.pass_one(list.here_from);
            list.here -= 1;
        }
    }

    #[inline(always)]
    fn move_to_l2(&mut self, table: &mut Table, found: Found) {
        self.list_mut(found.state).order.take(found.position);
        let [_, l2] = &mut self.lists;
        let entry = table.entry(found.slot);
        *entry.state = L2;
        *entry.position = l2.order.push(found.slot);
        l2.here += 1;
    }

    #[inline(always)]
    fn list(&self, number: State) -> &List {
        &self.lists[usize::from(number % 2)]
    }

    #[inline(always)]
    fn list_mut(&mut self, number: State) -> &mut List {
        &mut self.lists[usize::from(number % 2)]
    }
}

impl List {
    #[inline(always)]
    fn remembered(&self) -> u64 {
        self.order.length() - self.here
    }

    #[inline(always)]
    fn forget_coldest(&mut self, table: &mut Table) {
        if let Some(slot) = self.order.pop_first(table) {
            table.remove(slot);
        }
    }
}
