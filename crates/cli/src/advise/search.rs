//! The search by prediction: from coarse to fine, over strategies and the hints that matter to them.

use std::num::NonZeroUsize;

use anyhow::{Context, Result};
use pio_learn::Interval;
use pio_machine::{Machine, Storage};
use pio_plan::{Hints, OwnHints, PerNode, Strategy, Switch};
use pio_report::units;
use pio_sim::{Options, Workload, simulate};

use super::beyond_hints::BeyondHints;
use super::{Advice, worthwhile};
use crate::progress::Progress;
use crate::sweep::parallel;

/// Those of Pioscope that can be applied to plain files.
const ON_FILES: [Strategy; 5] =
    [Strategy::Independent, Strategy::Sieving, Strategy::List, Strategy::TwoPhase, Strategy::ViewBased];
/// Collective buffers to begin with, bytes, beside the default of 16 MiB.
const BUFFERS: [u64; 3] = [1 << 20, 4 << 20, 64 << 20];
/// Buffers to sieve in, to begin with, bytes; by default 4 MiB to read, 512 KiB to write.
const SIEVES: [u64; 3] = [128 << 10, 2 << 20, 16 << 20];
/// Smaller ones are no better than a request each; larger ones take memory from the program.
const BUFFER_LIMITS: std::ops::RangeInclusive<u64> = 64 << 10..=128 << 20;
/// Strips of files on I/O servers, bytes.
pub(super) const STRIPS: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// What is predicted to take more than so many times the best setting's time is not varied in finer hints: none
/// make up for that.
const HOPELESS: f64 = 4.0;

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
    /// What would help that no setting of a program's makes.
    pub beyond: BeyondHints,
    /// How many were predicted, with the program as it is.
    pub predicted_count: usize,
    /// Ranks on a node.
    pub ranks_per_node: u32,
}

/// Whether a machine's files are on servers as Pioscope's own.
pub(super) fn takes_views(machine: &Machine) -> bool {
    matches!(machine.storage, Storage::Striped { takes_views: true, .. })
}

/// Searches for a program whose MPI library does `own` by itself.
///
/// # Errors
/// If the machine cannot run the program.
pub(super) fn search(machine: &Machine, workload: &Workload, own: Strategy) -> Result<Found> {
    let mut search = Search { machine, workload, own, known: Vec::new(), ranks_per_node: 0 };
    let by_default = |strategy| Advice { strategy, hints: Hints::default() };
    let strategies = search.strategies();
    search.predict(std::iter::once(own).chain(strategies.iter().copied()).map(by_default))?;
    search.vary(f64::INFINITY, |search, strategy, _| search.who_aggregates(strategy))?;
    for stage in FINER {
        search.vary(HOPELESS, stage)?;
    }
    let base = search.of(own).next().map_or(Time::of_model(0.0), |base| base.time.clone());
    let mut settings: Vec<Predicted> =
        strategies.iter().flat_map(|strategy| search.worth_showing(*strategy)).collect();
    sort(&mut settings);
    let Search { known, ranks_per_node, .. } = search;
    let best = known.iter().min_by(|a, b| a.time.modelled_s.total_cmp(&b.time.modelled_s));
    let beyond =
        best.map(|best| BeyondHints::search(machine, workload, best)).transpose()?.unwrap_or_default();
    Ok(Found { base, settings, beyond, predicted_count: known.len(), ranks_per_node })
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
    /// What the program's MPI library does by itself.
    own: Strategy,
    /// Those predicted so far: of each strategy, that by default first.
    known: Vec<Predicted>,
    ranks_per_node: u32,
}

/// Gives the hints that a strategy is to be tried with, in the place of those of its best setting so far.
type Stage = fn(&Search<'_>, Strategy, &Hints) -> Vec<Hints>;

/// What matters less than who aggregates, from what matters most to what matters least.
const FINER: [Stage; 5] = [
    |search, strategy, best| search.ranks_of_a_node(strategy, best),
    |_, strategy, _| buffers(strategy),
    |_, strategy, _| read_buffers(strategy),
    |search, _, _| search.strips(),
    |search, strategy, best| search.neighbours(strategy, best),
];

impl Search<'_> {
    /// Those to choose from. The MPI library's own, with hints, knows no servers of ours.
    fn strategies(&self) -> Vec<Strategy> {
        let more = if takes_views(self.machine) { Strategy::Ecio } else { self.own };
        ON_FILES.into_iter().chain([more]).collect()
    }

    fn ranks(&self) -> u32 {
        u32::try_from(self.workload.programs.len()).unwrap_or(u32::MAX)
    }

    /// Predicts those that are not known yet, on all processors.
    fn predict(&mut self, settings: impl IntoIterator<Item = Advice>) -> Result<()> {
        let mut new: Vec<Advice> = Vec::new();
        for advice in settings {
            if !new.contains(&advice) && self.known.iter().all(|known| known.advice != advice) {
                new.push(advice);
            }
        }
        let found = self.times(self.machine, &new)?;
        self.ranks_per_node = found.first().map_or(self.ranks_per_node, |(_, ranks)| *ranks);
        let times = found.into_iter().map(|(modelled_s, _)| Time::of_model(modelled_s));
        self.known.extend(new.into_iter().zip(times).map(|(advice, time)| Predicted { advice, time }));
        Ok(())
    }

    /// Mean I/O time of the ranks under each setting, seconds; and how many ranks a node has.
    fn times(&self, machine: &Machine, settings: &[Advice]) -> Result<Vec<(f64, u32)>> {
        let count = settings.len() as u64;
        let progress =
            Progress::new(&format!("predicting {}", units::things(count, "setting", "settings")), count);
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let one = |advice: &Advice| io_time(machine, self.workload, advice);
        parallel::each(settings, processors, one, |done| progress.set(done))
    }

    /// Predicts, of each strategy, its best setting so far with these hints in the place of its own.
    /// Of those that take more than so many times the best one's time, none.
    fn vary(&mut self, most: f64, stage: Stage) -> Result<()> {
        let least_s = self.known.iter().map(|known| known.time.modelled_s).fold(f64::INFINITY, f64::min);
        let of_strategy = |strategy: Strategy| {
            let best = self.best(strategy).filter(|best| best.time.modelled_s <= least_s * most);
            let varied = |best: &Predicted| {
                let hints = stage(self, strategy, &best.advice.hints);
                let with = |hints: Hints| Advice { strategy, hints: hints.or(&best.advice.hints) };
                hints.into_iter().map(with).collect::<Vec<_>>()
            };
            best.map(varied).unwrap_or_default()
        };
        let varied: Vec<Advice> = self.strategies().into_iter().flat_map(of_strategy).collect();
        self.predict(varied)
    }

    fn of(&self, strategy: Strategy) -> impl Iterator<Item = &Predicted> {
        self.known.iter().filter(move |known| known.advice.strategy == strategy)
    }

    /// The best so far; of equal ones that which was predicted first, as it has fewer hints.
    fn best(&self, strategy: Strategy) -> Option<&Predicted> {
        self.of(strategy).min_by(|a, b| a.time.modelled_s.total_cmp(&b.time.modelled_s))
    }

    /// A strategy by default, and with its best hints if they are worth it. By default, the MPI library's own is the program
    /// as it is.
    fn worth_showing(&self, strategy: Strategy) -> Vec<Predicted> {
        let Some(by_default) = self.of(strategy).next() else { return Vec::new() };
        let best =
            self.best(strategy).filter(|best| best.time.modelled_s < worthwhile(by_default.time.modelled_s));
        Some(by_default).filter(|_| strategy != self.own).into_iter().chain(best).cloned().collect()
    }

    /// 1, 4, 16… aggregators, and all ranks. ROMIO: which collective operations are exchanged, and whether ranks alone sieve.
    fn who_aggregates(&self, strategy: Strategy) -> Vec<Hints> {
        match strategy {
            Strategy::TwoPhase | Strategy::ViewBased | Strategy::Ompio => {
                let counts = std::iter::successors(Some(1_u32), |count| count.checked_mul(4));
                let ranks = self.ranks();
                counts.take_while(|count| *count < ranks).chain([ranks]).map(with_aggregators).collect()
            }
            Strategy::Romio => {
                let (on, off) = (Some(Switch::Enable), Some(Switch::Disable));
                let own = |cb_write, cb_read, sieves| OwnHints {
                    cb_write,
                    cb_read,
                    ds_write: sieves,
                    ds_read: sieves,
                    ..OwnHints::default()
                };
                let all = [
                    own(on, on, None),
                    own(off, off, None),
                    own(off, None, None),
                    own(None, off, None),
                    own(None, None, off),
                    own(off, off, off),
                ];
                all.into_iter().map(with_own).collect()
            }
            _ => Vec::new(),
        }
    }

    /// ROMIO: how many ranks of each node aggregate. Pioscope's own strategies spread theirs over the nodes.
    fn ranks_of_a_node(&self, strategy: Strategy, best: &Hints) -> Vec<Hints> {
        let exchanges = |switch: Option<Switch>| switch != Some(Switch::Disable);
        let own = &best.own;
        if strategy != Strategy::Romio
            || self.ranks_per_node < 2
            || !(exchanges(own.cb_write) || exchanges(own.cb_read))
        {
            return Vec::new();
        }
        let each = |each| with_own(OwnHints { aggregators_per_node: Some(each), ..OwnHints::default() });
        [PerNode::Most(2), PerNode::Most(4), PerNode::All].map(each).into()
    }

    /// How new files are dealt out to I/O servers of ours.
    fn strips(&self) -> Vec<Hints> {
        let Some(servers) = self.machine.storage.io_nodes().filter(|_| takes_views(self.machine)) else {
            return Vec::new();
        };
        let units = STRIPS.map(|bytes| Hints { striping_unit: Some(bytes), ..Hints::default() });
        let counts = [1, servers.count / 2].into_iter().filter(|count| (1..servers.count).contains(count));
        let counts = counts.map(|count| Hints { striping_factor: Some(count), ..Hints::default() });
        units.into_iter().chain(counts).collect()
    }

    /// Half and twice as many aggregators, and half and twice the buffer.
    fn neighbours(&self, strategy: Strategy, best: &Hints) -> Vec<Hints> {
        if !matches!(strategy, Strategy::TwoPhase | Strategy::ViewBased | Strategy::Romio | Strategy::Ompio) {
            return Vec::new();
        }
        let aggregators = best.cb_nodes.into_iter().flat_map(|count| [count / 2, count.saturating_mul(2)]);
        let aggregators =
            aggregators.filter(|count| (1..=self.ranks()).contains(count)).map(with_aggregators);
        let bytes = best.buffer_size();
        let buffers = [bytes / 2, bytes * 2].into_iter().filter(|bytes| BUFFER_LIMITS.contains(bytes));
        aggregators.chain(buffers.map(with_buffer)).collect()
    }
}

/// Mean I/O time of the ranks, seconds; and how many ranks a node has.
pub(super) fn io_time(machine: &Machine, workload: &Workload, advice: &Advice) -> Result<(f64, u32)> {
    let Advice { strategy, hints } = advice;
    let options = Options::default();
    let found = simulate(machine, workload, *strategy, hints, &options, None, &mut |_| {})
        .with_context(|| format!("{} under {advice}", machine.name))?;
    Ok((found.io_time_mean.seconds(), found.ranks_per_node))
}

fn buffers(strategy: Strategy) -> Vec<Hints> {
    match strategy {
        Strategy::TwoPhase | Strategy::ViewBased | Strategy::Romio | Strategy::Ompio => {
            BUFFERS.map(with_buffer).into()
        }
        Strategy::Sieving => {
            SIEVES.map(|bytes| Hints { ind_wr_buffer_size: Some(bytes), ..Hints::default() }).into()
        }
        _ => Vec::new(),
    }
}

fn read_buffers(strategy: Strategy) -> Vec<Hints> {
    let with = |bytes| Hints { ind_rd_buffer_size: Some(bytes), ..Hints::default() };
    if strategy == Strategy::Sieving { SIEVES.map(with).into() } else { Vec::new() }
}

fn with_aggregators(count: u32) -> Hints {
    Hints { cb_nodes: Some(count), ..Hints::default() }
}

fn with_buffer(bytes: u64) -> Hints {
    Hints { cb_buffer_size: Some(bytes), ..Hints::default() }
}

fn with_own(own: OwnHints) -> Hints {
    Hints { own, ..Hints::default() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
pub(super) mod tests {
    use super::*;

    pub(in crate::advise) fn collapse() -> Workload {
        let given = [("ranks", "8"), ("x", "32"), ("y", "32"), ("z", "32"), ("iterations", "10")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        pio_sim::workload::find("collapse").unwrap().build(&given, 1).unwrap()
    }

    fn begun<'a>(machine: &'a Machine, workload: &'a Workload) -> Search<'a> {
        Search { machine, workload, own: Strategy::Romio, known: Vec::new(), ranks_per_node: 4 }
    }

    #[test]
    fn from_coarse_to_fine() {
        let (machine, workload) = (Machine::find("sp-argonne").unwrap(), collapse());
        let search = begun(&machine, &workload);
        let aggregating = Strategy::TwoPhase;
        let counts = |hints: Vec<Hints>| hints.into_iter().filter_map(|one| one.cb_nodes).collect::<Vec<_>>();
        assert_eq!(counts(search.who_aggregates(aggregating)), [1, 4, 8]);
        assert_eq!(counts(search.neighbours(aggregating, &with_aggregators(8))), [4]);
        let buffers = search.neighbours(aggregating, &with_buffer(64 << 10));
        assert_eq!(buffers.iter().map(Hints::buffer_size).collect::<Vec<_>>(), [128 << 10]);
        // Ranks that exchange nothing need no aggregators.
        let text = |hints: Vec<Hints>| hints.iter().map(Hints::to_text).collect::<Vec<_>>();
        let of_node = |own: &str| text(search.ranks_of_a_node(Strategy::Romio, &Hints::parse(own).unwrap()));
        assert_eq!(of_node(""), ["cb_config_list=*:2", "cb_config_list=*:4", "cb_config_list=*:*"]);
        assert!(of_node("romio_cb_write=disable,romio_cb_read=disable").is_empty());
        // Only servers of ours deal out files as they are asked to.
        assert!(search.strips().is_empty());
        let ours = machine.with_all(&[("storage.takes-views", "true"), ("storage.io.count", "4")]).unwrap();
        let strips = text(begun(&ours, &workload).strips());
        assert_eq!(strips[3..], ["striping_unit=4194304", "striping_factor=1", "striping_factor=2"]);
    }

    /// The search finds what the full grid has best, with a fraction of its predictions.
    #[test]
    fn the_search_finds_what_a_grid_finds() {
        let (machine, workload) = (Machine::find("sp-argonne").unwrap(), collapse());
        let found = search(&machine, &workload, Strategy::Romio).unwrap();
        let mut least_s = f64::INFINITY;
        for strategy in [Strategy::TwoPhase, Strategy::ViewBased] {
            for cb_nodes in [None, Some(1), Some(2), Some(4), Some(8)] {
                for cb_buffer_size in [None, Some(1 << 20), Some(4 << 20), Some(64 << 20)] {
                    let hints = Hints { cb_nodes, cb_buffer_size, ..Hints::default() };
                    let advice = Advice { strategy, hints };
                    least_s = least_s.min(io_time(&machine, &workload, &advice).unwrap().0);
                }
            }
        }
        let best = &found.settings[0];
        assert!(
            best.time.modelled_s <= least_s / (1.0 - crate::gain::NOISE),
            "{best:?}: the grid has {least_s} s"
        );
        assert!(found.predicted_count < 50, "{}", found.predicted_count);
        assert!(found.base.modelled_s > 0.0);
    }
}
