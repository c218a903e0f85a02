//! Sets of numbers, as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers, kept as ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    /// Start and end of each.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(start, end)| *start..*end)
    }

    /// The first of the set's ranges behind `start`, or what is behind it of one that begins before.
    pub(super) fn from(&self, start: u64) -> Option<Range<u64>> {
        let (_, end) = self.ranges.range(..=start).next_back().unwrap_or((&0, &0));
        if *end > start {
            return Some(start..*end);
        }
        self.ranges.range(start..).next().map(|(start, end)| *start..*end)
    }

    pub(super) fn insert(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // Swallow all that overlap or touch.
        while let Some((&start, &end)) = self.ranges.range(..=range.end).next_back() {
            if end < range.start {
                break;
            }
            self.ranges.remove(&start);
            range = range.start.min(start)..range.end.max(end);
        }
        self.ranges.insert(range.start, range.end);
    }

    pub(super) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.ranges.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.ranges.remove(&start);
            if end > range.end {
                self.ranges.insert(range.end, end);
            }
            if start < range.start {
                self.ranges.insert(start, range.start);
                break;
            }
        }
    }

    /// What of `range` is not in the set.
    pub(super) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut at = range.start;
        let mut missing = Vec::new();
        if let Some((_, &end)) = self.ranges.range(..=range.start).next_back() {
            at = at.max(end);
        }
        for (&start, &end) in self.ranges.range(range.start..) {
            if at >= range.end || start >= range.end {
                break;
            }
            if start > at {
                missing.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_sets(steps in proptest::collection::vec((any::<bool>(), 0u64..60, 0u64..20), 0..40), from in 0u64..60, len in 0u64..30) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (insert, start, len) in steps {
                let range = start..start + len;
                match insert {
                    true => { ranges.insert(range.clone()); set.extend(range); }
                    false => { ranges.remove(range.clone()); range.for_each(|number| { set.remove(&number); }); }
                }
                prop_assert!(ranges.iter().flatten().eq(set.iter().copied()));
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.end < b.start));
            }
            let missing: Vec<u64> = ranges.missing(from..from + len).into_iter().flatten().collect();
            let expected: Vec<u64> = (from..from + len).filter(|number| !set.contains(number)).collect();
            prop_assert_eq!(missing, expected);
        }
    }
}
