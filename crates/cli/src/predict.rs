//! `pioscope predict`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_explain::{Explanation, Tally};
use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_report::Prediction;
use pio_sim::{Options, Workload};
use pio_trace::Op;

use crate::apply::HintArguments;
use crate::explain;
use crate::progress::Progress;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope predict run.pio --machine sp-argonne --strategy independent,two-phase
  pioscope predict run.pio --machine sp-argonne,here.toml --hints cb_nodes=4 --html report.html
  pioscope predict run.pio --machine here.toml --measured here/two-phase=applied.pio")]
pub struct Arguments {
    /// The recorded program
    trace: PathBuf,
    /// Machines: names (pioscope machines list) or files, separated by commas
    #[arg(short, long, value_delimiter = ',', required = true, value_name = "MACHINE")]
    machine: Vec<String>,
    /// Strategies, separated by commas
    #[arg(short, long, value_delimiter = ',', default_value = "independent,two-phase")]
    strategy: Vec<Strategy>,
    #[command(flatten)]
    hints: HintArguments,
    /// Folder for the simulated traces [default: beside the trace]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// A recorded run to show beside the prediction for a machine and strategy
    #[arg(long, value_name = "MACHINE/STRATEGY=TRACE")]
    measured: Vec<Measured>,
    /// Also write the report of the recorded program, with the predictions, as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
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
        Ok(Measured { machine: machine.to_owned(), strategy: strategy.parse()?, trace: trace.into() })
    }
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    let hints = arguments.hints.read()?;
    let machines =
        arguments.machine.iter().map(|name| Ok(Machine::find(name)?)).collect::<Result<Vec<Machine>>>()?;
    let measured = measure(&arguments.measured, &machines)?;
    let trace = explain::open(&arguments.trace)?;
    let workload = Workload::from_trace(&trace)?;
    let output = arguments.output.as_deref().or(arguments.trace.parent()).unwrap_or(Path::new("."));
    fs::create_dir_all(output).with_context(|| format!("{}: cannot create the folder", output.display()))?;
    let stem = arguments.trace.file_stem().map_or("trace".into(), |stem| stem.to_string_lossy().into_owned());

    let mut predictions = Vec::new();
    for machine in &machines {
        for &strategy in &arguments.strategy {
            let path = output.join(format!("{stem}-{}-{strategy}.pio", machine.name));
            let mut prediction = predict(machine, &workload, strategy, &hints, &path)?;
            prediction.measured_s = measured.get(&(machine.name.as_str(), strategy.name())).copied();
            predictions.push(prediction);
        }
    }
    crate::print(&pio_report::predictions_text(&predictions))?;
    eprintln!("pioscope: wrote the simulated traces to {}", output.display());
    if let Some(path) = &arguments.html {
        explain::write_html(path, &trace, &explain::explain(&trace)?, &predictions)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The I/O times of recorded runs, by machine and strategy.
fn measure<'a>(measured: &'a [Measured], machines: &[Machine]) -> Result<BTreeMap<(&'a str, &'a str), f64>> {
    let mut times = BTreeMap::new();
    for Measured { machine, strategy, trace } in measured {
        if !machines.iter().any(|known| known.name == *machine) {
            bail!("--measured {machine}/{strategy}: the machine is not among those of --machine");
        }
        let found = explain::explain(&explain::open(trace)?)?;
        times.insert((machine.as_str(), strategy.name()), io_time_s(&found));
    }
    Ok(times)
}

/// Simulates one combination and explains the trace that comes of it: the very same way as a recorded one.
fn predict(
    machine: &Machine,
    workload: &Workload,
    strategy: Strategy,
    hints: &Hints,
    path: &Path,
) -> Result<Prediction> {
    let calls = workload.programs.iter().map(|program| program.len() as u64).sum();
    let progress = Progress::new(&format!("{} under {strategy}", machine.name), calls);
    let options = Options::default();
    let mut tell = |state: pio_sim::Progress| progress.set(state.calls_begun);
    pio_sim::simulate(machine, workload, strategy, hints, &options, Some(path), &mut tell)
        .with_context(|| format!("{} under {strategy}", machine.name))?;
    drop(progress);
    let found = explain::explain(&explain::open(path)?)?;
    Ok(prediction(&machine.name, strategy, &found))
}

fn prediction(machine: &str, strategy: Strategy, found: &Explanation) -> Prediction {
    let io_time_s = io_time_s(found);
    let bytes = found.workload.io_bytes();
    Prediction {
        machine: machine.to_owned(),
        strategy: strategy.name().to_owned(),
        io_time_s,
        bandwidth_bytes_per_s: if io_time_s > 0.0 { bytes as f64 / io_time_s } else { 0.0 },
        breakdown: breakdown(found, io_time_s),
        measured_s: None,
    }
}

/// Where the mean I/O time of a process goes, seconds by operation.
fn breakdown(found: &Explanation, io_time_s: f64) -> Vec<(String, f64)> {
    let per_process = |tally: Tally| tally.time_s() / found.process_count.max(1) as f64;
    let table = &found.operations.table;
    let mut parts: Vec<(String, f64)> =
        [Op::Open, Op::Close, Op::Read, Op::Write, Op::Seek, Op::Sync, Op::Communicate]
            .map(|op| (op.name().to_owned(), per_process(table.tally(op))))
            .into();
    parts.push(("acknowledgement".to_owned(), per_process(table.acknowledgements)));
    let rest = io_time_s - parts.iter().map(|(_, seconds)| seconds).sum::<f64>();
    parts.push(("other".to_owned(), rest));
    // What is less than a thousandth does not help to decide anything.
    parts.retain(|(_, seconds)| *seconds > io_time_s / 1000.0);
    parts
}

/// Mean time of a process in I/O, seconds.
fn io_time_s(found: &Explanation) -> f64 {
    let total: u64 = found.processes.iter().map(|process| process.io_ns).sum();
    total as f64 / 1e9 / found.process_count.max(1) as f64
}
