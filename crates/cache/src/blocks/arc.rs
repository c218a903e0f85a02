//! ARC (Megiddo and Modha, FAST 2003, figure 4), in the paper's names. The state of a block is the number of its list.

use super::order::Order;
use super::table::{Found, Slot, State, Table};
use super::{BlockPolicy, Missing, Slots};
use crate::runs::{ListId, Rail};

const T1: ListId = 0;
const T2: ListId = 1;
const B1: ListId = 2;
const B2: ListId = 3;

pub(crate) struct Arc {
    capacity: u64,
    pub p: f64,
    lists: [Order; 4],
}

impl BlockPolicy for Arc {
    #[inline(always)]
    fn is_here(&self, state: State) -> bool {
        state <= T2
    }

    /// Case I.
    #[inline(always)]
    fn hit(&mut self, table: &mut Table, found: Found) {
        self.move_to_t2(table, found);
    }

    #[inline(always)]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        match missing.history {
            Some(history) => self.remembered(table, history),
            None => self.new_block(table, missing),
        }
    }

    fn resident(&self) -> u64 {
        self.length(T1) + self.length(T2)
    }

    #[inline(always)]
    fn make_room(&mut self, table: &mut Table) {
        for list in &mut self.lists {
            list.make_room(|slot, position| *table.entry(slot).position = position);
        }
    }

    fn renumber(&mut self, moved: &[Slot]) {
        for list in &mut self.lists {
            list.renumber(moved);
        }
    }

    fn put(&mut self, table: &mut Table, slot: Slot, _: Rail, list: ListId, _: bool) {
        self.push(list, table, slot);
    }

    fn in_order(&self, _: Rail, list: ListId) -> Slots<'_> {
        Box::new(self.lists[usize::from(list)].iter())
    }
}

impl Arc {
    pub(crate) fn new(capacity: u64) -> Arc {
        Arc { capacity, p: 0.0, lists: [(); 4].map(|()| Order::new()) }
    }

    /// Cases II and III.
    #[inline(always)]
    fn remembered(&mut self, table: &mut Table, history: Found) {
        let (b1, b2) = (self.length(B1) as f64, self.length(B2) as f64);
        let was_in_b2 = history.state == B2;
        self.p = if was_in_b2 {
            (self.p - (b1 / b2).max(1.0)).max(0.0)
        } else {
            (self.p + (b2 / b1).max(1.0)).min(self.capacity as f64)
        };
        self.replace(table, was_in_b2);
        self.move_to_t2(table, history);
    }

    /// Case IV.
    #[inline(always)]
    fn new_block(&mut self, table: &mut Table, missing: Missing) {
        if self.length(T1) + self.length(B1) == self.capacity {
            // Of what leaves T1 when B1 is empty nothing is remembered.
            let forgotten = if self.length(B1) > 0 { B1 } else { T1 };
            self.forget_coldest(table, forgotten);
            if forgotten == B1 {
                self.replace(table, false);
            }
        } else if self.resident() == self.capacity {
            if table.count() == 2 * self.capacity {
                self.forget_coldest(table, B2);
            }
            self.replace(table, false);
        }
        let t1 = &mut self.lists[usize::from(T1)];
        t1.push(table.insert(missing.key, missing.hash, T1, t1.next()));
    }

    /// REPLACE.
    #[inline(always)]
    fn replace(&mut self, table: &mut Table, was_in_b2: bool) {
        let t1 = self.length(T1) as f64;
        let from_t1 = t1 > 0.0 && (t1 > self.p || was_in_b2 && t1 == self.p);
        let (from, to) = if from_t1 || self.length(T2) == 0 { (T1, B1) } else { (T2, B2) };
        if let Some(slot) = self.lists[usize::from(from)].pop_first(table) {
            self.push(to, table, slot);
        }
    }

    #[inline(always)]
    fn forget_coldest(&mut self, table: &mut Table, list: ListId) {
        if let Some(slot) = self.lists[usize::from(list)].pop_first(table) {
            table.remove(slot);
        }
    }

    #[inline(always)]
    fn move_to_t2(&mut self, table: &mut Table, found: Found) {
        self.lists[usize::from(found.state)].take(*table.entry(found.slot).position);
        self.push(T2, table, found.slot);
    }

    #[inline(always)]
    fn push(&mut self, list: ListId, table: &mut Table, slot: Slot) {
        let entry = table.entry(slot);
        *entry.state = list;
        *entry.position = self.lists[usize::from(list)].push(slot);
    }

    #[inline(always)]
    fn length(&self, list: ListId) -> u64 {
        self.lists[usize::from(list)].length()
    }
}
