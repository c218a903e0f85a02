//! Many processes at a glance: what each host did, and which processes differ most from the rest.
//!
//! Where all processes fit into a table of their own these tables would only repeat it.

use std::collections::BTreeMap;

use pio_explain::{Explanation, ProcessStatistics};

use crate::over_time::is_crowd;
use crate::sections::{Limits, process_name};
use crate::table::Table;
use crate::units;

/// Processes that are named because they differ.
const OUTLIERS: usize = 10;
/// By less than this factor, processes of the same job always differ.
const LEAST_FACTOR: f64 = 1.1;

/// What the processes of each host did, those whose slowest process took longest first; no rows for one host, or few processes.
pub(crate) fn hosts(found: &Explanation, limits: &Limits) -> Table {
    let mut by_host: BTreeMap<&str, Vec<&ProcessStatistics>> = BTreeMap::new();
    for process in &found.processes {
        by_host.entry(&process.host).or_default().push(process);
    }
    if !is_crowd(found) || by_host.len() < 2 {
        return Table::default();
    }
    let mut hosts: Vec<_> = by_host.into_iter().collect();
    // By name where they are alike.
    hosts.sort_by_key(|(_, processes)| std::cmp::Reverse(longest(processes)));
    let count = hosts.len();
    let rows = hosts.iter().take(limits.rows).map(|(host, processes)| {
        let bytes = |of: fn(&ProcessStatistics) -> u64| {
            units::bytes(processes.iter().map(|process| of(process) as f64).sum())
        };
        let mean_ns =
            processes.iter().map(|process| process.io_ns as f64).sum::<f64>() / processes.len() as f64;
        vec![
            (*host).to_owned(),
            units::count(processes.len() as u64),
            bytes(|process| process.program.read.bytes),
            bytes(|process| process.program.write.bytes),
            units::time_s(mean_ns / 1e9),
            units::time_ns(processes.iter().map(|process| process.io_ns).min().unwrap_or(0)),
            units::time_ns(longest(processes)),
        ]
    });
    let rest = count.saturating_sub(limits.rows);
    Table {
        title: "Hosts".into(),
        note: if rest > 0 {
            format!(
                "Those with the longest time in I/O of a process; and {} more.",
                units::count(rest as u64)
            )
        } else {
            String::new()
        },
        columns: vec![
            "host",
            if found.is_mpi { ">ranks" } else { ">processes" },
            ">read",
            ">written",
            ">mean time in I/O",
            ">shortest",
            ">longest",
        ],
        rows: rows.collect(),
    }
}

fn longest(processes: &[&ProcessStatistics]) -> u64 {
    processes.iter().map(|process| process.io_ns).max().unwrap_or(0)
}

/// The processes that differ most from the median in time in I/O or in bytes, by the factor; no rows if there are few
/// processes, or none differs by a tenth.
pub(crate) fn outliers(found: &Explanation) -> Table {
    if !is_crowd(found) {
        return Table::default();
    }
    let measures: [fn(&ProcessStatistics) -> u64; 2] =
        [|process| process.io_ns, |process| process.program.data().bytes];
    let medians = measures.map(|of| median(found.processes.iter().map(of).collect()));
    let factors = |process: &ProcessStatistics| [0, 1].map(|at| factor(measures[at](process), medians[at]));
    let mut differing: Vec<_> = found
        .processes
        .iter()
        .map(|process| (factors(process).map(f64::ln).map(f64::abs).into_iter().fold(0.0, f64::max), process))
        .collect();
    // Stable: those that differ alike stay in order of rank.
    differing.sort_by(|one, other| other.0.total_cmp(&one.0));
    let rows = differing.iter().take(OUTLIERS).filter(|(distance, _)| *distance > LEAST_FACTOR.ln());
    let rows = rows.map(|(_, process)| {
        vec![
            process_name(process),
            process.host.clone(),
            units::time_ns(process.io_ns),
            times(process.io_ns, medians[0]),
            units::bytes(process.program.data().bytes as f64),
            times(process.program.data().bytes, medians[1]),
            units::count(process.program.data().count),
        ]
    });
    Table {
        title: if found.is_mpi {
            "Ranks that differ most".into()
        } else {
            "Processes that differ most".into()
        },
        note: format!(
            "Those that differ most from the median of {}, {OUTLIERS} at most, by the larger factor: {} in I/O, {} read and written.",
            units::count(found.processes.len() as u64),
            units::time_ns(medians[0]),
            units::bytes(medians[1] as f64)
        ),
        columns: vec![
            if found.is_mpi { "rank" } else { "process" },
            "host",
            ">time in I/O",
            ">of median",
            ">read and written",
            ">of median",
            ">requests",
        ],
        rows: rows.collect(),
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    let middle = values.len() / 2;
    values.select_nth_unstable(middle).1.to_owned()
}

/// How many times the median a value is, to compare. A nanosecond or byte more of each, so that what did nothing has a factor, too.
fn factor(value: u64, median: u64) -> f64 {
    (value as f64 + 1.0) / (median as f64 + 1.0)
}

/// How many times the median a value is, to read.
fn times(value: u64, median: u64) -> String {
    if median == 0 {
        return "–".into();
    }
    let times = value as f64 / median as f64;
    if (0.1..1000.0).contains(&times) {
        format!("{times:.2} ×")
    } else {
        format!("{} ×", units::significant(times))
    }
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, Event, File, FileId, Handle, HandleId, Process, ProcessId, Tables, Target};

    use super::*;

    /// Ranks on nodes of 10 that write alike, but for number 7, which writes nothing, and 70, which takes ten times as long.
    fn found(ranks: u32) -> Explanation {
        let process = |rank| Process {
            rank: Some(rank),
            pid: rank,
            host: format!("node{:02}", rank / 10),
            command: "app".into(),
            start_ns: 0,
            end_ns: Some(1_000_000),
        };
        let handle = |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks: 1, collective: 0 };
        let tables = Tables {
            processes: (0..ranks).map(process).collect(),
            files: vec![File { path: "/data".into() }],
            handles: (0..ranks).map(handle).collect(),
            ..Tables::default()
        };
        let write = |rank| Event {
            handle: Some(HandleId(rank)),
            target: Target::Extent { offset: u64::from(rank) * 4096 },
            size: 4096,
            result: 4096,
            elapsed_ns: if rank == 70 { 100_000 } else { 10_000 },
            ..Event::new(Call::Pwrite, ProcessId(rank), 1000)
        };
        Explanation::of(&tables, (0..ranks).filter(|rank| *rank != 7).map(write))
    }

    #[test]
    fn those_that_differ_are_named() {
        let table = outliers(&found(100));
        let named: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(named, ["7", "70"]);
        assert_eq!(table.rows[1][1..4], ["node07", "100 µs", "10.00 ×"]);
    }

    #[test]
    fn hosts_are_cut() {
        let limits = Limits { rows: 4, path: 22, wide: false };
        let table = hosts(&found(100), &limits);
        assert_eq!(table.rows.len(), 4);
        assert_eq!(table.rows[0][0], "node07");
        assert!(table.note.ends_with("and 6 more."), "{}", table.note);
    }

    #[test]
    fn few_processes_have_a_table_of_their_own() {
        let limits = Limits { rows: 4, path: 22, wide: false };
        assert_eq!(hosts(&found(64), &limits), Table::default());
        assert_eq!(outliers(&found(64)), Table::default());
    }
}
