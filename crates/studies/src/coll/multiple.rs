//! Multiple hot spots (section 4.4): a parallel job does I/O with several I/O nodes.

use crate::coll::CollError;
use crate::coll::options::{MEGA, Options, System};
use crate::coll::placement::{ApplicationMapping, IoMapping, Placement};
use crate::coll::plan::{Plan, Run, Watched};
use crate::coll::traffic::{Destinations, Process, stretched};
use pio_report::chart::Figure;

/// Which I/O node a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Any, drawn for each.
    Random,
    /// Always the same.
    Deterministic,
}

/// About as much as an I/O node takes in, as a part of what a node can inject.
const FULL: f64 = 0.9;

/// Figure 7 (random) or 8 (deterministic), one plot for each mapping of the I/O nodes.
pub(super) fn plans(system: &System, options: &Options, pattern: Pattern) -> Result<Vec<Plan>, CollError> {
    let (figure, name) = match pattern {
        Pattern::Random => (7, "Random"),
        Pattern::Deterministic => (8, "Deterministic"),
    };
    let mut plans = Vec::new();
    for io in &options.io {
        let mut runs = Vec::new();
        for application in &options.applications {
            let loads = options.offered_io.iter();
            let run = |load: &f64| loaded(system, options, pattern, *io, *application, *load);
            let curve: Result<Vec<Run>, CollError> = loads.map(run).collect();
            runs.push((application.name().to_owned(), curve?));
        }
        let letter = match io {
            IoMapping::Clustered => "a",
            IoMapping::Distributed => "b",
        };
        let plot = Figure {
            name: format!("{figure}{letter}"),
            title: format!("{name} I/O traffic, {} I/O nodes", io.name()),
            x_label: "Offered load (MB/s for each I/O node)".to_owned(),
            y_label: "Accepted load (MB/s for each I/O node)".to_owned(),
            log_x: false,
            log_y: false,
            series: Vec::new(),
        };
        plans.push(Plan { plot, runs });
    }
    Ok(plans)
}

/// One run at this offered load, bytes a second for each I/O node.
pub(super) fn loaded(
    system: &System,
    options: &Options,
    pattern: Pattern,
    io: IoMapping,
    application: ApplicationMapping,
    load: f64,
) -> Result<Run, CollError> {
    let placement = Placement::new(system.nodes(), options.io_nodes, io, application)?;
    let servers = placement.io.len() as f64;
    let each = load * servers / placement.applications.len() as f64;
    let processes = clients(options, &placement.applications, &placement.io, pattern, each);
    let which = 0..processes.len();
    Ok(Run {
        x: load / MEGA,
        switches: system.switches.clone(),
        processes,
        // At low loads, messages are few and far between.
        window: stretched(options.window, load, FULL * system.injection),
        watched: Watched::Together { which, each: servers },
    })
}

/// Processes on these nodes that do I/O with those, never with their own node: that would be no traffic.
pub(super) fn clients(
    options: &Options,
    nodes: &[u32],
    servers: &[u32],
    pattern: Pattern,
    load: f64,
) -> Vec<Process> {
    let client = |(number, node): (usize, &u32)| {
        let others: Vec<u32> = servers.iter().copied().filter(|server| server != node).collect();
        let fixed = servers[number % servers.len()];
        let destinations = match pattern {
            Pattern::Random => Destinations::Random(others),
            Pattern::Deterministic if fixed == *node => {
                Destinations::Fixed(servers[(number + 1) % servers.len()])
            }
            Pattern::Deterministic => Destinations::Fixed(fixed),
        };
        Process {
            node: *node,
            destinations,
            load,
            bytes: options.io_bytes as f64,
            writes: options.writes,
            times: options.times,
            sizes: options.sizes,
            outstanding: options.outstanding,
        }
    };
    nodes.iter().enumerate().map(client).collect()
}
