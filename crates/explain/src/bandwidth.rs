//! Bandwidth, which has one meaning everywhere: bytes moved, over the time in which at least one call that moves such
//! bytes was under way. What overlaps, of threads or of processes, counts once. A call of a library that returns before its
//! data move is under way as well while calls at the files move them.

use std::collections::VecDeque;

use pio_trace::{Flags, Layer, Op};

use crate::tally::Seen;

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
pub(crate) struct Begun(VecDeque<(u64, Layer, bool)>);

impl Begun {
    /// Of more, the oldest are forgotten.
    const MOST: usize = 256;

    /// Takes a call of any layer; they come in order of start. Whether a call at the files moves the data of an operation that
    /// was begun: then by a call of which layer, and whether it is a write.
    pub(crate) fn add(&mut self, event: &Seen<'_>) -> Option<(Layer, bool)> {
        let writes = match event.op() {
            Op::Read => false,
            Op::Write => true,
            _ => return None,
        };
        if event.operation == 0 {
            return None;
        }
        if event.is_physical() {
            let is_at_files = !self.0.is_empty() && event.layer().is_at_files();
            let of_event = || self.0.iter().rev().find(|(operation, ..)| *operation == event.operation);
            return is_at_files.then(of_event).flatten().map(|&(_, layer, writes)| (layer, writes));
        }
        if event.flags.contains(Flags::ASYNC) && !event.layer().is_at_files() {
            if self.0.len() == Begun::MOST {
                self.0.pop_front();
            }
            self.0.push_back((event.operation, event.layer(), writes));
        }
        None
    }
}
