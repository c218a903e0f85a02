//! Tables by operation: Thakur et al. 1996, Tables 1 and 2.

use std::collections::BTreeMap;

use pio_trace::{Call, Layer, Op};

use crate::sizes::Sizes;
use crate::tally::{Seen, Tally};

/// Counts, times and request sizes by operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationTable {
    /// The operations that occur.
    pub operations: BTreeMap<Op, Tally>,
    /// A strategy's acknowledgements. They are not in `operations`: Thakur's routines did not wait for the far side's
    /// write, so that their "communication" has nothing that matches the wait for one.
    pub acknowledgements: Tally,
    /// Sizes asked for by reads.
    pub read_sizes: Sizes,
    /// Sizes asked for by writes.
    pub write_sizes: Sizes,
}

impl OperationTable {
    /// Counts one event.
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        if event.call == Call::StrategyAcknowledge {
            self.acknowledgements.add(event);
            return;
        }
        let op = event.op();
        self.operations.entry(op).or_default().add(event);
        match op {
            Op::Read => self.read_sizes.add(event.size),
            Op::Write => self.write_sizes.add(event.size),
            _ => {}
        }
    }

    /// Both together.
    pub(crate) fn merged(&self, other: &OperationTable) -> OperationTable {
        let mut both = self.clone();
        for (op, tally) in &other.operations {
            let sum = both.operations.entry(*op).or_default();
            *sum = sum.merged(*tally);
        }
        both.acknowledgements = both.acknowledgements.merged(other.acknowledgements);
        both.read_sizes = both.read_sizes.merged(&other.read_sizes);
        both.write_sizes = both.write_sizes.merged(&other.write_sizes);
        both
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.acknowledgements.count == 0
    }

    /// What an operation amounts to; all zero if there was none.
    pub fn tally(&self, op: Op) -> Tally {
        self.operations.get(&op).copied().unwrap_or_default()
    }
}

/// Thakur's view of a job: what the file system sees, and the communication done for I/O.
///
/// For a program that uses MPI-IO the file operations are the POSIX calls on the files that it opened by MPI-IO, which
/// is what Thakur's I/O library issued; if the trace has none (its files live on Pioscope's servers, or it was imported
/// without them) they are the MPI-IO calls. For any other program they are its POSIX and stdio calls.
///
/// *Communication* is every message that a strategy made (but acknowledgements, see [`OperationTable`]) and every
/// message of the program from the start of a process's first open to the end of its last close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// Where the file operations were counted.
    pub layer: Layer,
    /// The processes of the job: means are over them.
    pub processes: u64,
    /// The operations, communication among them.
    pub table: OperationTable,
}

impl OperationView {
    /// Total time of an operation over the number of processes, seconds (Table 1, last column).
    pub fn mean_time_per_process_s(&self, op: Op) -> Option<f64> {
        (self.processes > 0).then(|| self.table.tally(op).time_s() / self.processes as f64)
    }

    /// Bytes moved by all processes over the mean time per process, bytes per second (Table 2, last column). None if
    /// nothing was moved or it took no time.
    pub fn aggregate_bandwidth_bytes_per_s(&self, op: Op) -> Option<f64> {
        let bytes = self.table.tally(op).bytes;
        let time_s = self.mean_time_per_process_s(op)?;
        (bytes > 0 && time_s > 0.0).then(|| bytes as f64 / time_s)
    }
}
