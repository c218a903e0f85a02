//! The rows of the timeline: one a thread.

use std::collections::{BTreeMap, BTreeSet};

use pio_explain::Explanation;
use pio_trace::{ProcessId, Tables};

use crate::bars::Bar;
use crate::escape;

/// Rows of one process: the last is that of all further threads.
const MOST_THREADS: usize = 64;

/// The rows, process after process: those by which the job is measured in the explanation's order, then all others.
pub(crate) struct Rows {
    /// Names of the processes.
    pub(crate) processes: Vec<String>,
    /// Names of the rows: a process's own, then those of its further threads.
    pub(crate) names: Vec<String>,
    /// Index of each row's process in `processes`.
    pub(crate) process_of_row: Vec<usize>,
    /// First row of a process, and its threads in order.
    rows_of: BTreeMap<ProcessId, (usize, Vec<u32>)>,
}

impl Rows {
    pub(crate) fn of(tables: &Tables, found: &Explanation, bars: &[Bar]) -> Rows {
        let mut threads: BTreeMap<ProcessId, BTreeSet<u32>> = BTreeMap::new();
        for bar in bars {
            threads.entry(ProcessId(bar.process)).or_default().insert(bar.thread);
        }
        let mut rows = Rows {
            processes: Vec::new(),
            names: Vec::new(),
            process_of_row: Vec::new(),
            rows_of: BTreeMap::new(),
        };
        let measured = found.processes.iter().map(|process| process.process);
        for process in measured.chain(threads.keys().copied()) {
            if !rows.rows_of.contains_key(&process) {
                rows.add(tables, process, threads.get(&process));
            }
        }
        rows
    }

    /// The row of a thread.
    pub(crate) fn row(&self, process: ProcessId, thread: u32) -> u64 {
        let Some((first, threads)) = self.rows_of.get(&process) else { return 0 };
        let place = threads.binary_search(&thread).unwrap_or(0).min(MOST_THREADS - 1);
        (first + place) as u64
    }

    /// The index of a process in `processes`.
    pub(crate) fn process(&self, process: ProcessId) -> Option<usize> {
        self.process_of_row.get(self.rows_of.get(&process)?.0).copied()
    }

    fn add(&mut self, tables: &Tables, process: ProcessId, threads: Option<&BTreeSet<u32>>) {
        let name = match tables.processes.get(process.index()) {
            Some(known) => match known.rank {
                Some(rank) => format!("rank {rank}"),
                None => escape::program(known.program_name(), known.pid),
            },
            None => format!("process {}", process.0),
        };
        let threads: Vec<u32> = threads.into_iter().flatten().copied().collect();
        self.rows_of.insert(process, (self.names.len(), threads.clone()));
        let index = self.processes.len();
        self.processes.push(name.clone());
        self.push(name, index);
        for (place, thread) in threads.iter().enumerate().skip(1).take(MOST_THREADS - 1) {
            let shared = place + 1 == MOST_THREADS && threads.len() > MOST_THREADS;
            self.push(if shared { "other threads".to_owned() } else { format!("thread {thread}") }, index);
        }
    }

    fn push(&mut self, name: String, process: usize) {
        self.names.push(name);
        self.process_of_row.push(process);
    }
}
