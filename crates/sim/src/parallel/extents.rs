//! A set of bytes, as the extents it is made of.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint extents with gaps between them: begin and end of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extents(BTreeMap<u64, u64>);

impl Extents {
    /// Adds an extent: how many of its bytes are new. It becomes one with those that it overlaps or touches.
    pub(super) fn add(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let Range { mut start, mut end } = range;
        let mut new = end - start;
        while let Some((&begin, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= start)
        {
            self.0.remove(&begin);
            // Those before have been taken off with the part of the extent that they lie in.
            new -= last.min(range.end).saturating_sub(begin.max(range.start));
            (start, end) = (start.min(begin), end.max(last));
        }
        self.0.insert(start, end);
        new
    }

    /// Adds an extent of which nothing is here. It stays apart from those that it touches.
    pub(super) fn add_apart(&mut self, range: Range<u64>) {
        assert!(!self.overlaps(&range), "nothing of {range:?} is here");
        if !range.is_empty() {
            self.0.insert(range.start, range.end);
        }
    }

    /// How many extents there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes an extent out: how many of its bytes there were.
    pub(super) fn remove(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        loop {
            let Some((begin, last)) = self.touched(&range).next() else { break };
            self.0.remove(&begin);
            if begin < range.start {
                self.0.insert(begin, range.start);
            }
            if last > range.end {
                self.0.insert(range.end, last);
            }
            removed += last.min(range.end) - begin.max(range.start);
        }
        removed
    }

    /// Whether all bytes of an extent are here.
    pub(super) fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.around(range.start).is_some_and(|found| found.end >= range.end)
    }

    /// Whether any byte of it is.
    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.touched(range).next().is_some()
    }

    /// Those of its bytes that are here.
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        self.touched(range).map(|(begin, last)| begin.max(range.start)..last.min(range.end)).collect()
    }

    /// Those of its bytes that are not.
    pub(super) fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut next = range.start;
        for (begin, last) in self.touched(range) {
            if begin > next {
                missing.push(next..begin);
            }
            next = last;
        }
        if next < range.end {
            missing.push(next..range.end);
        }
        missing
    }

    /// The extent that a byte is in.
    pub(super) fn around(&self, byte: u64) -> Option<Range<u64>> {
        let (&begin, &last) = self.0.range(..=byte).next_back().filter(|(_, last)| **last > byte)?;
        Some(begin..last)
    }

    /// Whether an extent that has bytes of a range also has bytes outside it.
    pub(super) fn goes_beyond(&self, range: &Range<u64>) -> bool {
        let ends = [self.touched(range).next(), self.touched(range).last()];
        ends.into_iter().flatten().any(|(begin, last)| begin < range.start || last > range.end)
    }

    /// Where the extent ends that is next before a byte.
    pub(super) fn end_before(&self, byte: u64) -> Option<u64> {
        self.0.range(..byte).next_back().map(|(_, last)| *last)
    }

    /// Where the extent begins that is next behind a byte, or with it.
    pub(super) fn begin_behind(&self, byte: u64) -> Option<u64> {
        self.0.range(byte..).next().map(|(begin, _)| *begin)
    }

    /// Each of them, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().map(|(begin, last)| *begin..*last)
    }

    /// Those that share bytes with an extent, ascending.
    fn touched(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (start, end) = (range.start, range.end.max(range.start));
        let first = self.around(start).map_or(start, |found| found.start);
        self.0.range(first.min(end)..end).map(|(begin, last)| (*begin, *last)).filter(move |_| start < end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: u64 = 64;

    proptest! {
        /// Against a set of single bytes.
        #[test]
        fn it_is_a_set_of_bytes(
            steps in prop::collection::vec((any::<bool>(), 0..BYTES, 0..16_u64), 0..40),
            asked in (0..BYTES, 0..20_u64),
        ) {
            let mut extents = Extents::default();
            let mut bytes = [false; 2 * BYTES as usize];
            for (adds, start, length) in steps {
                let range = start..start + length;
                let changed = range.clone().filter(|byte| bytes[*byte as usize] != adds).count() as u64;
                range.clone().for_each(|byte| bytes[byte as usize] = adds);
                prop_assert_eq!(if adds { extents.add(range) } else { extents.remove(range) }, changed);
            }
            let there = |byte: &u64| bytes[*byte as usize];
            let mut naive: Vec<Range<u64>> = Vec::new();
            for byte in (0..2 * BYTES).filter(there) {
                match naive.last_mut().filter(|last| last.end == byte) {
                    Some(last) => last.end = byte + 1,
                    None => naive.push(byte..byte + 1),
                }
            }
            prop_assert_eq!(extents.iter().collect::<Vec<_>>(), naive.clone());
            let range = asked.0..asked.0 + asked.1;
            let within: Vec<u64> = extents.within(&range).into_iter().flatten().collect();
            prop_assert_eq!(within.clone(), range.clone().filter(there).collect::<Vec<_>>());
            let missing: Vec<u64> = extents.missing(&range).into_iter().flatten().collect();
            prop_assert_eq!(missing.clone(), range.clone().filter(|byte| !there(byte)).collect::<Vec<_>>());
            prop_assert_eq!(extents.covers(&range), missing.is_empty());
            prop_assert_eq!(extents.overlaps(&range), !within.is_empty());
            let around = naive.iter().find(|extent| extent.contains(&range.start)).cloned();
            prop_assert_eq!(extents.around(range.start), around);
            let before = naive.iter().rev().find(|extent| extent.start < range.start).map(|extent| extent.end);
            prop_assert_eq!(extents.end_before(range.start), before);
            let behind = naive.iter().find(|extent| extent.start >= range.start).map(|extent| extent.start);
            prop_assert_eq!(extents.begin_behind(range.start), behind);
        }
    }
}
