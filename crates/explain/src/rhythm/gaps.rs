//! Whether bursts start at equal distances.

use super::bursts::Burst;

/// Gaps from which on something can be said.
const LEAST: usize = 3;
/// Standard deviation over mean up to which gaps are equal: jitter of a third of a cycle is as much as cycles bear.
const EQUAL: f64 = 0.3;
/// Chance below which gaps are not taken to come from a Poisson process.
const CHANCE: f64 = 0.01;
/// From so many gaps on, the longest and shortest tenth are left out: a missed or a late burst.
const TRIMMED_FROM: usize = 10;
/// Least standard deviation that can be told of gaps, in bins: a start is anywhere in its bin, and a gap lies between two.
const BLUR: f64 = 0.41;

/// The gaps between the starts of bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaps {
    /// Gaps between bursts.
    pub count: u64,
    /// Their mean (of the middle four fifths, if there are ten or more that differ), seconds.
    pub mean_s: f64,
    /// Standard deviation over mean, of the same: near 0 is a clock, 1 chance. No less than times are known to, which is to a
    /// bin of a few thousand.
    pub variation: f64,
    /// How likely gaps this equal are if bursts come by chance: Moran's test of exponential gaps, 0 to 1.
    pub chance: f64,
}

/// Standard deviations of the gaps within which nearly all bursts lie from where a clock would have put them.
const NEARLY_ALL: f64 = 2.0;
/// Bins of a gap from which on bursts one bin apart are the same, and those of two cycles are not.
const WIDE: f64 = 5.0;

impl Gaps {
    /// Standard deviation over mean up to which gaps are equal.
    pub const MOST_VARIATION: f64 = EQUAL;

    /// Whether they make cycles.
    pub fn is_regular(&self) -> bool {
        self.is_even() && self.chance < CHANCE
    }

    /// Whether they differ by no more than cycles do.
    pub fn is_even(&self) -> bool {
        self.variation <= EQUAL
    }

    /// How far most bursts lie from where a clock would have put them, in bins. At least one: a period that is no whole number
    /// of bins puts bursts shorter than a bin into the one or the next. But not where one is a large part of the gap.
    pub(super) fn reach(&self, bin_s: f64) -> usize {
        let least = usize::from(self.mean_s >= WIDE * bin_s);
        least.max((NEARLY_ALL * self.variation * self.mean_s / bin_s) as usize)
    }
}

/// The gaps between these bursts; none if there are too few.
pub(super) fn of(bursts: &[Burst], bin_s: f64) -> Option<Gaps> {
    let mut gaps: Vec<f64> =
        bursts.windows(2).map(|pair| (pair[1].first - pair[0].first) as f64 * bin_s).collect();
    if gaps.len() < LEAST {
        return None;
    }
    let count = gaps.len() as u64;
    let chance = chance_of_exponential(&gaps);
    gaps.sort_by(f64::total_cmp);
    let cut = if gaps.len() >= TRIMMED_FROM { gaps.len() / 10 } else { 0 };
    let middle = middle(&gaps, cut, bin_s);
    let mean_s = middle.iter().sum::<f64>() / middle.len() as f64;
    let variance = middle.iter().map(|gap| (gap - mean_s).powi(2)).sum::<f64>() / (middle.len() - 1) as f64;
    let deviation_s = variance.sqrt().max(BLUR * bin_s);
    Some(Gaps { count, mean_s, variation: deviation_s / mean_s, chance })
}

/// Sorted gaps without the `cut` shortest and longest. But if a clock ticks every 2.1 bins, every tenth gap is of three bins,
/// the others of two: the former are no late bursts, and without them the mean is too short.
fn middle(gaps: &[f64], cut: usize, bin_s: f64) -> &[f64] {
    let middle = &gaps[cut..gaps.len() - cut];
    let (shortest, longest) = (middle[0], middle[middle.len() - 1]);
    // Gaps are whole bins; a quarter is for what sums of fractions are off by.
    let one_bin_s = 1.25 * bin_s;
    if longest - shortest > one_bin_s {
        return middle;
    }
    let start = gaps.partition_point(|gap| *gap < longest - one_bin_s);
    let end = gaps.partition_point(|gap| *gap <= shortest + one_bin_s);
    &gaps[start..end]
}

/// Chance that exponential gaps are as equal as these. Moran (1951): `2 n (ln mean - mean ln) / (1 + (n + 1) / 6 n)` is
/// nearly chi-squared with n - 1 degrees of freedom; equal gaps make it small.
fn chance_of_exponential(gaps: &[f64]) -> f64 {
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let mean_log = gaps.iter().map(|gap| gap.ln()).sum::<f64>() / n;
    let statistic = 2.0 * n * (mean.ln() - mean_log) / (1.0 + (n + 1.0) / (6.0 * n));
    chi_squared_below(statistic.max(0.0), n - 1.0)
}

/// Chance that a chi-squared variable is at most `x`: the regularised lower incomplete gamma function of half of each.
fn chi_squared_below(x: f64, degrees: f64) -> f64 {
    let (a, x) = (degrees / 2.0, x / 2.0);
    if x <= 0.0 {
        return 0.0;
    }
    if x > a + 40.0 * a.sqrt() + 40.0 {
        return 1.0;
    }
    // The series (Abramowitz and Stegun 1964, 6.5.29): all terms are positive, so nothing cancels.
    let (mut term, mut sum, mut k) = (1.0 / a, 1.0 / a, a);
    while term > sum * 1e-15 {
        k += 1.0;
        term *= x / k;
        sum += term;
    }
    (sum.ln() + a * x.ln() - x - ln_gamma(a)).exp().min(1.0)
}

/// Logarithm of the gamma function: Stirling's series, from 8 on (Abramowitz and Stegun 1964, 6.1.41 and 6.1.15).
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 8.0 {
        shift += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x * square) + 1.0 / (1260.0 * x * square * square);
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chi_squared_as_tabulated() {
        // Abramowitz and Stegun 1964, table 26.8: percentage points.
        for (x, degrees, below) in
            [(3.841, 1.0, 0.95), (0.103, 2.0, 0.05), (9.488, 4.0, 0.95), (2.558, 10.0, 0.01)]
        {
            assert!((chi_squared_below(x, degrees) - below).abs() < 5e-4, "{x} {degrees}");
        }
        assert!((chi_squared_below(1000.0, 1000.0) - 0.5).abs() < 0.01);
        assert_eq!(chi_squared_below(1e6, 3.0), 1.0);
    }

    #[test]
    fn a_clock_keeps_its_time_between_bins() {
        let burst = |tick: usize| {
            let first = (tick as f64 * 2.1) as usize;
            Burst { first, end: first + 1, read_bytes: 1.0, write_bytes: 0.0 }
        };
        let every: Vec<_> = (0..1000).map(burst).collect();
        // Every 47th is missed.
        let most: Vec<_> = (0..1000).filter(|tick| tick % 47 > 0).map(burst).collect();
        for bursts in [every, most] {
            let gaps = of(&bursts, 1.0).expect("gaps");
            assert!((gaps.mean_s / 2.1 - 1.0).abs() < 0.005, "{gaps:?}");
            // To a bin nobody can tell that they are all the same.
            assert!((0.1..0.25).contains(&gaps.variation), "{gaps:?}");
        }
    }

    #[test]
    fn a_clock_is_no_chance() {
        assert!(chance_of_exponential(&[1.0, 1.01, 0.99]) < 0.001);
        assert!(chance_of_exponential(&[1.0, 5.0, 0.2, 0.1, 2.0]) > 0.05);
    }
}
