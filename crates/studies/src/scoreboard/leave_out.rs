//! Predictions of what the fit has not seen: whole families of systems are left out, and the interval of a prediction
//! comes from the errors at other families.
//!
//! Runs of one machine, site or submitter resemble each other. A fit that has seen one of them knows more of the others
//! than it will know of a machine that comes tomorrow, so all of a family is left out at once.

use std::collections::BTreeMap;

/// The part of what is measured that intervals are to hold.
pub const COVERAGE: f64 = 0.8;

/// One thing that was measured and is predicted.
pub(super) trait Case {
    /// What is left out together with it.
    fn family(&self) -> &str;
    /// What was measured, above 0.
    fn measured(&self) -> f64;
}

/// What is predicted for a case by a fit to other families.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Predicted {
    pub(super) value: f64,
    /// The interval that is to hold [`COVERAGE`] of what is measured.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Predicts every case by a fit to the other families, those of `others` among them. `fit` is given the families that it
/// must not see.
///
/// The half-width of the interval of a case of family f, in the logarithm, is a quantile of the errors at the cases of each
/// other family g, predicted by refits that leave out both f and g. So nothing measured at f goes into the interval either.
/// It has the form of a conformal interval, without its guarantee: the errors are of many refits, and cases of one family
/// resemble each other. How many measurements the intervals hold is what the scoreboard's table shows.
pub(super) fn predict_each<C: Case, M>(
    cases: &[C],
    others: &[C],
    fit: impl Fn(&[&str]) -> M,
    predict: impl Fn(&M, &C) -> f64,
) -> Vec<Predicted> {
    let all = || cases.iter().chain(others);
    let mut families: Vec<&str> = all().map(Case::family).collect();
    families.sort_unstable();
    families.dedup();
    let error = |model: &M, case: &C| (predict(model, case) / case.measured()).ln().abs();
    // Errors at one family without another, by the pair of them: the fit is the same both ways.
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (index, first) in families.iter().copied().enumerate() {
        for second in families[index + 1..].iter().copied() {
            let model = fit(&[first, second]);
            for case in all() {
                if case.family() == second {
                    errors.entry(first).or_default().push(error(&model, case));
                } else if case.family() == first {
                    errors.entry(second).or_default().push(error(&model, case));
                }
            }
        }
    }
    let mut models: BTreeMap<&str, M> = BTreeMap::new();
    for case in cases {
        models.entry(case.family()).or_insert_with(|| fit(&[case.family()]));
    }
    cases
        .iter()
        .map(|case| {
            let value = predict(&models[case.family()], case);
            let half = errors.get_mut(case.family()).map_or(f64::INFINITY, |errors| quantile(errors)).exp();
            Predicted { value, low: value / half, high: value * half }
        })
        .collect()
}

/// Of n sorted errors the one of rank ⌈(n + 1) × [`COVERAGE`]⌉: a new case would exceed it with a probability of 1 − coverage
/// at most, if it were one more of the same draw. Infinite where there are too few to tell.
fn quantile(errors: &mut [f64]) -> f64 {
    errors.sort_unstable_by(f64::total_cmp);
    let rank = ((errors.len() + 1) as f64 * COVERAGE).ceil() as usize;
    errors.get(rank - 1).copied().unwrap_or(f64::INFINITY)
}

/// The value in the middle; the mean of the two there of an even number; NaN of nothing.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Line(&'static str, f64);

    impl Case for Line {
        fn family(&self) -> &str {
            self.0
        }

        fn measured(&self) -> f64 {
            self.1
        }
    }

    /// The model is the median of what it may see: each family's prediction and interval are those of the other families.
    #[test]
    fn neither_value_nor_interval_has_seen_its_family() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let run = |outlier: f64| {
            let cases: Vec<Line> = names
                .iter()
                .enumerate()
                .flat_map(|(index, name)| {
                    [Line(name, if *name == "d" { outlier } else { 10.0 + index as f64 }), Line(name, 12.0)]
                })
                .collect();
            let fit = |without: &[&str]| {
                median(cases.iter().filter(|case| !without.contains(&case.0)).map(|case| case.1))
            };
            predict_each(&cases, &[], fit, |model, _| *model)
        };
        let (near, far) = (run(13.0), run(13_000.0));
        assert_eq!(near[6], far[6]);
        assert!(near[6].low < near[6].value && near[6].value < near[6].high);
        assert_ne!(near[0], far[0]);
    }

    #[test]
    fn the_quantile_is_one_of_a_small_sample() {
        assert_eq!(quantile(&mut [0.3, 0.1, 0.2, 0.4]), 0.4);
        assert_eq!(quantile(&mut [0.1, 0.2, 0.3]), f64::INFINITY);
        assert_eq!(quantile(&mut (1..=9).map(f64::from).collect::<Vec<_>>()), 8.0);
    }

    #[test]
    fn the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0]), 2.5);
        assert!(median([]).is_nan());
    }
}
