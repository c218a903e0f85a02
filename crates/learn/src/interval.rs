//! From pairs to an interval.
//!
//! Errors of predictions are factors, so all is done with r = ln(measured / predicted). It is taken as normal, its mean
//! (the bias of the model at this place) and variance as unknown, with the conjugate prior of the two
//! (normal-inverse-χ²: Gelman et al., Bayesian Data Analysis, section 3.3). With the pairs' weights w, their sum W, their
//! weighted mean m and sum of squares S = Σ w (r − m)², and the prior's mean 0, which counts for K, and variance v, which counts for
//! N:
//!
//! ```text
//! weight of the mean       n  = K + W
//! degrees of freedom       f  = N + W
//! middle                   c  = W m / n
//! variance of the next     s² = (N v + S (1 + 2 S / (W F²)) + K W m² / n) / f · (1 + 1/n)
//! interval                 predicted · exp(c ± t(f) s),   t: Student's 90 % quantile
//! ```
//!
//! Without pairs that is predicted / 1.35 to predicted · 1.35, or 1.5 where ranks share processors. What pairs say is told apart
//! from a bias and from chance: a steady bias shifts the middle, chance widens the interval. A run that something disturbed (a
//! device that was busy with what others had written) says little of the next: a pair counts the less, the further it is from the
//! middle of all, half of it at the distance F. So some of the chance that is no disturbance counts for less, too: of normal
//! errors, the weighted variance S / W is short by 2 S / (W F²) of itself to first order, and S is made larger by that.

use std::collections::BTreeMap;

use pio_plan::Strategy;

use crate::history::{History, Pair};

/// As many pairs as the prior's mean counts for: the model leaves costs out, so one run says as much of its bias as that it is meant
/// to have none.
const MEAN_WEIGHT: f64 = 1.0;
/// The same of its variance: a few runs outweigh it, one does not.
const VARIANCE_WEIGHT: f64 = 3.0;
/// Half width without pairs. Of the sample programs of some twenty calibrations (`machines calibrate`; files on a disk, in memory,
/// on servers and on nodes, MPICH and Open MPI), 80 % took up to 1.32 times what was predicted, or as much less; where ranks shared
/// processors, 1.44 times.
const PRIOR_HALF_WIDTH: f64 = 0.35;
/// The same where ranks share processors.
const PRIOR_HALF_WIDTH_IN_A_CROWD: f64 = 0.5;
/// A pair that is so far from the middle of all, a factor of two, counts for half.
pub(crate) const FAR: f64 = std::f64::consts::LN_2;
/// Until the middle of all has settled.
const ROUNDS: usize = 10;
/// A pair of another strategy tells of the place, but not of what this strategy does differently.
const OTHER_STRATEGY: f64 = 0.5;
/// A pair of the same program tells more than one of another: much of what the model leaves out is the program's.
const SAME_PROGRAM: f64 = 4.0;

/// What is predicted, as far as it says which pairs are like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case<'a> {
    /// The strategy.
    pub strategy: &'a str,
    /// Ranks of the job.
    pub ranks: u32,
    /// Whether a node has more ranks than processors.
    pub crowded: bool,
    /// The program: what its trace calls the job.
    pub program: &'a str,
}

/// Where the measured time is expected in 80 % of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end, seconds.
    pub low_s: f64,
    /// Its upper end, seconds.
    pub high_s: f64,
    /// What its width rests on, as a part of a sentence.
    pub reason: String,
}

impl Interval {
    /// The predicted time with the bias of earlier predictions taken off: below and above it are equal factors. Seconds.
    pub fn middle_s(&self) -> f64 {
        (self.low_s * self.high_s).sqrt()
    }

    /// Whether the middle of each is within the other: which of the two takes longer is not known.
    pub fn equals(&self, other: &Interval) -> bool {
        let within = |one: &Interval, other: &Interval| (one.low_s..=one.high_s).contains(&other.middle_s());
        within(self, other) && within(other, self)
    }
}

impl History {
    /// The interval of a predicted time, in seconds.
    ///
    /// Only pairs of the same crowding count, for where ranks share processors the model is off in another way; and only
    /// those of the same library, for an MPI's own has costs of its own, or of the same program: of that, the run that was recorded
    /// may be all that is known. Those of another strategy count for half, and those of other numbers of ranks the less, the further
    /// they are (half for twice as many). A run of the same program counts for four. Runs of one program under one strategy count as one
    /// together, however often it was run, as they repeat one error; but not those of the very case.
    pub fn interval(&self, predicted_s: f64, case: &Case<'_>) -> Interval {
        let is_like = |pair: &&Pair| {
            let is_near = is_own(&pair.strategy) == is_own(case.strategy) || pair.program == case.program;
            pair.crowded == case.crowded && is_near
        };
        let like: Vec<&Pair> = self.pairs().iter().filter(is_like).collect();
        let weighted = weigh(&like, case);
        let Estimate { middle, half_width } = estimate(&weighted, case.crowded);
        Interval {
            low_s: predicted_s * (middle - half_width).exp(),
            high_s: predicted_s * (middle + half_width).exp(),
            reason: reason(&like, case.crowded, !self.pairs().is_empty()),
        }
    }
}

/// Whether a strategy is what an MPI library does by itself.
fn is_own(strategy: &str) -> bool {
    Strategy::OWN.iter().any(|own| own.name() == strategy)
}

/// The weights and log-ratios of pairs.
fn weigh(pairs: &[&Pair], case: &Case<'_>) -> Vec<(f64, f64)> {
    let kind = |pair: &Pair| (pair.program.clone(), pair.strategy.clone(), pair.ranks);
    let mut runs: BTreeMap<_, f64> = BTreeMap::new();
    for pair in pairs {
        *runs.entry(kind(pair)).or_default() += 1.0;
    }
    let weight = |pair: &Pair| {
        let of_strategy = if pair.strategy == case.strategy { 1.0 } else { OTHER_STRATEGY };
        let of_program = if pair.program == case.program { SAME_PROGRAM } else { 1.0 };
        let is_the_case =
            (&pair.program[..], &pair.strategy[..], pair.ranks) == (case.program, case.strategy, case.ranks);
        let repeats = if is_the_case { 1.0 } else { runs[&kind(pair)] };
        let away = (f64::from(pair.ranks.max(1)) / f64::from(case.ranks.max(1))).log2().abs();
        of_strategy * of_program / repeats / (1.0 + away)
    };
    pairs.iter().map(|pair| (weight(pair), pair.log_ratio())).collect()
}

/// The interval of a log-ratio.
struct Estimate {
    middle: f64,
    half_width: f64,
}

fn estimate(weighted: &[(f64, f64)], crowded: bool) -> Estimate {
    let weighted = &robust(weighted);
    let total: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    let sum: f64 = weighted.iter().map(|(weight, ratio)| weight * ratio).sum();
    let mean = if total > 0.0 { sum / total } else { 0.0 };
    let squares: f64 = weighted.iter().map(|(weight, ratio)| weight * (ratio - mean).powi(2)).sum();
    let hidden = if total > 0.0 { 2.0 * squares / (total * FAR * FAR) } else { 0.0 };
    let squares = squares * (1.0 + hidden);
    let (count, freedom) = (MEAN_WEIGHT + total, VARIANCE_WEIGHT + total);
    let apart = MEAN_WEIGHT * total / count * mean * mean;
    let variance =
        (VARIANCE_WEIGHT * prior_variance(crowded) + squares + apart) / freedom * (1.0 + 1.0 / count);
    Estimate { middle: sum / count, half_width: student_90(freedom) * variance.sqrt() }
}

/// The same pairs, with less weight the further they are from the middle of all, the prior among them: Cauchy's weights (Huber,
/// Robust Statistics, chapter 3).
fn robust(weighted: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let lessened = |&(weight, ratio): &(f64, f64), middle: f64| {
        (weight / (1.0 + ((ratio - middle) / FAR).powi(2)), ratio)
    };
    let all = [weighted, &[(VARIANCE_WEIGHT, 0.0)]].concat();
    let nearer = |middle: f64, _: usize| {
        let (mut weights, mut sum) = (0.0, 0.0);
        for (weight, ratio) in all.iter().map(|pair| lessened(pair, middle)) {
            weights += weight;
            sum += weight * ratio;
        }
        sum / weights
    };
    let middle = (0..ROUNDS).fold(median(&all), nearer);
    weighted.iter().map(|pair| lessened(pair, middle)).collect()
}

/// The least value up to which there is half of the weight.
fn median(weighted: &[(f64, f64)]) -> f64 {
    let mut sorted = weighted.to_vec();
    sorted.sort_by(|one, two| one.1.total_cmp(&two.1));
    let half = sorted.iter().map(|(weight, _)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let reaches_half = |(weight, _): &&(f64, f64)| {
        below += weight;
        below >= half
    };
    sorted.iter().find(reaches_half).map_or(0.0, |(_, ratio)| *ratio)
}

/// That with which the interval without pairs has the width that it is to have.
fn prior_variance(crowded: bool) -> f64 {
    let half_width = if crowded { PRIOR_HALF_WIDTH_IN_A_CROWD } else { PRIOR_HALF_WIDTH };
    let deviation = half_width.ln_1p() / student_90(VARIANCE_WEIGHT);
    deviation * deviation / (1.0 + 1.0 / MEAN_WEIGHT)
}

/// The 90 % quantile of Student's t: 80 % lie between it and its negative. By the expansion of Abramowitz and Stegun
/// (26.7.5), which from 3 degrees of freedom on is off by less than 0.001.
fn student_90(degrees: f64) -> f64 {
    const NORMAL: f64 = 1.281_551_565_544_600_4;
    let z = NORMAL;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
        (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z)
            / 92_160.0,
    ];
    (1..).zip(terms).map(|(power, term)| term / degrees.powi(power)).fold(z, |sum, term| sum + term)
}

fn reason(like: &[&Pair], crowded: bool, has_others: bool) -> String {
    let mut errors: Vec<f64> = like.iter().map(|pair| pair.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let compared = match (like.len(), crowded, has_others) {
        (0, false, true) => "no run with a processor for each rank was compared here yet".to_owned(),
        (0, true, true) => "no such run was compared here yet".to_owned(),
        (0, _, false) => "no run was compared here yet".to_owned(),
        (runs, ..) => {
            let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
            let percent = |place: usize| errors.get(place).copied().unwrap_or_default() * 100.0;
            let last = errors.len() - 1;
            let (median, most) = ((percent(last / 2) + percent(errors.len() / 2)) / 2.0, percent(last));
            format!("{runs} compared, the model off by {median:.0} % in the median, {most:.0} % at most")
        }
    };
    if crowded { format!("more ranks than processors; {compared}") } else { compared }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_that_of_tables() {
        for (degrees, printed) in [(3.0, 1.638), (5.0, 1.476), (10.0, 1.372), (30.0, 1.310), (1e9, 1.282)] {
            assert!((student_90(degrees) - printed).abs() < 0.001, "{degrees}: {}", student_90(degrees));
        }
    }

    #[test]
    fn without_pairs_it_is_the_prior() {
        for (crowded, factor) in [(false, 1.35), (true, 1.5)] {
            let Estimate { middle, half_width } = estimate(&[], crowded);
            assert_eq!(middle, 0.0);
            assert!((half_width.exp() - factor).abs() < 1e-12);
        }
    }

    #[test]
    fn pairs_that_agree_narrow_it_by_the_closed_form() {
        let right = vec![(1.0, 0.0); 9];
        let Estimate { middle, half_width } = estimate(&right, true);
        let variance = 3.0 * prior_variance(true) / 12.0 * (1.0 + 1.0 / 10.0);
        assert_eq!(middle, 0.0);
        assert!((half_width - student_90(12.0) * variance.sqrt()).abs() < 1e-12);
        // Half again as slow each time: nearly 9/10 of it is believed, and the rest widens.
        let slow = vec![(1.0, 1.5_f64.ln()); 9];
        let total: f64 = robust(&slow).iter().map(|(weight, _)| weight).sum();
        assert!((8.5..9.0).contains(&total), "{total}");
        let Estimate { middle, half_width: wider } = estimate(&slow, true);
        assert!((middle - total / (total + 1.0) * 1.5_f64.ln()).abs() < 1e-12);
        let apart = total / (total + 1.0) * 1.5_f64.ln().powi(2);
        let variance = (3.0 * prior_variance(true) + apart) / (total + 3.0) * (1.0 + 1.0 / (total + 1.0));
        assert!((wider - student_90(total + 3.0) * variance.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_run_that_was_disturbed_says_little() {
        // One of five took ten times as long.
        let mut ratios = vec![(1.0, 0.1); 4];
        ratios.push((4.0, 10_f64.ln()));
        let lessened = robust(&ratios);
        assert!(lessened[..4].iter().all(|(weight, _)| *weight > 0.95), "{lessened:?}");
        assert!(lessened[4].0 < 0.5, "{lessened:?}");
        assert!(estimate(&ratios, false).middle < 0.3);
    }

    #[test]
    fn many_pairs_outweigh_the_prior() {
        // Errors of a factor of 1.1 either way around a bias of 1.5.
        let ratios = [1.5 * 1.1, 1.5 / 1.1];
        let many: Vec<_> = (0..20_000).map(|index| (1.0, f64::ln(ratios[index % 2]))).collect();
        let Estimate { middle, half_width } = estimate(&many, false);
        assert!((middle.exp() - 1.5).abs() < 0.001, "{}", middle.exp());
        // As far as these were normal, the lessened weights would have hidden a part of their variance.
        let variance = 1.1_f64.ln().powi(2);
        let shown = (variance * (1.0 + 2.0 * variance / (FAR * FAR))).sqrt();
        assert!((half_width - 1.2816 * shown).abs() < 0.001, "{half_width}");
    }
}
