//! What the paper states in words and numbers, beside what we compute.

use pio_machine::circuit::{Library, Memory};

use crate::coll::options::{MEGA, Options, System};
use crate::coll::placement::{ApplicationMapping, FirstHalf, IoMapping};
use crate::coll::plan::{Plan, Run};
use crate::coll::{CollError, combined, multiple, ping};
use crate::{Basis, Computed, Published, Statement, Verdict};
use pio_report::chart::{Figure, Series};

const LONG: u64 = 4_000_000;

/// Sections 4.1 and 4.2.
pub(super) fn pings(system: &System, both_ways: bool) -> Vec<Statement> {
    let main = ping::sent_by(system, Memory::Main, Library::Direct);
    let mpi = ping::sent_by(system, Memory::Main, Library::Mpi);
    let row = |place, what: &str, published, computed, unit, basis| {
        Statement::number(place, what, published, computed, unit, basis)
    };
    let speed = |system: &System| ping::bandwidth(system, LONG, both_ways) / MEGA;
    let time = |system: &System, bytes| ping::latency(system, bytes, false) * 1e6;
    let (fitted, predicted) = (Basis::Calibrated, Basis::Predicted);
    if both_ways {
        return vec![
            row("4.2", "bidirectional bandwidth each way, Elan memory", 280.0, speed(system), "MB/s", fitted),
            row("4.2", "bidirectional bandwidth each way, main memory", 80.0, speed(&main), "MB/s", fitted),
        ];
    }
    let packet = &system.switches.packet;
    let payload = (packet.transaction * u64::from(packet.transactions)) as f64;
    let overhead = (packet.transaction_overhead * u64::from(packet.transactions) + packet.overhead) as f64;
    let delivered = speed(system) * (payload + overhead) / payload;
    vec![
        row("4.1", "data in a packet", 320.0, payload, "B", Basis::Exact),
        row("4.1", "overhead of a packet", 58.0, overhead, "B", Basis::Exact),
        row("4.1", "peak bandwidth, Elan memory", 335.0, speed(system), "MB/s", fitted),
        row("4.1", "the same with overhead", 396.0, delivered, "MB/s", fitted),
        row("4.1", "asymptotic bandwidth, main memory, Elan3lib", 200.0, speed(&main), "MB/s", fitted),
        row("4.1", "asymptotic bandwidth, main memory, MPI", 200.0, speed(&mpi), "MB/s", predicted),
        row("4.1", "latency of 0 B, Elan3lib", 2.2, time(system, 0), "us", fitted),
        row("4.1", "latency of 64 B, Elan3lib", 2.4, time(system, 64), "us", fitted),
        row("4.1", "latency of 0 B, MPI", 5.5, time(&mpi, 0), "us", fitted),
    ]
}

/// Section 4.3: places of contention, and what they do to bandwidth.
pub(super) fn hot_spot(system: &System, by_node: &Figure) -> Vec<Statement> {
    let mut statements = Vec::new();
    for (from, to, published) in [(1, 3, 1.0), (4, 15, 2.0), (16, 63, 3.0)] {
        let levels: Vec<u32> =
            (from..=to).filter(|node| *node < system.nodes()).map(|node| system.levels(node, 0)).collect();
        let mean = levels.iter().sum::<u32>() as f64 / levels.len().max(1) as f64;
        let what = format!("places of contention from nodes {from} to {to} to node 0");
        statements.push(Statement::number("4.3", what, published, mean, "", Basis::Exact));
    }
    for curve in &by_node.series {
        let mean = |from: f64, to: f64| {
            let within = curve.points.iter().filter(|point| (from..=to).contains(&point.x));
            let (count, sum) = within.fold((0.0, 0.0), |(count, sum), point| (count + 1.0, sum + point.y));
            sum / f64::max(count, 1.0)
        };
        statements.push(Statement {
            place: "4.3",
            what: format!("bandwidth of nodes 1 to 3 over that of 16 to 63, if {}", curve.name),
            published: Published::Words("uneven"),
            computed: Computed::Number(mean(1.0, 3.0) / mean(16.0, 63.0), ""),
            verdict: Verdict::Open,
            basis: Basis::Predicted,
        });
    }
    statements
}

/// Runs for the statements of section 4.4: only reads, as many writes, only writes.
pub(super) fn ratio_plan(system: &System, options: &Options) -> Result<Plan, CollError> {
    let mut runs = Vec::new();
    for io in options.io.iter().copied() {
        let load = options.offered_io.iter().copied().fold(0.0, f64::max);
        let run = |writes: f64| {
            let options = Options { writes, ..options.clone() };
            let application = *options.applications.last().unwrap_or(&ApplicationMapping::Dedicated);
            let run = multiple::loaded(system, &options, multiple::Pattern::Random, io, application, load)?;
            Ok(Run { x: writes, ..run })
        };
        let curve: Result<Vec<Run>, CollError> = [0.0, 0.5, 1.0].into_iter().map(run).collect();
        runs.push((format!("{} I/O nodes", io.name()), curve?));
    }
    let plot = Figure {
        name: "ratio".to_owned(),
        title: "Share of writes at the highest offered load, random I/O traffic".to_owned(),
        x_label: "Share of writes".to_owned(),
        y_label: "Accepted load (MB/s for each I/O node)".to_owned(),
        log_x: false,
        log_y: false,
        series: Vec::new(),
    };
    Ok(Plan { plot, runs })
}

/// Section 4.4.
pub(super) fn ratio(plot: &Figure) -> Vec<Statement> {
    let statement = |curve: &Series| {
        let lowest = curve.points.iter().map(|point| point.y).fold(f64::INFINITY, f64::min);
        Statement {
            place: "4.4",
            what: format!("highest over lowest accepted load of any share of writes, {}", curve.name),
            published: Published::Words("very little sensitivity"),
            computed: Computed::Number(curve.highest() / lowest, ""),
            verdict: Verdict::Open,
            basis: Basis::Predicted,
        }
    };
    plot.series.iter().map(statement).collect()
}

/// Runs of the compute job alone, with each application mapping.
pub(super) fn alone_plan(system: &System, options: &Options) -> Result<Plan, CollError> {
    let mut runs = Vec::new();
    for application in &options.applications {
        let io = *options.io.first().unwrap_or(&IoMapping::Clustered);
        let run =
            |load: &f64| combined::loaded(system, options, io, *application, FirstHalf::Compute, 0.0, *load);
        let curve: Result<Vec<Run>, CollError> = options.offered_compute.iter().map(run).collect();
        runs.push((application.name().to_owned(), curve?));
    }
    let plot = Figure {
        name: "alone".to_owned(),
        title: "The compute job alone".to_owned(),
        x_label: "Offered load (MB/s for each node)".to_owned(),
        y_label: "Accepted load (MB/s for each node)".to_owned(),
        log_x: false,
        log_y: false,
        series: Vec::new(),
    };
    Ok(Plan { plot, runs })
}

/// Section 4.5.
pub(super) fn alone(plot: &Figure) -> Vec<Statement> {
    let statement = |curve: &Series| {
        let what = format!("asymptotic bandwidth of the compute job alone, {} mapping", curve.name);
        Statement::number("4.5", what, 130.0, curve.highest(), "MB/s", Basis::Predicted)
    };
    plot.series.iter().map(statement).collect()
}
