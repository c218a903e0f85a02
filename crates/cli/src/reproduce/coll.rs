//! `pioscope reproduce coll`: the study of Coll, Petrini, Frachtenberg and Hoisie (2003).

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use pio_machine::circuit::{Arbitration, Library, Memory};
use pio_machine::{Duration, Machine, Switching};
use pio_report::Table;
use pio_report::chart::{self, Figure, Series};
use pio_studies::coll::{
    self, ApplicationMapping, Distribution, FIGURES, FirstHalf, IoMapping, MEGA, Most, Options, Plot,
};
use pio_studies::{Computed, LOOKED_UP, Published, Statement};

use crate::progress::Progress;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only these figures [default: 4 to 10; Table 1 comes with 7 and 8]
    #[arg(long = "figure", value_name = "NUMBER", value_delimiter = ',')]
    figures: Vec<u32>,
    /// Only these mappings of Figures 2 and 3 [default: all]
    #[arg(long = "mapping", value_name = "MAPPING", value_delimiter = ',')]
    mappings: Vec<Mapping>,
    /// I/O nodes
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    io_nodes: u32,
    /// Share of I/O messages that are writes
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    writes: f64,
    /// Distribution of the times between I/O messages
    #[arg(long, value_name = "DISTRIBUTION", default_value = "exponential")]
    times: Spread,
    /// Distribution of the sizes of I/O messages
    #[arg(long, value_name = "DISTRIBUTION", default_value = "exponential")]
    sizes: Spread,
    /// Mean size of I/O messages, KiB
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    io_message: u64,
    /// Size of the compute job's messages, KiB
    #[arg(long, value_name = "KIB", default_value_t = 256)]
    compute_message: u64,
    /// Messages that a process has under way at most
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    outstanding: u32,
    /// Offered loads of Figures 7 and 8, MB/s for each I/O node, and of Figure 9, MB/s for each compute node
    #[arg(long, value_name = "MB/S", value_delimiter = ',')]
    load: Option<Vec<f64>>,
    /// Loads of the I/O job of Figures 9 and 10, parts of what a node can inject [default: 0.1,0.3,0.5]
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    io_load: Option<Vec<f64>>,
    /// Who goes first at a switch [default: as the machine has it]
    #[arg(long, value_name = "RULE")]
    arbitration: Option<Rule>,
    /// A machine whose network keeps circuits: a name or a file
    #[arg(long, value_name = "MACHINE", default_value = "qsnet-64")]
    machine: String,
    /// Simulated time that is watched, ms
    #[arg(long, value_name = "MS", default_value_t = 60.0)]
    measured: f64,
    /// Simulated time before that, ms
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    warm_up: f64,
    /// Gives the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 2003)]
    seed: u64,
    /// Folder for the figures, as SVG files [default: none are written]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mapping {
    /// The I/O nodes are the last ones
    Clustered,
    /// The I/O nodes are at equal distances
    Distributed,
    /// Applications run on I/O nodes too
    Shared,
    /// Applications run on the other nodes only
    Dedicated,
    /// With clustered I/O nodes, the compute job has the first half (Ic)
    ComputeFirst,
    /// With clustered I/O nodes, the I/O job has the first half (Ii)
    IoFirst,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Spread {
    /// All alike
    Fixed,
    /// Evenly from 0 to twice the mean
    Uniform,
    /// Exponentially
    Exponential,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rule {
    /// The packet that was sent first
    PacketAge,
    /// The packet that has waited longest at the switch
    SwitchAge,
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.output.as_deref().map_or(Ok(()), crate::whole_file::check_folder)?;
    check(&arguments)?;
    let figures: Vec<u32> =
        if arguments.figures.is_empty() { FIGURES.collect() } else { arguments.figures.clone() };
    let options = options(&arguments)?;
    let progress = Mutex::new(Progress::new("simulating", 1000));
    let tell = |done: usize, all: usize| {
        if let Ok(bar) = progress.lock() {
            bar.set((1000 * done / all) as u64);
        }
    };
    let study = coll::reproduce(&options, &figures, &tell)?;
    drop(progress);
    let mut text = String::new();
    for plot in study.plots.iter().filter(|plot| !is_long(plot)) {
        text.push_str(&plot_table(plot).text());
        text.push('\n');
    }
    if !study.most.is_empty() {
        text.push_str(&most_table(&study.most).text());
        text.push('\n');
    }
    text.push_str(&statements_table(&study.statements).text());
    text.push_str(&format!(
        "\n  machine {} · seed {} · pioscope {}\n",
        options.machine.name,
        options.seed,
        env!("CARGO_PKG_VERSION")
    ));
    if let Some(folder) = &arguments.output {
        write(folder, &study.plots)?;
    }
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What the study would not refuse by name.
fn check(arguments: &Arguments) -> Result<()> {
    if let Some(figure) = arguments.figures.iter().find(|figure| !FIGURES.contains(figure)) {
        bail!("--figure {figure}: expected numbers from 4 to 10, as the paper's figures with results");
    }
    let loads = arguments.load.iter().flatten().map(|load| ("--load", *load));
    let io_loads = arguments.io_load.iter().flatten().map(|load| ("--io-load", *load));
    for (name, load) in loads.chain(io_loads) {
        if !(1e-3..=1e6).contains(&load) {
            bail!("{name} {load}: expected numbers from 0.001 to 1000000");
        }
    }
    if !(0.0..=1.0).contains(&arguments.writes) {
        bail!("--writes {}: expected a share from 0 to 1", arguments.writes);
    }
    for (name, kib) in
        [("--io-message", arguments.io_message), ("--compute-message", arguments.compute_message)]
    {
        if !(1..=1 << 20).contains(&kib) {
            bail!("{name} {kib}: expected KiB from 1 to 1048576");
        }
    }
    if arguments.outstanding == 0 {
        bail!("--outstanding 0: expected at least 1");
    }
    if !(1.0..=1e5).contains(&arguments.measured) {
        bail!("--measured {}: expected milliseconds from 1 to 100000", arguments.measured);
    }
    if !(0.0..=1e5).contains(&arguments.warm_up) {
        bail!("--warm-up {}: expected milliseconds from 0 to 100000", arguments.warm_up);
    }
    Ok(())
}

fn options(arguments: &Arguments) -> Result<Options> {
    let mut machine = Machine::find(&arguments.machine)?;
    if let Switching::Circuit(circuit) = &mut machine.network.switching {
        // The study says itself where its data are.
        circuit.adapter.memory = Memory::Adapter;
        circuit.adapter.library = Library::Direct;
        match arguments.arbitration {
            Some(Rule::PacketAge) => circuit.arbitration = Arbitration::PacketAge,
            Some(Rule::SwitchAge) => circuit.arbitration = Arbitration::SwitchAge,
            None => {}
        }
    }
    let mut options = Options::new(machine);
    options.seed = arguments.seed;
    options.window.measured = Duration::from_seconds(arguments.measured / 1e3);
    options.window.warm_up = Duration::from_seconds(arguments.warm_up / 1e3);
    options.io_nodes = arguments.io_nodes;
    options.writes = arguments.writes;
    options.times = distribution(arguments.times);
    options.sizes = distribution(arguments.sizes);
    options.io_bytes = arguments.io_message << 10;
    options.compute_bytes = arguments.compute_message << 10;
    options.outstanding = arguments.outstanding;
    if let Some(loads) = &arguments.load {
        let loads: Vec<f64> = loads.iter().map(|load| load * MEGA).collect();
        options.offered_io = loads.clone();
        options.offered_compute = loads;
    }
    if let Some(loads) = &arguments.io_load {
        options.io_loads = loads.clone();
    }
    let named = |mapping| arguments.mappings.contains(&mapping);
    let io = [(Mapping::Clustered, IoMapping::Clustered), (Mapping::Distributed, IoMapping::Distributed)];
    keep_named(&mut options.io, &io, named);
    let applications =
        [(Mapping::Shared, ApplicationMapping::Shared), (Mapping::Dedicated, ApplicationMapping::Dedicated)];
    keep_named(&mut options.applications, &applications, named);
    let first = [(Mapping::ComputeFirst, FirstHalf::Compute), (Mapping::IoFirst, FirstHalf::Io)];
    keep_named(&mut options.first, &first, named);
    Ok(options)
}

/// Of a dimension of which anything was named, only that.
fn keep_named<T: Copy>(all: &mut Vec<T>, names: &[(Mapping, T)], named: impl Fn(Mapping) -> bool) {
    let chosen: Vec<T> = names.iter().filter(|(name, _)| named(*name)).map(|(_, value)| *value).collect();
    if !chosen.is_empty() {
        *all = chosen;
    }
}

fn distribution(spread: Spread) -> Distribution {
    match spread {
        Spread::Fixed => Distribution::Fixed,
        Spread::Uniform => Distribution::Uniform,
        Spread::Exponential => Distribution::Exponential,
    }
}

fn write(folder: &Path, plots: &[Plot]) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    for plot in plots {
        let path = folder.join(format!("{}.svg", file_name(plot)));
        std::fs::write(&path, chart::svg(&figure(plot)))
            .with_context(|| format!("{}: cannot write", path.display()))?;
    }
    Ok(())
}

fn is_numbered(plot: &Plot) -> bool {
    plot.name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Pings, and all nodes of a machine: too many points to print.
fn is_long(plot: &Plot) -> bool {
    plot.curves.iter().any(|curve| curve.points.len() > 20)
}

fn file_name(plot: &Plot) -> String {
    if is_numbered(plot) { format!("figure-{}", plot.name) } else { plot.name.clone() }
}

fn title(plot: &Plot) -> String {
    if is_numbered(plot) { format!("Figure {}: {}", plot.name, plot.title) } else { plot.title.clone() }
}

fn figure(plot: &Plot) -> Figure {
    let point = |point: &coll::Point| chart::Point {
        x: point.x,
        y: point.y,
        low: point.y - point.half_width,
        high: point.y + point.half_width,
    };
    let series = |curve: &coll::Curve| Series {
        name: curve.name.clone(),
        points: curve.points.iter().map(point).collect(),
    };
    Figure {
        title: format!("Coll et al. 2003, {}", title(plot)),
        x_label: plot.x_label.clone(),
        y_label: plot.y_label.clone(),
        log_x: plot.log_x,
        log_y: false,
        series: plot.curves.iter().map(series).collect(),
    }
}

fn plot_table(plot: &Plot) -> Table {
    let row = |curve: &coll::Curve, point: &coll::Point| {
        vec![
            curve.name.clone(),
            point.x.to_string(),
            format!("{:.1}", point.y),
            if point.half_width > 0.0 { format!("± {:.1}", point.half_width) } else { String::new() },
        ]
    };
    let curves = plot.curves.iter();
    Table {
        title: title(plot),
        note: format!("x: {}. y: {}.", plot.x_label, plot.y_label),
        columns: vec!["line", ">x", ">y", ">95 %"],
        rows: curves.flat_map(|curve| curve.points.iter().map(|point| row(curve, point))).collect(),
    }
}

fn most_table(most: &[Most]) -> Table {
    let row = |most: &Most| {
        vec![most.traffic.clone(), most.application.clone(), format!("{:.0} MB/s", most.accepted)]
    };
    Table {
        title: "Table 1: the most that I/O nodes accept, each".to_owned(),
        note: format!("Predicted before the printed table was looked up, on {LOOKED_UP}."),
        columns: vec!["traffic", "application", ">accepted"],
        rows: most.iter().map(row).collect(),
    }
}

fn statements_table(statements: &[Statement]) -> Table {
    let number = |value: f64, unit: &str| format!("{value:.3} {unit}").trim_end().to_owned();
    let row = |statement: &Statement| {
        let (value, unit) = match &statement.computed {
            Computed::Number(value, unit) => (number(*value, unit), *unit),
            Computed::Words(words) => (words.clone(), ""),
        };
        vec![
            statement.place.to_owned(),
            statement.what.clone(),
            match statement.published {
                Published::Number(published) | Published::AtLeast(published) => number(published, unit),
                Published::Words(words) => format!("\"{words}\""),
                Published::Nothing => "–".to_owned(),
            },
            value,
            statement.error().map_or("–".into(), |error| format!("{:+.1} %", error * 100.0)),
            statement.basis.name().to_owned(),
        ]
    };
    Table {
        title: "What the paper states, and what we compute".to_owned(),
        note: "exact: follows from the description. calibrated: a parameter was fitted to the number. predicted: nothing \
               was fitted to it. papers/coll-2003/README.md says where each number comes from."
            .to_owned(),
        columns: vec!["section", "what", ">published", ">computed", ">error", "basis"],
        rows: statements.iter().map(row).collect(),
    }
}
