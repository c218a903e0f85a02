//! `pioscope machines fit`: a description's costs, adjusted to recorded runs.
//!
//! What is fitted, and to what, is in `pio_learn::fit()` and [`pio_machine::Cost`]. Here runs are read, predicted and shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use pio_explain::{Explanation, Trouble, call_times};
use pio_learn::{Fit, Observed, Trial};
use pio_machine::{Cost, Machine};
use pio_plan::{Hints, Strategy};
use pio_report::Table;
use pio_report::units::{things, time_s};
use pio_sim::{Options, SimulatedCalls, Workload, simulate};
use pio_trace::{Call, Tables, Trace};

use crate::explain;
use crate::here::{self, Here};
use crate::learned::{self, Asked};
use crate::output::note;
use crate::own_way;
use crate::progress::Working;
use crate::recorded_calls::{LEAST_SHARE, way_of_run};
use crate::sweep::parallel;
use crate::whole_file::{self, WholeFile};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Traces of runs: of pioscope record, or of pioscope apply --record
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The description to adjust: a name (pioscope machines list) or a file. here is the place of the runs' files, as pioscope
    /// machines calibrate found it
    #[arg(short, long, default_value = here::NAME, value_name = "MACHINE")]
    machine: String,
    /// The description to write; its name becomes the machine's [default: here is replaced; others need a file]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let is_here = arguments.machine == here::NAME;
    let named = (!is_here).then(|| Asked::named(&arguments.machine)).transpose()?;
    if !is_here && arguments.output.is_none() {
        bail!(
            "--machine {}: only {} is replaced (expected -o FILE for the description to write)",
            arguments.machine,
            here::NAME
        );
    }
    let runs: Vec<RecordedRun> =
        arguments.runs.iter().map(|path| RecordedRun::open(path)).collect::<Result<_>>()?;
    let asked = match named {
        Some(asked) => asked,
        None => Asked::here(&place_of(&runs)?)?,
    };
    let machine = &asked.machine;
    runs.iter().try_for_each(|run| run.check_machine(machine, asked.is_here))?;
    let output = arguments.output.clone().or_else(|| asked.file.clone()).context("no file to write")?;
    whole_file::check(&output)?;

    let fitted = Fitting::new(machine, &runs)?.fit()?;
    crate::print(&fitted.factors().text())?;
    crate::print(&fitted.errors().text())?;
    ensure!(
        fitted.fit.improves(),
        "{}: kept as it was: runs that were held back are not predicted better by what was fitted to the others",
        machine.name
    );
    fitted.write(&asked, &output, arguments.output.is_some())?;
    learned::begin_history(&output, fitted.pairs())
}

/// The place of the files of all runs.
fn place_of(runs: &[RecordedRun]) -> Result<Here> {
    let mut place: Option<(&RecordedRun, Here)> = None;
    for run in runs {
        let own = run.place()?;
        match &place {
            Some((first, known)) if !known.is_same(&own) => bail!(
                "{}: its files are at another place than those of {} (expected runs of one place, or a machine with --machine)",
                run.name(),
                first.name()
            ),
            Some(_) => {}
            None => place = Some((run, own)),
        }
    }
    Ok(place.context("no run")?.1)
}

/// A run that was recorded, and what it tells.
struct RecordedRun {
    path: PathBuf,
    trace: Trace,
    workload: Workload,
    run: learned::Run,
    strategy: Strategy,
    hints: Hints,
    /// Of the host that had most.
    ranks_per_node: u32,
    found: Explanation,
}

/// Longer traces would keep their user waiting for hours.
const MOST_EVENTS: u64 = 1_000_000;

impl RecordedRun {
    fn open(path: &Path) -> Result<RecordedRun> {
        RecordedRun::read(path).with_context(|| path.display().to_string())
    }

    fn read(path: &Path) -> Result<RecordedRun> {
        let trace = explain::open(path)?;
        let tables = trace.tables();
        check_whole(&trace)?;
        let workload = Workload::from_trace(&trace)?;
        let found = explain::explain(&trace)?;
        let run = learned::Run::of(tables, &found);
        ensure!(
            run.io_time_s > 0.0,
            "no call of it took time (expected a program that reads or writes files)"
        );
        let (strategy, hints) = way_of_run(tables, own_way::of_trace(tables).strategy)?;
        Ok(RecordedRun {
            path: path.to_owned(),
            strategy,
            hints,
            ranks_per_node: learned::hosts(tables).into_values().max().unwrap_or(1),
            trace,
            found,
            workload,
            run,
        })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Where its files are.
    fn place(&self) -> Result<Here> {
        let store = self.trace.tables().note(Tables::STORE);
        store.map_or_else(|| Here::of_run(&self.trace), |store| Here::of_store(Path::new(store))).map_err(
            |error| {
                anyhow!(
                    "{}: {error:#} (expected a run of this host, or a machine with --machine)",
                    self.name()
                )
            },
        )
    }

    /// Makes sure that the machine can be that of the run.
    fn check_machine(&self, machine: &Machine, is_here: bool) -> Result<()> {
        let (hosts, nodes) = (learned::hosts(self.trace.tables()), machine.nodes.count);
        ensure!(
            hosts.len() as u32 <= nodes,
            "{}: it ran on {}, and {} has {} (expected a machine with as many)",
            self.name(),
            things(hosts.len() as u64, "host", "hosts"),
            machine.name,
            things(nodes.into(), "node", "nodes"),
        );
        let here = pio_record::host();
        if let (true, Some(other)) = (is_here && nodes == 1, hosts.keys().find(|host| **host != here)) {
            bail!(
                "{}: it ran on host {other}, and this is {here} (expected a run of this host, or a machine with --machine)",
                self.name()
            );
        }
        Ok(())
    }

    /// Seconds in each function that is simulated, mean of the processes: in calls of the program (`true`) and within them.
    fn calls(&self, machine: &Machine) -> Result<BTreeMap<(Call, bool), f64>> {
        let mut calls = SimulatedCalls::of(&self.trace, machine)?;
        Ok(call_times(&self.trace, &self.found, &mut |event| calls.next(event))?)
    }

    /// What runs of the same kind have in common.
    fn case(&self) -> (String, &'static str, String, u32) {
        (self.run.program.clone(), self.strategy.name(), self.hints.to_text(), self.run.ranks)
    }

    fn predict(&self, machine: &Machine) -> Result<pio_sim::Prediction> {
        let options = Options { ranks_per_node: Some(self.ranks_per_node), ..Options::default() };
        simulate(machine, &self.workload, self.strategy, &self.hints, &options, None, &mut |_| {})
            .with_context(|| self.name())
    }
}

/// Refuses traces that do not have all that a run did, or not as it took place.
fn check_whole(trace: &Trace) -> Result<()> {
    let tables = trace.tables();
    let is_ours = ["recorder", "simulator"].iter().any(|maker| tables.note(maker).is_some());
    ensure!(is_ours, "not recorded by Pioscope (expected a trace of pioscope record, or of apply --record)");
    let mut trouble = Trouble::of(tables);
    trouble.damage.extend(trace.damage().map(ToString::to_string));
    if let Some(loss) = pio_report::losses(&trouble).first() {
        bail!("incomplete: {loss} (expected the trace of a whole run)");
    }
    ensure!(
        trace.event_count() <= MOST_EVENTS,
        "{} events (expected at most {MOST_EVENTS}: each run is simulated hundreds of times)",
        trace.event_count()
    );
    Ok(())
}

/// What is to be fitted.
struct Fitting<'a> {
    machine: &'a Machine,
    runs: &'a [RecordedRun],
    costs: Vec<Cost>,
    observed: Vec<Observed>,
    /// Of each run: the functions that it is also compared by, whether the program called them, and measured seconds.
    functions: Vec<Vec<(Call, bool, f64)>>,
    crowded: Vec<bool>,
}

/// Of a run's weight: what its I/O time has, and what the functions have by their share of it, called by the program or below.
const OF_IO_TIME: f64 = 0.5;
const OF_FUNCTIONS: f64 = 0.25;
/// A time of nothing, or of ages, is off by no more than this.
const MOST_OFF: f64 = 100.0;

impl<'a> Fitting<'a> {
    fn new(machine: &'a Machine, runs: &'a [RecordedRun]) -> Result<Fitting<'a>> {
        let mut fitting = Fitting {
            machine,
            runs,
            costs: machine.costs().collect(),
            observed: Vec::new(),
            functions: Vec::new(),
            crowded: Vec::new(),
        };
        let groups = groups(runs)?;
        let mut cases: BTreeMap<_, f64> = BTreeMap::new();
        runs.iter().for_each(|run| *cases.entry(run.case()).or_default() += 1.0);
        let mut libraries = BTreeSet::new();
        for (run, group) in runs.iter().zip(groups) {
            let tables = run.trace.tables();
            if libraries.insert(tables.mpi_library().map(str::to_owned)) {
                own_way::tell_of_another(machine, tables);
            }
            let predicted = run.predict(machine)?;
            // What is never predicted, no cost makes longer.
            let is_seen = |call: &(Call, bool), time_s: f64| {
                predicted.calls.contains_key(call) && time_s >= LEAST_SHARE * run.run.io_time_s
            };
            let functions: Vec<(Call, bool, f64)> = (run.calls(machine)?.iter())
                .filter(|(call, time_s)| is_seen(call, **time_s))
                .map(|((call, is_own), time_s)| (*call, *is_own, *time_s))
                .collect();
            let share = |(_, _, time_s): &(Call, bool, f64)| OF_FUNCTIONS * time_s / run.run.io_time_s;
            let weights = std::iter::once(OF_IO_TIME).chain(functions.iter().map(share));
            let weights = weights.map(|weight| weight / cases[&run.case()]).collect();
            fitting.observed.push(Observed { group, weights });
            fitting.functions.push(functions);
            fitting.crowded.push(predicted.ranks_per_node > machine.nodes.cores);
        }
        Ok(fitting)
    }

    fn fit(self) -> Result<Fitted<'a>> {
        let what =
            format!("fitting {} to {}", self.machine.name, things(self.runs.len() as u64, "run", "runs"));
        let (working, mut done) = (Working::new(&what), 0);
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut predict = |trials: Vec<Trial>| {
            let ratios = parallel::each(
                &trials,
                processors,
                |trial| self.log_ratios(trial),
                |ended| working.now(&format!("{what}: {} simulations", done + ended)),
            );
            done += trials.len() as u64;
            ratios
        };
        let fit = pio_learn::fit(&self.observed, self.costs.len(), &mut predict)?;
        Ok(Fitted { fit, fitting: self })
    }

    fn at(&self, point: &[f64]) -> Machine {
        let factors = self.costs.iter().zip(point).filter(|(_, log)| **log != 0.0);
        self.machine.scaled(factors.map(|(cost, log)| (*cost, log.exp())))
    }

    /// By how much a prediction is off, in I/O time and in each function.
    fn log_ratios(&self, trial: &Trial) -> Result<Vec<f64>> {
        let run = &self.runs[trial.run];
        let predicted = run.predict(&self.at(&trial.point))?;
        let ratio = |predicted_s: f64, measured_s: f64| {
            (predicted_s / measured_s).clamp(1.0 / MOST_OFF, MOST_OFF).ln()
        };
        let in_function = |(call, is_own, measured_s): &(Call, bool, f64)| {
            let time = predicted.calls.get(&(*call, *is_own)).copied().unwrap_or_default();
            ratio(time.seconds() / f64::from(predicted.ranks), *measured_s)
        };
        let of_io = ratio(predicted.io_time_mean.seconds(), run.run.io_time_s);
        Ok(std::iter::once(of_io).chain(self.functions[trial.run].iter().map(in_function)).collect())
    }
}

/// Which runs are held back together: those of a program; of a single program, those of one strategy and number of ranks.
fn groups(runs: &[RecordedRun]) -> Result<Vec<usize>> {
    let number = |names: Vec<String>| -> Option<Vec<usize>> {
        let known: BTreeSet<&String> = names.iter().collect();
        let place = |name: &String| known.iter().position(|known| *known == name).unwrap_or(0);
        (known.len() > 1).then(|| names.iter().map(place).collect())
    };
    number(runs.iter().map(|run| run.run.program.clone()).collect())
        .or_else(|| number(runs.iter().map(|run| format!("{:?}", run.case())).collect()))
        .context(
            "all runs are of one program, strategy and number of ranks, so that none can be held back (expected runs of \
             several programs, or one program under several strategies)",
        )
}

/// What was found.
struct Fitted<'a> {
    fitting: Fitting<'a>,
    fit: Fit,
}

impl Fitted<'_> {
    /// The costs that change.
    fn factors(&self) -> Table {
        let changed = self.fitting.costs.iter().zip(&self.fit.point).filter(|(_, log)| **log != 0.0);
        Table {
            title: format!("Costs of {} that the runs say are others", self.fitting.machine.name),
            note: "All others stay: the runs do not depend on them, or agree with them.".to_owned(),
            columns: vec!["cost", ">factor on its time"],
            rows: changed
                .map(|(cost, log)| vec![cost.keys.to_owned(), format!("{:.2}", log.exp())])
                .collect(),
        }
    }

    /// How far predictions of the runs are off, before and after.
    fn errors(&self) -> Table {
        let Fit { before, fitted, held_back, .. } = &self.fit;
        let rows = self.fitting.runs.iter().enumerate().map(|(index, run)| {
            let mut row = vec![
                run.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                run.run.ranks.to_string(),
                run.strategy.name().to_owned(),
                time_s(run.run.io_time_s),
            ];
            row.extend([before, fitted, held_back].map(|ratios| format!("{:+.0} %", error(ratios[index]))));
            row
        });
        Table {
            title: "Error of the predicted I/O time".to_owned(),
            note: format!(
                "{} Held back: each run is predicted by what was fitted to runs of other programs (of one program: to runs under \
                 other strategies, or of other numbers of ranks).",
                [("Before", before), ("Fitted", fitted), ("Held back", held_back)]
                    .map(|(name, ratios)| self.summary(name, ratios))
                    .join(" ")
            ),
            columns: vec!["run", ">ranks", "strategy", ">measured", ">before", ">fitted", ">held back"],
            rows: rows.collect(),
        }
    }

    /// The mean of the errors' sizes, by which it is decided whether to fit, and the largest: both as factors, either way.
    fn summary(&self, name: &str, ratios: &[f64]) -> String {
        let mean = self.fit.mean_of(ratios).exp();
        let most = ratios.iter().map(|ratio| ratio.abs().exp()).fold(1.0, f64::max);
        format!("{name}: off by a factor of {mean:.2} in the mean, {most:.2} at most.")
    }

    /// What the new description's history begins with: runs beside what was predicted for them without them.
    fn pairs(&self) -> Vec<pio_learn::Pair> {
        let of_run = |(index, run): (usize, &RecordedRun)| {
            let predicted_s = run.run.io_time_s * self.fit.held_back[index].exp();
            run.run.pair(predicted_s, run.strategy.name(), self.fitting.crowded[index])
        };
        self.fitting.runs.iter().enumerate().map(of_run).collect()
    }

    fn write(&self, asked: &Asked, output: &Path, takes_name: bool) -> Result<()> {
        let mut machine = self.fitting.at(&self.fit.point);
        let measured = machine.source.split(FITTED).next().unwrap_or_default();
        machine.source =
            format!("{measured}{FITTED}{}", things(self.fitting.runs.len() as u64, "run", "runs"));
        if let Some(name) = output.file_stem().filter(|_| takes_name) {
            machine.name = name.to_string_lossy().into_owned();
        }
        let comment = asked.file.as_deref().map_or_else(|| Ok(String::new()), comment_of)?;
        let whole = WholeFile::create(output)?;
        write!(whole.file(), "{}", machine.to_toml(&comment))
            .with_context(|| format!("{}: cannot write", output.display()))?;
        whole.keep()?;
        note!("wrote {}", output.display());
        Ok(())
    }
}

/// What stands in a source behind where its numbers come from.
const FITTED: &str = "; fitted to ";

/// The comment above a description.
fn comment_of(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("{}: cannot read", file.display()))?;
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    Ok(lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n"))
}

/// In percent of the measured time.
fn error(log_ratio: f64) -> f64 {
    (log_ratio.exp() - 1.0) * 100.0
}
