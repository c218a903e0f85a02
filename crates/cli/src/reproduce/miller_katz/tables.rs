//! Tables 1 and 2: the generated applications are written as traces, read again and explained like any other.

use anyhow::{Context, Result};
use pio_explain::{Amount, Explanation, Workload};
use pio_report::Table;
use pio_sim::workload::miller_katz::{PUBLISHED, application};
use pio_sim::workload::write_trace;
use pio_studies::miller_katz::{Measured, Printed, printed, table};
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
