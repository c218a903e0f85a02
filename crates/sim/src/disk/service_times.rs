//! Service times, and how far two sets of them are apart.

use pio_machine::Duration;

/// Service times, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceTimes {
    sorted: Vec<Duration>,
}

impl ServiceTimes {
    /// Of these times, in any order.
    pub fn new(mut times: Vec<Duration>) -> ServiceTimes {
        times.sort_unstable();
        ServiceTimes { sorted: times }
    }

    /// The times, ascending.
    pub fn times(&self) -> &[Duration] {
        &self.sorted
    }

    /// The mean, seconds; 0 if there are none.
    pub fn mean_s(&self) -> f64 {
        let sum: u128 = self.sorted.iter().map(|time| u128::from(time.picoseconds())).sum();
        sum as f64 / 1e12 / self.sorted.len().max(1) as f64
    }

    /// The least time that at least this part of them, 0 to 1, does not exceed, seconds; 0 if there are none.
    pub fn quantile_s(&self, part: f64) -> f64 {
        let count = self.sorted.len();
        let rank = (part * count as f64).ceil() as usize;
        let index = rank.clamp(1, count.max(1)) - 1;
        self.sorted.get(index).map_or(0.0, |time| time.seconds())
    }

    /// The root mean square of the horizontal distance between the two curves of "how many took at most so long", seconds
    /// (the demerit figure of Ruemmler and Wilkes 1994).
    pub fn distance_s(&self, other: &ServiceTimes) -> f64 {
        let (own, others) = (self.sorted.len(), other.sorted.len());
        if own == 0 || others == 0 {
            return 0.0;
        }
        // Both curves are steps: between two steps of either, the distance does not change.
        let (mut here, mut there) = (0, 0);
        let (mut height, mut sum) = (0_u128, 0.0);
        let whole = own as u128 * others as u128;
        while height < whole {
            let next = ((here as u128 + 1) * others as u128).min((there as u128 + 1) * own as u128);
            let apart = self.sorted[here].seconds() - other.sorted[there].seconds();
            sum += apart * apart * (next - height) as f64;
            height = next;
            here += usize::from((here as u128 + 1) * others as u128 == next);
            there += usize::from((there as u128 + 1) * own as u128 == next);
        }
        (sum / whole as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(times: &[u64]) -> ServiceTimes {
        ServiceTimes::new(times.iter().map(|ms| Duration::from_picoseconds(ms * 1_000_000_000)).collect())
    }

    #[test]
    fn distance_is_between_equal_ranks() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}");
        near(ms(&[1, 2, 3]).distance_s(&ms(&[3, 1, 2])), 0.0);
        near(ms(&[1, 2, 3]).distance_s(&ms(&[2, 3, 4])), 0.001);
        near(ms(&[0, 10]).distance_s(&ms(&[3, 14])), (12.5_f64).sqrt() / 1e3);
        // Twice the same times are the same curve; a half against a third has six steps.
        near(ms(&[1, 5]).distance_s(&ms(&[1, 1, 5, 5])), 0.0);
        near(ms(&[0, 6]).distance_s(&ms(&[0, 3, 6])), (9.0_f64 / 3.0).sqrt() / 1e3);
        near(ms(&[]).distance_s(&ms(&[1])), 0.0);
    }

    #[test]
    fn quantiles_are_times_that_occurred() {
        let times = ms(&[1, 2, 3, 4]);
        assert_eq!(
            [0.0, 0.25, 0.5, 0.51, 1.0].map(|part| times.quantile_s(part)),
            [0.001, 0.001, 0.002, 0.003, 0.004]
        );
        assert_eq!(ms(&[]).quantile_s(0.5), 0.0);
        assert!((times.mean_s() - 0.0025).abs() < 1e-15);
    }
}
