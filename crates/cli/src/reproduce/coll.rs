//! `pioscope reproduce coll`: the study of Coll, Petrini, Frachtenberg and Hoisie (2003).

use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pio_machine::circuit::{Arbitration, Library, Memory};
use pio_machine::{Duration, Machine, Switching};
use pio_studies::coll::{
    self, ApplicationMapping, Distribution, FIGURES, FirstHalf, IoMapping, MEGA, Options,
};

use super::output::{Output, footer};
use crate::flags::whole;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only these figures, and what their sections state [default: 4 to 10; Table 1 comes with 7 and 8]
    #[arg(long = "figure", value_name = "NUMBER", value_delimiter = ',', value_parser = whole::<u32>)]
    figures: Vec<u32>,
    /// Only these mappings of Figures 2 and 3 [default: all]
    #[arg(long = "mapping", value_name = "MAPPING", value_delimiter = ',')]
    mappings: Vec<Mapping>,
    /// I/O nodes
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = whole::<u32>)]
    io_nodes: u32,
    /// Share of I/O messages whose data go to I/O nodes; of the others they come from there
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    writes: f64,
    /// Distribution of the times between I/O messages
    #[arg(long, value_name = "DISTRIBUTION", default_value = "exponential")]
    times: Spread,
    /// Distribution of the sizes of I/O messages
    #[arg(long, value_name = "DISTRIBUTION", default_value = "exponential")]
    sizes: Spread,
    /// Mean size of I/O messages, KiB
    #[arg(long, value_name = "KIB", default_value_t = 1024, value_parser = whole::<u64>)]
    io_message: u64,
    /// Size of the compute job's messages, KiB
    #[arg(long, value_name = "KIB", default_value_t = 256, value_parser = whole::<u64>)]
    compute_message: u64,
    /// Messages that a process has under way at most
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = whole::<u32>)]
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
    #[arg(long, value_name = "NUMBER", default_value_t = 2003, value_parser = whole::<u64>)]
    seed: u64,
    #[command(flatten)]
    output: Output,
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
    arguments.output.check()?;
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
    let mut text = study.text();
    text.push_str(&footer(&format!("machine {}", options.machine.name), Some(options.seed)));
    arguments.output.write(&study.drawings())?;
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What the study would not refuse by name.
fn check(arguments: &Arguments) -> Result<()> {
    if let Some(figure) = arguments.figures.iter().find(|figure| !FIGURES.contains(figure)) {
        bail!("--figure {figure}: expected numbers from 4 to 10, as the paper's figures with results");
    }
    let loads = arguments.load.iter().flatten().map(|load| ("--load", *load, 1e6));
    let io_loads = arguments.io_load.iter().flatten().map(|load| ("--io-load", *load, 1.0));
    for (name, load, most) in loads.chain(io_loads) {
        if !(1e-3..=most).contains(&load) {
            bail!("{name} {load}: expected numbers from 0.001 to {most}");
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
            Some(Rule::PacketAge) => {
                (circuit.arbitration, circuit.age_step) = (Arbitration::PacketAge, Duration::ZERO);
            }
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
        let loads: Vec<f64> = ascending(loads).iter().map(|load| load * MEGA).collect();
        options.offered_io = loads.clone();
        options.offered_compute = loads;
    }
    if let Some(loads) = &arguments.io_load {
        options.io_loads = ascending(loads);
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

/// As the study takes loads, in whichever order they were given.
fn ascending(loads: &[f64]) -> Vec<f64> {
    let mut loads = loads.to_vec();
    loads.sort_by(f64::total_cmp);
    loads
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
