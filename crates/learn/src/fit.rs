//! From recorded runs to factors on a machine's costs.
//!
//! A *point* x has the logarithm of a factor for each cost; at 0 all is as it was calibrated. A prediction at x is off by
//! logarithms r(x) of predicted over measured time: that of the I/O time, and those of the functions that took part of it. The
//! point that is looked for has the least
//!
//! ```text
//! Q(x) = Σ w ρ(r(x)) + (S / P)² Σ x²        ρ(r) = r² up to 2 S, and 4 S |r| − 4 S² beyond (Huber 1964)
//! ```
//!
//! with weights w that sum to 1 for each case, S what runs scatter by, and P what costs were calibrated to. That is the most
//! probable point, if both are normal: what runs do not tell stays as it was calibrated, and no single run moves much. It is
//! found by Gauss and Newton's method, with slopes from trials a step apart, which is wider than the jumps that a simulation
//! makes where ranks come one after the other in another order. S begins with what predictions usually scatter by, and
//! becomes what is left of the logarithms, for each unit of weight beyond those that the costs took up to be told (MacKay 1992,
//! equation 4.3: of each cost, as much as it owes to runs rather than to its calibration). Of weight, and not of runs: a case that
//! was run again and again tells no more costs than one that was run once, so that S must not become less by it.
//!
//! Groups of runs (programs) are held back in turn: each run is also predicted from a point that was fitted without its group.
//! How far these predictions are off is what may be expected of programs that are not among the runs.

use std::collections::BTreeSet;

/// A run to fit to.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Runs of one group are held back together.
    pub group: usize,
    /// What each logarithm counts for: first that of the I/O time, then those of functions.
    pub weights: Vec<f64>,
}

/// A prediction that is asked for: of this run at this point.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Index of the run.
    pub run: usize,
    /// Logarithms of the factors.
    pub point: Vec<f64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Logarithms of the factors; 0 for costs of which the runs tell nothing.
    pub point: Vec<f64>,
    /// ln(predicted / measured) of each run's I/O time before.
    pub before: Vec<f64>,
    /// The same at the point.
    pub fitted: Vec<f64>,
    /// The same at points that were fitted without the run's group.
    pub held_back: Vec<f64>,
    /// What each run's I/O time counts for.
    pub weights: Vec<f64>,
}

impl Fit {
    /// The mean of the logarithms' sizes, in which each case counts as much, however often it was run.
    pub fn mean_of(&self, ratios: &[f64]) -> f64 {
        let off: f64 = self.weights.iter().zip(ratios).map(|(weight, ratio)| weight * ratio.abs()).sum();
        off / self.weights.iter().sum::<f64>()
    }

    /// Whether runs that were held back are predicted better than before, in the mean.
    pub fn improves(&self) -> bool {
        self.mean_of(&self.held_back) < self.mean_of(&self.before)
    }
}

/// What predictions of one place scatter by, where nothing is wrong in the mean; and the least that is believed.
pub(crate) const SCATTER: f64 = 0.15;
const LEAST_SCATTER: f64 = 0.02;
/// What a calibrated cost may be off by.
pub(crate) const PRIOR: f64 = 0.3;
/// A logarithm that is larger than so many times the scatter counts for less.
const FAR: f64 = 2.0;
/// Slopes are taken over this.
const STEP: f64 = 0.223_143_551_314_209_76; // ln 1.25
/// The farthest that a cost goes in a round, and in all.
const MOST_STEP: f64 = core::f64::consts::LN_2;
const MOST: f64 = 3.0 * core::f64::consts::LN_2;
/// Rounds of one search, and parts of its step that are tried in each.
const ROUNDS: usize = 6;
const PARTS: [f64; 3] = [1.0, 0.5, 0.25];
/// A round in which no cost goes farther is the last.
const LEAST_STEP: f64 = 0.02;
/// Parts that are held back in turn, at most.
const MOST_PARTS: usize = 3;
/// Less than this part of the prior's own weight, and the runs do not tell what a cost is.
const TELLS: f64 = 0.1;
/// A smaller factor either way is none.
const NOTHING: f64 = 0.01;
/// For the weights of the linear problem to settle.
const INNER_ROUNDS: usize = 20;

/// Fits `costs` factors to runs. `predict` carries out trials, and gives the logarithms of each: as many as the run has
/// weights.
///
/// # Errors
/// The first that `predict` gives.
///
/// # Panics
/// If there are not two groups: nothing could be held back.
pub fn fit<E>(
    runs: &[Observed],
    costs: usize,
    predict: &mut dyn FnMut(Vec<Trial>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Fit, E> {
    let groups: Vec<usize> = runs.iter().map(|run| run.group).collect::<BTreeSet<_>>().into_iter().collect();
    assert!(groups.len() >= 2, "expected two groups of runs at least");
    let mut search = Search { runs, costs, told: Vec::new(), predict };
    let all: Vec<usize> = (0..runs.len()).collect();
    let start = vec![0.0; costs];
    let start = Place { ratios: search.ratios(&start, &all)?, point: start };
    search.told = (0..costs).collect();
    let slopes = search.slopes(&start, &all)?;
    let before = start.ratios;
    search.told.retain(|cost| tells(runs, &slopes[*cost]));

    let point = search.find(&all, &before, &slopes)?;
    let fitted = search.ratios(&point, &all)?;
    let parts = groups.len().min(MOST_PARTS);
    let part_of =
        |run: &usize| groups.iter().position(|group| *group == runs[*run].group).unwrap_or(0) % parts;
    let mut held_back = vec![0.0; runs.len()];
    for part in 0..parts {
        let (held, kept): (Vec<usize>, Vec<usize>) = all.iter().partition(|run| part_of(run) == part);
        let pick = |of_all: &[Vec<f64>]| kept.iter().map(|run| of_all[*run].clone()).collect::<Vec<_>>();
        let kept_slopes: Vec<_> = slopes.iter().map(|of_cost| pick(of_cost)).collect();
        let point = search.find(&kept, &pick(&before), &kept_slopes)?;
        for (run, ratios) in held.iter().zip(search.ratios(&point, &held)?) {
            held_back[*run] = ratios[0];
        }
    }
    let of_io = |ratios: Vec<Vec<f64>>| ratios.into_iter().map(|ratios| ratios[0]).collect();
    let weights = runs.iter().map(|run| run.weights[0]).collect();
    Ok(Fit { point, before: of_io(before), fitted: of_io(fitted), held_back, weights })
}

/// Whether runs tell what a cost is.
fn tells(runs: &[Observed], slopes: &[Vec<f64>]) -> bool {
    let of_run = |(run, slopes): (&Observed, &Vec<f64>)| -> f64 {
        run.weights.iter().zip(slopes).map(|(weight, slope)| weight * slope * slope).sum()
    };
    runs.iter().zip(slopes).map(of_run).sum::<f64>() > TELLS * prior(LEAST_SCATTER)
}

/// What a cost's own logarithm counts for.
fn prior(scatter: f64) -> f64 {
    (scatter / PRIOR).powi(2)
}

struct Search<'a, E> {
    runs: &'a [Observed],
    costs: usize,
    /// The costs that the runs tell something of.
    told: Vec<usize>,
    predict: &'a mut dyn FnMut(Vec<Trial>) -> Result<Vec<Vec<f64>>, E>,
}

impl<E> Search<'_, E> {
    /// The best point for some runs, of which the logarithms and slopes at 0 are known.
    fn find(&mut self, runs: &[usize], before: &[Vec<f64>], slopes: &[Vec<Vec<f64>>]) -> Result<Vec<f64>, E> {
        let mut at = Place { point: vec![0.0; self.costs], ratios: before.to_vec() };
        let (mut slopes, mut scatter) = (slopes.to_vec(), SCATTER);
        for round in 0..ROUNDS {
            if round > 0 {
                slopes = self.slopes(&at, runs)?;
            }
            let lines = self.lines(&at, &slopes, runs);
            scatter = lines.scatter(scatter).unwrap_or(scatter);
            let step = self.step(&lines, scatter);
            let Some(next) = self.descend(&at, &step, scatter, runs)? else { break };
            let went = at.point.iter().zip(&next.point).map(|(from, to)| (to - from).abs());
            let farthest = went.fold(0.0, f64::max);
            at = next;
            if farthest < LEAST_STEP {
                break;
            }
        }
        at.point.iter_mut().filter(|log| log.abs() < NOTHING).for_each(|log| *log = 0.0);
        Ok(at.point)
    }

    /// The largest part of a step that makes things better; none if none does.
    fn descend(
        &mut self,
        at: &Place,
        step: &[f64],
        scatter: f64,
        runs: &[usize],
    ) -> Result<Option<Place>, E> {
        let least = self.quality(at, scatter, runs);
        for part in PARTS {
            let point = at.point.iter().zip(step).map(|(log, step)| (log + part * step).clamp(-MOST, MOST));
            let point: Vec<f64> = point.collect();
            let next = Place { ratios: self.ratios(&point, runs)?, point };
            if self.quality(&next, scatter, runs) < least {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    /// Q, as above.
    fn quality(&self, at: &Place, scatter: f64, runs: &[usize]) -> f64 {
        let of_run = |(run, ratios): (&usize, &Vec<f64>)| -> f64 {
            let weighted = self.runs[*run].weights.iter().zip(ratios);
            weighted.map(|(weight, ratio)| weight * huber(*ratio, FAR * scatter)).sum()
        };
        let of_runs: f64 = runs.iter().zip(&at.ratios).map(of_run).sum();
        of_runs + prior(scatter) * at.point.iter().map(|log| log * log).sum::<f64>()
    }

    fn ratios(&mut self, point: &[f64], runs: &[usize]) -> Result<Vec<Vec<f64>>, E> {
        (self.predict)(runs.iter().map(|run| Trial { run: *run, point: point.to_vec() }).collect())
    }

    /// By how much the logarithms of each run change with each cost; those of costs that tell nothing are empty.
    fn slopes(&mut self, at: &Place, runs: &[usize]) -> Result<Vec<Vec<Vec<f64>>>, E> {
        let mut trials = Vec::new();
        for cost in &self.told {
            let mut point = at.point.clone();
            point[*cost] += STEP;
            trials.extend(runs.iter().map(|run| Trial { run: *run, point: point.clone() }));
        }
        let mut found = (self.predict)(trials)?.into_iter();
        let mut slopes = vec![Vec::new(); self.costs];
        for cost in &self.told {
            let of_cost = found.by_ref().take(runs.len()).zip(&at.ratios);
            slopes[*cost] = of_cost
                .map(|(beside, at)| beside.iter().zip(at).map(|(beside, at)| (beside - at) / STEP).collect())
                .collect();
        }
        Ok(slopes)
    }

    /// What is to become small, as far as slopes tell it.
    fn lines(&self, at: &Place, slopes: &[Vec<Vec<f64>>], runs: &[usize]) -> Lines {
        let mut lines = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            for (number, weight) in self.runs[*run].weights.iter().enumerate() {
                let of_cost = |cost: &usize| slopes[*cost][place][number];
                let slopes = self.told.iter().map(of_cost).collect();
                lines.push(Line { weight: *weight, ratio: at.ratios[place][number], slopes });
            }
        }
        Lines { lines, at: self.told.iter().map(|cost| at.point[*cost]).collect() }
    }

    /// The step to the best point.
    fn step(&self, lines: &Lines, scatter: f64) -> Vec<f64> {
        let mut told = vec![0.0; self.told.len()];
        for _ in 0..INNER_ROUNDS {
            told = lines.best_step(&told, scatter);
        }
        let mut step = vec![0.0; self.costs];
        for (cost, log) in self.told.iter().zip(told) {
            step[*cost] = log.clamp(-MOST_STEP, MOST_STEP);
        }
        step
    }
}

/// A point, and the logarithms of runs there.
struct Place {
    point: Vec<f64>,
    ratios: Vec<Vec<f64>>,
}

/// A logarithm, what it counts for, and how it changes with each cost that is told.
struct Line {
    weight: f64,
    ratio: f64,
    slopes: Vec<f64>,
}

impl Line {
    fn after(&self, step: &[f64]) -> f64 {
        self.ratio + self.slopes.iter().zip(step).map(|(slope, step)| slope * step).sum::<f64>()
    }
}

/// Least squares, near a point.
struct Lines {
    lines: Vec<Line>,
    /// The point, of costs that are told.
    at: Vec<f64>,
}

impl Lines {
    /// The system whose solution is the best step, where each logarithm has the weight that it has after the step `before`.
    fn system(&self, before: &[f64], scatter: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let (count, prior, far) = (self.at.len(), prior(scatter), FAR * scatter);
        let mut matrix = vec![vec![0.0; count]; count];
        matrix.iter_mut().enumerate().for_each(|(row, line)| line[row] = prior);
        let mut right: Vec<f64> = self.at.iter().map(|log| -prior * log).collect();
        for line in &self.lines {
            let weight = line.weight * (far / line.after(before).abs().max(far));
            for ((row, right), slope) in matrix.iter_mut().zip(&mut right).zip(&line.slopes) {
                *right -= weight * slope * line.ratio;
                row.iter_mut().zip(&line.slopes).for_each(|(entry, other)| *entry += weight * slope * other);
            }
        }
        (matrix, right)
    }

    fn best_step(&self, before: &[f64], scatter: f64) -> Vec<f64> {
        let (matrix, right) = self.system(before, scatter);
        solve(matrix, right)
    }

    /// What the runs scatter by around the best point; none if the costs take up all that they tell.
    fn scatter(&self, scatter: f64) -> Option<f64> {
        let count = self.at.len();
        let step = self.best_step(&vec![0.0; count], scatter);
        let (matrix, _) = self.system(&step, scatter);
        let kept = |cost: usize| {
            let unit = (0..count).map(|other| if other == cost { 1.0 } else { 0.0 }).collect();
            prior(scatter) * solve(matrix.clone(), unit)[cost]
        };
        let taken: f64 = (0..count).map(|cost| 1.0 - kept(cost)).sum();
        let left = self.lines.iter().map(|line| line.weight).sum::<f64>() - taken;
        let far = FAR * scatter;
        let squares: f64 = self.lines.iter().map(|line| line.weight * huber(line.after(&step), far)).sum();
        (left >= 1.0).then(|| (squares / left).sqrt().clamp(LEAST_SCATTER, SCATTER))
    }
}

fn huber(ratio: f64, far: f64) -> f64 {
    let size = ratio.abs();
    if size <= far { size * size } else { 2.0 * far * size - far * far }
}

/// Solves a symmetric, positive definite system, by elimination: it needs no exchange of rows.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let count = right.len();
    for row in 0..count {
        let (above, below) = matrix.split_at_mut(row + 1);
        let pivot = &above[row];
        for (line, place) in below.iter_mut().zip(row + 1..) {
            let factor = line[row] / pivot[row];
            line.iter_mut().zip(pivot).for_each(|(entry, above)| *entry -= factor * above);
            right[place] -= factor * right[row];
        }
    }
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Runs whose time is a sum of costs, some of each; the times that were measured are those at a point that is not 0.
    struct Sums {
        uses: Vec<Vec<f64>>,
        truth: Vec<f64>,
        /// Of each run: by what its measurement is off.
        noise: Vec<f64>,
    }

    impl Sums {
        fn time(&self, run: usize, point: &[f64]) -> f64 {
            self.uses[run].iter().zip(point).map(|(uses, log)| uses * log.exp()).sum()
        }

        fn fit(&self) -> (Fit, usize) {
            self.fit_to_runs_of_each(1)
        }

        /// Each case was run so often, with the same outcome.
        fn fit_to_runs_of_each(&self, times: usize) -> (Fit, usize) {
            let cases = self.uses.len();
            let runs: Vec<_> = (0..times * cases)
                .map(|run| Observed { group: run % cases, weights: vec![1.0 / times as f64] })
                .collect();
            let mut trials = 0;
            let fit = fit(&runs, self.truth.len(), &mut |asked: Vec<Trial>| {
                trials += asked.len();
                let ratio = |trial: &Trial| {
                    let case = trial.run % cases;
                    let measured_s = self.time(case, &self.truth) * self.noise[case];
                    vec![(self.time(case, &trial.point) / measured_s).ln()]
                };
                Ok::<_, Infallible>(asked.iter().map(ratio).collect())
            });
            let Ok(fit) = fit;
            (fit, trials)
        }
    }

    /// Three costs; the runs use the first two, each in other parts.
    fn sums(truth: [f64; 3], noise: &[f64]) -> Sums {
        let part = |run: usize| (run % 4) as f64 / 3.0;
        let uses = (0..noise.len()).map(|run| vec![part(run), 1.0 - part(run), 0.0]).collect();
        Sums { uses, truth: truth.map(f64::ln).to_vec(), noise: noise.to_vec() }
    }

    #[test]
    fn a_case_counts_as_much_however_often_it_was_run() {
        let held_back = vec![0.1, -0.3, 0.2];
        let fit = Fit {
            point: vec![],
            before: vec![0.2; 3],
            fitted: vec![],
            held_back,
            weights: vec![0.5, 0.5, 1.0],
        };
        assert!((fit.mean_of(&fit.held_back) - 0.2).abs() < 1e-12);
        assert!((fit.mean_of(&[0.0, 0.0, -0.4]) - 0.2).abs() < 1e-12);
        let better = Fit { held_back: vec![0.3, 0.3, 0.0], ..fit };
        assert!(better.improves(), "the mean is 0.15, though most runs are worse");
    }

    #[test]
    fn factors_are_found_again_and_hold_for_runs_that_were_held_back() {
        let (fit, trials) = sums([2.0, 0.6, 5.0], &[1.0; 12]).fit();
        let factors: Vec<f64> = fit.point.iter().map(|log| log.exp()).collect();
        // The calibration pulls a little.
        assert!((factors[0] - 2.0).abs() < 0.02 && (factors[1] - 0.6).abs() < 0.01, "{factors:?}");
        assert_eq!(factors[2], 1.0, "nothing is told of it");
        assert!(fit.before.iter().any(|off| off.abs() > 0.3));
        assert!(fit.fitted.iter().chain(&fit.held_back).all(|off| off.abs() < 0.1), "{fit:?}");
        assert!(fit.improves());
        // Of 12 runs, each search makes 6 rounds at most, of two slopes and 3 tries; there are four.
        assert!(trials <= 12 * (1 + 3 + 1) + 4 * 6 * 5 * 12, "{trials}");
    }

    #[test]
    fn one_run_that_went_wrong_moves_little() {
        let mut noise = vec![1.0; 12];
        noise[5] = 20.0;
        let (fit, _) = sums([1.0; 3], &noise).fit();
        assert!(fit.point.iter().all(|log| log.abs() < 0.1), "{fit:?}");
    }

    #[test]
    fn what_is_right_is_left_and_what_scatters_does_not_improve() {
        let (fit, _) = sums([1.0; 3], &[1.0; 6]).fit();
        assert_eq!(fit.point, [0.0; 3]);
        assert!(!fit.improves());
        // Each run is off the other way than those beside it: nothing is to be learned for another.
        let noise: Vec<f64> = [1.5, 1.0 / 1.5].into_iter().cycle().take(3).collect();
        let mut sums = sums([1.0; 3], &noise);
        sums.uses = vec![vec![1.0, 0.0, 0.0]; 3];
        assert!(!sums.fit().0.improves(), "{:?}", sums.fit().0);
    }

    /// Ten runs of each case once made S a quarter of what it is: the calibration held less, and the far ones counted less.
    #[test]
    fn cases_that_were_run_again_with_the_same_outcome_say_the_same() {
        let noise = [1.1, 0.85, 1.2, 0.95, 0.9, 1.15, 0.8, 1.05, 1.25, 0.9, 1.0, 1.1];
        let sums = sums([1.3, 0.8, 1.0], &noise);
        let (once, often) = (sums.fit().0, sums.fit_to_runs_of_each(10).0);
        for (once, often) in once.point.iter().zip(&often.point) {
            assert!((once - often).abs() < 1e-6, "{once} and {often}");
        }
        assert_eq!(once.improves(), often.improves());
    }

    #[test]
    fn what_is_left_of_repeated_runs_is_what_they_scatter_by() {
        let scatter_of = |times: usize| {
            let line = |run: usize| Line {
                weight: 1.0 / times as f64,
                ratio: if run.is_multiple_of(2) { 0.1 } else { -0.1 },
                slopes: vec![1.0],
            };
            Lines { lines: (0..8 * times).map(line).collect(), at: vec![0.0] }.scatter(SCATTER).unwrap_or(0.0)
        };
        // The cost took up a little less than one of eight.
        let expected = 0.1 * (8.0_f64 / 7.03).sqrt();
        for times in [1, 5, 10] {
            let found = scatter_of(times);
            assert!((found / expected - 1.0).abs() < 0.01, "{times} times: {found}");
        }
    }

    #[test]
    fn a_case_that_was_run_often_does_not_decide_alone() {
        let often = 20;
        let of_each = |first: f64, others: f64| [vec![first; often], vec![others; 3]].concat();
        let fit = Fit {
            point: Vec::new(),
            before: of_each(0.1, 0.4),
            fitted: Vec::new(),
            held_back: of_each(0.2, 0.1),
            weights: of_each(0.5 / often as f64, 0.5),
        };
        assert!(fit.improves());
    }

    #[test]
    fn a_system_is_solved() {
        let found = solve(vec![vec![4.0, 1.0], vec![1.0, 3.0]], vec![1.0, 2.0]);
        assert!((found[0] - 1.0 / 11.0).abs() < 1e-12 && (found[1] - 7.0 / 11.0).abs() < 1e-12);
    }
}
