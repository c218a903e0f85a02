//! How near predictions come to runs on the machine that was just measured: small programs are run, and predicted from the
//! new description.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};
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

/// The programs: compiled by the user's own `mpicc`.
const SAMPLES: &str = include_str!("../c/samples.c");
/// What they are asked for.
const KINDS: [&str; 4] = ["shared", "blocks", "small", "steps"];

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
    let mut pairs = Vec::new();
    // The first has one rank, which has nobody to work with.
    let launches = if launches.len() > 1 { &launches[1..] } else { launches };
    for launch in launches {
        for kind in KINDS {
            progress(&format!("comparing predictions with runs: {kind} under {}", launch.text()));
            let samples = benchmark::compile(&launch.mpicc, "samples", SAMPLES, work.path())?;
            let data = work.path().join("data");
            let mut command = launch.words.clone();
            command.extend([samples.into(), kind.into(), data.into_os_string()] as [OsString; 3]);
            let sample = Sample { machine, kind, command, folder: work.path(), store };
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
    folder: &'a Path,
    store: Option<&'a Path>,
}

impl Sample<'_> {
    fn pairs(&self) -> Result<Vec<Pair>> {
        let path = self.folder.join("run.pio");
        let job = apply::own_job(self.command.clone());
        let status = record::record_as_it_is(&job, path.clone())?;
        ensure!(status.success(), "{}: failed as it is: {status}", self.kind);
        let trace = explain::open(&path)?;
        let workload = Workload::from_trace(&trace)?;
        let own = own_way::of_trace(trace.tables()).strategy;
        let mut pairs = Vec::new();
        if self.store.is_none() {
            pairs.push(self.pair(&trace, &workload, own)?);
        }
        let servers = self.store.map(|_| Strategy::Ecio);
        for strategy in [Strategy::Independent, Strategy::TwoPhase].into_iter().chain(servers) {
            let how = How { strategy, hints: Hints::default(), store: self.store.map(Path::to_owned) };
            apply::run_own(how, self.command.clone(), Some(path.clone()))?;
            pairs.push(self.pair(&explain::open(&path)?, &workload, strategy)?);
        }
        Ok(pairs)
    }

    /// What was measured beside what is predicted for it.
    fn pair(&self, measured: &Trace, workload: &Workload, strategy: Strategy) -> Result<Pair> {
        let (options, hints) = (Options::default(), Hints::default());
        let simulated = simulate(self.machine, workload, strategy, &hints, &options, None, &mut |_| {})?;
        let crowded = simulated.ranks_per_node > self.machine.nodes.cores;
        let run = Run::of(measured.tables(), &explain::explain(measured)?);
        let pair = run.pair(simulated.io_time_mean.seconds(), strategy.name(), crowded);
        // Its command names a folder that is no more.
        Ok(Pair { program: format!("calibrate: {}", self.kind), ..pair })
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
