//! How near predictions come to runs on the machine that was just measured: small programs are run, and predicted from the
//! new description.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pio_explain::Explanation;
use pio_learn::Pair;
use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_report::Table;
use pio_report::units::time_s;
use pio_sim::{Options, Workload, simulate};
use pio_trace::Trace;

use crate::apply::{self, How};
use crate::benchmark;
use crate::calibrate_job::Launch;
use crate::explain;
use crate::learned::Run;
use crate::own_way;
use crate::record;
use crate::recorded_calls::machine_of_run;

/// The programs: compiled by the user's own `mpicc`.
const SAMPLES: &str = include_str!("../c/samples.c");
/// What they are asked for.
const KINDS: [&str; 4] = ["shared", "blocks", "small", "steps"];

/// So long after the calibration began no further run is begun, but for this long there are runs: the first programs tell most, and
/// where files are far away, or a launcher takes a second, each takes long.
const CALIBRATION: Duration = Duration::from_secs(110);
const LEAST: Duration = Duration::from_secs(30);

/// Runs of one program that are further apart than by this factor are not believed.
const FAR_APART: f64 = 1.25;

/// How often each program is run: between two, all others are, as a machine may be slower than it was for seconds. A third run is
/// of those whose first two are far apart.
const MOST_RUNS: usize = 3;

/// Runs the samples, recorded, as they are (`store`: with all files on these servers, which the MPI's own MPI-IO does not know)
/// and under strategies, and predicts each run from the first. Files are in `folder`. Tells `progress` what is being run.
///
/// # Errors
/// If the samples cannot be compiled, or a run fails, or cannot be predicted.
pub(crate) fn compare(
    machine: &Machine,
    launches: &[Launch],
    folder: &Path,
    store: Option<&Path>,
    began: Instant,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Pair>> {
    let work = tempfile::tempdir_in(folder).with_context(|| format!("{}: cannot write", folder.display()))?;
    let traces = benchmark::folder_for_traces(machine, folder)?;
    let until = (began + CALIBRATION).max(Instant::now() + LEAST);
    // The first has one rank, which has nobody to work with.
    let launches = if launches.len() > 1 { &launches[1..] } else { launches };
    let Some(first) = launches.first() else { return Ok(Vec::new()) };
    let samples = benchmark::compile(&first.mpicc, "samples", SAMPLES, work.path())?;
    let mut trials = Vec::new();
    for kind in KINDS {
        for launch in launches.iter().take_while(|_| Instant::now() < until) {
            progress(&format!("comparing predictions with runs: {kind} under {}", launch.text()));
            let data = work.path().join("data");
            let mut command = launch.words.clone();
            command
                .extend([samples.path.clone().into(), kind.into(), data.into_os_string()] as [OsString; 3]);
            let sample = Rc::new(Sample { kind, command, trace: traces.path().join("run.pio"), store });
            let first_of_sample = trials.len();
            trials.extend(sample.trials(machine)?);
            for trial in trials[first_of_sample..].iter_mut().filter(|trial| trial.runs.is_empty()) {
                trial.run(until)?;
            }
        }
    }
    progress("comparing predictions with runs: once more");
    for count in 1..MOST_RUNS {
        for trial in trials.iter_mut().filter(|trial| trial.runs.len() == count && !trial.is_settled()) {
            trial.run(until)?;
        }
    }
    Ok(trials.iter().filter_map(Trial::pair).collect())
}

/// One program with so many ranks.
struct Sample<'a> {
    kind: &'a str,
    command: Vec<OsString>,
    /// Where a run is recorded.
    trace: PathBuf,
    store: Option<&'a Path>,
}

impl<'a> Sample<'a> {
    /// Records it as it is, and predicts it in each way.
    fn trials(self: &Rc<Self>, machine: &Machine) -> Result<Vec<Trial<'a>>> {
        let (trace, found) = self.run(None)?;
        let as_it_is = Run::of(trace.tables(), &found);
        let workload = Workload::from_trace(&trace)?;
        let own = own_way::of_trace(trace.tables()).strategy;
        let (options, hints) = (Options::default(), Hints::default());
        let machine = &machine_of_run(machine, &found, &workload, &(own, hints.clone()), &options)?;
        // The MPI's own MPI-IO knows no servers.
        let ways = match self.store {
            None => vec![None, Some(Strategy::Independent), Some(Strategy::TwoPhase)],
            Some(_) => [Strategy::Independent, Strategy::TwoPhase, Strategy::Ecio].map(Some).to_vec(),
        };
        let trial = |way: Option<Strategy>| {
            let strategy = way.unwrap_or(own);
            let simulated = simulate(machine, &workload, strategy, &hints, &options, None, &mut |_| {})?;
            Ok(Trial {
                sample: Rc::clone(self),
                way,
                strategy,
                takes: Duration::from_secs_f64(simulated.makespan.seconds()),
                predicted_s: simulated.io_time_mean.seconds(),
                crowded: simulated.ranks_per_node > machine.nodes.cores,
                runs: way.is_none().then(|| as_it_is.clone()).into_iter().collect(),
            })
        };
        ways.into_iter().map(trial).collect()
    }

    /// Runs it, recorded, as it is or in this way: its trace, explained.
    fn run(&self, way: Option<Strategy>) -> Result<(Trace, Explanation)> {
        match way {
            None => {
                let job = apply::own_job(self.command.clone());
                let status = record::record_as_it_is(&job, self.trace.clone())?;
                ensure!(status.success(), "{}: failed as it is: {status}", self.kind);
            }
            Some(strategy) => {
                let how = How {
                    strategy,
                    hints: Hints::default(),
                    store: self.store.map(Path::to_owned),
                    machine: None,
                };
                apply::run_own(how, self.command.clone(), Some(self.trace.clone()))?;
            }
        }
        let trace = explain::open(&self.trace)?;
        let found = explain::explain(&trace)?;
        Ok((trace, found))
    }
}

/// A sample in one way: what is predicted for it, and its runs.
struct Trial<'a> {
    sample: Rc<Sample<'a>>,
    /// None is as it is.
    way: Option<Strategy>,
    strategy: Strategy,
    /// From beginning to end, as predicted.
    takes: Duration,
    predicted_s: f64,
    crowded: bool,
    /// The fastest first.
    runs: Vec<Run>,
}

impl Trial<'_> {
    /// Whether no further run is needed.
    fn is_settled(&self) -> bool {
        match &self.runs[..] {
            [] | [_] => false,
            [one, other] => one.io_time_s * FAR_APART >= other.io_time_s,
            _ => true,
        }
    }

    /// Runs it, if there is time until then.
    fn run(&mut self, until: Instant) -> Result<()> {
        if Instant::now() + self.takes > until {
            return Ok(());
        }
        let (trace, found) = self.sample.run(self.way)?;
        self.runs.push(Run::of(trace.tables(), &found));
        self.runs.sort_by(|one, other| one.io_time_s.total_cmp(&other.io_time_s));
        Ok(())
    }

    /// The middle of its runs beside what is predicted. None if there was no time for any.
    fn pair(&self) -> Option<Pair> {
        let last = self.runs.len().checked_sub(1)?;
        let (low, high) = (&self.runs[last / 2], &self.runs[last.div_ceil(2)]);
        let mut middle = low.clone();
        middle.io_time_s = (low.io_time_s * high.io_time_s).sqrt();
        let pair = middle.pair(self.predicted_s, self.strategy.name(), self.crowded);
        // Its command names a folder that is no more.
        Some(Pair { program: format!("calibrate: {}", self.sample.kind), ..pair })
    }
}

/// How near predictions came.
pub(crate) fn table(machine: &Machine, pairs: &[Pair]) -> Table {
    let rows = pairs.iter().map(|pair| {
        vec![
            pair.program.trim_start_matches("calibrate: ").to_owned(),
            pair.ranks.to_string(),
            pair.strategy.clone(),
            time_s(pair.predicted_s),
            time_s(pair.measured_s),
            format!("{:+.0} %", pair.error() * 100.0),
        ]
    });
    Table {
        title: format!(
            "I/O time of sample programs, predicted from the description of {} and measured",
            machine.name
        ),
        note: "Later predictions for this machine are corrected by these errors, and have intervals by them."
            .into(),
        columns: vec!["program", ">ranks", "strategy", ">predicted", ">measured", ">error"],
        rows: rows.collect(),
    }
}
