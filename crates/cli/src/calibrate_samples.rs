//! How near predictions come to runs on the machine that was just measured: small programs are run, and predicted from the
//! new description.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pio_learn::Pair;
use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_report::Table;
use pio_report::units::time_s;
use pio_sim::{Options, Workload, simulate};

use crate::apply::{self, How};
use crate::benchmark;
use crate::calibrate_job::Launch;
use crate::explain;
use crate::learned::Run;
use crate::own_way;
use crate::record;

/// The programs: compiled by the user's own `mpicc`.
const SAMPLES: &str = include_str!("../c/samples.c");
/// What they are asked for.
const KINDS: [&str; 4] = ["shared", "blocks", "small", "steps"];

/// After so long no further run is begun: the first programs tell most, and where files are far away, each takes long.
const LONGEST: Duration = Duration::from_secs(30);

/// Runs of one program that are further apart than by this factor are not believed.
const FAR_APART: f64 = 1.25;

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
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Pair>> {
    let work = tempfile::tempdir_in(folder).with_context(|| format!("{}: cannot write", folder.display()))?;
    let traces = benchmark::folder_for_traces(machine, folder)?;
    let mut pairs = Vec::new();
    let until = Instant::now() + LONGEST;
    // The first has one rank, which has nobody to work with.
    let launches = if launches.len() > 1 { &launches[1..] } else { launches };
    let Some(first) = launches.first() else { return Ok(pairs) };
    let samples = benchmark::compile(&first.mpicc, "samples", SAMPLES, work.path())?;
    for kind in KINDS {
        for launch in launches.iter().take_while(|_| Instant::now() < until) {
            progress(&format!("comparing predictions with runs: {kind} under {}", launch.text()));
            let data = work.path().join("data");
            let mut command = launch.words.clone();
            command.extend([samples.clone().into(), kind.into(), data.into_os_string()] as [OsString; 3]);
            let sample = Sample { machine, kind, command, traces: traces.path(), store, until };
            pairs.extend(sample.pairs()?);
        }
    }
    Ok(pairs)
}

/// One program with so many ranks.
struct Sample<'a> {
    machine: &'a Machine,
    kind: &'a str,
    command: Vec<OsString>,
    traces: &'a Path,
    store: Option<&'a Path>,
    until: Instant,
}

impl Sample<'_> {
    fn pairs(&self) -> Result<Vec<Pair>> {
        let first = explain::open(&self.run(None)?)?;
        let workload = Workload::from_trace(&first)?;
        let as_it_is = Run::of(first.tables(), &explain::explain(&first)?);
        let own = own_way::of_trace(first.tables()).strategy;
        // The MPI's own MPI-IO knows no servers.
        let ways = match self.store {
            None => vec![None, Some(Strategy::Independent), Some(Strategy::TwoPhase)],
            Some(_) => [Strategy::Independent, Strategy::TwoPhase, Strategy::Ecio].map(Some).to_vec(),
        };
        let known = |way: Option<Strategy>| way.is_none().then(|| as_it_is.clone());
        let pair = |way| self.pair(&workload, way, way.unwrap_or(own), known(way)).transpose();
        ways.into_iter().filter_map(pair).collect()
    }

    /// Runs it, recorded, as it is or in this way. What was recorded is there until the next run.
    fn run(&self, way: Option<Strategy>) -> Result<PathBuf> {
        let path = self.traces.join("run.pio");
        match way {
            None => {
                let status = record::record_as_it_is(&apply::own_job(self.command.clone()), path.clone())?;
                ensure!(status.success(), "{}: failed as it is: {status}", self.kind);
            }
            Some(strategy) => {
                let how = How {
                    strategy,
                    hints: Hints::default(),
                    store: self.store.map(Path::to_owned),
                    machine: None,
                };
                apply::run_own(how, self.command.clone(), Some(path.clone()))?;
            }
        }
        Ok(path)
    }

    /// What is measured beside what is predicted for it: the middle of two runs, of which one may be known; if they are far
    /// apart, that between them and a third. None if there is no time for them.
    fn pair(
        &self,
        workload: &Workload,
        way: Option<Strategy>,
        strategy: Strategy,
        known: Option<Run>,
    ) -> Result<Option<Pair>> {
        let (options, hints) = (Options::default(), Hints::default());
        let simulated = simulate(self.machine, workload, strategy, &hints, &options, None, &mut |_| {})?;
        let crowded = simulated.ranks_per_node > self.machine.nodes.cores;
        let mut runs: Vec<Run> = known.into_iter().collect();
        let needed = simulated.makespan.seconds() * (2 - runs.len()) as f64;
        if Instant::now() + Duration::from_secs_f64(needed) > self.until {
            return Ok(None);
        }
        while runs.len() < 2 || (runs.len() == 2 && runs[0].io_time_s * FAR_APART < runs[1].io_time_s) {
            let trace = explain::open(&self.run(way)?)?;
            runs.push(Run::of(trace.tables(), &explain::explain(&trace)?));
            runs.sort_by(|one, other| one.io_time_s.total_cmp(&other.io_time_s));
        }
        let (low, high) = (&runs[(runs.len() - 1) / 2], &runs[runs.len() / 2]);
        let mut middle = low.clone();
        middle.io_time_s = (low.io_time_s * high.io_time_s).sqrt();
        let pair = middle.pair(simulated.io_time_mean.seconds(), strategy.name(), crowded);
        // Its command names a folder that is no more.
        Ok(Some(Pair { program: format!("calibrate: {}", self.kind), ..pair }))
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
