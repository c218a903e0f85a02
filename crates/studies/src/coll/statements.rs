//! What the paper states in words and numbers, beside what we compute.

use pio_machine::circuit::{Library, Memory};

use crate::coll::options::{MEGA, Options, System};
use crate::coll::placement::{ApplicationMapping, FirstHalf, IoMapping};
use crate::coll::plan::{Plan, Run};
use crate::coll::{CollError, Most, combined, multiple, ping};
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
    let mean = |curve: &Series, from: f64, to: f64| {
        let within = curve.points.iter().filter(|point| (from..=to).contains(&point.x));
        let (count, sum) = within.fold((0.0, 0.0), |(count, sum), point| (count + 1.0, sum + point.y));
        sum / f64::max(count, 1.0)
    };
    let Some((described, rules)) = by_node.series.split_first() else { return statements };
    for (from, to, published, basis) in
        [(1, 3, 8.0, Basis::Calibrated), (4, 15, 4.8, Basis::Predicted), (16, 63, 4.3, Basis::Predicted)]
    {
        let what = format!("bandwidth of nodes {from} to {to} of a hot spot's 63");
        let computed = mean(described, f64::from(from), f64::from(to));
        statements.push(Statement::number("4.3", what, published, computed, "MB/s", basis));
    }
    for curve in rules {
        statements.push(Statement {
            place: "4.3",
            what: format!("bandwidth of nodes 1 to 3 over that of 16 to 63, if {}", curve.name),
            published: Published::Words("uneven"),
            computed: Computed::Number(mean(curve, 1.0, 3.0) / mean(curve, 16.0, 63.0), ""),
            verdict: Verdict::Open,
            basis: Basis::Predicted,
        });
    }
    statements
}

/// Section 4.3: what all writers of a hot spot get together.
pub(super) fn aggregate(plot: &Figure) -> Vec<Statement> {
    let curves = plot.series.len() as f64;
    let at = |writers: f64| {
        let points = plot.series.iter().flat_map(|curve| &curve.points).filter(|point| point.x == writers);
        points.map(|point| point.y).sum::<f64>() / curves
    };
    [(32.0, 337.0, Basis::Predicted), (63.0, 310.0, Basis::Calibrated)]
        .into_iter()
        .filter(|(writers, ..)| at(*writers) > 0.0)
        .map(|(writers, published, basis)| {
            let what = format!("bandwidth of a hot spot with {writers} writers");
            Statement::number("4.3", what, published, at(writers), "MB/s", basis)
        })
        .collect()
}

/// Section 4.4: how the lines of Table 1 compare, if all are there.
pub(super) fn orderings(most: &[Most]) -> Vec<Statement> {
    let [
        random_clustered_shared,
        random_clustered_dedicated,
        random_distributed_shared,
        random_distributed_dedicated,
        fixed_clustered_shared,
        fixed_clustered_dedicated,
        fixed_distributed_shared,
        fixed_distributed_dedicated,
    ] = most
    else {
        return Vec::new();
    };
    let ratio = |over: [&Most; 2], under: [&Most; 2]| {
        let [one, other] = [0, 1].map(|index| over[index].accepted / under[index].accepted);
        (one.min(other), one.max(other))
    };
    let random = [random_clustered_shared, random_clustered_dedicated];
    let spread = [random_distributed_shared, random_distributed_dedicated];
    let fixed = [fixed_clustered_shared, fixed_clustered_dedicated];
    let fixed_spread = [fixed_distributed_shared, fixed_distributed_dedicated];
    let row = |what: &str, words, (low, high): (f64, f64), holds: bool| Statement {
        place: "4.4",
        what: what.to_owned(),
        published: Published::Words(words),
        computed: format!("{low:.2} to {high:.2}").into(),
        verdict: Verdict::of(holds),
        basis: Basis::Predicted,
    };
    let above = |(low, _): (f64, f64)| low > 1.0;
    let shared = [fixed_clustered_shared, random_clustered_shared];
    let dedicated = [fixed_clustered_dedicated, random_clustered_dedicated];
    let alike = ratio(
        [fixed_distributed_shared, random_distributed_shared],
        [fixed_distributed_dedicated, random_distributed_dedicated],
    );
    let (clustered, distributed) = (ratio(fixed, random), ratio(fixed_spread, spread));
    let (of_random, of_fixed) = (ratio(spread, random), ratio(fixed_spread, fixed));
    let nodes = ratio(shared, dedicated);
    vec![
        row("deterministic over random, clustered", "always better", clustered, above(clustered)),
        row("deterministic over random, distributed", "always better", distributed, above(distributed)),
        row("distributed over clustered, random", "always better", of_random, above(of_random)),
        row("distributed over clustered, deterministic", "always better", of_fixed, above(of_fixed)),
        row("shared over dedicated, clustered", "slightly higher", nodes, above(nodes)),
        row(
            "shared over dedicated, distributed",
            "no significant effect",
            alike,
            (0.95..1.05).contains(&alike.0) && alike.1 < 1.05,
        ),
    ]
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
            what: format!(
                "highest over lowest accepted load if data of reads left I/O nodes, {}",
                curve.name
            ),
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
