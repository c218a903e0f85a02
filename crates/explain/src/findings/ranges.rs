//! A set of bytes of a file, as intervals, in bounded memory.

use std::collections::BTreeMap;

/// Intervals kept. Programs go through files in few streams; one that touches more separate places than this is counted
/// only where the first of them lie, so that what is said to be covered always is.
const MOST: usize = 2048;

/// Bytes of a file. Never holds a byte that was not inserted; may lack some, if they lie in too many places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// The interval that was touched last, kept out of `others`: nearly every access continues it.
    hot: (u64, u64),
    /// Start of the first of `others` behind `hot`.
    next_start: Option<u64>,
    /// Starts and ends; no two overlap or touch each other.
    others: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `start .. end` and says how many of these bytes were there already.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        if start >= self.hot.0 && end <= self.hot.1 {
            return end - start;
        }
        let continues = start >= self.hot.0 && start <= self.hot.1 && self.hot.0 < self.hot.1;
        if continues && self.next_start.is_none_or(|next| end < next) {
            let known = self.hot.1 - start;
            self.hot.1 = end;
            return known;
        }
        self.insert_anywhere(start, end)
    }

    /// Takes `start .. end` out.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        let apart = end <= self.hot.0 || start >= self.hot.1;
        if start >= end || (apart && self.others.is_empty()) {
            return;
        }
        self.cool();
        let first = self.others.range(..=start).next_back().map_or(start, |(&from, _)| from);
        let touched: Vec<(u64, u64)> = self
            .others
            .range(first..end)
            .filter(|(_, until)| **until > start)
            .map(|(&s, &e)| (s, e))
            .collect();
        for (from, until) in touched {
            self.others.remove(&from);
            if from < start {
                self.others.insert(from, start);
            }
            if until > end {
                self.others.insert(end, until);
            }
        }
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self) {
        *self = Ranges::default();
    }

    fn insert_anywhere(&mut self, start: u64, end: u64) -> u64 {
        self.cool();
        let first = match self.others.range(..=start).next_back() {
            Some((&from, &until)) if until >= start => from,
            _ => start,
        };
        let (mut merged, mut known) = ((start, end), 0);
        while let Some((&from, &until)) = self.others.range(first..=end).next() {
            known += until.min(end).saturating_sub(from.max(start));
            merged = (merged.0.min(from), merged.1.max(until));
            self.others.remove(&from);
        }
        if self.others.len() < MOST || merged != (start, end) {
            self.hot = merged;
            self.next_start = self.others.range(merged.1..).next().map(|(&from, _)| from);
        }
        known
    }

    /// Puts the hot interval to the others.
    fn cool(&mut self) {
        let (from, until) = std::mem::take(&mut self.hot);
        self.next_start = None;
        if from < until {
            self.others.insert(from, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_bytes(steps in prop::collection::vec((any::<bool>(), 0..200_u64, 0..40_u64), 0..120)) {
            let (mut ranges, mut naive) = (Ranges::default(), BTreeSet::new());
            for (insert, start, length) in steps {
                let bytes = start..start + length;
                if insert {
                    let known = bytes.clone().filter(|byte| naive.contains(byte)).count() as u64;
                    prop_assert_eq!(ranges.insert(bytes.start, bytes.end), known);
                    naive.extend(bytes);
                } else {
                    ranges.remove(bytes.start, bytes.end);
                    bytes.for_each(|byte| { naive.remove(&byte); });
                }
            }
        }
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_invented() {
        let mut ranges = Ranges::default();
        for index in 0..100_000_u64 {
            assert_eq!(ranges.insert(index * 10, index * 10 + 5), 0);
        }
        assert!(ranges.others.len() <= MOST + 1);
        assert_eq!(ranges.insert(0, 5), 5);
        assert_eq!(ranges.insert(999_990, 999_995), 0, "forgotten, not invented");
    }
}
