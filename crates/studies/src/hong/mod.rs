//! The study of Hong, You and Chung (2006): two-phase I/O against ECIO, which sends noncontiguous pieces straight to the
//! server.
//!
//! The cost model of sections 3 and 4 is fitted to all tables, and to all but a part of them to predict that part; it
//! predicts any other number of clients and servers. The same benchmark is run on the simulator.
//! `papers/hong-2006/README.md` says what rests on what.

mod figures;
mod fit;
mod linear;
mod model;
mod published;
pub mod simulated;
mod tables;

use pio_machine::{Machine, MachineError};
use pio_plan::Direction;
use pio_sim::SimError;
use thiserror::Error;

use crate::{Basis, Published, Statement, Verdict};

pub use figures::figure;
pub use fit::{Fit, LeftOut, left_out};
pub use model::{Experiment, Method, Parameter, Parameters};
pub use published::{Measurement, Printed, PrintedTable};
pub use tables::{text, thousands};

/// Why the study cannot be run.
#[derive(Debug, Error)]
pub enum HongError {
    /// The published numbers cannot be read.
    #[error("papers/hong-2006/published.toml: {0}")]
    Published(#[from] toml::de::Error),
    /// Too few numbers to fit to.
    #[error("papers/hong-2006/published.toml: the tables do not determine the model's parameters")]
    Undetermined,
    /// The simulation cannot be fitted.
    #[error("the machine '{machine}' says nothing of storage.pieces, which is to be fitted")]
    NoPieces {
        /// Its name.
        machine: String,
    },
    /// A number of servers for storage that has none.
    #[error("the machine '{machine}' says nothing of I/O servers: expected 1 server, found {servers}")]
    NoServers {
        /// Its name.
        machine: String,
        /// How many were asked for.
        servers: u32,
    },
    /// The paper's cluster cannot be read.
    #[error(transparent)]
    Machine(#[from] MachineError),
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
    /// Client processes of the measurement, at least 2: the segments of one alone are contiguous, and the cost model is of
    /// noncontiguous ones.
    pub clients: u32,
    /// I/O servers of the measurement.
    pub servers: u32,
    /// Bytes of a segment.
    pub piece_bytes: u64,
}

/// What the study finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The name of the machine that is simulated.
    pub machine: String,
    /// Whether it is the paper's cluster, whose description is fitted to all tables.
    pub is_papers_cluster: bool,
    /// The fit to all tables.
    pub fit: Fit,
    /// What the fit to the rest tells of each part of the tables.
    pub left_out: Vec<LeftOut>,
    /// The paper's tables, or those that were asked for instead.
    pub tables: Vec<Table>,
    /// What the paper says, and whether it is so.
    pub statements: Vec<Statement>,
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
    /// What the model would have it be at least ([`Fit::range`]).
    pub low: f64,
    /// And at most.
    pub high: f64,
    /// By the cost model fitted to all printed columns but this one.
    pub left_out: Option<f64>,
    /// As it was predicted before the table was looked up.
    pub predicted: Option<f64>,
    /// On the simulator, if that has the strategy.
    pub simulated: Option<f64>,
}

impl Cell {
    /// How far the model is off, as a part of the printed time.
    pub fn error(&self) -> Option<f64> {
        self.off(Some(self.computed))
    }

    /// How far the simulation is off, as a part of the printed time.
    pub fn simulated_error(&self) -> Option<f64> {
        self.off(self.simulated)
    }

    /// How far any of these is off, as a part of the printed time.
    fn off(&self, time: Option<f64>) -> Option<f64> {
        Some(time? / self.published? - 1.0)
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

/// Fits the model to the tables, and computes and simulates them.
///
/// # Errors
/// If the clients or servers do not fit the machine's network.
pub fn reproduce(options: &Options) -> Result<Study, HongError> {
    let published = Printed::load()?;
    let measurements = published.measurements();
    let left_out = left_out(&measurements)?;
    let cost = Cost { fit: Fit::of(&measurements)?, left_out, options };
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
    Ok(Study {
        machine: options.machine.name.clone(),
        is_papers_cluster: options.machine == Machine::built_in("infiniband-nthu")?,
        tables,
        statements,
        fit: cost.fit,
        left_out: cost.left_out,
    })
}

/// The fitted model, and what is asked of it.
struct Cost<'a> {
    fit: Fit,
    left_out: Vec<LeftOut>,
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
            let seconds = printed.and_then(|table| table.seconds(method, row));
            let column = fit::column(&experiment);
            let part = self.left_out.iter().find(|part| part.what == column);
            Ok(Cell {
                published: seconds,
                computed: all * experiment.seconds(&self.fit.parameters),
                low: all * low,
                high: all * high,
                left_out: seconds.zip(part).map(|(seconds, part)| seconds * (1.0 + part.errors[row])),
                predicted: printed.and_then(|table| table.predicted(method, row)),
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
        let basis = if printed.is_some() { Basis::Calibrated } else { Basis::Predicted };
        let number = printed.map(|table| table.table);
        Ok(Table { number, direction, clients, servers, piece_bytes, executions, basis, rows })
    }
}

/// What sections 4.3 and 5 say of the tables.
fn statements(tables: &[Table]) -> Vec<Statement> {
    let mut found = Vec::new();
    let basis = Basis::Calibrated;
    for clients in [2, 4] {
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
        basis,
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
    fn model_and_simulation_tell_all_72_times() {
        let study = study(None);
        assert_eq!(study.tables.len(), 4);
        let rows = || study.tables.iter().flat_map(|table| &table.rows);
        let cells = || rows().flat_map(|row| [row.collective, row.ecio]);
        assert_eq!(cells().count(), 72);
        for off in [Cell::error as fn(&Cell) -> Option<f64>, Cell::simulated_error] {
            let errors: Vec<f64> = cells().map(|cell| off(&cell).unwrap()).collect();
            assert!(errors.iter().all(|error| error.abs() < 0.1), "{errors:?}");
            assert!(median_error(errors.into_iter()).unwrap() < 0.03);
        }
        assert!(cells().all(|cell| cell.low < cell.computed && cell.computed < cell.high));
        let wrong = study.statements.iter().filter(|statement| statement.verdict != Verdict::Holds);
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&Statement>::new());
    }

    #[test]
    fn only_the_papers_cluster_is_said_to_be_fitted() {
        let note = |machine: Machine| {
            let text = text(&reproduce(&Options { machine, other: None }).unwrap());
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let own = Machine::built_in("infiniband-nthu").unwrap();
        let faster = own.with("network.link.bandwidth", "2 GB/s").unwrap();
        assert!(note(own).contains("error on the machine, which is fitted to all tables, median"));
        let found = note(faster);
        assert!(
            found.contains("error on infiniband-nthu, which is not fitted to the tables, median"),
            "{found}"
        );
    }

    #[test]
    fn what_was_predicted_then_is_kept() {
        let study = study(None);
        let cells =
            study.tables.iter().flat_map(|table| &table.rows).flat_map(|row| [row.collective, row.ecio]);
        let errors = cells.filter_map(|cell| cell.off(cell.predicted));
        assert!((median_error(errors).unwrap() - 0.086).abs() < 0.001);
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
    fn medians() {
        assert_eq!(median_error([].into_iter()), None);
        assert_eq!(median_error([-0.3, 0.1, 0.2].into_iter()), Some(0.2));
        assert_eq!(median_error([0.1, -0.2].into_iter()), Some(0.15000000000000002));
    }
}
