//! One hot spot (section 4.3): more and more nodes write into the memory of node 0.

use pio_machine::Duration;
use pio_machine::circuit::{Arbitration, Circuit as Switches};
use pio_sim::open_loop::Distribution;

use crate::coll::options::{Options, System};
use crate::coll::plan::{Plan, Run, Watched};
use crate::coll::traffic::{Destinations, Process};
use pio_report::chart::Figure;

/// How many write.
const WRITERS: [u32; 10] = [1, 2, 3, 4, 8, 15, 16, 32, 48, 63];

/// Figures 6 a and b.
pub(super) fn plans(system: &System, options: &Options) -> Vec<Plan> {
    vec![aggregate(system, options), by_node(system, options)]
}

/// One writer on each of nodes 1 to `count`. Each wants to write as much as a node can inject.
pub(super) fn writers(
    system: &System,
    options: &Options,
    count: u32,
    times: Distribution,
    sizes: Distribution,
) -> Vec<Process> {
    let writer = |node| Process {
        node,
        destinations: Destinations::Fixed(0),
        load: system.injection,
        bytes: options.io_bytes as f64,
        writes: 1.0,
        times,
        sizes,
        outstanding: options.outstanding,
    };
    (1..=count).map(writer).collect()
}

fn aggregate(system: &System, options: &Options) -> Plan {
    let distributions = [("uniform", Distribution::Uniform), ("exponential", Distribution::Exponential)];
    let mut runs = Vec::new();
    for (times_name, times) in distributions {
        for (sizes_name, sizes) in distributions {
            let run = |count: u32| Run {
                x: f64::from(count),
                switches: system.switches.clone(),
                processes: writers(system, options, count, times, sizes),
                window: options.window,
                watched: Watched::Together { which: 0..count as usize, each: 1.0 },
            };
            let counts = WRITERS.into_iter().filter(|count| *count < system.nodes());
            runs.push((format!("T {times_name}, S {sizes_name}"), counts.map(run).collect()));
        }
    }
    let plot = Figure {
        name: "6a".to_owned(),
        title: "Write hot spot: aggregate bandwidth".to_owned(),
        x_label: "Nodes that write".to_owned(),
        y_label: "Bandwidth (MB/s)".to_owned(),
        log_x: false,
        log_y: false,
        series: Vec::new(),
    };
    Plan { plot, runs }
}

/// As the machine has it, and with the two rules between which age in steps lies.
fn by_node(system: &System, options: &Options) -> Plan {
    let with = |arbitration| Switches { arbitration, age_step: Duration::ZERO, ..system.switches.clone() };
    let rules = [
        ("as the machine has it", system.switches.clone()),
        ("who has waited longest at the switch goes first", with(Arbitration::SwitchAge)),
        ("who was sent first goes first", with(Arbitration::PacketAge)),
    ];
    let run = |(name, switches): (&str, Switches)| {
        let exponential = Distribution::Exponential;
        let processes = writers(system, options, system.nodes() - 1, exponential, exponential);
        (
            name.to_owned(),
            vec![Run { x: 0.0, switches, processes, window: options.window, watched: Watched::Each }],
        )
    };
    let plot = Figure {
        name: "6b".to_owned(),
        title: "Write hot spot: bandwidth of each node, all writing".to_owned(),
        x_label: "Node".to_owned(),
        y_label: "Bandwidth (MB/s)".to_owned(),
        log_x: false,
        log_y: false,
        series: Vec::new(),
    };
    Plan { plot, runs: rules.into_iter().map(run).collect() }
}
