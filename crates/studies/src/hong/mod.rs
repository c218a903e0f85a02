//! The study of Hong, You and Chung (2006): two-phase I/O against ECIO, which sends noncontiguous pieces straight to the
//! server.
//!
//! The cost model of sections 3 and 4 is fitted to the tables with 2 clients, and predicts those with 4, and any other
//! number of clients and servers. The same benchmark is run on the simulator. `papers/hong-2006/README.md` says what rests
//! on what.

mod figures;
mod fit;
mod linear;
mod model;
mod published;
pub mod simulated;
mod tables;

use pio_machine::Machine;
use pio_plan::Direction;
use pio_sim::SimError;
use thiserror::Error;

use crate::{Basis, Published, Statement, Verdict};

pub use figures::figure;
pub use fit::{Estimated, Fit, Slope};
pub use model::{Experiment, Method, Parameter, Parameters, ServerTime};
pub use published::{Measurement, Printed, PrintedTable};
pub use tables::{text, thousands};

/// Why the study cannot be run.
#[derive(Debug, Error)]
pub enum HongError {
    /// The published numbers cannot be read.
    #[error("papers/hong-2006/published.toml: {0}")]
    Published(#[from] toml::de::Error),
    /// Too few numbers to fit to.
    #[error(
        "papers/hong-2006/published.toml: the tables with 2 clients do not determine the sums of the model"
    )]
    Undetermined,
    /// The simulation cannot be fitted.
    #[error("the machine '{machine}' says nothing of storage.pieces, which is to be fitted")]
    NoPieces {
        /// Its name.
        machine: String,
    },
    /// The benchmark cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster that is simulated.
    pub machine: Machine,
    /// Clients, servers and bytes of a piece, if not those of the paper's tables.
    pub other: Option<Other>,
}

/// An experiment that the paper did not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Client processes of the measurement.
    pub clients: u32,
    /// I/O servers of the measurement.
    pub servers: u32,
    /// Bytes of a segment.
    pub piece_bytes: u64,
}

/// What the study finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The fit to Tables 1 and 3.
    pub fit: Fit,
    /// The model's parameters, and what is known of each.
    pub parameters: Vec<Known>,
    /// The paper's tables, or those that were asked for instead.
    pub tables: Vec<Table>,
    /// What the paper says, and whether it is so.
    pub statements: Vec<Statement>,
}

/// A parameter, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The parameter of the cost model.
    pub parameter: Parameter,
    /// What is used: seconds, seconds a segment, or seconds a byte.
    pub value: f64,
    /// The least that fits the tables as well.
    pub low: f64,
    /// And the most.
    pub high: f64,
    /// Half of the 95 % confidence interval, if the tables determine it.
    pub half_width: Option<f64>,
}

/// A table as the paper has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its number in the paper; none for others.
    pub number: Option<u32>,
    /// Whether the measurement reads or writes.
    pub direction: Direction,
    /// Client processes of the measurement.
    pub clients: u32,
    /// I/O servers of the measurement.
    pub servers: u32,
    /// Bytes of a segment.
    pub piece_bytes: u64,
    /// Executions that the times are for.
    pub executions: u32,
    /// What the comparison is worth.
    pub basis: Basis,
    /// A row for each number of segments.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Segments of all clients together.
    pub pieces: u64,
    /// Two-phase.
    pub collective: Cell,
    /// ECIO.
    pub ecio: Cell,
    /// How much less ECIO takes, percent, as printed.
    pub published_improvement_percent: Option<f64>,
}

/// One time, of all executions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// As printed.
    pub published: Option<f64>,
    /// By the cost model.
    pub computed: f64,
    /// What the model would have it be at least, with any parameters that fit Tables 1 and 3.
    pub low: f64,
    /// And at most.
    pub high: f64,
    /// On the simulator, if that has the strategy.
    pub simulated: Option<f64>,
}

impl Cell {
    /// How far the model is off, as a part of the printed time.
    pub fn error(&self) -> Option<f64> {
        self.published.map(|published| self.computed / published - 1.0)
    }

    /// How far the simulation is off, as a part of the printed time.
    pub fn simulated_error(&self) -> Option<f64> {
        Some(self.simulated? / self.published? - 1.0)
    }
}

impl Row {
    /// How much less ECIO takes, percent.
    pub fn improvement_percent(&self) -> f64 {
        100.0 * (1.0 - self.ecio.computed / self.collective.computed)
    }

    /// Seconds that ECIO saves.
    fn saved(&self) -> f64 {
        self.collective.computed - self.ecio.computed
    }
}

/// The median of the errors' sizes; none if there is no error to tell.
pub fn median_error(errors: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sizes: Vec<f64> = errors.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let middle = sizes.len() / 2;
    match sizes.len() {
        0 => None,
        count if count % 2 == 0 => Some((sizes[middle - 1] + sizes[middle]) / 2.0),
        _ => Some(sizes[middle]),
    }
}

/// Fits the model to Tables 1 and 3, and computes and simulates the tables.
///
/// # Errors
/// If the clients or servers do not fit the machine's network.
pub fn reproduce(options: &Options) -> Result<Study, HongError> {
    let published = Printed::load()?;
    let fit = Fit::of(&published.measurements())?;
    let cost = Cost { parameters: fit.parameters(ServerTime::Concurrent)?, fit, options };
    let paper = published
        .tables
        .iter()
        .map(|table| {
            let other = Other { clients: table.clients, servers: 1, piece_bytes: published.piece_bytes };
            cost.table(&published, Some(table), table.direction(), other)
        })
        .collect::<Result<Vec<Table>, HongError>>()?;
    let statements = statements(&paper);
    let tables = match options.other {
        None => paper,
        Some(other) => [Direction::Write, Direction::Read]
            .into_iter()
            .map(|direction| cost.table(&published, None, direction, other))
            .collect::<Result<_, _>>()?,
    };
    Ok(Study { parameters: cost.known(), tables, statements, fit: cost.fit })
}

/// The fitted model, and what is asked of it.
struct Cost<'a> {
    parameters: Parameters,
    fit: Fit,
    options: &'a Options,
}

impl Cost<'_> {
    fn table(
        &self,
        published: &Printed,
        printed: Option<&PrintedTable>,
        direction: Direction,
        other: Other,
    ) -> Result<Table, HongError> {
        let Other { clients, servers, piece_bytes } = other;
        let executions = published.executions;
        let cell = |method, row: usize, pieces| -> Result<Cell, HongError> {
            let experiment = Experiment { method, direction, pieces, piece_bytes, clients, servers };
            let all = f64::from(executions);
            let (low, high) = self.fit.range(&experiment);
            // Executions are alike, so that one tells all.
            let simulated = simulated::seconds(&self.options.machine, &experiment, 1)?;
            Ok(Cell {
                published: printed.and_then(|table| table.seconds(method, row)),
                computed: all * experiment.seconds(ServerTime::Concurrent, &self.parameters),
                low: all * low,
                high: all * high,
                simulated: simulated.map(|seconds| all * seconds),
            })
        };
        let row = |(row, pieces): (usize, &u64)| -> Result<Row, HongError> {
            let (collective, ecio) =
                (cell(Method::Collective, row, *pieces)?, cell(Method::Ecio, row, *pieces)?);
            let published_improvement_percent =
                printed.and_then(|table| table.improvement_percent.get(row).copied());
            Ok(Row { pieces: *pieces, collective, ecio, published_improvement_percent })
        };
        let rows = published.pieces.iter().enumerate().map(row).collect::<Result<Vec<Row>, HongError>>()?;
        let is_known = rows.iter().any(|row| row.collective.published.is_some());
        let basis = if is_known { Basis::Calibrated } else { Basis::Predicted };
        let number = printed.map(|table| table.table);
        Ok(Table { number, direction, clients, servers, piece_bytes, executions, basis, rows })
    }

    fn known(&self) -> Vec<Known> {
        let corners = self.fit.corners(ServerTime::Concurrent);
        let known = |parameter: Parameter| {
            let value = self.parameters[parameter as usize];
            let ends = corners.iter().map(|corner| corner[parameter as usize]);
            let (low, high) = ends.fold((value, value), |(low, high), end| (low.min(end), high.max(end)));
            let half_width = match parameter {
                Parameter::StartUp => Some(self.fit.start_up.half_width),
                Parameter::Redistribution => Some(self.fit.redistribution.half_width),
                _ => None,
            };
            Known { parameter, value, low, high, half_width }
        };
        Parameter::ALL.into_iter().map(known).collect()
    }
}

/// What sections 4.3 and 5 say of the tables.
fn statements(tables: &[Table]) -> Vec<Statement> {
    let mut found = Vec::new();
    for (clients, basis) in [(2, Basis::Calibrated), (4, Basis::Predicted)] {
        let of = || tables.iter().filter(move |table| table.clients == clients);
        let grows = |table: &Table| table.rows.windows(2).all(|pair| pair[1].saved() > pair[0].saved());
        let saved = |pick: fn(&[Row]) -> Option<&Row>| {
            of().filter_map(|table| pick(&table.rows)).map(Row::saved).fold(0.0, f64::max)
        };
        found.push(Statement {
            place: if clients == 2 { "5.1, Tables 1 and 3" } else { "5.1, Tables 2 and 4" },
            what: String::new(),
            published: Published::Words("as the number of segments increases, ECIO saves more time"),
            computed: format!(
                "from {:.2} s or less to {:.1} s or less",
                saved(<[Row]>::first),
                saved(<[Row]>::last)
            )
            .into(),
            verdict: Verdict::of(of().all(grows)),
            basis,
        });
        found.push(Statement {
            place: if clients == 2 { "6, Tables 1 and 3" } else { "6, Tables 2 and 4" },
            what: String::new(),
            published: Published::Words("ECIO is better than collective I/O in all cases"),
            computed: {
                let gains = of().flat_map(|table| table.rows.iter().map(Row::improvement_percent));
                let (low, high) =
                    gains.fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
                format!("by {low:.1} to {high:.1} %").into()
            },
            verdict: Verdict::of(of().all(|table| table.rows.iter().all(|row| row.saved() > 0.0))),
            basis,
        });
    }
    let last = |clients: u32| {
        let of = tables.iter().filter(move |table| table.clients == clients);
        of.filter_map(|table| table.rows.last()).map(Row::saved).collect::<Vec<f64>>()
    };
    let (two, four) = (last(2), last(4));
    found.push(Statement {
        place: "4.3, Equations 1 and 2",
        what: String::new(),
        published: Published::Words("with more clients, the difference becomes smaller"),
        computed: format!(
            "{} s with 2 clients, {} s with 4 (1024000 segments, write and read)",
            two.iter().map(|one| format!("{one:.1}")).collect::<Vec<_>>().join(" and "),
            four.iter().map(|one| format!("{one:.1}")).collect::<Vec<_>>().join(" and "),
        )
        .into(),
        verdict: Verdict::of(two.iter().zip(&four).all(|(two, four)| four < two)),
        basis: Basis::Predicted,
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(other: Option<Other>) -> Study {
        let machine = Machine::built_in("infiniband-nthu").unwrap();
        reproduce(&Options { machine, other }).unwrap()
    }

    #[test]
    fn tables_one_and_three_are_within_five_per_cent_and_the_others_predicted() {
        let study = study(None);
        assert_eq!(study.tables.len(), 4);
        for table in &study.tables {
            assert_eq!(table.rows.len(), 9);
            let cells = || table.rows.iter().flat_map(|row| [row.collective, row.ecio]);
            let error = median_error(cells().filter_map(|cell| cell.error()));
            let collective = table.rows.iter().map(|row| row.collective);
            let simulated = median_error(collective.filter_map(|cell| cell.simulated_error()));
            match table.basis {
                Basis::Predicted => assert_eq!((table.clients, error, simulated), (4, None, None)),
                _ => assert!(error.unwrap() < 0.03 && simulated.unwrap() < 0.05, "{error:?} {simulated:?}"),
            }
            assert!(cells().all(|cell| cell.low < cell.computed && cell.computed < cell.high));
        }
        assert!(
            study.statements.iter().all(|statement| statement.verdict == Verdict::Holds),
            "{:?}",
            study.statements
        );
    }

    #[test]
    fn model_and_simulation_predict_four_clients_alike() {
        for table in study(None).tables.iter().filter(|table| table.clients == 4) {
            for row in &table.rows {
                let ratio = row.collective.simulated.unwrap() / row.collective.computed;
                assert!((ratio - 1.0).abs() < 0.1, "{} segments: {ratio}", row.pieces);
            }
        }
    }

    #[test]
    fn any_number_of_clients_and_servers() {
        let study = study(Some(Other { clients: 3, servers: 2, piece_bytes: 64 }));
        assert_eq!(study.tables.len(), 2);
        for table in &study.tables {
            assert_eq!((table.number, table.basis), (None, Basis::Predicted));
            let cells = || table.rows.iter().flat_map(|row| [row.collective, row.ecio]);
            assert!(cells().all(|cell| cell.low < cell.computed && cell.computed < cell.high));
        }
    }

    #[test]
    fn only_start_ups_are_determined_by_themselves() {
        let study = study(None);
        for known in study.parameters {
            assert_eq!(known.half_width.is_some(), known.high - known.low < 1e-6 * known.value, "{known:?}");
            assert!(known.low <= known.value && known.value <= known.high);
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median_error([].into_iter()), None);
        assert_eq!(median_error([-0.3, 0.1, 0.2].into_iter()), Some(0.2));
        assert_eq!(median_error([0.1, -0.2].into_iter()), Some(0.15000000000000002));
    }
}
