//! Sets of bytes.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a file, as intervals that do not touch.
#[derive(Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(super) fn insert(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.0.range(..=range.end).next_back() {
            if end < range.start {
                break;
            }
            self.0.remove(&start);
            range = range.start.min(start)..range.end.max(end);
        }
        self.0.insert(range.start, range.end);
    }

    pub(super) fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.0.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.0.remove(&start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
            if start < range.start {
                self.0.insert(start, range.start);
            }
        }
    }

    /// Whether all of these bytes are in it.
    pub(super) fn covers(&self, range: &Range<u64>) -> bool {
        self.0.range(..=range.start).next_back().is_some_and(|(_, &end)| end >= range.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same as a list of all bytes.
        #[test]
        fn they_are_sets_of_bytes(changes in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..20), 0..40)) {
            let (mut ranges, mut bytes) = (Ranges::default(), [false; 80]);
            for (adds, start, len) in changes {
                let range = start..start + len;
                if adds {
                    ranges.insert(range.clone());
                } else {
                    ranges.remove(&range);
                }
                bytes[start as usize..(start + len) as usize].fill(adds);
                let (probe, end) = (start / 2, start / 2 + len);
                let all = bytes[probe as usize..end as usize].iter().all(|&byte| byte);
                prop_assert_eq!(len > 0 && ranges.covers(&(probe..end)), len > 0 && all);
            }
        }
    }
}
