//! The study's tables, published beside computed.

use pio_report::Table;

use super::figures::{direction, title};
use super::{Cell, Fit, Known, Method, Row, Slope, Study};
use crate::{Basis, Computed, Published, Statement};

/// All that is told of the study.
pub fn text(study: &Study) -> String {
    let mut tables = vec![parameters(study), sums(&study.fit)];
    tables.extend(study.tables.iter().map(times));
    tables.push(statements(&study.statements));
    tables.iter().map(Table::text).collect::<Vec<_>>().join("\n")
}

fn parameters(study: &Study) -> Table {
    let row = |known: &Known| {
        let amount = |value: f64| amount(known, value);
        // The faster a bandwidth, the less time it costs.
        let (least, most) =
            if known.parameter.is_bandwidth() { (known.high, known.low) } else { (known.low, known.high) };
        vec![
            known.parameter.symbol().to_owned(),
            amount(known.value),
            match known.half_width {
                Some(half) => format!("± {}", amount(half)),
                None => format!("{} to {}", amount(least), amount(most)),
            },
            if known.half_width.is_some() { "yes" } else { "no: only sums" }.to_owned(),
        ]
    };
    Table {
        title: "The cost model's parameters".to_owned(),
        note: "Fitted to Tables 1 and 3 alone. Where the tables do not tell a parameter, the range is of all values that \
               fit them alike, with no bandwidth above 1 GB/s (4x InfiniBand) and the network's not below 400 MB/s; the value used has network, scatter and \
               server reads at that limit. A server's S_d is for the data of one client, clients at the same time."
            .to_owned(),
        columns: vec!["parameter", ">value", ">95 %, or range", "told by the tables"],
        rows: study.parameters.iter().map(row).collect(),
    }
}

/// A parameter with its unit.
fn amount(known: &Known, value: f64) -> String {
    match known.parameter {
        parameter if parameter.is_start_up() => format!("{:.2} ms", value * 1e3),
        parameter if parameter.is_bandwidth() => format!("{:.3} GB/s", 1e-9 / value),
        _ => format!("{:.0} ns", value * 1e9),
    }
}

fn sums(fit: &Fit) -> Table {
    let row = |slope: &Slope| {
        let disk = format!("k/S_d {}", direction(slope.direction));
        let sum = match slope.method {
            Method::Collective => format!("α + β + 2 k/S_n + {disk}"),
            Method::Ecio => format!("α + k/S_sg {} + k/S_n + {disk}", direction(slope.direction)),
        };
        vec![
            format!("{}, {}", slope.method.name(), direction(slope.direction)),
            sum,
            format!("{:.0} ns", slope.seconds.value * 1e9),
            format!("± {:.0} ns", slope.seconds.half_width * 1e9),
        ]
    };
    Table {
        title: "What the tables tell: time for each segment of a client".to_owned(),
        note: format!(
            "2 clients, 1 server, k = 4 B. Least squares of relative errors; what is left over has a standard deviation \
             of {:.1} %.",
            fit.deviation * 100.0
        ),
        columns: vec!["column", "sum of", ">fitted", ">95 %"],
        rows: fit.slopes.iter().map(row).collect(),
    }
}

fn times(table: &super::Table) -> Table {
    let is_known = table.basis != Basis::Predicted;
    let cells = |cell: &Cell| {
        let time = |seconds: f64| format!("{seconds:.2}");
        let simulated = cell.simulated.map_or("–".to_owned(), time);
        match (is_known, cell.published, cell.error()) {
            (true, Some(published), Some(error)) => {
                vec![time(published), time(cell.computed), format!("{:+.1} %", error * 100.0), simulated]
            }
            _ => vec![time(cell.computed), format!("{} – {}", time(cell.low), time(cell.high)), simulated],
        }
    };
    let row = |row: &Row| {
        let bytes = row.pieces as f64 * table.piece_bytes as f64 * f64::from(table.executions);
        let clients = f64::from(table.clients);
        let mut words = vec![
            thousands(row.pieces),
            format!("{:.1}", bytes / 1e6),
            format!("{:.1}", bytes / 1e6 * (clients - 1.0) / clients),
        ];
        words.extend(cells(&row.collective));
        words.extend(cells(&row.ecio));
        if is_known {
            words.push(row.published_improvement_percent.map_or("–".to_owned(), |one| format!("{one:.1}")));
        }
        words.push(format!("{:.1}", row.improvement_percent()));
        words
    };
    let mut columns = vec!["count 10^3", ">file MB", ">resent MB"];
    if is_known {
        columns.extend([">two-phase s, published", ">model", ">error", ">simulated"]);
        columns.extend([
            ">ECIO s, published",
            ">model",
            ">error",
            ">simulated",
            ">improvement %, published",
            ">model",
        ]);
    } else {
        columns.extend([
            ">two-phase s",
            ">range",
            ">simulated",
            ">ECIO s",
            ">range",
            ">simulated",
            ">improvement %",
        ]);
    }
    Table {
        title: format!("{} ({})", title(table), if is_known { "calibrated" } else { "predicted" }),
        note: note(table, is_known),
        columns,
        rows: table.rows.iter().map(row).collect(),
    }
}

fn note(table: &super::Table, is_known: bool) -> String {
    if !is_known {
        return format!(
            "Seconds of {} executions. Range: any parameters that fit Tables 1 and 3 alike; with a server that takes one \
             client's data after the other's at 40 MB/s or more, or all at once; and twice what the tables themselves \
             lie off the model.",
            table.executions
        );
    }
    let percent = |errors: &mut dyn Iterator<Item = Option<f64>>| {
        let median = super::median_error(errors.flatten());
        median.map_or("–".to_owned(), |error| format!("{:.1} %", error * 100.0))
    };
    let rows = &table.rows;
    format!(
        "Seconds of {} executions. Median error: model {}; simulation {} (two-phase), {} (ECIO).",
        table.executions,
        percent(&mut rows.iter().flat_map(|row| [row.collective.error(), row.ecio.error()])),
        percent(&mut rows.iter().map(|row| row.collective.simulated_error())),
        percent(&mut rows.iter().map(|row| row.ecio.simulated_error()))
    )
}

/// Segments as the paper counts them, in thousands.
pub fn thousands(pieces: u64) -> String {
    (pieces as f64 / 1e3).to_string()
}

fn statements(statements: &[Statement]) -> Table {
    let row = |one: &Statement| {
        let stated = if let Published::Words(words) = one.published { words } else { "" };
        let computed = if let Computed::Words(words) = &one.computed { words } else { "" };
        vec![
            one.place.to_owned(),
            stated.to_owned(),
            computed.to_owned(),
            one.verdict_cell(),
            one.basis.name().to_owned(),
        ]
    };
    Table {
        title: "What the paper states, and what we compute".to_owned(),
        note: "calibrated: the model was fitted to these tables. predicted: nothing was fitted to them. \
               papers/hong-2006/README.md says where each number comes from."
            .to_owned(),
        columns: vec!["section", "statement", "computed", "", "basis"],
        rows: statements.iter().map(row).collect(),
    }
}
