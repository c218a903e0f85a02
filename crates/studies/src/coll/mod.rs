//! The study of Coll, Petrini, Frachtenberg and Hoisie (2003): I/O traffic and the placement of I/O nodes on QsNET.
//!
//! The pings of sections 4.1 and 4.2 calibrate the adapters of `machines/qsnet-64.toml`; hot spots, multiple hot spots and
//! combined jobs are predicted. `papers/coll-2003/README.md` says what rests on what.

mod combined;
mod hot_spot;
mod multiple;
mod options;
mod ping;
mod placement;
mod plan;
mod statements;
mod tables;
mod traffic;

use pio_report::chart::{Figure, Series};
use thiserror::Error;

use pio_sim::network::circuit::CircuitError;
use pio_sim::network::topology::TopologyError;

use crate::Statement;
use multiple::Pattern;
use plan::{Plan, carry_out};

pub use options::{MEGA, Options, System};
pub use pio_sim::open_loop::{Distribution, Span};
pub use placement::{ApplicationMapping, FirstHalf, IoMapping, Placement};
pub use traffic::{Destinations, Outcome, Process, run};

/// The figures of the paper that show results.
pub const FIGURES: std::ops::RangeInclusive<u32> = 4..=10;

/// What the study finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// What the paper states, and what we compute.
    pub statements: Vec<Statement>,
    /// The figures, in the paper's order, and those behind statements.
    pub figures: Vec<Figure>,
    /// Table 1: what I/O nodes accept at the highest loads.
    pub most: Vec<Most>,
}

/// A line of Table 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Most {
    /// Traffic and mapping of the I/O nodes.
    pub traffic: String,
    /// Mapping of the application.
    pub application: String,
    /// Megabytes a second for each I/O node: the mean at the highest quarter of the offered loads.
    pub accepted: f64,
    /// As printed, whichever the application's mapping; none for other numbers of I/O nodes.
    pub published: Option<f64>,
    /// As it was predicted before the table was looked up.
    pub predicted: Option<f64>,
}

/// Why the study cannot be run.
#[derive(Debug, Error)]
pub enum CollError {
    /// More I/O nodes than leave nodes for applications, or none.
    #[error("io-nodes = {found}: expected 1 to {most}")]
    IoNodes {
        /// How many were asked for.
        found: u32,
        /// How many there can be.
        most: u32,
    },
    /// The machine has another kind of network.
    #[error(
        "machine {machine}: network.switching is not \"circuit\", which this study is about (qsnet-64 has it)"
    )]
    NoCircuits {
        /// The machine.
        machine: String,
    },
    /// The machine's network cannot be.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The machine's network cannot keep circuits.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
}

/// Runs what these figures show, and what the same sections state. `progress` hears how many of how many runs are
/// done. Runs are spread over all processors; the result does not depend on their number.
///
/// # Errors
/// If machine or parameters do not go together.
pub fn reproduce(
    options: &Options,
    figures: &[u32],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Study, CollError> {
    let system = System::new(&options.machine)?;
    let wants = |wanted: &[u32]| wanted.iter().any(|figure| figures.contains(figure));
    let mut plans: Vec<Plan> = Vec::new();
    if wants(&[6]) {
        plans.extend(hot_spot::plans(&system, options));
    }
    for (figure, pattern) in [(7, Pattern::Random), (8, Pattern::Deterministic)] {
        if wants(&[figure]) {
            plans.extend(multiple::plans(&system, options, pattern)?);
        }
    }
    if wants(&[7, 8]) {
        plans.push(statements::ratio_plan(&system, options)?);
    }
    if wants(&[9, 10]) {
        plans.extend(combined::plans(&system, options)?);
        plans.push(statements::alone_plan(&system, options)?);
    }
    let mut study = Study::default();
    for (figure, both_ways) in [(4, false), (5, true)] {
        if wants(&[figure]) {
            study.figures.extend(ping::plots(&system, both_ways));
            study.statements.extend(statements::pings(&system, both_ways));
        }
    }
    for plot in carry_out(&system, plans, options.seed, progress) {
        match plot.name.as_str() {
            "6a" => study.statements.extend(statements::aggregate(&plot)),
            "6b" => study.statements.extend(statements::hot_spot(&system, &plot)),
            "ratio" => study.statements.extend(statements::ratio(&plot)),
            "alone" => study.statements.extend(statements::alone(&plot)),
            _ => {}
        }
        study.figures.push(plot);
    }
    study.most = most(options, &study.figures);
    study.statements.extend(statements::orderings(&study.most));
    if wants(&[10]) {
        let summary = combined::summary(options, &study.figures);
        study.statements.extend(combined::conclusions(options, &summary));
        // The summary is of Figure 9's curves, which nobody may have asked for.
        study.figures.retain(|plot| wants(&[9]) || !plot.name.starts_with('9'));
        study.figures.push(summary);
    }
    Ok(study)
}

/// Table 1 as printed, and what was predicted of it with shared and with dedicated I/O nodes, MB/s: by figure.
const TABLE_1: [(&str, f64, [f64; 2]); 4] = [
    ("7a", 196.0, [373.0, 438.0]),
    ("7b", 234.0, [370.0, 418.0]),
    ("8a", 320.0, [379.0, 452.0]),
    ("8b", 338.0, [363.0, 458.0]),
];

/// Table 1 from Figures 7 and 8.
fn most(options: &Options, plots: &[Figure]) -> Vec<Most> {
    let is_io = |plot: &&Figure| plot.name.starts_with('7') || plot.name.starts_with('8');
    let printed = |plot: &Figure| {
        let as_published = options.io_nodes == PUBLISHED_IO_NODES;
        TABLE_1.into_iter().find(|(name, ..)| as_published && *name == plot.name)
    };
    let lines = |plot: &Figure| {
        let line = |curve: &Series| {
            let highest = &curve.points[curve.points.len() - (curve.points.len() / 4).max(1)..];
            let predicted = |(_, _, then): (&str, f64, [f64; 2])| {
                then[usize::from(curve.name == ApplicationMapping::Dedicated.name())]
            };
            Most {
                traffic: plot.title.clone(),
                application: curve.name.clone(),
                accepted: highest.iter().map(|point| point.y).sum::<f64>() / highest.len() as f64,
                published: printed(plot).map(|(_, published, _)| published),
                predicted: printed(plot).map(predicted),
            }
        };
        plot.series.iter().filter(|curve| !curve.points.is_empty()).map(line).collect::<Vec<Most>>()
    };
    plots.iter().filter(is_io).flat_map(lines).collect()
}

/// I/O nodes of the paper's experiments.
const PUBLISHED_IO_NODES: u32 = 8;

#[cfg(test)]
mod tests {
    use pio_machine::{Duration, Machine};

    use super::*;
    use crate::Published;

    fn options() -> Options {
        let mut options = Options::new(Machine::built_in("qsnet-64").unwrap());
        options.window =
            Span { warm_up: Duration::from_seconds(0.5e-3), measured: Duration::from_seconds(1e-3) };
        options
    }

    #[test]
    fn pings_come_within_five_per_cent() {
        let study = reproduce(&options(), &[4, 5], &|_, _| {}).unwrap();
        assert_eq!(study.statements.len(), 11);
        for statement in &study.statements {
            let error = statement.error().unwrap();
            assert!(error.abs() < 0.05, "{statement:?} is off by {error}");
        }
    }

    #[test]
    fn every_mapping_has_its_curve_and_the_same_result_again() {
        let mut options = options();
        options.offered_io = vec![200e6];
        options.offered_compute = vec![100e6];
        options.io_loads = vec![0.1];
        options.io_bytes = 16 << 10;
        options.compute_bytes = 8 << 10;
        let figures = [7, 9, 10];
        let study = reproduce(&options, &figures, &|_, _| {}).unwrap();
        assert_eq!(study, reproduce(&options, &figures, &|_, _| {}).unwrap());
        let names =
            |study: &Study| study.figures.iter().map(|plot| plot.name.clone()).collect::<Vec<String>>();
        assert_eq!(names(&study), ["7a", "7b", "ratio", "9a", "9b", "alone", "10"]);
        let summary = reproduce(&options, &[10], &|_, _| {}).unwrap();
        assert_eq!(names(&summary), ["alone", "10"]);
        assert_eq!(summary.figures[1], study.figures[6]);
        assert_eq!(study.most.len(), 4);
        let mappings: Vec<&str> = study.figures[3].series.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(
            mappings,
            ["clustered, compute job first (Ic)", "clustered, I/O job first (Ii)", "distributed"]
        );
        assert!(study.figures[6].series.iter().all(|curve| curve.points.len() == 2));
        let on_io_nodes = |statement: &&Statement| statement.published == Published::Words("can interfere");
        assert_eq!(study.statements.iter().filter(on_io_nodes).count(), 2);
    }

    #[test]
    fn machines_without_circuits_are_refused_by_name() {
        let options = Options::new(Machine::built_in("sp-argonne").unwrap());
        let message = reproduce(&options, &[4], &|_, _| {}).unwrap_err().to_string();
        assert!(message.starts_with("machine sp-argonne: network.switching is not \"circuit\""), "{message}");
    }
}
