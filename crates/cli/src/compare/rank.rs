//! Whether one sample's values are larger than another's: the exact permutation test of rank sums (Wilcoxon 1945; Mann and
//! Whitney 1947), one-sided.
//!
//! It asks nothing of how times are distributed, and outliers count by their rank alone. It is exact for samples of any
//! size, ties included: tied values share the mean of their ranks, and every way to deal the ranks out is counted.

use crate::condition;
use crate::median::median;

/// The probability that values dealt out at random give `larger` a sum of ranks as large as it has.
pub(crate) fn p_larger(smaller: &[f64], larger: &[f64]) -> f64 {
    let ranks = doubled_ranks(smaller, larger);
    let observed: usize = ranks[smaller.len()..].iter().sum();
    let most: usize = ranks.iter().sum();
    // How many choices of so many values have so large a sum: counts fit into floating point numbers for 500 values.
    let mut choices = vec![vec![0.0_f64; most + 1]; larger.len() + 1];
    choices[0][0] = 1.0;
    for rank in ranks {
        for chosen in (1..=larger.len()).rev() {
            let (before, after) = choices.split_at_mut(chosen);
            for sum in rank..=most {
                after[0][sum] += before[chosen - 1][sum - rank];
            }
        }
    }
    let all = &choices[larger.len()];
    all[observed..].iter().sum::<f64>() / all.iter().sum::<f64>()
}

/// Twice the rank of each value of both samples, one behind the other: whole numbers where values are tied, too.
fn doubled_ranks(one: &[f64], other: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = one.iter().chain(other).copied().collect();
    let below = |value: f64| all.iter().filter(|other| **other < value).count();
    let tied = |value: f64| all.iter().filter(|other| **other == value).count();
    all.iter().map(|&value| 2 * below(value) + tied(value) + 1).collect()
}

/// The factor between two samples: the median of all quotients of a value of one and a value of the other (Hodges and Lehmann
/// 1963, of logarithms). Where both are 0 there is none to tell.
pub(crate) fn factor(before: &[f64], after: &[f64]) -> f64 {
    let factors =
        after.iter().flat_map(|&after| before.iter().map(move |&before| condition::factor(before, after)));
    median(factors.collect())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    #[test]
    fn probabilities_are_those_of_the_tables() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        // One of the 252 ways to choose 5 of 10.
        assert!((p_larger(&low, &high) - 1.0 / 252.0).abs() < 1e-12);
        assert!((p_larger(&high, &low) - 1.0).abs() < 1e-12);
        // U = 4 of 25: 12 ways have that or less (Mann and Whitney 1947, Table I).
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 6.5], [2.5, 6.0, 7.0, 8.0, 9.0]);
        assert!((p_larger(&low, &high) - 12.0 / 252.0).abs() < 1e-12, "{}", p_larger(&low, &high));
        // All alike: every way gives the same sum.
        assert!((p_larger(&[1.0; 5], &[1.0; 5]) - 1.0).abs() < 1e-12);
        // What takes the same number of calls each time, and then more.
        assert!((p_larger(&[1.0; 5], &[2.0; 5]) - 1.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn the_factor_is_not_moved_by_an_outlier() {
        let before = [1.0, 1.1, 0.9, 1.0, 50.0];
        let after = before.map(|value| value * 1.25);
        assert!((factor(&before, &after) - 1.25).abs() < 0.03, "{}", factor(&before, &after));
        assert_eq!(factor(&[0.0; 3], &[0.0; 3]), 1.0);
        assert_eq!(factor(&[0.0; 3], &[1.0; 3]), f64::INFINITY);
    }

    /// On log-normal noise of 8 %: how often the default number of runs takes noise for a change, and misses one of 25 %.
    #[test]
    fn rates_on_lognormal_noise() {
        const ROUNDS: u32 = 1000;
        let mut random = Pcg64::seed_from_u64(1945);
        let mut sample = |mean: f64| -> Vec<f64> {
            // The sum of twelve uniform numbers is as good as normal for this.
            let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
            (0..crate::compare::RUNS).map(|_| mean * (0.08 * normal()).exp()).collect()
        };
        let (mut false_alarms, mut caught, mut by_chance) = (0, 0, 0);
        for _ in 0..ROUNDS {
            let (before, same, slower) = (sample(1.0), sample(1.0), sample(1.25));
            let slows = |after: &[f64]| {
                p_larger(&before, after) <= crate::compare::LEVEL && factor(&before, after) > 1.1
            };
            false_alarms += u32::from(slows(&same));
            caught += u32::from(slows(&slower));
            by_chance += u32::from(p_larger(&before, &same) <= crate::compare::LEVEL);
        }
        assert!(by_chance <= ROUNDS * 2 / 100, "{by_chance}: the test keeps its level");
        assert!(false_alarms <= ROUNDS / 100, "{false_alarms}");
        assert!(caught >= ROUNDS * 98 / 100, "{caught}");
    }
}
