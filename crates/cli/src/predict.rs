//! `pioscope predict`.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_explain::{Comparison, Explanation};
use pio_learn::{Case, History, Interval};
use pio_machine::{Duration, Machine};
use pio_plan::{Hints, Strategy};
use pio_report::{AsItIs, Prediction};
use pio_sim::{Options, SimulatedCalls, Workload};
use pio_trace::Trace;

use crate::apply::HintArguments;
use crate::explain;
use crate::flags::{HtmlFlag, JsonFlag, SeedFlag, count};
use crate::here::{self, Here};
use crate::json;
use crate::learned::{self, Asked, Run, find_here, find_named};
use crate::output::note;
use crate::own_way;
use crate::progress::{Progress, Working};
use crate::recorded_calls::{machine_of_run, way_of_run};
use crate::sweep::{self, Axis, Outputs, Source, SweepDefinition};
use crate::whole_file::{self, WholeFile};
use crate::workload::Named;
use crate::workload_traffic;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope predict run.pio                                     (here: after pioscope machines calibrate)
  pioscope predict run.pio --machine sp-argonne --strategy independent,two-phase
  pioscope predict run.pio --machine here,sp-argonne --hints cb_nodes=4 --html report.html
  pioscope predict run.pio --measured here/two-phase=applied.pio
  pioscope predict run.pio --machine sp-argonne --sweep storage.io.count=4,8,16 --html sweep.html
  pioscope predict --workload ior-easy,ranks=64 --machine sp-argonne
  pioscope predict --workload uniform --machine tree-64 --sweep load=0.1,0.3,0.5,0.7 --svg curve.svg")]
pub(crate) struct Arguments {
    /// The recorded program
    #[arg(required_unless_present = "workload", conflicts_with = "workload")]
    trace: Option<PathBuf>,
    /// A generated workload instead (pioscope workload list), with its parameters
    #[arg(short, long, value_name = "NAME[,PARAMETER=VALUE…]")]
    workload: Option<Named>,
    /// Predict at every value of a key of the machine (as storage.io.count), a hint, a parameter of the workload, or seed;
    /// may be given several times
    #[arg(long, value_name = "KEY=VALUE,…")]
    sweep: Vec<Axis>,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    seed: SeedFlag,
    /// Sweep: how many processors to use [default: all]
    #[arg(short, long, value_name = "COUNT", value_parser = count)]
    jobs: Option<NonZeroU32>,
    /// Machines: names (pioscope machines list) or files, separated by commas. here is the place where the trace's files are,
    /// as pioscope machines calibrate found it
    #[arg(short, long, value_delimiter = ',', default_value = here::NAME, value_name = "MACHINE")]
    machine: Vec<String>,
    /// Strategies, separated by commas: those of apply, and romio and ompio, what MPICH and Open MPI do by themselves [default: what the
    /// program's MPI library does by itself, independent and two-phase; sweeps: independent and two-phase; without MPI-IO one for all]
    #[arg(short, long, value_delimiter = ',', value_parser = Strategy::to_predict)]
    strategy: Vec<Strategy>,
    #[command(flatten)]
    hints: HintArguments,
    /// Ranks on each node, filling node after node [default: one, or as many as it takes to have room for all]
    #[arg(long, value_name = "COUNT", value_parser = count)]
    ranks_per_node: Option<NonZeroU32>,
    /// Folder for the simulated traces [default: beside the trace]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// A recorded run to show beside the prediction for a machine and strategy. It is kept: later predictions say by its
    /// error how sure they are
    #[arg(long, value_name = "MACHINE/STRATEGY=TRACE")]
    measured: Vec<Measured>,
    #[command(flatten)]
    html: HtmlFlag,
    #[command(flatten)]
    json: JsonFlag,
}

#[derive(Clone, Debug)]
struct Measured {
    machine: String,
    strategy: Strategy,
    trace: PathBuf,
}

impl FromStr for Measured {
    type Err = String;

    fn from_str(text: &str) -> Result<Measured, String> {
        let parts = text.split_once('=').and_then(|(what, trace)| Some((what.rsplit_once('/')?, trace)));
        let ((machine, strategy), trace) = parts.ok_or("expected MACHINE/STRATEGY=TRACE")?;
        let strategy = Strategy::to_predict(strategy)?;
        Ok(Measured { machine: machine.to_owned(), strategy, trace: trace.into() })
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let hints = arguments.hints.read()?;
    let named = find_named(&arguments.machine)?;
    let names: Vec<String> = named.iter().map(name_of).collect();
    check(&arguments, &names, &hints)?;
    if !arguments.sweep.is_empty() || arguments.workload.as_ref().is_some_and(is_traffic) {
        return sweep(arguments, named, hints);
    }
    if arguments.outputs.is_any() {
        bail!("--svg and --table are for sweeps: add --sweep KEY=VALUE,…");
    }
    let measured = measure(&arguments.measured, &names)?;
    let path = match (&arguments.trace, &arguments.workload) {
        (Some(path), _) => path.clone(),
        (None, Some(named)) => generate(named, &arguments)?,
        (None, None) => bail!("expected a trace, or a workload with --workload"),
    };
    let trace = explain::open(&path)?;
    // A generated workload's files are nowhere.
    let machines = find_here(named, arguments.trace.is_some().then_some(&trace))?;
    let workload = workload_of(&trace)?;
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let output = arguments.output.as_deref().or(beside).unwrap_or(Path::new("."));
    whole_file::check_folder(output)?;
    let stem = stem(&path);

    let own = own_way::of_trace(trace.tables());
    let strategies = strategies(&arguments.strategy, &workload, Some(own.strategy));
    let path_of = |machine: &Machine, strategy: Strategy| {
        output.join(format!("{stem}-{}-{strategy}.pio", machine.name))
    };
    for asked in &machines {
        strategies.iter().try_for_each(|strategy| check_place(&path_of(&asked.machine, *strategy)))?;
    }
    refuse_other_runs(&arguments.measured, &measured, &strategies, &hints, &workload)?;
    let options = options(arguments.ranks_per_node);
    let (program, ranks) = (learned::program(trace.tables()), workload.ranks());
    let ran_on: Vec<bool> = machines.iter().map(|asked| Here::ran_on(&trace, &asked.machine)).collect();
    let recorded = match arguments.ranks_per_node {
        None if ran_on.contains(&true) => {
            let run = explain::open(&path)?;
            if run.damage().is_none() { Some(MeasuredRun::of(run)?) } else { None }
        }
        _ => None,
    };
    // Without MPI-IO, it is one of any strategy.
    let carried_out = if workload.has_mpi_io() { own.strategy } else { strategies[0] };
    let way = way_of_run(trace.tables(), carried_out).ok();
    let (mut predictions, mut simulated) = (Vec::new(), Vec::new());
    for (asked, ran_here) in machines.iter().zip(ran_on) {
        let run = recorded.as_ref().zip(way.as_ref()).filter(|_| ran_here);
        let machine = &match run {
            Some((run, way)) => machine_of_run(&asked.machine, &run.found, &workload, way, &options)?,
            None => asked.machine.clone(),
        };
        own_way::tell_of_another(machine, trace.tables());
        let predict = |&strategy: &Strategy| {
            predict(machine, &workload, strategy, &hints, &options, &path_of(machine, strategy))
        };
        let simulated_all = strategies.iter().map(predict).collect::<Result<Vec<_>>>();
        let mut of_machine = simulated_all.with_context(|| path.display().to_string())?;
        if of_machine.iter().any(|prediction| prediction.crowd.is_some()) {
            tell_of_untold_waits(machine, &workload);
        }
        let mut runs: BTreeMap<&str, &MeasuredRun> = BTreeMap::new();
        let mut history = asked.history()?;
        // What is known of the program before any strategy is tried.
        if let Some((run, (strategy, given))) = run
            && *given == hints
        {
            runs.insert(strategy.name(), run);
            history.iter_mut().for_each(|history| learn(history, &of_machine, &runs));
        }
        if let Some(history) = history.as_ref().filter(|history| asked.has_intervals(history)) {
            let corrected = |prediction: Prediction| {
                let interval = interval(history, &prediction, ranks, &program);
                prediction.corrected(interval)
            };
            of_machine = of_machine.into_iter().map(corrected).collect();
        }
        let asked_for = measured.iter().filter(|((of, _), _)| *of == machine.name);
        runs.extend(asked_for.map(|((_, strategy), run)| (*strategy, run)));
        for (prediction, strategy) in of_machine.iter_mut().zip(&strategies) {
            let path = path_of(machine, *strategy);
            if let Some(run) = runs.get(strategy.name()) {
                prediction.measured_s = Some(run.run.io_time_s);
                prediction.beside = Some(run.beside(&path, machine, prediction.correction())?);
            }
            simulated.push(path);
        }
        if let Some(history) = &mut history {
            learn(history, &of_machine, &runs);
        }
        predictions.extend(of_machine);
    }
    if let Some(base) = base(&strategies, own.strategy) {
        compare(&mut predictions, base, &own.why);
    }
    if arguments.json.json {
        json::print(&json::predict::Predicted::of(&path, &predictions, &simulated))?;
    } else {
        crate::print(&pio_report::predictions_text(&predictions))?;
    }
    note!("wrote the simulated traces to {}", output.display());
    if let Some(path) = &arguments.html.html {
        let (found, gathering) = explain::explain_for_page(&trace)?;
        explain::write_html(path, &trace, &found, gathering, &predictions)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says so where ranks share cores, and a trace does not say which of them waited in MPI on a processor.
fn tell_of_untold_waits(machine: &Machine, workload: &Workload) {
    if workload.untold_waits > Duration::ZERO {
        eprintln!(
            "pioscope: {}: ranks share cores, and the trace does not say whether ranks used them in {:.3} s of MPI calls between \
             their I/O: they are taken not to (expected a trace by this version of pioscope record)",
            machine.name,
            workload.untold_waits.seconds()
        );
    }
}

/// What a machine is called before here is found.
fn name_of(asked: &Option<Asked>) -> String {
    asked.as_ref().map_or(here::NAME, |asked| &asked.machine.name).to_owned()
}

/// Where the time of a run is expected, by those before it.
fn interval(history: &History, prediction: &Prediction, ranks: u32, program: &str) -> Interval {
    let Prediction { io_time_s, strategy, crowd, .. } = prediction;
    let case = Case { strategy, ranks, crowded: crowd.is_some(), program };
    history.interval(*io_time_s, &case)
}

/// Adds the runs that are shown beside predictions to their machine's history, by their strategies.
fn learn(history: &mut History, predictions: &[Prediction], runs: &BTreeMap<&str, &MeasuredRun>) {
    let pair = |prediction: &Prediction| {
        let Prediction { strategy, crowd, modelled_s, .. } = prediction;
        Some(runs.get(strategy.as_str())?.run.pair(*modelled_s, strategy, crowd.is_some()))
    };
    learned::add(history, predictions.iter().filter_map(pair));
}

/// Predicted where nothing is said, beside what the program's MPI library does by itself.
const BY_DEFAULT: [Strategy; 2] = [Strategy::Independent, Strategy::TwoPhase];

/// Those that were asked for. By default what the MPI library does by itself comes first, if it is known; without MPI-IO, one
/// stands for all.
fn strategies(asked: &[Strategy], workload: &Workload, own: Option<Strategy>) -> Vec<Strategy> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    if !workload.has_mpi_io() {
        return vec![Strategy::Independent];
    }
    own.into_iter().chain(BY_DEFAULT).collect()
}

/// What the others are compared with: what an MPI library does by itself, if that is predicted; that of the program rather
/// than another.
fn base(strategies: &[Strategy], own: Strategy) -> Option<Strategy> {
    let of_libraries = || strategies.iter().copied().filter(|strategy| Strategy::OWN.contains(strategy));
    of_libraries().find(|strategy| *strategy == own).or_else(|| of_libraries().next())
}

/// Says of each prediction what it saves of the time that `base` takes on the same machine.
fn compare(predictions: &mut [Prediction], base: Strategy, why: &str) {
    let is_base = |prediction: &Prediction| prediction.strategy == base.name();
    let bases: BTreeMap<String, Prediction> = predictions
        .iter()
        .filter(|prediction| is_base(prediction))
        .map(|prediction| (prediction.machine.clone(), prediction.clone()))
        .collect();
    for prediction in predictions {
        prediction.as_it_is = bases.get(&prediction.machine).map(|of_base| AsItIs {
            io_time_s: of_base.io_time_s,
            interval: of_base.interval.clone(),
            strategy: base.name().to_owned(),
            why: why.to_owned(),
        });
    }
}

/// What would come to light only after the work, or be lost by it.
fn check(arguments: &Arguments, names: &[String], hints: &Hints) -> Result<()> {
    for (index, (name, given)) in names.iter().zip(&arguments.machine).enumerate() {
        if let Some(before) = names[..index].iter().position(|before| before == name) {
            bail!(
                "--machine {},{given}: both are named '{name}', and so would be their results: expected another name for one",
                arguments.machine[before],
            );
        }
    }
    for (index, strategy) in arguments.strategy.iter().enumerate() {
        if arguments.strategy[..index].contains(strategy) {
            bail!("--strategy {strategy} is given twice");
        }
    }
    if hints.striping_factor.is_some() {
        bail!(
            "hint striping_factor: a prediction takes the number of servers from the machine: \
             --sweep storage.io.count=4,8 tries others"
        );
    }
    arguments.html.html.as_deref().map_or(Ok(()), whole_file::check)
}

/// Predicts at every point of a sweep.
fn sweep(arguments: Arguments, named: Vec<Option<Asked>>, hints: Hints) -> Result<ExitCode> {
    if arguments.output.is_some() || !arguments.measured.is_empty() {
        bail!("--output and --measured do not go with a sweep, which keeps no simulated traces");
    }
    let trace = arguments.trace.as_deref().map(explain::open).transpose()?;
    let machines = find_here(named, trace.as_ref())?;
    let (source, name, strategies) = match (&trace, arguments.workload) {
        (Some(trace), _) => {
            let workload = workload_of(trace)?;
            let strategies = strategies(&arguments.strategy, &workload, None);
            (Source::Trace(Box::new(workload)), stem(trace.path()), strategies)
        }
        (None, Some(named)) => {
            let name = named.name.clone();
            let strategies =
                if arguments.strategy.is_empty() { BY_DEFAULT.to_vec() } else { arguments.strategy };
            (
                if is_traffic(&named) { Source::Traffic(named) } else { Source::Generated(named) },
                name,
                strategies,
            )
        }
        (None, None) => bail!("expected a trace, or a workload with --workload"),
    };
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let request = SweepDefinition {
        options: options(arguments.ranks_per_node),
        source,
        name,
        machines: machines.into_iter().map(|asked| asked.machine).collect(),
        strategies,
        hints,
        axes: arguments.sweep,
        seed: arguments.seed.seed,
        jobs: arguments.jobs.map_or(processors, |jobs| jobs.get() as usize),
    };
    sweep::run(&request, &arguments.outputs, arguments.html.html.as_deref(), arguments.json)
}

/// What was chosen beside machine and strategy.
fn options(ranks_per_node: Option<NonZeroU32>) -> Options {
    Options { ranks_per_node: ranks_per_node.map(NonZeroU32::get), ..Options::default() }
}

fn is_traffic(named: &Named) -> bool {
    workload_traffic::is_known(&named.name)
}

/// Writes a generated workload as a trace beside those that are simulated, as if it had been recorded.
fn generate(named: &Named, arguments: &Arguments) -> Result<PathBuf> {
    let output = arguments.output.as_deref().unwrap_or(Path::new("."));
    whole_file::check_folder(output)?;
    let path = output.join(format!("{}.pio", named.name));
    if path.exists() && !is_generated(&path) {
        bail!(
            "{}: it is there, and no generated workload: expected another folder (--output)",
            path.display()
        );
    }
    let working = Working::new("writing the workload");
    let workload = named.build(&[], arguments.seed.seed)?;
    pio_sim::workload::write_trace(&workload, &named.notes(arguments.seed.seed), &path)?;
    drop(working);
    note!("wrote {}", path.display());
    Ok(path)
}

/// Whether a trace is a workload that was generated before: that may be made anew.
fn is_generated(path: &Path) -> bool {
    Trace::open(path).is_ok_and(|trace| trace.tables().note(Named::NOTE).is_some())
}

/// The calls that a trace recorded, ready to be carried out again.
pub(crate) fn workload_of(trace: &Trace) -> Result<Workload> {
    let _working = Working::new("reading the calls");
    Ok(Workload::from_trace(trace)?)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or("trace".into(), |stem| stem.to_string_lossy().into_owned())
}

/// A recorded run that is shown beside a prediction.
struct MeasuredRun {
    run: Run,
    trace: Trace,
    found: Explanation,
}

impl MeasuredRun {
    fn of(trace: Trace) -> Result<MeasuredRun> {
        let found = explain::explain(&trace)?;
        Ok(MeasuredRun { run: Run::of(trace.tables(), &found), trace, found })
    }

    /// It beside the simulated trace at `path` of this machine, whose times are taken `correction` times.
    fn beside(&self, path: &Path, machine: &Machine, correction: f64) -> Result<Comparison> {
        let mut calls = SimulatedCalls::of(&self.trace, machine)?;
        let predicted = explain::open(path)?;
        Ok(Comparison::of(&predicted, correction, &self.trace, &self.found, &mut |event| calls.next(event))?)
    }
}

/// Recorded runs, by machine and strategy.
fn measure<'a>(
    measured: &'a [Measured],
    machines: &[String],
) -> Result<BTreeMap<(&'a str, &'a str), MeasuredRun>> {
    let mut runs = BTreeMap::new();
    for Measured { machine, strategy, trace } in measured {
        if !machines.contains(machine) {
            bail!("--measured {machine}/{strategy}: the machine is not among those of --machine");
        }
        let run = MeasuredRun::of(explain::open(trace)?)?;
        if runs.insert((machine.as_str(), strategy.name()), run).is_some() {
            bail!("--measured {machine}/{strategy} is given twice");
        }
    }
    Ok(runs)
}

/// Refuses runs beside which nothing is predicted, or that were not run as is predicted: what is learned from a pair lasts.
fn refuse_other_runs(
    measured: &[Measured],
    runs: &BTreeMap<(&str, &str), MeasuredRun>,
    strategies: &[Strategy],
    hints: &Hints,
    workload: &Workload,
) -> Result<()> {
    for Measured { machine, strategy, trace } in measured {
        if !strategies.contains(strategy) {
            bail!("--measured {machine}/{strategy}: the strategy is not among those of --strategy");
        }
        let MeasuredRun { run, trace: recorded, .. } = &runs[&(machine.as_str(), strategy.name())];
        // Without MPI-IO there are no ranks that count, and a run is one of any strategy.
        if !workload.has_mpi_io() {
            continue;
        }
        let (tables, trace) = (recorded.tables(), trace.display());
        if run.ranks != workload.ranks() {
            bail!(
                "{trace}: a run of {} ranks, expected one of {}, as is predicted",
                run.ranks,
                workload.ranks()
            );
        }
        let (under, given) = way_of_run(tables, own_way::of_trace(tables).strategy)
            .with_context(|| format!("{trace}: how its MPI-IO was carried out"))?;
        if under != *strategy {
            bail!(
                "{trace}: a run under {under}, expected one under {strategy} (--measured {machine}/{under}={trace})"
            );
        }
        if given != *hints {
            bail!(
                "{trace}: a run with the hints '{}', expected those of --hints, '{}'",
                given.to_text(),
                hints.to_text()
            );
        }
    }
    Ok(())
}

/// A simulated trace may take the place of an earlier one, and of nothing else: a recorded run of that name could not be made
/// again.
fn check_place(path: &Path) -> Result<()> {
    let is_simulated = || Trace::open(path).is_ok_and(|trace| trace.tables().note("simulator").is_some());
    if path.exists() && !is_simulated() {
        bail!("{}: is there, and is no simulated trace: expected another folder (--output)", path.display());
    }
    Ok(())
}

/// Simulates one combination; its trace goes to `path`.
fn predict(
    machine: &Machine,
    workload: &Workload,
    strategy: Strategy,
    hints: &Hints,
    options: &Options,
    path: &Path,
) -> Result<Prediction> {
    let calls = workload.programs.iter().map(|program| program.len() as u64).sum();
    let progress = Progress::new(&format!("{} under {strategy}", machine.name), calls);
    let mut tell = |state: pio_sim::Progress| progress.set(state.calls_begun);
    let trace = WholeFile::of_trace(path)?;
    let place = Some(trace.place());
    let simulated = pio_sim::simulate(machine, workload, strategy, hints, options, place, &mut tell)
        .with_context(|| format!("{} under {strategy}", machine.name))?;
    trace.keep()?;
    let (ranks_per_node, cores) = (simulated.ranks_per_node, machine.nodes.cores);
    Ok(Prediction {
        machine: machine.name.clone(),
        strategy: strategy.name().to_owned(),
        io_time_s: simulated.io_time_mean.seconds(),
        modelled_s: simulated.io_time_mean.seconds(),
        bandwidth_bytes_per_s: simulated.bandwidth_bytes_per_s(),
        breakdown: simulated
            .breakdown()
            .into_iter()
            .map(|(part, seconds)| (part.to_owned(), seconds))
            .collect(),
        of_any_strategy: !workload.has_mpi_io(),
        measured_s: None,
        interval: None,
        as_it_is: None,
        bytes_between_nodes: (machine.all_nodes() > 1).then_some(simulated.bytes_between_nodes),
        crowd: (ranks_per_node > cores).then_some((ranks_per_node, cores)),
        beside: None,
    })
}
