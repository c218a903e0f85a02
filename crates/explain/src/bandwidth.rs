//! Bandwidth, which has one meaning everywhere: bytes moved, over the time in which at least one call that moves such
//! bytes was under way. What overlaps, of threads or of processes, counts once. A call of a library that returns before its
//! data move is under way as well while calls at the files move them.

use std::collections::VecDeque;

use pio_trace::{Flags, Layer, Op};

use crate::tally::Seen;
use crate::totals::direction;

/// Bytes that calls moved, and the time in which they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes moved.
    pub bytes: u64,
    /// Time with at least one of the calls under way, nanoseconds.
    pub busy_ns: u64,
}

impl Transfer {
    /// Bytes per second; none if nothing was moved or it took no time.
    pub fn bandwidth_bytes_per_s(&self) -> Option<f64> {
        (self.bytes > 0 && self.busy_ns > 0).then(|| self.bytes as f64 / self.busy_ns as f64 * 1e9)
    }
}

/// What the program read and wrote, whatever it asked for it: stdio, POSIX, MPI-IO, HDF5, PnetCDF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Data that were read, and the time in which they were.
    pub read: Transfer,
    /// Data that were written, and the time in which they were.
    pub write: Transfer,
    /// Both: shorter than their sum where they overlap.
    pub data: Transfer,
}

/// Time in which data moved after the call that asked for it had returned, in sum, nanoseconds: of calls at the files, or of a call
/// of a library that only waits for that (PnetCDF's), as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Later {
    /// Of reads.
    pub read_ns: u64,
    /// Of writes.
    pub write_ns: u64,
    /// What of both is time of calls that wait, which are syncs.
    pub in_syncs_ns: u64,
}

impl Later {
    pub(crate) fn add(&mut self, moved: MovedLater, elapsed_ns: u64) {
        let of_operation = if moved.writes { &mut self.write_ns } else { &mut self.read_ns };
        let time_ns = moved.in_sync_of_ns.unwrap_or(elapsed_ns);
        *of_operation = of_operation.saturating_add(time_ns);
        self.in_syncs_ns = self.in_syncs_ns.saturating_add(moved.in_sync_of_ns.unwrap_or(0));
    }
}

/// Time that calls cover, which come in order of their start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Covered {
    until_ns: u64,
    pub(crate) busy_ns: u64,
}

impl Covered {
    /// Adds a call. Gives what of its time no call before it covers: from when, and how long.
    pub(crate) fn add(&mut self, start_ns: u64, end_ns: u64) -> (u64, u64) {
        let from_ns = start_ns.max(self.until_ns);
        let added_ns = end_ns.saturating_sub(from_ns);
        if added_ns > 0 {
            self.until_ns = end_ns;
            self.busy_ns += added_ns;
        }
        (from_ns, added_ns)
    }
}

/// Operations that a process began by calls of libraries which return before their data move.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun {
    operations: VecDeque<Operation>,
    waits: Option<Wait>,
}

/// A call that may go on with any operation that was begun, as a wait for several does.
#[derive(Clone, Copy, Debug)]
struct Wait {
    thread: u32,
    /// Of a library's own wait, its time, until it is counted.
    sync_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    id: u64,
    layer: Layer,
    writes: bool,
}

/// What a call at the files moved of an operation that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MovedLater {
    /// The layer of the call that began it.
    pub(crate) layer: Layer,
    /// Whether it is a write.
    pub(crate) writes: bool,
    /// Where that was within a call of a library that only waits for what was begun: the time of that call, which counts
    /// once, nanoseconds.
    pub(crate) in_sync_of_ns: Option<u64>,
}

impl Begun {
    /// Of more, the oldest are forgotten.
    const MOST: usize = 256;

    /// Takes a call of any layer; they come in order of start. What it moves of an operation that was begun, if it does.
    pub(crate) fn add(&mut self, event: &Seen<'_>) -> Option<MovedLater> {
        let is_at_files = event.layer().is_at_files();
        if !event.is_physical() {
            let is_sync = event.op() == Op::Sync && !is_at_files;
            if (is_sync || event.layer() == Layer::Message) && !self.operations.is_empty() {
                self.waits =
                    Some(Wait { thread: event.thread, sync_ns: is_sync.then_some(event.elapsed_ns) });
            } else if self.waits.is_some_and(|wait| wait.thread == event.thread) {
                self.waits = None;
            }
        }
        let writes = direction(event)?;
        if event.is_physical() {
            return if is_at_files { self.moved(event, writes) } else { None };
        }
        if event.operation != 0 && event.flags.contains(Flags::ASYNC) && !is_at_files {
            if self.operations.len() == Begun::MOST {
                self.operations.pop_front();
            }
            self.operations.push_back(Operation { id: event.operation, layer: event.layer(), writes });
        }
        None
    }

    fn moved(&mut self, event: &Seen<'_>, writes: bool) -> Option<MovedLater> {
        let newest = |is: &dyn Fn(&Operation) -> bool| self.operations.iter().rev().find(|begun| is(begun));
        let wait = self.waits.as_mut().filter(|wait| wait.thread == event.thread);
        let begun = newest(&|begun| event.operation != 0 && begun.id == event.operation)
            // Who waits for several does not say which of them goes on.
            .or_else(|| wait.as_ref().and_then(|_| newest(&|begun| begun.writes == writes)))?;
        let sync_ns = wait.and_then(|wait| wait.sync_ns.as_mut());
        let in_sync_of_ns = sync_ns.map(std::mem::take);
        Some(MovedLater { layer: begun.layer, writes: begun.writes, in_sync_of_ns })
    }
}
