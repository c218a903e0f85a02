//! The study's tables, published beside computed.

use pio_report::Table;

use super::figures::title;
use super::{Cell, Fit, LeftOut, Parameter, Row, Study};
use crate::{Basis, Computed, LOOKED_UP, Published, Statement};

/// All that is told of the study.
pub fn text(study: &Study) -> String {
    let mut tables = vec![parameters(&study.fit), left_out(&study.left_out)];
    tables.extend(study.tables.iter().map(|table| times(study, table)));
    tables.push(statements(&study.statements));
    tables.iter().map(Table::text).collect::<Vec<_>>().join("\n")
}

fn parameters(fit: &Fit) -> Table {
    let row = |parameter: Parameter| {
        let amount = |value: f64| match parameter {
            parameter if parameter.is_start_up() => format!("{:.2} ms", value * 1e3),
            _ => format!("{:.1} ns", value * 1e9),
        };
        vec![
            parameter.symbol().to_owned(),
            parameter.meaning().to_owned(),
            amount(fit.parameters[parameter as usize]),
            format!("± {}", amount(fit.half_widths[parameter as usize])),
        ]
    };
    Table {
        title: "The cost model's parameters".to_owned(),
        note: format!(
            "Fitted to all four tables: least squares of relative errors; what is left over has a standard deviation of \
             {:.1} %. One over the last is S_d.",
            fit.deviation * 100.0
        ),
        columns: vec!["parameter", "of", ">value", ">95 %"],
        rows: Parameter::ALL.into_iter().map(row).collect(),
    }
}

fn left_out(parts: &[LeftOut]) -> Table {
    let row = |part: &LeftOut| {
        let errors = || part.errors.iter().copied();
        let worst =
            errors().fold(0.0, |worst: f64, error| if error.abs() > worst.abs() { error } else { worst });
        vec![part.what.clone(), percent(super::median_error(errors())), format!("{:+.1} %", worst * 100.0)]
    };
    Table {
        title: "Left out: errors of what the fit to the rest tells of each part".to_owned(),
        note: "Tables with one number of clients cannot tell what the server does, one client after the other, from what clients \
               do: then it is taken to be hidden, as section 4.1 has it."
            .to_owned(),
        columns: vec!["part", ">median", ">worst"],
        rows: parts.iter().map(row).collect(),
    }
}

fn percent(error: Option<f64>) -> String {
    error.map_or("–".to_owned(), |error| format!("{:.1} %", error * 100.0))
}

fn times(study: &Study, table: &super::Table) -> Table {
    let is_known = table.basis != Basis::Predicted;
    let was_predicted = table.rows.iter().any(|row| row.ecio.predicted.is_some());
    let cells = |cell: &Cell| {
        let time = |seconds: Option<f64>| seconds.map_or("–".to_owned(), |seconds| format!("{seconds:.2}"));
        if !is_known {
            let range = format!("{:.2} – {:.2}", cell.low, cell.high);
            return vec![time(Some(cell.computed)), range, time(cell.simulated)];
        }
        let error =
            |seconds| cell.off(seconds).map_or("–".to_owned(), |error| format!("{:+.1} %", error * 100.0));
        let mut words = vec![
            time(cell.published),
            time(Some(cell.computed)),
            error(Some(cell.computed)),
            error(cell.left_out),
            error(cell.simulated),
        ];
        words.extend(was_predicted.then(|| time(cell.predicted)));
        words
    };
    let row = |row: &Row| {
        let mut words = vec![thousands(row.pieces)];
        words.extend(cells(&row.collective));
        words.extend(cells(&row.ecio));
        if is_known {
            words.push(row.published_improvement_percent.map_or("–".to_owned(), |one| format!("{one:.1}")));
        }
        words.push(format!("{:.1}", row.improvement_percent()));
        words
    };
    let mut columns = vec!["count 10^3"];
    for method in [">two-phase s", ">ECIO s"] {
        columns.push(method);
        if is_known {
            columns.extend([">fitted", ">error", ">left out", ">simulated"]);
            columns.extend(was_predicted.then_some(">predicted"));
        } else {
            columns.extend([">range", ">simulated"]);
        }
    }
    columns.extend(is_known.then_some(">saved %"));
    columns.push(if is_known { ">fitted" } else { ">saved %" });
    Table {
        title: format!("{} ({})", title(table), if is_known { "calibrated" } else { "predicted" }),
        note: note(study, table, is_known, was_predicted),
        columns,
        rows: table.rows.iter().map(row).collect(),
    }
}

fn note(study: &Study, table: &super::Table, is_known: bool, was_predicted: bool) -> String {
    if !is_known {
        return format!(
            "Seconds of {} executions. Range: a segment's time is one for each segment, or one for each byte; and twice what \
             the tables themselves lie off the model.",
            table.executions
        );
    }
    let cells = || table.rows.iter().flat_map(|row| [row.collective, row.ecio]);
    let median = |time: fn(&Cell) -> Option<f64>| {
        percent(super::median_error(cells().filter_map(|cell| cell.off(time(&cell)))))
    };
    let then = if was_predicted {
        format!(
            "; predicted: before the table was looked up, on {LOOKED_UP}, median error {}",
            median(|cell| cell.predicted)
        )
    } else {
        String::new()
    };
    let machine = if study.is_papers_cluster {
        "the machine, which is fitted to all tables".to_owned()
    } else {
        format!("{}, which is not fitted to the tables", study.machine)
    };
    format!(
        "Seconds of {} executions. Fitted: to all tables, median error {}; left out: error of the fit to all columns but this one, \
         median {}; simulated: error on {machine}, median {}{then}.",
        table.executions,
        median(|cell| Some(cell.computed)),
        median(|cell| cell.left_out),
        median(|cell| cell.simulated),
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
        note: "calibrated: the model was fitted to these tables. papers/hong-2006/README.md says where each number comes from."
            .to_owned(),
        columns: vec!["section", "statement", "computed", "", "basis"],
        rows: statements.iter().map(row).collect(),
    }
}
