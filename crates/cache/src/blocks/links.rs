//! An order of blocks as a linked list: where a whole table is near, neighbours are too, and nothing is faster.

use super::order::Order;
use super::table::{Found, Slot, Table};

/// The neighbours of a block.
#[derive(Clone, Copy)]
struct Link {
    colder: u32,
    hotter: u32,
}

/// Blocks in an order: the first is the coldest.
pub(crate) struct Links {
    /// Of each slot; and last that which closes the ring: hotter than it is the coldest block, colder the hottest.
    links: Vec<Link>,
    length: u64,
}

impl Order for Links {
    fn of(table: &Table) -> Links {
        let end = table.slots() as u32;
        Links { links: vec![Link { colder: end, hotter: end }; table.slots() + 1], length: 0 }
    }

    #[inline(always)]
    fn length(&self) -> u64 {
        self.length
    }

    /// Nothing needs to be noted.
    #[inline(always)]
    fn next(&self) -> u32 {
        0
    }

    #[inline(always)]
    fn push_new(&mut self, slot: Slot) {
        self.length += 1;
        self.link(slot);
    }

    #[inline(always)]
    fn push(&mut self, _: &mut Table, slot: Slot) {
        self.push_new(slot);
    }

    #[inline(always)]
    fn renew(&mut self, _: &mut Table, found: Found) {
        self.unlink(found.slot);
        self.link(found.slot);
    }

    #[inline(always)]
    fn take(&mut self, found: Found) {
        self.length -= 1;
        self.unlink(found.slot);
    }

    #[inline(always)]
    fn pop_first(&mut self, _: &Table) -> Option<Slot> {
        let coldest = self.links[self.end()].hotter;
        self.pop(coldest)
    }

    #[inline(always)]
    fn pop_last(&mut self) -> Option<Slot> {
        let hottest = self.links[self.end()].colder;
        self.pop(hottest)
    }

    fn iter(&self) -> impl Iterator<Item = Slot> {
        let hotter = |slot: Slot| {
            let hotter = self.links[slot as usize].hotter;
            (hotter as usize != self.end()).then_some(hotter)
        };
        std::iter::successors(hotter(self.end() as u32), move |slot| hotter(*slot))
    }

    #[inline(always)]
    fn make_room(&mut self, _: &mut Table) {}

    fn renumber(&mut self, table: &Table, moved: &[Slot]) {
        let before = std::mem::replace(self, Links::of(table));
        for slot in before.iter() {
            self.push_new(moved[slot as usize]);
        }
    }
}

impl Links {
    #[inline(always)]
    fn end(&self) -> usize {
        self.links.len() - 1
    }

    #[inline(always)]
    fn pop(&mut self, slot: Slot) -> Option<Slot> {
        if self.length == 0 {
            return None;
        }
        self.length -= 1;
        self.unlink(slot);
        Some(slot)
    }

    /// Puts a block at the hot end.
    #[inline(always)]
    fn link(&mut self, slot: Slot) {
        let end = self.end();
        let hottest = self.links[end].colder;
        self.links[end].colder = slot;
        self.links[hottest as usize].hotter = slot;
        self.links[slot as usize] = Link { colder: hottest, hotter: end as u32 };
    }

    #[inline(always)]
    fn unlink(&mut self, slot: Slot) {
        let Link { colder, hotter } = self.links[slot as usize];
        self.links[colder as usize].hotter = hotter;
        self.links[hotter as usize].colder = colder;
    }
}
