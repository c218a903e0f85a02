//! What earlier runs say of a machine's predictions: a history beside its description.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use pio_explain::Explanation;
use pio_learn::{History, Pair};
use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_report::units;
use pio_sim::{Options, Workload, simulate};
use pio_trace::{Tables, Trace};

use crate::here::{self, Here};
use crate::output::note;
use crate::recorded_calls::machine_of_run;

/// A machine that somebody asked for.
pub(crate) struct Asked {
    pub machine: Machine,
    /// The file of its description; none if that is built in.
    pub file: Option<PathBuf>,
    /// Whether it is a place of this host that was calibrated.
    pub is_here: bool,
}

impl Asked {
    /// The machine of this name, or in this file.
    pub(crate) fn named(name: &str) -> Result<Asked> {
        let machine = Machine::find(name)?;
        let is_built_in = Machine::built_in_names().any(|known| known == name);
        Ok(Asked { machine, file: (!is_built_in).then(|| name.into()), is_here: false })
    }

    /// The place that was calibrated.
    pub(crate) fn here(place: &Here) -> Result<Asked> {
        Ok(Asked { machine: place.load()?, file: Some(place.file()?), is_here: true })
    }

    /// How far its predictions have been off; none for one that is built in, which nobody can try.
    ///
    /// # Errors
    /// If there is a history that cannot be read.
    pub(crate) fn history(&self) -> Result<Option<History>> {
        let Some(file) = self.file.as_deref().map(history_beside) else { return Ok(None) };
        let history = History::load(&file)?;
        if let [first, ..] = history.damaged_lines() {
            let count = history.damaged_lines().len();
            let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
            note!("{}:{first}: skipped {lines} (expected a pair of times as JSON)", file.display());
        }
        Ok(Some(history))
    }

    /// Whether a history gives its predictions intervals: that of here from the beginning; a description of the user's own
    /// may be of a machine that this is not, until somebody compares a run.
    pub(crate) fn has_intervals(&self, history: &History) -> bool {
        self.is_here || !history.pairs().is_empty()
    }
}

/// The machines of these names or files; none for `here`, which [`find_here`] puts in its place.
///
/// # Errors
/// If there is no such machine.
pub(crate) fn find_named(names: &[String]) -> Result<Vec<Option<Asked>>> {
    let find = |name: &String| (name != here::NAME).then(|| Asked::named(name)).transpose();
    names.iter().map(find).collect()
}

/// The same with here: the place of the trace's files, or the current folder's.
///
/// # Errors
/// If here is not calibrated.
pub(crate) fn find_here(named: Vec<Option<Asked>>, trace: Option<&Trace>) -> Result<Vec<Asked>> {
    let here = || Asked::here(&Here::of_trace(trace)?);
    named.into_iter().map(|asked| asked.map_or_else(here, Ok)).collect()
}

/// The history that belongs to a description.
fn history_beside(description: &Path) -> PathBuf {
    description.with_extension("runs.jsonl")
}

/// Begins the history of a new description, with the pairs that were found with it: what was predicted from the one before
/// says nothing of it.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn begin_history(description: &Path, pairs: Vec<Pair>) -> Result<()> {
    let file = history_beside(description);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{}: cannot remove", file.display()));
        }
        _ => {}
    }
    let mut history = History::load(&file)?;
    pairs.into_iter().try_for_each(|pair| history.add(pair).map(drop))?;
    Ok(())
}

/// Adds what was measured to a history. That it cannot be kept is said, and nothing else is the worse for it.
pub(crate) fn add(history: &mut History, pairs: impl IntoIterator<Item = Pair>) {
    if let Err(error) = pairs.into_iter().try_for_each(|pair| history.add(pair).map(drop)) {
        note!("what was measured is not kept for later predictions: {:#}", anyhow::Error::from(error));
    }
}

/// A recorded run that predictions are compared with.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Mean time of a process in I/O, seconds.
    pub io_time_s: f64,
    /// Its ranks.
    pub ranks: u32,
    /// What histories call its program.
    pub program: String,
    started_ns: u64,
}

impl Run {
    /// What a trace says.
    pub(crate) fn of(tables: &Tables, found: &Explanation) -> Run {
        let ranks = tables.processes.iter().filter(|process| process.rank.is_some()).count();
        Run {
            io_time_s: found.io_time_s(),
            ranks: ranks as u32,
            program: program(tables),
            started_ns: tables.epoch_ns,
        }
    }

    /// It beside what was predicted for it.
    pub(crate) fn pair(&self, predicted_s: f64, strategy: &str, crowded: bool) -> Pair {
        Pair {
            predicted_s,
            measured_s: self.io_time_s,
            strategy: strategy.to_owned(),
            ranks: self.ranks,
            crowded,
            program: self.program.clone(),
            started_ns: self.started_ns,
        }
    }
}

/// What histories call a program: without quotes, which some traces have around words of the command and others not.
pub(crate) fn program(tables: &Tables) -> String {
    /// The words of some launchers are pages long; these tell programs apart.
    const CHARACTERS: usize = 300;
    tables.job.chars().filter(|character| *character != '\'').take(CHARACTERS).collect()
}

/// Events of a trace that is predicted after its run: more would keep the user waiting.
const MOST_EVENTS: u64 = 1_000_000;
/// And no longer than this, whatever the machine is busy with.
const PATIENCE: Duration = Duration::from_secs(5);

/// A job that was carried out by us, and recorded.
pub(crate) struct AppliedRun {
    /// What was recorded.
    pub trace: PathBuf,
    /// How it was carried out.
    pub strategy: Strategy,
    /// With which hints.
    pub hints: Hints,
    /// On these I/O servers.
    pub store: Option<PathBuf>,
}

/// Predicts a run that was just recorded, where its place is calibrated, and adds the pair to that place's history. Nothing that
/// happens here concerns the run: where it does not work out, it is left.
pub(crate) fn learn_from(run: AppliedRun) {
    let (tell, told) = mpsc::channel();
    // A thread of its own, which ends with this process: neither its time nor its failing can hold up the run's end.
    let learning = thread::Builder::new().spawn(move || tell.send(predict_and_add(&run)));
    if learning.is_ok()
        && let Ok(Ok(Some(line))) = told.recv_timeout(PATIENCE)
    {
        note!("{line}");
    }
}

/// What was learned, in words; none if there is nothing to learn from.
fn predict_and_add(run: &AppliedRun) -> Result<Option<String>> {
    let trace = Trace::open(&run.trace)?;
    let place = run.store.as_deref().map_or_else(|| Here::of_trace(Some(&trace)), Here::of_store)?;
    if !place.is_calibrated() || trace.event_count() > MOST_EVENTS || trace.damage().is_some() {
        return Ok(None);
    }
    let asked = Asked::here(&place)?;
    let (machine, Some(mut history)) = (&asked.machine, asked.history()?) else { return Ok(None) };
    if hosts(trace.tables()).len() as u32 > machine.nodes.count {
        return Ok(None);
    }
    let workload = Workload::from_trace(&trace)?;
    let (options, strategy) = (Options::default(), run.strategy);
    let found = Explanation::of_trace(&trace, &mut |_| {})?;
    let machine = &machine_of_run(machine, &found, &workload, &(strategy, run.hints.clone()), &options)?;
    let simulated = simulate(machine, &workload, strategy, &run.hints, &options, None, &mut |_| {})?;
    let predicted_s = simulated.io_time_mean.seconds();
    let measured = Run::of(trace.tables(), &found);
    let crowded = simulated.ranks_per_node > machine.nodes.cores;
    let added = history.add(measured.pair(predicted_s, strategy.name(), crowded))?;
    Ok(added.then(|| {
        format!(
            "I/O time {}, predicted {} (kept for the intervals of later predictions)",
            units::time_s(measured.io_time_s),
            units::time_s(predicted_s)
        )
    }))
}

/// The hosts on which a job's ranks ran (its processes, if none has a rank), each with how many of them.
pub(crate) fn hosts(tables: &Tables) -> BTreeMap<&str, u32> {
    let has_ranks = tables.processes.iter().any(|process| process.rank.is_some());
    let mut hosts = BTreeMap::new();
    for process in tables.processes.iter().filter(|process| process.rank.is_some() || !has_ranks) {
        *hosts.entry(process.host.as_str()).or_default() += 1;
    }
    hosts
}
