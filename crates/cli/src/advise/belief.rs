//! What is believed of the settings' times while they are tried: what is predicted, corrected by each run (Bayes' rule).
//!
//! The logarithm of a time is taken as normal. Predictions of what is alike are off alike, so their errors are sums of
//! independent parts: one of the program, one of the library that carries it out, one of the strategy, one of the setting. A run
//! of one setting thus also says something of the others, and what was predicted wrong for a strategy need not be run with all
//! of its hints to be found out.

use std::f64::consts::{PI, SQRT_2};

use pio_plan::Strategy;

use super::search::Time;

/// What runs of one program on one machine scatter by, as the standard deviation of logarithms.
const SPREAD: f64 = 0.1;
/// Standard deviation of a prediction that has no interval: 4 in 5 are within 1.4 times.
const UNKNOWN: f64 = 0.336_472 / NORMAL_90;
/// The 90 % quantile of the normal distribution: 80 % lie between it and its negative.
const NORMAL_90: f64 = 1.281_552;
/// Parts of the variance of a prediction's error: what it shares with all of the program, with those of the same library, with
/// those of the same strategy; the rest is its own.
const OF_PROGRAM: f64 = 0.3;
const OF_LIBRARY: f64 = 0.2;
const OF_STRATEGY: f64 = 0.25;
/// What another run must be expected to save of the best setting's time, as a part, to be worth it.
const WORTH_A_RUN: f64 = 0.01;

/// Of all settings, the program as it is among them.
#[derive(Clone, Debug)]
pub(super) struct Belief {
    settings: Vec<Setting>,
    /// Of the logarithms of their times, in seconds.
    means: Vec<f64>,
    covariances: Vec<Vec<f64>>,
}

#[derive(Clone, Debug)]
struct Setting {
    /// None: its prediction has nothing to do with those of others.
    strategy: Option<Strategy>,
    has_run: bool,
}

impl Belief {
    /// What predictions say, each for a strategy.
    pub(super) fn new(predicted: impl IntoIterator<Item = (Option<Strategy>, Time)>) -> Belief {
        let (mut settings, mut means, mut deviations) = (Vec::new(), Vec::new(), Vec::new());
        for (strategy, time) in predicted {
            settings.push(Setting { strategy, has_run: false });
            means.push(logarithm(time.expected_s()));
            let interval = time.interval.as_ref();
            deviations.push(
                interval.map_or(UNKNOWN, |it| (logarithm(it.high_s) - logarithm(it.low_s)) / 2.0 / NORMAL_90),
            );
        }
        let all = 0..settings.len();
        let covariance = |one: usize, other: usize| {
            let part = if one == other { 1.0 } else { shared(&settings[one], &settings[other]) };
            part * deviations[one] * deviations[other]
        };
        let covariances =
            all.clone().map(|one| all.clone().map(|other| covariance(one, other)).collect()).collect();
        Belief { settings, means, covariances }
    }

    /// A setting took so long.
    pub(super) fn learn(&mut self, setting: usize, took_s: f64) {
        let off = logarithm(took_s) - self.means[setting];
        let with: Vec<f64> = self.covariances[setting].clone();
        let variance = with[setting] + SPREAD * SPREAD;
        for (one, covariance) in with.iter().enumerate() {
            self.means[one] += covariance / variance * off;
            for (other, beside) in with.iter().enumerate() {
                self.covariances[one][other] -= covariance * beside / variance;
            }
        }
        self.settings[setting].has_run = true;
    }

    /// What is expected of it, seconds.
    pub(super) fn expected_s(&self, setting: usize) -> f64 {
        self.means[setting].exp()
    }

    /// Which of those that may be run to run next: of the best of those that can be kept and have run, and the one that is expected to
    /// save most beside it, that which less is known of. None if no run is worth it.
    pub(super) fn next(
        &self,
        can_be_kept: impl Fn(usize) -> bool,
        may_run: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let all = || 0..self.settings.len();
        let best = all().filter(|setting| self.settings[*setting].has_run && can_be_kept(*setting));
        let best = best.min_by(|one, other| self.means[*one].total_cmp(&self.means[*other]))?;
        let others = all().filter(|setting| *setting != best && may_run(*setting));
        let others = others.map(|setting| (setting, self.saves(setting, best)));
        let (other, saves) = others.max_by(|one, other| one.1.total_cmp(&other.1))?;
        let is_less_known = self.covariances[best][best] > self.covariances[other][other];
        let less_known = if is_less_known && may_run(best) { best } else { other };
        (saves > WORTH_A_RUN).then_some(less_known)
    }

    /// Which part of the time of one it is expected that another saves, if it is taken only should it be better (expected
    /// improvement).
    fn saves(&self, setting: usize, best: usize) -> f64 {
        let (less, deviation) = self.less(setting, best);
        if deviation < 1e-9 {
            return less.max(0.0);
        }
        let z = less / deviation;
        less * below(z) + deviation * (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
    }

    /// Whether one takes less than another, or a chance of one in ten is left that it does not.
    pub(super) fn is_surely_less(&self, setting: usize, other: usize) -> bool {
        let (less, deviation) = self.less(setting, other);
        less > NORMAL_90 * deviation
    }

    /// By how much the logarithm of one's time is less than that of another, and the standard deviation of that.
    fn less(&self, setting: usize, other: usize) -> (f64, f64) {
        let of = &self.covariances;
        let variance = of[setting][setting] + of[other][other] - 2.0 * of[setting][other];
        (self.means[other] - self.means[setting], variance.max(0.0).sqrt())
    }
}

/// The part of the variance of their errors that two settings share.
fn shared(one: &Setting, other: &Setting) -> f64 {
    let Some((one, other)) = one.strategy.zip(other.strategy) else { return 0.0 };
    let is_own = |strategy: Strategy| Strategy::OWN.contains(&strategy);
    let parts = [(true, OF_PROGRAM), (is_own(one) == is_own(other), OF_LIBRARY), (one == other, OF_STRATEGY)];
    parts.into_iter().filter(|(is_shared, _)| *is_shared).map(|(_, part)| part).sum()
}

/// Of no time at all that of a nanosecond.
fn logarithm(seconds: f64) -> f64 {
    seconds.max(1e-9).ln()
}

/// The part of the normal distribution below this, by the approximation of Abramowitz and Stegun (7.1.26), which is off by
/// less than 1e-6.
fn below(z: f64) -> f64 {
    const FACTORS: [f64; 5] = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let tail = FACTORS.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t) * (-x * x).exp() / 2.0;
    if z < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(predicted: &[(Strategy, f64)]) -> Belief {
        let time = |modelled_s| Time { modelled_s, interval: None };
        Belief::new(predicted.iter().map(|(strategy, modelled_s)| (Some(*strategy), time(*modelled_s))))
    }

    #[test]
    fn a_run_outweighs_its_prediction_and_tells_of_what_is_alike() {
        let kinds = [Strategy::TwoPhase, Strategy::TwoPhase, Strategy::Sieving, Strategy::Romio];
        let mut belief = belief(&kinds.map(|kind| (kind, 1.0)));
        belief.learn(0, 2.0);
        // By the closed form for two normal distributions.
        let weight = UNKNOWN * UNKNOWN / (UNKNOWN * UNKNOWN + SPREAD * SPREAD);
        assert!((belief.means[0] - weight * 2_f64.ln()).abs() < 1e-12);
        let expected: Vec<f64> = (0..4).map(|setting| belief.expected_s(setting)).collect();
        assert!(expected.windows(2).all(|pair| pair[0] > pair[1]) && expected[3] > 1.0, "{expected:?}");
        // Ten runs leave nothing but what they say.
        (0..9).for_each(|_| belief.learn(0, 2.0));
        assert!((belief.expected_s(0) - 2.0).abs() < 0.03);
    }

    #[test]
    fn what_may_save_most_is_run_next() {
        let (as_it_is, others) =
            (Strategy::Romio, [(Strategy::Sieving, 1.0), (Strategy::List, 1.1), (Strategy::TwoPhase, 9.0)]);
        let mut belief = belief(&[&[(as_it_is, 3.0)], &others[..]].concat());
        belief.learn(0, 3.0);
        assert_eq!(belief.next(|_| true, |_| true), Some(1));
        assert!(belief.is_surely_less(1, 0) && !belief.is_surely_less(2, 1) && !belief.is_surely_less(0, 1));
        assert_eq!(
            belief.next(|_| true, |setting| setting != 1),
            Some(2),
            "what failed, or takes too long, is left out"
        );
        // What has run once is compared with, though it cannot run again.
        assert_eq!(belief.next(|_| true, |setting| setting != 0), Some(1));
        // As predicted: the next may still be better, then the first once more. What takes nine times as long is not run.
        belief.learn(1, 1.0);
        assert_eq!(belief.next(|_| true, |_| true), Some(2));
        belief.learn(2, 1.02);
        assert!(matches!(belief.next(|_| true, |_| true), Some(1 | 2)));
        belief.learn(1, 1.0);
        belief.learn(2, 1.3);
        (0..4).for_each(|_| belief.learn(1, 1.0));
        assert_eq!(belief.next(|_| true, |_| true), None);
        // What all strategies were predicted too fast says that the program as it is may be best.
        assert!(belief.saves(0, 1) < 0.001);
    }

    #[test]
    fn the_normal_distribution_is_that_of_tables() {
        for (z, printed) in
            [(0.0, 0.5), (1.0, 0.841_345), (-1.0, 0.158_655), (NORMAL_90, 0.9), (-3.0, 0.001_350)]
        {
            assert!((below(z) - printed).abs() < 2e-6, "{z}: {}", below(z));
        }
    }
}
