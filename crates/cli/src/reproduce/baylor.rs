//! `pioscope reproduce baylor`: the study of Baylor, Benveniste and Hsu (1995).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_report::Table;
use pio_report::chart::{self, Figure, Point, Series};
use pio_studies::baylor::{self, Options, Plot};
use pio_studies::{Computed, LOOKED_UP, Published, Statement, Verdict};

use crate::progress::Progress;

/// Above, requests are so rare that a simulation takes hours.
const MOST_FLOPS_PER_BYTE: f64 = 1145.0;
const MOST_NODES: u32 = 1024;
const FIGURES: std::ops::RangeInclusive<u32> = 6..=13;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only these figures [default: 6 to 13]
    #[arg(long = "figure", value_name = "NUMBER", value_delimiter = ',')]
    figures: Vec<u32>,
    /// Nodes in all, half of which compute [default: as the figure has them]
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    nodes: Option<Vec<u32>>,
    /// I/O nodes [default: an eighth, a quarter, three eighths and half of the nodes]
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    io_nodes: Option<Vec<u32>>,
    /// Rates of requests, as floating point operations for each byte of 32 KB requests [default: 114.5,57.25,28.63,14.32,7.16]
    #[arg(long, value_name = "FLOPS/BYTE", value_delimiter = ',')]
    fb: Option<Vec<f64>>,
    /// Bytes of a request [default: 32768; 4096 too in Figures 6 and 9]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    request: Option<Vec<u64>>,
    /// Loads of messages between compute nodes, 1 being 40 MB/s from each [default: 0,0.1,0.4]
    #[arg(long, value_name = "LOAD", value_delimiter = ',')]
    load: Option<Vec<f64>>,
    /// Probability that a request is a read
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.67)]
    reads: f64,
    /// Probability that a request misses the I/O node's cache
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.3)]
    misses: f64,
    /// Reads that each simulation completes
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    measurements: u64,
    /// Simulate every I/O node along with the network, in place of the paper's two steps
    #[arg(long)]
    integrated: bool,
    /// Gives the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1995)]
    seed: u64,
    /// Folder for the figures, as SVG files [default: none are written]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.output.as_deref().map_or(Ok(()), crate::whole_file::check_folder)?;
    check(&arguments)?;
    let figures = if arguments.figures.is_empty() { FIGURES.collect() } else { arguments.figures.clone() };
    let options = options(&arguments);
    let progress = std::sync::Mutex::new(Progress::new("simulating", 100));
    let tell = |done: usize, all: usize| {
        if let Ok(bar) = progress.lock() {
            bar.set((100 * done / all) as u64);
        }
    };
    let outcomes = baylor::simulate(&options, &figures, &tell)?;
    drop(progress);

    let plots: Vec<Plot> =
        figures.iter().flat_map(|figure| baylor::plots(*figure, &options, &outcomes)).collect();
    let mut text = String::new();
    for plot in &plots {
        text.push_str(&plot_table(plot).text());
        text.push('\n');
    }
    text.push_str(&rates_table().text());
    text.push('\n');
    let statements = baylor::statements(&outcomes);
    if !statements.is_empty() {
        text.push_str(&statements_table(&statements).text());
    }
    text.push_str(&format!(
        "\n  machine {} · seed {} · pioscope {}\n",
        baylor::MACHINE,
        options.seed,
        env!("CARGO_PKG_VERSION")
    ));
    if let Some(folder) = &arguments.output {
        write(folder, &plots)?;
    }
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What the simulation would not refuse by name.
fn check(arguments: &Arguments) -> Result<()> {
    if let Some(figure) = arguments.figures.iter().find(|figure| !FIGURES.contains(figure)) {
        bail!("--figure {figure}: expected numbers from 6 to 13, as the paper's figures with results");
    }
    if let Some(load) = arguments.load.iter().flatten().find(|load| !(0.0..1.0).contains(*load)) {
        bail!(
            "--load {load}: expected a number from 0 to below 1, which is all that a link carries (40 MB/s)"
        );
    }
    let requests = arguments.request.as_deref().unwrap_or(&[32_768]);
    let largest = requests.iter().max().map_or(0.0, |bytes| *bytes as f64);
    for fb in arguments.fb.iter().flatten() {
        if !(*fb > 0.0 && *fb <= MOST_FLOPS_PER_BYTE) {
            bail!(
                "--fb {fb}: expected a number above 0 and at most {MOST_FLOPS_PER_BYTE}, ten times the paper's largest"
            );
        }
        let offered = baylor::requests_per_s(*fb) * largest;
        if offered > baylor::LOAD_BYTES_PER_S {
            bail!(
                "--fb {fb}: requests of {largest} B would be {:.0} MB/s from each compute node: its link carries 40 MB/s",
                offered / 1e6
            );
        }
    }
    if let Some(nodes) = arguments.nodes.iter().flatten().find(|nodes| !(4..=MOST_NODES).contains(*nodes)) {
        bail!("--nodes {nodes}: expected an even number from 4 to {MOST_NODES}, of which half compute");
    }
    for (name, value) in [("--reads", arguments.reads), ("--misses", arguments.misses)] {
        if !(value > 0.0 && value < 1.0) {
            bail!("{name} {value}: expected a probability above 0 and below 1");
        }
    }
    if let Some(bytes) = arguments.request.iter().flatten().find(|bytes| !(1..=1 << 20).contains(*bytes)) {
        bail!("--request {bytes}: expected bytes from 1 to 1048576");
    }
    if arguments.measurements < 100 {
        bail!(
            "--measurements {}: expected at least 100, for a mean with an interval",
            arguments.measurements
        );
    }
    Ok(())
}

fn options(arguments: &Arguments) -> Options {
    let mut options = Options {
        nodes: arguments.nodes.clone(),
        io_nodes: arguments.io_nodes.clone(),
        flops_per_byte: arguments.fb.clone(),
        request_bytes: arguments.request.clone(),
        loads: arguments.load.clone(),
        measurements: arguments.measurements,
        is_integrated: arguments.integrated,
        seed: arguments.seed,
        ..Options::default()
    };
    options.mix.read_probability = arguments.reads;
    options.mix.miss_ratio = arguments.misses;
    options
}

fn write(folder: &Path, plots: &[Plot]) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    for plot in plots {
        let panel = if plot.panel.is_empty() { String::new() } else { format!("-{}", plot.panel) };
        let path = folder.join(format!("figure-{:02}{panel}.svg", plot.figure));
        std::fs::write(&path, chart::svg(&figure(plot)))
            .with_context(|| format!("{}: cannot write", path.display()))?;
    }
    Ok(())
}

/// Unit and scale of a figure's vertical axis.
fn unit(plot: &Plot) -> (&'static str, f64) {
    let most =
        plot.lines.iter().flat_map(|line| &line.points).map(|(_, found)| found.mean).fold(0.0, f64::max);
    match (plot.is_time, most < 1e-3) {
        (false, _) => ("", 1.0),
        (true, true) => ("µs", 1e6),
        (true, false) => ("ms", 1e3),
    }
}

fn figure(plot: &Plot) -> Figure {
    let (unit, scale) = unit(plot);
    let point = |(x, found): &(f64, pio_sim::kernel::Estimate)| Point {
        x: *x,
        y: found.mean * scale,
        low: (found.mean - found.half_width) * scale,
        high: (found.mean + found.half_width) * scale,
    };
    let series = plot
        .lines
        .iter()
        .map(|line| Series { name: line.name.clone(), points: line.points.iter().map(point).collect() });
    Figure {
        title: format!("Baylor et al. 1995, Figure {}: {}", plot.figure, plot.title),
        x_label: plot.x_label.to_owned(),
        y_label: if unit.is_empty() { plot.y_label.to_owned() } else { format!("{}, {unit}", plot.y_label) },
        log_x: false,
        log_y: false,
        series: series.collect(),
    }
}

fn plot_table(plot: &Plot) -> Table {
    let (unit, scale) = unit(plot);
    let mut rows = Vec::new();
    for line in &plot.lines {
        for (x, found) in &line.points {
            rows.push(vec![
                line.name.clone(),
                x.to_string(),
                format!("{:.4} {unit}", found.mean * scale).trim_end().to_owned(),
                format!("± {:.1} %", found.relative_half_width() * 100.0),
            ]);
        }
    }
    Table {
        title: format!("Figure {}: {}", plot.figure, plot.title),
        note: String::new(),
        columns: vec![
            "line",
            if plot.x_label == "nodes" {
                ">nodes"
            } else if plot.x_label == "I/O nodes" {
                ">I/O nodes"
            } else {
                ">requests/s"
            },
            ">mean",
            ">95 %",
        ],
        rows,
    }
}

fn rates_table() -> Table {
    let mut rows: Vec<Vec<String>> = baylor::rates()
        .map(|(row, ratio, computed)| {
            vec![
                format!("F/B {}", row.flops_per_byte),
                format!("{} ({ratio:.2})", row.printed_ratio),
                format!("{:.2}", row.printed_per_s),
                format!("{computed:.2}"),
                format!("{:+.2} %", (computed / row.printed_per_s - 1.0) * 100.0),
            ]
        })
        .collect();
    rows.extend(baylor::loads().map(|(load, printed, computed)| {
        vec![
            format!("load {load}"),
            "–".to_owned(),
            printed.to_string(),
            format!("{computed:.2}"),
            format!("{:+.2} %", (computed / printed - 1.0) * 100.0),
        ]
    }));
    Table {
        title: "Table 1 and the loads of section III: requests/s".to_owned(),
        note: "The printed ratios 4, 3, 2, 1 stand beside the rates of 4, 2, 1.33 and 1 (8, 16, 24, 32 I/O nodes). Loads \
               are bytes a cycle of 25 ns."
            .to_owned(),
        columns: vec!["label", ">ratio printed (meant)", ">published", ">computed", ">error"],
        rows,
    }
}

fn statements_table(statements: &[Statement]) -> Table {
    let verdict = |statement: &Statement| match statement.verdict {
        Verdict::Error(error) => format!("{:+.1} %", error * 100.0),
        Verdict::Holds => "holds".to_owned(),
        Verdict::Fails => "DOES NOT HOLD".to_owned(),
        Verdict::Open => "–".to_owned(),
    };
    let row = |statement: &Statement| {
        let published = match statement.published {
            Published::Words(words) => words.to_owned(),
            _ => "(predicted before it was looked up)".to_owned(),
        };
        let computed = if let Computed::Words(words) = &statement.computed { words } else { "" };
        vec![
            statement.place.to_owned(),
            statement.what.clone(),
            published,
            computed.to_owned(),
            verdict(statement),
            statement.basis.name().to_owned(),
        ]
    };
    Table {
        title: "What the text says, and what is computed".to_owned(),
        note: format!(
            "independent: varies by at most 10 %. slightly, small: by at most 25 %. calibrated: parameters of the I/O node \
             were chosen for it. predicted: nothing was. What was not known was looked up on {LOOKED_UP}. \
             papers/baylor-1995/README.md says where each number comes from."
        ),
        columns: vec!["where", "what", "published", "computed", ">error", "basis"],
        rows: statements.iter().map(row).collect(),
    }
}
