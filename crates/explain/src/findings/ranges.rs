//! A set of bytes of a file, as intervals, in bounded memory.

/// Intervals kept. Programs go through files in few streams; one that touches more separate places than this is counted
/// only where the first of them lie, so that what is said to be covered always is.
const MOST: usize = 512;

/// Bytes of a file. Never holds a byte that was not inserted; may lack some, if they lie in too many places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// Starts and ends, in order; no two overlap or touch each other.
    intervals: Vec<(u64, u64)>,
    /// The interval that grew last: nearly every access continues it.
    latest: usize,
    /// Where intervals may be, from when there is no room for more: whoever goes on here and there then meets none.
    places: Option<Box<Places>>,
}

impl Ranges {
    /// Adds `start .. end` and says how many of these bytes were there already.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        if let Some(latest) = self.intervals.get(self.latest).copied()
            && (latest.0..=latest.1).contains(&start)
        {
            if end <= latest.1 {
                return end - start;
            }
            if self.intervals.get(self.latest + 1).is_none_or(|next| end < next.0) {
                self.intervals[self.latest].1 = end;
                self.mark(start, end);
                return latest.1 - start;
            }
        }
        if self.intervals.len() >= MOST && self.is_apart(start, end) {
            return 0;
        }
        if self.intervals.last().is_none_or(|last| last.1 < start) {
            self.put(self.intervals.len(), start, end);
            return 0;
        }
        self.insert_anywhere(start, end)
    }

    /// Adds what touches none, while there is room.
    fn put(&mut self, index: usize, start: u64, end: u64) {
        if self.intervals.len() < MOST {
            self.intervals.insert(index, (start, end));
            self.latest = index;
            self.mark(start, end);
        }
        if self.intervals.len() == MOST && self.places.is_none() {
            let places = self.places.insert(Box::default());
            self.intervals.iter().for_each(|&(start, end)| places.mark(start, end));
        }
    }

    fn mark(&mut self, start: u64, end: u64) {
        if let Some(places) = &mut self.places {
            places.mark(start, end);
        }
    }

    /// Whether it is known without a search that `start .. end` touches no interval.
    fn is_apart(&self, start: u64, end: u64) -> bool {
        self.places.as_ref().is_some_and(|places| places.is_apart(start, end))
    }

    /// Takes `start .. end` out.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if self.intervals.last().is_none_or(|last| last.1 <= start) || self.is_apart(start, end) {
            return;
        }
        let first = self.intervals.partition_point(|interval| interval.1 <= start);
        let Some(&(from, _)) = self.intervals.get(first).filter(|interval| start < end && interval.0 < end)
        else {
            return;
        };
        let behind = first + self.intervals[first..].partition_point(|interval| interval.0 < end);
        let until = self.intervals[behind - 1].1;
        let mut left = [(from, start.max(from)), (end.min(until), until)];
        if self.intervals.len() >= MOST && from < start && end < until {
            // No room for two: the smaller is forgotten.
            let smaller = usize::from(until - end < start - from);
            left[smaller] = (0, 0);
        }
        self.intervals.splice(first..behind, left.into_iter().filter(|(from, until)| from < until));
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self) {
        *self = Ranges::default();
    }

    fn insert_anywhere(&mut self, start: u64, end: u64) -> u64 {
        let first = self.intervals.partition_point(|interval| interval.1 < start);
        // Few: what is touched becomes one.
        let behind = first + self.intervals[first..].iter().take_while(|interval| interval.0 <= end).count();
        let touched = &self.intervals[first..behind];
        let (Some(lowest), Some(highest)) = (touched.first(), touched.last()) else {
            self.put(first, start, end);
            return 0;
        };
        let known =
            touched.iter().map(|(from, until)| until.min(&end).saturating_sub(*from.max(&start))).sum();
        let merged = (start.min(lowest.0), end.max(highest.1));
        self.intervals[first] = merged;
        self.intervals.drain(first + 1..behind);
        self.latest = first;
        self.mark(start, end);
        known
    }
}

/// A bit for each place of 64 KiB where an interval is, or was; places share bits.
#[derive(Clone, Debug)]
struct Places([u64; Places::WORDS]);

impl Default for Places {
    fn default() -> Places {
        Places([0; Places::WORDS])
    }
}

impl Places {
    /// Bytes of a place, as a power of two.
    const SHIFT: u32 = 16;
    /// Enough for a bit in 32 to be set when there is no room for more intervals.
    const WORDS: usize = 256;

    fn mark(&mut self, start: u64, end: u64) {
        let (first, last) = (start >> Self::SHIFT, end >> Self::SHIFT);
        if last - first >= u64::BITS.into() {
            self.0.fill(u64::MAX);
            return;
        }
        for place in first..=last {
            let (word, bit) = Self::bit(place);
            self.0[word] |= bit;
        }
    }

    fn is_apart(&self, start: u64, end: u64) -> bool {
        let (first, last) = (start >> Self::SHIFT, end >> Self::SHIFT);
        let has = |place| {
            let (word, bit) = Self::bit(place);
            self.0[word] & bit != 0
        };
        last - first <= 1 && !has(first) && !has(last)
    }

    /// Word and bit, by the highest bits of a product: neighbours do not share one.
    fn bit(place: u64) -> (usize, u64) {
        let number = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - Self::WORDS.ilog2() - 6);
        ((number >> 6) as usize, 1 << (number & 63))
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

    proptest! {
        /// Whatever an interval touches is at a place that is marked.
        #[test]
        fn what_is_apart_touches_nothing(
            steps in prop::collection::vec((prop::bool::weighted(0.9), 0..1_u64 << 30, 1..300_000_u64), 600..1200),
        ) {
            let mut ranges = Ranges::default();
            for (insert, start, length) in steps {
                if insert {
                    ranges.insert(start, start + length);
                } else {
                    ranges.remove(start, start + length);
                }
            }
            for &(start, end) in &ranges.intervals {
                for (start, end) in [(start, end), (start.saturating_sub(9), start), (end, end + 9), (end - 1, end)] {
                    prop_assert!(!ranges.is_apart(start, end));
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
        assert!(ranges.intervals.len() <= MOST);
        for index in 0..100_000_u64 {
            ranges.remove(index * 10 + 2, index * 10 + 3);
        }
        assert!(ranges.intervals.len() <= MOST);
        assert_eq!(ranges.insert(0, 5), 2, "the larger part is left");
        assert_eq!(ranges.insert(999_990, 999_995), 0, "forgotten, not invented");
    }
}
