//! The search by prediction: from coarse to fine, over strategies and the hints that matter to them.

use std::num::NonZeroUsize;

use anyhow::{Context, Result};
use pio_learn::Interval;
use pio_machine::{Machine, Storage};
use pio_plan::{Hints, Strategy};
use pio_sim::{Options, Workload, simulate};

use super::{Advice, worthwhile};
use crate::progress::Progress;
use crate::sweep::parallel;

/// Those that can be applied to plain files.
const ON_FILES: [Strategy; 5] =
    [Strategy::Independent, Strategy::Sieving, Strategy::List, Strategy::TwoPhase, Strategy::ViewBased];
/// Those in which some ranks aggregate, in buffers.
const AGGREGATING: [Strategy; 2] = [Strategy::TwoPhase, Strategy::ViewBased];
/// Collective buffers to begin with, bytes, beside the default of 16 MiB.
const BUFFERS: [u64; 3] = [1 << 20, 4 << 20, 64 << 20];
/// Smaller ones are no better than a request each; larger ones take memory from the program.
const BUFFER_LIMITS: std::ops::RangeInclusive<u64> = 256 << 10..=128 << 20;

/// A setting and what is predicted for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Predicted {
    pub advice: Advice,
    pub time: Time,
}

/// A predicted I/O time, seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Time {
    /// What the model says.
    pub modelled_s: f64,
    /// Where the time is expected by what earlier runs on the machine took.
    pub interval: Option<Interval>,
}

impl Time {
    fn of_model(modelled_s: f64) -> Time {
        Time { modelled_s, interval: None }
    }

    /// What is expected.
    pub(super) fn expected_s(&self) -> f64 {
        self.interval.as_ref().map_or(self.modelled_s, Interval::middle_s)
    }

    /// Whether it and another are too close for their intervals to say which is longer.
    pub(super) fn equals(&self, other: &Time) -> bool {
        self.interval.as_ref().zip(other.interval.as_ref()).is_some_and(|(one, other)| one.equals(other))
    }
}

/// What a search found.
#[derive(Debug)]
pub(super) struct Found {
    /// Predicted for the program as it is.
    pub base: Time,
    /// Each strategy by default, and with its best hints where they help; best first.
    pub settings: Vec<Predicted>,
    /// How many were predicted, with the program as it is.
    pub predicted_count: usize,
}

/// Whether a machine's files are on servers as Pioscope's own.
pub(super) fn takes_views(machine: &Machine) -> bool {
    matches!(machine.storage, Storage::Striped { takes_views: true, .. })
}

/// Searches for a program whose MPI library does `own` by itself.
///
/// # Errors
/// If the machine cannot run the program.
pub(super) fn search(
    machine: &Machine,
    workload: &Workload,
    own: Strategy,
    with_ecio: bool,
) -> Result<Found> {
    let mut search = Search { machine, workload, known: Vec::new() };
    let strategies = || ON_FILES.into_iter().chain(with_ecio.then_some(Strategy::Ecio));
    let by_default = |strategy| Advice { strategy, hints: Hints::default() };
    search.predict(std::iter::once(own).chain(strategies()).map(by_default))?;
    search.vary(aggregators)?;
    search.vary(|_, _| BUFFERS.iter().map(|bytes| with_buffer(*bytes)).collect())?;
    search.vary(neighbours)?;
    let base = search.of(own).next().map_or(Time::of_model(0.0), |base| base.time.clone());
    let mut settings: Vec<Predicted> =
        strategies().flat_map(|strategy| search.worth_showing(strategy)).collect();
    sort(&mut settings);
    Ok(Found { base, settings, predicted_count: search.known.len() })
}

fn sort(settings: &mut [Predicted]) {
    settings.sort_by(|a, b| a.time.expected_s().total_cmp(&b.time.expected_s()));
}

impl Found {
    /// The same, with each time expected where `interval` says for its strategy.
    pub(super) fn corrected(mut self, own: Strategy, interval: impl Fn(Strategy, f64) -> Interval) -> Found {
        self.base.interval = Some(interval(own, self.base.modelled_s));
        for Predicted { advice, time } in &mut self.settings {
            time.interval = Some(interval(advice.strategy, time.modelled_s));
        }
        sort(&mut self.settings);
        self
    }
}

struct Search<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    /// Those predicted so far: of each strategy, that by default first.
    known: Vec<Predicted>,
}

impl Search<'_> {
    /// Predicts those that are not known yet, on all processors.
    fn predict(&mut self, settings: impl IntoIterator<Item = Advice>) -> Result<()> {
        let mut new: Vec<Advice> = Vec::new();
        for advice in settings {
            if !new.contains(&advice) && self.known.iter().all(|known| known.advice != advice) {
                new.push(advice);
            }
        }
        let progress = Progress::new(&format!("predicting {} settings", new.len()), new.len() as u64);
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let io_time_s = |advice: &Advice| self.io_time_s(advice);
        let times = parallel::each(&new, processors, io_time_s, |done| progress.set(done))?;
        let predicted = |(advice, modelled_s)| Predicted { advice, time: Time::of_model(modelled_s) };
        self.known.extend(new.into_iter().zip(times).map(predicted));
        Ok(())
    }

    /// Predicts, of each aggregating strategy, its best setting so far with these hints in the place of its own.
    fn vary(&mut self, hints: impl Fn(&Hints, u32) -> Vec<Hints>) -> Result<()> {
        let ranks = u32::try_from(self.workload.programs.len()).unwrap_or(u32::MAX);
        let of_strategy = |strategy: Strategy| {
            let best = self.best(strategy).map(|best| best.advice.hints.clone()).unwrap_or_default();
            let varied = hints(&best, ranks).into_iter().map(move |hints| hints.or(&best));
            varied.map(move |hints| Advice { strategy, hints }).collect::<Vec<_>>()
        };
        let varied: Vec<Advice> = AGGREGATING.into_iter().flat_map(of_strategy).collect();
        self.predict(varied)
    }

    fn of(&self, strategy: Strategy) -> impl Iterator<Item = &Predicted> {
        self.known.iter().filter(move |known| known.advice.strategy == strategy)
    }

    /// The best so far; of equal ones that which was predicted first, as it has fewer hints.
    fn best(&self, strategy: Strategy) -> Option<&Predicted> {
        self.of(strategy).min_by(|a, b| a.time.modelled_s.total_cmp(&b.time.modelled_s))
    }

    /// A strategy by default, and with its best hints if they are worth it.
    fn worth_showing(&self, strategy: Strategy) -> Vec<Predicted> {
        let Some(by_default) = self.of(strategy).next() else { return Vec::new() };
        let best =
            self.best(strategy).filter(|best| best.time.modelled_s < worthwhile(by_default.time.modelled_s));
        [by_default].into_iter().chain(best).cloned().collect()
    }

    /// Mean of the ranks, seconds.
    fn io_time_s(&self, advice: &Advice) -> Result<f64> {
        let Advice { strategy, hints } = advice;
        let options = Options::default();
        let found = simulate(self.machine, self.workload, *strategy, hints, &options, None, &mut |_| {})
            .with_context(|| format!("{} under {advice}", self.machine.name))?;
        Ok(found.io_time_mean.seconds())
    }
}

/// 1, 4, 16… aggregators, and all ranks.
fn aggregators(_: &Hints, ranks: u32) -> Vec<Hints> {
    let counts = std::iter::successors(Some(1_u32), |count| count.checked_mul(4));
    counts.take_while(|count| *count < ranks).chain([ranks]).map(with_aggregators).collect()
}

/// Half and twice as many aggregators, and half and twice the buffer.
fn neighbours(best: &Hints, ranks: u32) -> Vec<Hints> {
    let aggregators = best.cb_nodes.into_iter().flat_map(|count| [count / 2, count.saturating_mul(2)]);
    let aggregators = aggregators.filter(|count| (1..=ranks).contains(count)).map(with_aggregators);
    let bytes = best.buffer_size();
    let buffers = [bytes / 2, bytes * 2].into_iter().filter(|bytes| BUFFER_LIMITS.contains(bytes));
    aggregators.chain(buffers.map(with_buffer)).collect()
}

fn with_aggregators(count: u32) -> Hints {
    Hints { cb_nodes: Some(count), ..Hints::default() }
}

fn with_buffer(bytes: u64) -> Hints {
    Hints { cb_buffer_size: Some(bytes), ..Hints::default() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    #[test]
    fn from_coarse_to_fine() {
        let counts = |hints: Vec<Hints>| hints.into_iter().filter_map(|one| one.cb_nodes).collect::<Vec<_>>();
        assert_eq!(counts(aggregators(&Hints::default(), 1)), [1]);
        assert_eq!(counts(aggregators(&Hints::default(), 24)), [1, 4, 16, 24]);
        assert_eq!(counts(neighbours(&with_aggregators(16), 24)), [8]);
        let buffers: Vec<_> = neighbours(&with_buffer(256 << 10), 4).iter().map(Hints::buffer_size).collect();
        assert_eq!(buffers, [512 << 10]);
    }

    /// The search finds what the full grid has best, with a fraction of its predictions.
    #[test]
    fn the_search_finds_what_a_grid_finds() {
        let machine = Machine::find("sp-argonne").unwrap();
        let given = [("ranks", "8"), ("x", "32"), ("y", "32"), ("z", "32"), ("iterations", "10")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let workload = pio_sim::workload::find("collapse").unwrap().build(&given, 1).unwrap();
        let found = search(&machine, &workload, Strategy::Romio, false).unwrap();
        let search = Search { machine: &machine, workload: &workload, known: Vec::new() };
        let mut least_s = f64::INFINITY;
        for strategy in AGGREGATING {
            for cb_nodes in [None, Some(1), Some(2), Some(4), Some(8)] {
                for cb_buffer_size in [None, Some(1 << 20), Some(4 << 20), Some(64 << 20)] {
                    let hints = Hints { cb_nodes, cb_buffer_size, ..Hints::default() };
                    least_s = least_s.min(search.io_time_s(&Advice { strategy, hints }).unwrap());
                }
            }
        }
        let best = &found.settings[0];
        assert!(
            best.time.modelled_s <= least_s / (1.0 - crate::gain::NOISE),
            "{best:?}: the grid has {least_s} s"
        );
        assert!(found.predicted_count < 30, "{}", found.predicted_count);
        assert!(found.base.modelled_s > 0.0);
    }
}
