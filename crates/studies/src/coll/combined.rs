//! Combined traffic (section 4.5): a compute job with uniform traffic beside a job that does I/O.

use pio_sim::open_loop::Distribution;

use crate::coll::CollError;
use crate::coll::multiple::{Pattern, clients};
use crate::coll::options::{MEGA, Options, System};
use crate::coll::placement::{ApplicationMapping, FirstHalf, IoMapping, Placement};
use crate::coll::plan::{Plan, Run, Watched};
use crate::coll::traffic::{Destinations, Process};
use crate::{Basis, Computed, Published, Statement, Verdict};
use pio_report::chart::{Figure, Point, Series};

/// Figures 9 a to f: a plot for each application mapping and load of the I/O job.
pub(super) fn plans(system: &System, options: &Options) -> Result<Vec<Plan>, CollError> {
    let mut plans = Vec::new();
    for (row, io_load) in options.io_loads.iter().enumerate() {
        for application in &options.applications {
            let shared = *application == ApplicationMapping::Shared;
            let letter = ('a'..='z').nth(row * 2 + usize::from(!shared)).unwrap_or('z');
            let plot = Figure {
                name: format!("9{letter}"),
                title: format!("Combined traffic, {} I/O, I/O load {io_load}", application.name()),
                x_label: "Offered load of the compute job (MB/s for each node)".to_owned(),
                y_label: "Accepted load of the compute job (MB/s for each node)".to_owned(),
                log_x: false,
                log_y: false,
                series: Vec::new(),
            };
            let mut runs = Vec::new();
            for (io, first) in mappings(options) {
                let loads = options.offered_compute.iter();
                let run = |load: &f64| loaded(system, options, io, *application, first, *io_load, *load);
                let curve: Result<Vec<Run>, CollError> = loads.map(run).collect();
                runs.push((mapping_name(io, first).to_owned(), curve?));
            }
            plans.push(Plan { plot, runs });
        }
    }
    Ok(plans)
}

/// Figure 10: what the compute job gets at most, from the curves of Figure 9 and from those without I/O.
pub(super) fn summary(options: &Options, plots: &[Figure]) -> Figure {
    let combined: Vec<&Figure> = plots.iter().filter(|plot| plot.name.starts_with('9')).collect();
    let alone = plots.iter().find(|plot| plot.name == "alone");
    let point = |io_load: f64, curve: &Series| Point::exact(io_load, curve.highest());
    let mut curves = Vec::new();
    for (column, application) in options.applications.iter().enumerate() {
        let without = alone.and_then(|plot| plot.series.get(column)).map(|curve| point(0.0, curve));
        for (number, (io, first)) in mappings(options).into_iter().enumerate() {
            let mut points: Vec<Point> = without.into_iter().collect();
            for (row, io_load) in options.io_loads.iter().enumerate() {
                let plot = combined.get(row * options.applications.len() + column);
                let curve = plot.and_then(|plot| plot.series.get(number));
                points.extend(curve.map(|curve| point(*io_load, curve)));
            }
            let name = format!("{}, {}", application.name(), mapping_name(io, first));
            curves.push(Series { name, points });
        }
    }
    Figure {
        name: "10".to_owned(),
        title: "Combined traffic: what the compute job gets at most".to_owned(),
        x_label: "Load of the I/O job (part of what a node can inject)".to_owned(),
        y_label: "Highest accepted load (MB/s for each compute node)".to_owned(),
        log_x: false,
        log_y: false,
        series: curves,
    }
}

/// Section 5, from Figure 10: jobs may be mapped freely, but for compute processes on I/O nodes.
pub(super) fn conclusions(options: &Options, summary: &Figure) -> Vec<Statement> {
    let applications = options.applications.iter();
    let all =
        applications.flat_map(|application| mappings(options).into_iter().map(move |on| (application, on)));
    let statement = |(curve, (application, (io, first))): (&Series, (&ApplicationMapping, _))| {
        let on_io_nodes = *application == ApplicationMapping::Shared
            && (io, first) != (IoMapping::Clustered, FirstHalf::Compute);
        let alone = curve.points.first()?.y;
        let least = curve.points.iter().map(|point| point.y).fold(f64::INFINITY, f64::min);
        Some(Statement {
            place: "5",
            what: format!("least of the compute job's bandwidth beside I/O, over that alone: {}", curve.name),
            published: Published::Words(if on_io_nodes { "can interfere" } else { "free to map" }),
            computed: Computed::Number(least / alone, ""),
            // What the intervals of two points leave open is no interference.
            verdict: Verdict::of(if on_io_nodes {
                least / alone < UNCHANGED
            } else {
                least / alone >= UNCHANGED
            }),
            basis: Basis::Predicted,
        })
    };
    summary.series.iter().zip(all).filter_map(statement).collect()
}

/// A compute job that keeps this part of its bandwidth, or more, is not interfered with.
const UNCHANGED: f64 = 0.9;

/// One run of the compute job at this offered load, bytes a second for each of its nodes, beside an I/O job of this load,
/// a part of what a node can inject; 0 for none.
pub(super) fn loaded(
    system: &System,
    options: &Options,
    io: IoMapping,
    application: ApplicationMapping,
    first: FirstHalf,
    io_load: f64,
    load: f64,
) -> Result<Run, CollError> {
    let placement = Placement::new(system.nodes(), options.io_nodes, io, application)?;
    let (compute, with_io) = placement.halves(first);
    let process = |node: &u32| Process {
        node: *node,
        destinations: Destinations::Random(compute.iter().copied().filter(|other| other != node).collect()),
        load,
        bytes: options.compute_bytes as f64,
        writes: 1.0,
        times: Distribution::Exponential,
        sizes: Distribution::Fixed,
        outstanding: options.outstanding,
    };
    let mut processes: Vec<Process> = compute.iter().map(process).collect();
    if io_load > 0.0 {
        let each = io_load * system.injection;
        processes.extend(clients(options, with_io, &placement.io, Pattern::Random, each));
    }
    Ok(Run {
        x: load / MEGA,
        switches: system.switches.clone(),
        processes,
        window: options.window,
        watched: Watched::Together { which: 0..compute.len(), each: compute.len() as f64 },
    })
}

/// The mappings of the paper's Figure 3. Where I/O nodes are distributed, both halves of the machine are alike.
fn mappings(options: &Options) -> Vec<(IoMapping, FirstHalf)> {
    let mut mappings = Vec::new();
    for io in &options.io {
        match io {
            IoMapping::Clustered => mappings.extend(options.first.iter().map(|first| (*io, *first))),
            IoMapping::Distributed => mappings.push((*io, FirstHalf::Compute)),
        }
    }
    mappings
}

fn mapping_name(io: IoMapping, first: FirstHalf) -> &'static str {
    match (io, first) {
        (IoMapping::Clustered, FirstHalf::Compute) => "clustered, compute job first (Ic)",
        (IoMapping::Clustered, FirstHalf::Io) => "clustered, I/O job first (Ii)",
        (IoMapping::Distributed, _) => "distributed",
    }
}
