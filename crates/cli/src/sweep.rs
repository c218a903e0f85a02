//! Sweeps: a prediction at every combination of some settings, over all processors.

mod axis;
pub(crate) mod parallel;
mod parquet;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use pio_machine::{Duration, Machine};
use pio_plan::{Hints, Strategy};
use pio_report::{Measure, Row, Sweep, Unit, units};
use pio_sim::{Options, Workload};

use crate::flags::JsonFlag;
use crate::json;
use crate::output::note;
use crate::progress::Progress;
use crate::whole_file;
use crate::workload::{Named, Setting};
use crate::workload_traffic;

pub(crate) use axis::Axis;
use axis::{Kind, place};

/// What is predicted at every point.
pub(crate) enum Source {
    /// A recorded program.
    Trace(Box<Workload>),
    /// A generated one.
    Generated(Named),
    /// Traffic on the network alone.
    Traffic(Named),
}

/// A sweep, as the command line says it.
pub(crate) struct SweepDefinition {
    pub source: Source,
    /// The name of the workload.
    pub name: String,
    pub machines: Vec<Machine>,
    pub strategies: Vec<Strategy>,
    pub hints: Hints,
    pub options: Options,
    pub axes: Vec<Axis>,
    pub seed: u64,
    /// Processors to use.
    pub jobs: usize,
}

/// Where the results go, besides the terminal.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Outputs {
    /// Sweep: write the figures as SVG; if there are several, each file's name says what it shows
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Sweep: write the results as .csv or .parquet
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

impl Outputs {
    /// Whether any was asked for.
    pub(crate) fn is_any(&self) -> bool {
        self.svg.is_some() || self.table.is_some()
    }

    fn check(&self) -> Result<()> {
        [&self.svg, &self.table].into_iter().flatten().try_for_each(|path| whole_file::check(path))?;
        let Some(path) = &self.table else { return Ok(()) };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv" | "parquet") => Ok(()),
            _ => bail!("{}: unknown format (expected .csv or .parquet)", path.display()),
        }
    }
}

/// One point of a sweep.
struct Point<'r> {
    machine: &'r Machine,
    /// None where nothing is collective.
    strategy: Option<Strategy>,
    /// The value of each axis.
    values: Vec<&'r str>,
}

/// Carries a sweep out, and writes what comes of it.
pub(crate) fn run(
    request: &SweepDefinition,
    outputs: &Outputs,
    html: Option<&Path>,
    JsonFlag { json }: JsonFlag,
) -> Result<ExitCode> {
    outputs.check()?;
    html.map_or(Ok(()), whole_file::check)?;
    let kinds = kinds(request)?;
    let points = points(request);
    let progress = Progress::new(&units::things(points.len() as u64, "point", "points"), points.len() as u64);
    let values = parallel::each(
        &points,
        request.jobs,
        |point| predict(request, &kinds, point),
        |done| progress.set(done),
    )?;
    drop(progress);
    let sweep = sweep(request, &points, values);
    if json {
        json::print(&json::predict::Swept::of(&sweep))?;
    } else {
        crate::print(&sweep.text())?;
    }
    if let Some(path) = &outputs.svg {
        draw(&sweep, path)?;
    }
    if let Some(path) = html {
        write(path, sweep.html().as_bytes())?;
    }
    if let Some(path) = &outputs.table {
        if path.extension().is_some_and(|extension| extension == "csv") {
            write(path, sweep.csv().as_bytes())?;
        } else {
            parquet::write(&sweep, path).with_context(|| format!("{}: cannot write", path.display()))?;
            note!("wrote {}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn draw(sweep: &Sweep, path: &Path) -> Result<()> {
    let figures = sweep.figures();
    if figures.is_empty() {
        bail!("{}: nothing to draw, as no swept setting is a number", path.display());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    for figure in &figures {
        let own = path.with_file_name(format!("{stem}-{}.svg", figure.name));
        write(if figures.len() == 1 { path } else { &own }, pio_report::chart::svg(figure).as_bytes())?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("{}: cannot write", path.display()))?;
    note!("wrote {}", path.display());
    Ok(())
}

/// What each axis sets.
fn kinds(request: &SweepDefinition) -> Result<Vec<Kind>> {
    for (number, axis) in request.axes.iter().enumerate() {
        if request.axes[..number].iter().any(|other| other.key == axis.key) {
            bail!("--sweep {}: given twice", axis.key);
        }
    }
    request.axes.iter().map(|axis| axis.kind(&request.source)).collect()
}

/// Every combination: the machine outermost, then the strategy, then the axes in their order.
fn points<'r>(request: &'r SweepDefinition) -> Vec<Point<'r>> {
    let strategies: Vec<Option<Strategy>> = match request.source {
        Source::Traffic(_) => vec![None],
        _ => request.strategies.iter().copied().map(Some).collect(),
    };
    let mut combinations: Vec<Vec<&'r str>> = vec![Vec::new()];
    for axis in &request.axes {
        let extend = |values: Vec<&'r str>| {
            let longer = |value: &'r String| values.iter().copied().chain([value.as_str()]).collect();
            axis.values.iter().map(longer).collect::<Vec<Vec<&'r str>>>()
        };
        combinations = combinations.into_iter().flat_map(extend).collect();
    }
    let mut points = Vec::new();
    for machine in &request.machines {
        for &strategy in &strategies {
            points.extend(combinations.iter().map(|values| Point {
                machine,
                strategy,
                values: values.clone(),
            }));
        }
    }
    points
}

const IO_MEASURES: [Measure; 5] = [
    Measure { name: "I/O time", column: "io_time_s", unit: Unit::Seconds, is_drawn: true },
    Measure { name: "longest", column: "io_time_max_s", unit: Unit::Seconds, is_drawn: false },
    Measure { name: "run", column: "makespan_s", unit: Unit::Seconds, is_drawn: false },
    Measure {
        name: "bandwidth",
        column: "bandwidth_bytes_per_s",
        unit: Unit::BytesPerSecond,
        is_drawn: true,
    },
    Measure { name: "requests", column: "requests", unit: Unit::Count, is_drawn: false },
];

const TRAFFIC_MEASURES: [Measure; 8] = [
    Measure { name: "offered", column: "offered", unit: Unit::Number, is_drawn: false },
    Measure { name: "accepted", column: "accepted", unit: Unit::Number, is_drawn: true },
    Measure { name: "mean latency", column: "latency_mean_s", unit: Unit::Seconds, is_drawn: true },
    Measure { name: "±", column: "latency_half_width_s", unit: Unit::Seconds, is_drawn: false },
    Measure { name: "99 %", column: "latency_p99_s", unit: Unit::Seconds, is_drawn: true },
    Measure { name: "longest", column: "latency_max_s", unit: Unit::Seconds, is_drawn: false },
    Measure { name: "messages", column: "messages", unit: Unit::Count, is_drawn: false },
    Measure { name: "saturated", column: "saturated", unit: Unit::YesNo, is_drawn: false },
];

/// What is found at a point: the values of the measures.
fn predict(request: &SweepDefinition, kinds: &[Kind], point: &Point) -> Result<Vec<f64>> {
    let settings = || kinds.iter().zip(&request.axes).zip(&point.values);
    let told = || {
        let told: Vec<String> =
            settings().map(|((_, axis), value)| format!("{} = {value}", axis.key)).collect();
        if told.is_empty() { point.machine.name.clone() } else { told.join(", ") }
    };
    predict_with(request, kinds, point).with_context(told)
}

fn predict_with(request: &SweepDefinition, kinds: &[Kind], point: &Point) -> Result<Vec<f64>> {
    let (mut hints, mut seed) = (request.hints.clone(), request.seed);
    let (mut changes, mut parameters) = (Vec::new(), Vec::new());
    for ((kind, axis), value) in kinds.iter().zip(&request.axes).zip(&point.values) {
        match kind {
            Kind::Machine => changes.push((axis.key.as_str(), *value)),
            Kind::Hint => drop(hints.set(&axis.key, value)?),
            Kind::Parameter => {
                parameters.push(Setting { name: axis.key.clone(), value: (*value).to_owned() });
            }
            Kind::Seed => {
                seed = value.parse().with_context(|| format!("seed {value}: expected a whole number"))?
            }
        }
    }
    let changed;
    let machine = if changes.is_empty() {
        point.machine
    } else {
        changed = point.machine.with_all(&changes)?;
        &changed
    };
    let built;
    let workload = match &request.source {
        Source::Traffic(named) => {
            let parameters: Vec<Setting> = named.parameters.iter().cloned().chain(parameters).collect();
            return traffic(&named.name, &parameters, machine, seed);
        }
        Source::Trace(workload) => workload.as_ref(),
        Source::Generated(named) => {
            built = named.build(&parameters, seed)?;
            &built
        }
    };
    let strategy = point.strategy.unwrap_or(Strategy::Independent);
    let found = pio_sim::simulate(machine, workload, strategy, &hints, &request.options, None, &mut |_| {})?;
    Ok(vec![
        found.io_time_mean.seconds(),
        found.io_time_max.seconds(),
        found.makespan.seconds(),
        found.bandwidth_bytes_per_s(),
        found.sizes.values().sum::<u64>() as f64,
    ])
}

fn traffic(name: &str, parameters: &[Setting], machine: &Machine, seed: u64) -> Result<Vec<f64>> {
    let found = workload_traffic::run(name, parameters, machine, seed)?;
    let point = found.point;
    // Of what has not arrived it is not known.
    let of_arrived = |latency: Duration| if point.messages == 0 { f64::NAN } else { latency.seconds() };
    Ok(vec![
        found.offered,
        found.accepted,
        point.mean_s,
        point.half_width_s,
        of_arrived(point.p99),
        of_arrived(point.max),
        point.messages as f64,
        f64::from(u8::from(point.is_unstable)),
    ])
}

fn sweep(request: &SweepDefinition, points: &[Point], values: Vec<Vec<f64>>) -> Sweep {
    let is_traffic = matches!(request.source, Source::Traffic(_));
    let mut settings = vec!["machine".to_owned()];
    if !is_traffic {
        settings.push("strategy".to_owned());
    }
    settings.extend(request.axes.iter().map(|axis| axis.key.clone()));
    let row = |(point, values): (&Point, Vec<f64>)| {
        let mut row = Row { values, ..Row::default() };
        row.settings.push(point.machine.name.clone());
        row.settings.extend(point.strategy.map(|strategy| strategy.name().to_owned()));
        row.places.resize(row.settings.len(), None);
        row.settings.extend(point.values.iter().map(|value| (*value).to_owned()));
        row.places.extend(point.values.iter().map(|value| place(value)));
        row
    };
    let machines: Vec<&str> = request.machines.iter().map(|machine| machine.name.as_str()).collect();
    Sweep {
        title: format!("{} on {}", request.name, machines.join(", ")),
        note: note(request),
        settings,
        measures: if is_traffic { TRAFFIC_MEASURES.to_vec() } else { IO_MEASURES.to_vec() },
        rows: points.iter().zip(values).map(row).collect(),
    }
}

/// How the results can be had again. A swept seed is told in each row.
fn note(request: &SweepDefinition) -> String {
    let version = concat!("pioscope ", env!("CARGO_PKG_VERSION"));
    let is_swept = request.axes.iter().any(|axis| axis.key == "seed");
    if is_swept { version.to_owned() } else { format!("{version}, seed {}", request.seed) }
}
