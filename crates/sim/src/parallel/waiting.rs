//! Those that wait for locks of one object or file, in the order in which they came, and by where what they want begins and
//! ends: a rank that gets its lock need not be compared with all that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_machine::ExtentLocks;
use pio_plan::Direction;

use super::locks::{Wish, overlap};

/// Wishes by number: who came first has the least.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    wishes: BTreeMap<u64, Wish>,
    reads: Places,
    writes: Places,
    next: u64,
}

/// Where wishes begin and where they end, each with its number.
#[derive(Debug, Default)]
struct Places {
    begins: BTreeSet<(u64, u64)>,
    ends: BTreeSet<(u64, u64)>,
    /// No wish has been longer.
    longest: u64,
}

impl Waiting {
    /// A wish comes: its number.
    pub(super) fn push(&mut self, wish: Wish) -> u64 {
        let number = self.next;
        self.next += 1;
        let Range { start, end } = wish.range;
        let places = self.places_mut(wish.direction);
        places.begins.insert((start, number));
        places.ends.insert((end, number));
        places.longest = places.longest.max(end.saturating_sub(start));
        self.wishes.insert(number, wish);
        number
    }

    pub(super) fn remove(&mut self, number: u64) {
        let Some(wish) = self.wishes.remove(&number) else { return };
        let places = self.places_mut(wish.direction);
        places.begins.remove(&(wish.range.start, number));
        places.ends.remove(&(wish.range.end, number));
    }

    pub(super) fn get(&self, number: u64) -> Option<&Wish> {
        self.wishes.get(&number)
    }

    /// The one that came first.
    pub(super) fn first(&self) -> Option<(u64, &Wish)> {
        self.wishes.first_key_value().map(|(number, wish)| (*number, wish))
    }

    #[cfg(test)]
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Wish> {
        self.wishes.values()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.wishes.len()
    }

    /// Those that share bytes with an extent, in no order.
    pub(super) fn overlapping(&self, extent: &Range<u64>) -> impl Iterator<Item = u64> {
        let near = [&self.reads, &self.writes].into_iter().flat_map(|places| places.near(extent));
        near.filter(|number| overlap(&self.wishes[number].range, extent))
    }

    /// The first with one of these numbers that a wish cannot be granted beside. Where many want the same, it is soon met in the
    /// order in which they came; where few do, it is soon met where it begins: both are looked through at the same time.
    pub(super) fn first_in_conflict(
        &self,
        wish: &Wish,
        numbers: Range<u64>,
        costs: &ExtentLocks,
    ) -> Option<u64> {
        let mut near = self.against(wish).flat_map(|places| places.near(&wish.range));
        let mut first = None;
        for (number, other) in self.wishes.range(numbers.clone()) {
            if other.conflicts(wish, costs) {
                return Some(*number);
            }
            let Some(near) = near.next() else { return first };
            let is_earlier = numbers.contains(&near) && first.is_none_or(|first| near < first);
            if is_earlier && self.wishes[&near].conflicts(wish, costs) {
                first = Some(near);
            }
        }
        None
    }

    /// How many want what a wish cannot be granted beside, anywhere, if clients are in their own way.
    pub(super) fn many_against(&self, wish: &Wish) -> usize {
        self.against(wish).map(|places| places.begins.len()).sum()
    }

    /// Where what others want ends that is next before a wish.
    pub(super) fn end_before(&self, wish: &Wish, costs: &ExtentLocks) -> Option<u64> {
        let is_against = |(_, number): &&(u64, u64)| wish.is_against(self.wishes[number].client, costs);
        let before = |places: &Places| {
            places.ends.range(..=(wish.range.start, u64::MAX)).rev().find(is_against).map(|(end, _)| *end)
        };
        self.against(wish).filter_map(before).max()
    }

    /// Where what others want begins that is next behind it.
    pub(super) fn begin_behind(&self, wish: &Wish, costs: &ExtentLocks) -> Option<u64> {
        let is_against = |(_, number): &&(u64, u64)| wish.is_against(self.wishes[number].client, costs);
        let behind = |places: &Places| {
            places.begins.range((wish.range.end, 0)..).find(is_against).map(|(begin, _)| *begin)
        };
        self.against(wish).filter_map(behind).min()
    }

    /// Of those that can be in the way of a wish: readers are not in each other's.
    fn against(&self, wish: &Wish) -> impl Iterator<Item = &Places> {
        let reads = (wish.direction == Direction::Write).then_some(&self.reads);
        reads.into_iter().chain([&self.writes])
    }

    fn places_mut(&mut self, direction: Direction) -> &mut Places {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }
}

impl Places {
    /// Those that could share bytes with an extent: none other does.
    fn near<'a>(&'a self, extent: &Range<u64>) -> impl Iterator<Item = u64> + use<'a> {
        let from = extent.start.saturating_sub(self.longest);
        self.begins.range((from, 0)..(extent.end.max(from), 0)).map(|(_, number)| *number)
    }
}
