//! The study's tables, published beside computed.

use pio_report::Table;
use pio_report::units::significant;

use super::{Printed, Sensitivity};
use crate::{Computed, Published, Statement, Verdict};

/// Table 1 or 2 of the paper.
pub fn table(number: u32, rows: &[Printed]) -> Table {
    let cells = |row: &Printed| {
        let unit = |value: f64| format!("{} {}", significant(value), row.unit).trim_end().to_owned();
        let error = match row.error() {
            // Times are cut off to nanoseconds in a trace.
            Some(error) if error.abs() < 0.0005 => "0.0 %".to_owned(),
            Some(error) if error.abs() <= 0.02 || !row.is_rounded() => format!("{:+.1} %", error * 100.0),
            _ => "rounds to it".to_owned(),
        };
        let published = if row.published == 0.0 { "< 0.1".to_owned() } else { unit(row.published) };
        vec![row.application.to_owned(), row.what.to_owned(), published, unit(row.computed), error]
    };
    let title = match number {
        1 => "Table 1: the applications, published and from the generated traces",
        _ => "Table 2: requests to large files, in a second of CPU",
    };
    let note = match number {
        1 => {
            "The tables calibrate the generators: one volume of data for both, between what the two say. MB are 10^6 B."
        }
        _ => {
            "Sizes and rates are in powers of two. upw's rate of writing and ratio are printed ten times as low and as \
              high, against Table 1."
        }
    };
    Table {
        title: title.to_owned(),
        note: note.to_owned(),
        columns: vec!["application", "what", ">published", ">generated", ">error"],
        rows: rows.iter().filter(|row| row.table == number).map(cells).collect(),
    }
}

/// What the paper states, and what was predicted before that was known.
pub fn statement_tables(statements: &[Statement]) -> [Table; 2] {
    let (known, unknown): (Vec<&Statement>, Vec<&Statement>) =
        statements.iter().partition(|statement| statement.published != Published::Nothing);
    [stated(&known), predicted(&unknown)]
}

fn stated(statements: &[&Statement]) -> Table {
    let cells = |one: &Statement| {
        let unit = if let Computed::Number(_, unit) = one.computed { unit } else { "" };
        let published = match one.published {
            Published::Number(number) => format!("{} {unit}", significant(number)),
            Published::AtLeast(number) => format!("at least {} {unit}", significant(number)),
            Published::Words(words) => words.to_owned(),
            Published::Nothing => String::new(),
        };
        vec![
            one.place.to_owned(),
            one.what.clone(),
            published.trim().to_owned(),
            computed(one),
            verdict(one),
            one.basis.name().to_owned(),
        ]
    };
    Table {
        title: "What the paper states".to_owned(),
        note:
            "calibrated: a parameter was fitted to it. predicted: no parameter was, but mechanisms were chosen after all numbers \
               had been looked up. 1 MW is 8 MiB. \
               papers/miller-katz-1991/README.md says where each number comes from."
                .to_owned(),
        columns: vec!["section", "what", "published", ">computed", "", "basis"],
        rows: statements.iter().map(|one| cells(one)).collect(),
    }
}

/// What the paper does not print, so that nothing can be held against it.
fn predicted(statements: &[&Statement]) -> Table {
    let cells = |one: &Statement| vec![one.place.to_owned(), one.what.clone(), computed(one)];
    Table {
        title: "Never printed: as the model has it".to_owned(),
        note: "Nothing was fitted to any of them.".to_owned(),
        columns: vec!["section", "what", ">computed"],
        rows: statements.iter().map(|one| cells(one)).collect(),
    }
}

fn computed(statement: &Statement) -> String {
    match &statement.computed {
        Computed::Number(value, unit) => format!("{} {unit}", significant(*value)).trim_end().to_owned(),
        Computed::Words(words) => words.clone(),
    }
}

fn verdict(statement: &Statement) -> String {
    match statement.verdict {
        Verdict::Error(error) => format!("{:+.1} %", error * 100.0),
        Verdict::Holds => "as stated".to_owned(),
        Verdict::Fails => "NOT AS STATED".to_owned(),
        Verdict::Open => String::new(),
    }
}

/// Sensitivities as a table.
pub fn sensitivities_table(rows: &[Sensitivity]) -> Table {
    let cells = |row: &Sensitivity| {
        let mut cells = vec![row.change.clone()];
        cells.extend(row.idle_s.iter().map(|idle| format!("{idle:.1}")));
        cells
    };
    Table {
        title: "Idle time of two venus if a parameter that was never printed were another, s".to_owned(),
        note: "One change at a time. The columns are sizes of the buffers.".to_owned(),
        columns: vec!["change", ">1 MW", ">2 MW", ">4 MW", ">16 MW"],
        rows: rows.iter().map(cells).collect(),
    }
}
