//! Tables 1 and 2: the generated applications are written as traces, read again and explained like any other.

use anyhow::{Context, Result};
use pio_explain::{Amount, Explanation, Workload};
use pio_report::Table;
use pio_report::units::significant;
use pio_sim::workload::miller_katz::{PUBLISHED, application};
use pio_sim::workload::write_trace;
use pio_studies::miller_katz::{Measured, Printed, printed};
use pio_trace::Trace;

/// Both tables, and whether every number agrees.
pub(super) fn tables() -> Result<([Table; 2], bool)> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let mut rows: Vec<Printed> = Vec::new();
    for published in &PUBLISHED {
        let path = folder.path().join(format!("{}.pio", published.name));
        write_trace(&application(published.name)?, &[], &path)?;
        let found = Explanation::of_trace(&Trace::open(&path)?, &mut |_| {})?;
        rows.extend(printed(published, &measured(&found.workload)));
    }
    let holds = rows.iter().all(Printed::agrees);
    Ok(([table(1, &rows), table(2, &rows)], holds))
}

fn measured(found: &Workload) -> Measured {
    let amount = |amount: Amount| (amount.bytes as f64, amount.count as f64);
    Measured {
        cpu_s: found.cpu_s,
        data_bytes: found.data_size_bytes as f64,
        all: (found.io_bytes() as f64, found.io_count() as f64),
        large_read: amount(found.large_read),
        large_written: amount(found.large_write),
    }
}

fn table(number: u32, rows: &[Printed]) -> Table {
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
