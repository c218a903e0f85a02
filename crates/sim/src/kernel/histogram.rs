//! How often each value came, to within a fixed relative error, in a few kilobytes.
//!
//! Values below 256 are counted exactly. Above, every power of two is cut into 128 equal buckets, so that a bucket is at
//! most 1/128 of its values wide (a log-linear histogram as Tene's HdrHistogram). Count, sum, least, greatest and
//! the sum of squares are kept exactly beside it: mean and standard deviation have no bucket error, and parts merged in
//! any order give the same bits.

/// A power of two is cut into 2^this buckets.
const BITS: u32 = 7;

/// Counts of values, in no particular unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Count of each bucket; those beyond the greatest value's are left out.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    squares: Wide,
    least: u64,
    greatest: u64,
}

impl Histogram {
    /// Without values.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            // Whole powers of two, so that a growing greatest value seldom moves the counts.
            self.counts.resize((bucket >> BITS << BITS) + (1 << BITS), 0);
        }
        self.counts[bucket] += 1;
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.greatest = self.greatest.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.squares.add(u128::from(value) * u128::from(value));
    }

    /// Counts all that `other` has counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.greatest = self.greatest.max(other.greatest);
        self.count += other.count;
        self.sum += other.sum;
        self.squares.high += other.squares.high;
        self.squares.add(other.squares.low);
    }

    /// Forgets all values, and keeps the memory: what to do when a warm-up is over.
    pub fn clear(&mut self) {
        let mut counts = std::mem::take(&mut self.counts);
        counts.fill(0);
        *self = Histogram { counts, ..Histogram::default() };
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The least; 0 without values.
    pub fn min(&self) -> u64 {
        self.least
    }

    /// The greatest; 0 without values.
    pub fn max(&self) -> u64 {
        self.greatest
    }

    /// The mean, from the exact sum; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Standard deviation of the values as a sample; 0 for less than two.
    pub fn standard_deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // About the whole part of the mean, in whole numbers, so that nothing cancels.
        let whole = (self.sum / u128::from(self.count)) as u64;
        let product = u128::from(whole) * u128::from(self.count);
        let about = self.squares.minus(Wide::product(whole, 2 * self.sum - product));
        let part = (self.sum - product) as f64 / self.count as f64;
        let deviations = about.to_f64() - self.count as f64 * part * part;
        (deviations.max(0.0) / (self.count - 1) as f64).sqrt()
    }

    /// The value that `percent` of the values (0 to 100) do not exceed, to within 1/256 of it; 0 without values.
    pub fn percentile(&self, percent: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let rank = ((percent / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count);
        if rank == self.count {
            return self.greatest;
        }
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(bucket).clamp(self.least, self.greatest);
            }
        }
        self.greatest
    }

    /// The buckets that are not empty, ascending: their middle and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (middle_of(bucket), *count))
    }
}

/// Number of the bucket of a value: its leading bits, counted on from one power of two to the next.
fn bucket_of(value: u64) -> usize {
    let shift = (u64::BITS - (value >> BITS).leading_zeros()).saturating_sub(1);
    ((shift as usize) << BITS) + (value >> shift) as usize
}

fn middle_of(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1);
    let least = (bucket - (shift << BITS)) as u64;
    (least << shift) + ((1_u64 << shift) >> 1)
}

/// A whole number of 192 bits: a sum of squares that no run overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wide {
    high: u64,
    low: u128,
}

impl Wide {
    fn add(&mut self, value: u128) {
        let (low, carry) = self.low.overflowing_add(value);
        self.low = low;
        self.high += u64::from(carry);
    }

    fn product(one: u64, other: u128) -> Wide {
        let (one, low) = (u128::from(one), u128::from(other as u64));
        let upper = one * (other >> 64);
        let mut product = Wide { high: (upper >> 64) as u64, low: upper << 64 };
        product.add(one * low);
        product
    }

    /// The difference from a smaller one.
    fn minus(self, other: Wide) -> Wide {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Wide { high: self.high - other.high - u64::from(borrow), low }
    }

    fn to_f64(self) -> f64 {
        self.high as f64 * 2.0_f64.powi(128) + self.low as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Stream;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn without_values_everything_is_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.min(), empty.max(), empty.percentile(50.0)), (0, 0, 0, 0));
        assert_eq!((empty.mean(), empty.standard_deviation()), (0.0, 0.0));
    }

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut expected = 0;
        for value in 0..100_000 {
            let bucket = bucket_of(value);
            assert!(bucket == expected || bucket == expected + 1, "value {value}");
            expected = bucket;
        }
        assert_eq!(bucket_of(u64::MAX), 56 * 128 + 255);
    }

    #[test]
    fn deviation_of_large_values_close_together_is_exact() {
        let base = 1_u64 << 60;
        let histogram = of(&[base + 1, base + 2, base + 3, base + 4]);
        assert_eq!(histogram.standard_deviation(), (5.0_f64 / 3.0).sqrt());
        let greatest = of(&[u64::MAX; 1000]);
        assert_eq!(greatest.standard_deviation(), 0.0);
        assert_eq!(greatest.mean(), u64::MAX as f64);
    }

    #[test]
    fn a_percentile_of_many_is_that_of_the_distribution() {
        let mut stream = Stream::named(1, "values");
        let mut histogram = Histogram::new();
        for _ in 0..300_000 {
            histogram.record(stream.exponential(1e9) as u64);
        }
        for (percent, expected) in [(50.0, 0.693_147e9), (90.0, 2.302_585e9), (99.0, 4.605_17e9)] {
            let error = histogram.percentile(percent) as f64 / expected - 1.0;
            assert!(error.abs() < 0.02, "{percent} %: {error}");
        }
    }

    #[test]
    fn cleared_is_as_new() {
        let mut histogram = of(&[5, 500_000]);
        histogram.clear();
        histogram.record(7);
        assert_eq!((histogram.count(), histogram.min(), histogram.max()), (1, 7, 7));
        assert_eq!(histogram.percentile(50.0), 7);
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(
            mut values in prop::collection::vec(prop_oneof![0..300_u64, 0..1_000_000_u64, any::<u64>()], 1..200),
            percent in 0.0..=100.0_f64,
            cut in any::<prop::sample::Index>(),
        ) {
            let (one, other) = values.split_at(cut.index(values.len()));
            let mut merged = of(other);
            merged.merge(&of(one));
            let whole = of(&values);
            prop_assert_eq!(merged.standard_deviation().to_bits(), whole.standard_deviation().to_bits());
            prop_assert_eq!((merged.sum(), merged.percentile(percent)), (whole.sum(), whole.percentile(percent)));
            values.sort_unstable();
            prop_assert_eq!((whole.min(), whole.max()), (values[0], values[values.len() - 1]));
            let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (found, expected) = (whole.percentile(percent), values[rank - 1]);
            prop_assert!(found.abs_diff(expected) <= expected / 256, "{} is not {}", found, expected);
        }
    }
}
