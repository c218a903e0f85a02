//! `pioscope reproduce baylor`: the study of Baylor, Benveniste and Hsu (1995).

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use pio_studies::baylor::{self, Options, Plot};

use super::output::{Output, footer};
use crate::flags::whole;
use crate::progress::Progress;

/// Above, requests are so rare that a simulation takes hours.
const MOST_FLOPS_PER_BYTE: f64 = 1145.0;
const MOST_NODES: u32 = 1024;
const FIGURES: std::ops::RangeInclusive<u32> = 6..=13;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only these figures [default: 6 to 13]
    #[arg(long = "figure", value_name = "NUMBER", value_delimiter = ',', value_parser = whole::<u32>)]
    figures: Vec<u32>,
    /// Nodes in all, half of which compute [default: as the figure has them]
    #[arg(long, value_name = "COUNT", value_delimiter = ',', value_parser = whole::<u32>)]
    nodes: Option<Vec<u32>>,
    /// I/O nodes [default: an eighth, a quarter, three eighths and half of the nodes]
    #[arg(long, value_name = "COUNT", value_delimiter = ',', value_parser = whole::<u32>)]
    io_nodes: Option<Vec<u32>>,
    /// Rates of requests, as floating point operations for each byte of 32 KB requests [default: 114.5,57.25,28.63,14.32,7.16]
    #[arg(long, value_name = "FLOPS/BYTE", value_delimiter = ',')]
    fb: Option<Vec<f64>>,
    /// Bytes of a request [default: 32768; 4096 too in Figures 6 and 9]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = whole::<u64>)]
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
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = whole::<u64>)]
    measurements: u64,
    /// Simulate every I/O node along with the network, in place of the paper's two steps
    #[arg(long)]
    integrated: bool,
    /// Gives the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1995, value_parser = whole::<u64>)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.output.check()?;
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
    let mut text = baylor::text(&plots, &baylor::statements(&outcomes));
    text.push_str(&footer(&format!("machine {}", baylor::MACHINE), Some(options.seed)));
    arguments.output.write(&plots.iter().map(Plot::drawing).collect::<Vec<_>>())?;
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
