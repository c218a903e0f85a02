//! What a simulation found.

use std::collections::BTreeMap;

use pio_machine::Duration;
use pio_plan::Strategy;
use pio_trace::{Call, Event, Layer, Op};

/// How long a workload's I/O takes on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Name of the workload.
    pub workload: String,
    /// Name of the machine.
    pub machine: String,
    /// The strategy of the collective operations.
    pub strategy: Strategy,
    /// The hints, as `key=value` words.
    pub hints: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Those of the nodes that have most.
    pub ranks_per_node: u32,
    /// When the last rank is done.
    pub makespan: Duration,
    /// Time in I/O calls (MPI-IO, or POSIX where the program calls it itself): mean of the ranks.
    pub io_time_mean: Duration,
    /// The same: the rank that has most.
    pub io_time_max: Duration,
    /// Of the mean, what calls take that are not replayed: as long as where they were recorded.
    pub unreplayed_mean: Duration,
    /// Time with a read or write of the program under way on any rank. Those that are not replayed take as long as where they
    /// were recorded.
    pub moving: Duration,
    /// Bytes that the program read.
    pub bytes_read: u64,
    /// Bytes that the program wrote.
    pub bytes_written: u64,
    /// What the calls did, all ranks together: what reaches the file system, and the messages. In the order of
    /// [`Op::ALL`], those that occur.
    pub operations: Vec<OperationTotal>,
    /// Time in each function, all ranks together: in the calls of the program (`true`), and in those that an upper layer of it
    /// made. Without messages.
    pub calls: BTreeMap<(Call, bool), Duration>,
    /// Requests of each size: (read or write, bytes) and how many.
    pub sizes: BTreeMap<(Op, u64), u64>,
    /// What each I/O server did; none where storage is local.
    pub servers: Vec<ServerTotal>,
    /// Bytes that messages, requests and answers took from one node to another.
    pub bytes_between_nodes: u64,
    /// Events that were simulated: a measure of the work it took.
    pub simulated_events: u64,
}

/// The work of one I/O server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTotal {
    /// Requests, or parts of requests that were dealt out to several servers.
    pub requests: u64,
    /// Bytes read from it.
    pub bytes_read: u64,
    /// Bytes written to it.
    pub bytes_written: u64,
}

/// All calls of a kind, of all ranks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationTotal {
    /// The kind.
    pub op: Op,
    /// How many. Messages: those that carry descriptions, data or grants; acknowledgements are not counted.
    pub count: u64,
    /// Acknowledgements, for [`Op::Communicate`].
    pub acknowledgements: u64,
    /// How long they took together. Communication includes waiting, and acknowledgements.
    pub time: Duration,
    /// How much of that acknowledgements took.
    pub acknowledging: Duration,
    /// How much of that the program's own messages took, which are not I/O.
    pub of_program: Duration,
}

impl OperationTotal {
    fn nothing(op: Op) -> OperationTotal {
        let time = Duration::ZERO;
        OperationTotal { op, count: 0, acknowledgements: 0, time, acknowledging: time, of_program: time }
    }

    /// Time, mean of the ranks, seconds.
    pub fn mean_seconds(&self, ranks: u32) -> f64 {
        self.time.seconds() / f64::from(ranks.max(1))
    }
}

impl Prediction {
    /// Where the mean I/O time of a rank goes, seconds: by kind of operation, then what acknowledgements took, and what is
    /// left for the MPI library. What takes less than a thousandth is left out.
    pub fn breakdown(&self) -> Vec<(&'static str, f64)> {
        let mean = |time: Duration| time.seconds() / f64::from(self.ranks.max(1));
        let io_time_s = self.io_time_mean.seconds();
        let mut parts = Vec::new();
        for op in
            [Op::Open, Op::Close, Op::Read, Op::Write, Op::Seek, Op::Metadata, Op::Sync, Op::Communicate]
        {
            let total = self.operation(op);
            parts.push((op.name(), mean(total.time) - mean(total.acknowledging) - mean(total.of_program)));
        }
        parts.push(("acknowledgement", mean(self.operation(Op::Communicate).acknowledging)));
        parts.push(("as recorded", self.unreplayed_mean.seconds()));
        let rest = io_time_s - parts.iter().map(|(_, seconds)| seconds).sum::<f64>();
        parts.push(("inside MPI", rest));
        parts.retain(|(_, seconds)| *seconds > io_time_s / 1000.0);
        parts
    }

    /// The totals of one kind of operation; nothing if there was none.
    pub fn operation(&self, op: Op) -> OperationTotal {
        let none = OperationTotal::nothing(op);
        self.operations.iter().copied().find(|total| total.op == op).unwrap_or(none)
    }

    /// Bytes read and written, over the time with a read or write under way on any rank, in bytes a second: what
    /// `explain` calls bandwidth. 0 if there was no I/O.
    pub fn bandwidth_bytes_per_s(&self) -> f64 {
        let seconds = self.moving.seconds();
        if seconds > 0.0 { (self.bytes_read + self.bytes_written) as f64 / seconds } else { 0.0 }
    }
}

/// Sums while a simulation runs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) totals: BTreeMap<Op, OperationTotal>,
    pub(crate) calls: BTreeMap<(Call, bool), Duration>,
    pub(crate) sizes: BTreeMap<(Op, u64), u64>,
    /// Time in I/O calls, picoseconds, of each rank.
    pub(crate) io_time: Vec<u64>,
    /// When reads and writes were under way: spans apart from each other in order, from and until, picoseconds.
    pub(crate) moving: Vec<(u64, u64)>,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) bytes_between_nodes: u64,
}

impl Tally {
    /// A request to the file system, a message, or another call that no other call stands for.
    pub(crate) fn count(&mut self, call: Call, bytes: u64, time: Duration) {
        let op = call.op();
        let total = self.totals.entry(op).or_insert_with(|| OperationTotal::nothing(op));
        let add = |sum: &mut Duration| *sum = sum.saturating_add(time);
        match call {
            Call::StrategyAcknowledge => {
                total.acknowledgements += 1;
                add(&mut total.acknowledging);
            }
            _ => total.count += 1,
        }
        add(&mut total.time);
        if matches!(op, Op::Read | Op::Write) {
            *self.sizes.entry((op, bytes)).or_insert(0) += 1;
        }
    }

    /// A message of the program itself, which is not I/O.
    pub(crate) fn count_of_program(&mut self, call: Call, bytes: u64, time: Duration) {
        self.count(call, bytes, time);
        let total = self.totals.entry(call.op()).or_insert_with(|| OperationTotal::nothing(call.op()));
        total.of_program = total.of_program.saturating_add(time);
    }

    /// An event of the trace.
    pub(crate) fn happened(&mut self, event: &Event) {
        if event.layer() == Layer::Message || event.op() == Op::Communicate {
            return;
        }
        let time = self.calls.entry((event.call, !event.is_physical())).or_default();
        *time = time.saturating_add(Duration::from_picoseconds(event.elapsed_ns.saturating_mul(1000)));
    }

    /// Requests of these sizes that were made at the same time, and took so long together.
    pub(crate) fn count_together(&mut self, call: Call, sizes: impl Iterator<Item = u64>, time: Duration) {
        let mut left = time;
        for bytes in sizes {
            self.count(call, bytes, std::mem::replace(&mut left, Duration::ZERO));
        }
    }

    /// A read or write of the program that is over: they end in order.
    pub(crate) fn moved(&mut self, from_ps: u64, until_ps: u64) {
        let mut from_ps = from_ps;
        while let Some(&(earlier, _)) = self.moving.last().filter(|(_, end)| *end >= from_ps) {
            from_ps = from_ps.min(earlier);
            self.moving.pop();
        }
        self.moving.push((from_ps, until_ps));
    }

    /// Time with a read or write under way.
    pub(crate) fn moving(&self) -> Duration {
        Duration::from_picoseconds(self.moving.iter().map(|(from, until)| until - from).sum())
    }

    /// A call of the program.
    pub(crate) fn called(&mut self, rank: u32, op: Op, bytes: u64, time: Duration) {
        let sum = &mut self.io_time[rank as usize];
        *sum = sum.saturating_add(time.picoseconds());
        match op {
            Op::Read => self.bytes_read += bytes,
            Op::Write => self.bytes_written += bytes,
            _ => {}
        }
    }
}
