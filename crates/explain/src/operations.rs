//! Tables by operation: Thakur et al. 1996, Tables 1 and 2.

use pio_trace::{Call, Layer, Op};

use crate::bandwidth::Transfer;
use crate::sizes::Sizes;
use crate::tally::{Seen, Tally};

/// One tally an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations([Tally; Op::ALL.len()]);

impl Operations {
    /// The operations that occur, in order of [`Op`].
    pub fn iter(&self) -> impl Iterator<Item = (Op, Tally)> {
        Op::ALL.into_iter().zip(self.0).filter(|(_, tally)| tally.count > 0)
    }

    pub(crate) fn merge(&mut self, other: &Operations) {
        for (sum, tally) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.merged(*tally);
        }
    }
}

/// Counts, times and request sizes by operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationTable {
    /// The operations that occur.
    pub operations: Operations,
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
        } else {
            self.operations.0[event.op() as usize].add(event);
        }
        self.add_size(event);
    }

    /// Counts the size of one event alone: for who counts events otherwise.
    pub(crate) fn add_size(&mut self, event: &Seen<'_>) {
        match event.op() {
            Op::Read => self.read_sizes.add(event.size),
            Op::Write => self.write_sizes.add(event.size),
            _ => {}
        }
    }

    /// Adds events of a call, but for their sizes.
    pub(crate) fn add_calls(&mut self, call: Call, tally: Tally) {
        let sum = match call {
            Call::StrategyAcknowledge => &mut self.acknowledgements,
            _ => &mut self.operations.0[call.op() as usize],
        };
        *sum = sum.merged(tally);
    }

    /// Both together.
    pub(crate) fn merged(&self, other: &OperationTable) -> OperationTable {
        let mut both = self.clone();
        both.operations.merge(&other.operations);
        both.acknowledgements = both.acknowledgements.merged(other.acknowledgements);
        both.read_sizes = both.read_sizes.merged(&other.read_sizes);
        both.write_sizes = both.write_sizes.merged(&other.write_sizes);
        both
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.operations.iter().next().is_none() && self.acknowledgements.count == 0
    }

    /// Time in all of them, acknowledgements too, seconds.
    pub fn time_s(&self) -> f64 {
        self.operations.iter().map(|(_, tally)| tally.time_s()).sum::<f64>() + self.acknowledgements.time_s()
    }

    /// What an operation amounts to; all zero if there was none.
    pub fn tally(&self, op: Op) -> Tally {
        self.operations.0[op as usize]
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
    /// What of the communication are messages that the program sent for itself: Thakur counts them, but they are no I/O.
    pub own_messages: Tally,
    /// Data that were read.
    pub read: Transfer,
    /// Data that were written.
    pub write: Transfer,
}

impl OperationView {
    /// The operations that occur, without the program's own messages: what all I/O is made of, but for acknowledgements.
    pub fn for_io(&self) -> impl Iterator<Item = (Op, Tally)> + '_ {
        let own = self.own_messages;
        let less_own = move |(op, tally): (Op, Tally)| match op {
            Op::Communicate => (op, tally.less(own)),
            _ => (op, tally),
        };
        self.table.operations.iter().map(less_own).filter(|(_, tally)| tally.count > 0)
    }

    /// Time in all of them, acknowledgements too, seconds.
    pub fn for_io_time_s(&self) -> f64 {
        self.for_io().map(|(_, tally)| tally.time_s()).sum::<f64>() + self.table.acknowledgements.time_s()
    }

    /// Total time of an operation over the number of processes, seconds (Table 1, last column).
    pub fn mean_time_per_process_s(&self, op: Op) -> Option<f64> {
        (self.processes > 0).then(|| self.table.tally(op).time_s() / self.processes as f64)
    }

    /// Bandwidth of reads or writes, bytes per second. None of other operations, and if nothing was moved or it took no
    /// time.
    pub fn bandwidth_bytes_per_s(&self, op: Op) -> Option<f64> {
        match op {
            Op::Read => self.read.bandwidth_bytes_per_s(),
            Op::Write => self.write.bandwidth_bytes_per_s(),
            _ => None,
        }
    }
}
