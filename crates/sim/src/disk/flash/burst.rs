//! The region that takes bursts of writes: flash with one bit a cell, which is quick to program and holds little.
//!
//! What the host writes is programmed there as long as there is room, and in its place from then on. While the host wants
//! nothing, each die reads what it holds there and programs it in its place, one page after the other, within the die. A page
//! has its place in the map from the beginning: the region only says how it was programmed.
//!
//! While nobody looks nothing happens: what dies have emptied meanwhile is reckoned when the next command comes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_machine::Duration;
use pio_machine::disk::{Burst, Flash};

use super::dies::Job;
use super::{FlashActions, FlashModel};
use crate::kernel::Time;

/// Which pages are in the region.
#[derive(Debug)]
pub(super) struct BurstRegion {
    /// Pages that it has room for.
    room: u64,
    /// Of each die, the pages that it holds there, in the order in which they came.
    held: Vec<BTreeMap<u64, u32>>,
    /// Each of them, and its place in that order.
    pages: BTreeSet<(u32, u64)>,
    /// Pages that have come.
    came: u64,
    idle: Duration,
    /// What a die takes to empty it of a page.
    emptying: Duration,
}

impl BurstRegion {
    pub(super) fn new(flash: &Flash, burst: Burst) -> BurstRegion {
        BurstRegion {
            room: burst.size / flash.stripe_page(),
            held: vec![BTreeMap::new(); flash.all_dies() as usize],
            pages: BTreeSet::new(),
            came: 0,
            idle: burst.idle,
            emptying: flash.read.saturating_add(flash.program).max(Duration::from_picoseconds(1)),
        }
    }

    /// Pages that it still has room for.
    #[cfg(test)]
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// A page of the host is to be programmed: whether here.
    pub(super) fn take(&mut self, page: u32) -> bool {
        if self.room == 0 {
            return false;
        }
        self.room -= 1;
        let dies = self.held.len();
        self.held[page as usize % dies].insert(self.came, page);
        self.pages.insert((page, self.came));
        self.came += 1;
        true
    }

    /// A die that has been alone for so long: how long it took out pages, and how long it will still for one that it is busy
    /// with.
    fn empty(&mut self, die: usize, alone: Duration) -> (Duration, Option<(u32, Duration)>) {
        let each = self.emptying.picoseconds();
        let begun = alone.picoseconds().div_ceil(each).min(self.held[die].len() as u64);
        let done = begun.min(alone.picoseconds() / each);
        self.room += done;
        let mut busy_with = None;
        for number in 0..begun {
            let Some((place, page)) = self.held[die].pop_first() else { break };
            self.pages.remove(&(page, place));
            busy_with = (number >= done).then_some(page);
        }
        let left = Duration::from_picoseconds(begun * each - alone.picoseconds().min(begun * each));
        (Duration::from_picoseconds(done * each), busy_with.map(|page| (page, left)))
    }

    /// A die is through with a page that it was taking out.
    pub(super) fn emptied(&mut self) {
        self.room += 1;
    }

    /// The pages of a line were moved, or overwritten, and are erased.
    pub(super) fn forget(&mut self, pages: Range<u32>) {
        let dies = self.held.len();
        while let Some(&(page, place)) = self.pages.range((pages.start, 0)..(pages.end, 0)).next() {
            self.pages.remove(&(page, place));
            self.held[page as usize % dies].remove(&place);
            self.room += 1;
        }
    }
}

impl FlashModel {
    /// How a page that is at its die is to be programmed: what garbage collection moves goes straight to its place.
    pub(super) fn programs(&mut self, page: u32) -> Job {
        let is_of_host = self.buffered.get(&page).is_some_and(|buffered| buffered.of_host > 0);
        let takes = self.burst.as_mut().is_some_and(|burst| is_of_host && burst.take(page));
        if takes { Job::ProgramBurst } else { Job::Program }
    }

    /// A command comes after a time without: what dies with nothing else to do have taken out of the region since then. One that
    /// is half-way through a page goes on to its end.
    pub(super) fn empty_burst(&mut self, now: Time, out: &mut FlashActions) {
        let Some(burst) = &mut self.burst else { return };
        for die in 0..self.flash.all_dies() {
            let Some(free) = self.dies.free_since(die) else { continue };
            let begin = free.max(self.idle_since + burst.idle);
            if begin >= now {
                continue;
            }
            let (was_busy, half_way) = burst.empty(die as usize, now.since(begin));
            self.dies.was_busy(was_busy);
            if let Some((page, left)) = half_way {
                self.dies.add(now, page, Job::Empty { left }, &mut out.later);
            }
        }
    }
}
