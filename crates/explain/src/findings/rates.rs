//! The rate that others are measured by.

use pio_trace::{Flags, Op};

use super::cost::Cost;
use super::limits::{ASSUMED_RATE, LARGE, RATE_CALLS};
use crate::tally::{Amount, Seen};

/// What large requests reach.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    read: (Amount, u64),
    write: (Amount, u64),
}

/// The rate of one direction, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Bytes per second of one process's call time.
    pub bytes_per_s: f64,
    /// Whether the trace's own large requests reached it; else it is assumed.
    pub measured: bool,
}

impl Rates {
    /// Takes note of a request of the program. A collective call waits for others, and an asynchronous one does not
    /// wait for its data: neither tells a rate.
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        let apart = event.flags.contains(Flags::COLLECTIVE) || event.flags.contains(Flags::ASYNC);
        // By what was moved: a short read at the end of a small file is no large request.
        if event.bytes < LARGE || apart || event.elapsed_ns == 0 {
            return;
        }
        let (amount, time_ns) = if event.op() == Op::Read { &mut self.read } else { &mut self.write };
        amount.add(event.bytes);
        *time_ns = time_ns.saturating_add(event.elapsed_ns);
    }

    /// The rates of reading and of writing.
    pub(crate) fn finish(&self) -> References {
        let of = |(amount, time_ns): (Amount, u64)| {
            if amount.count >= RATE_CALLS && amount.bytes > 0 && time_ns > 0 {
                Reference { bytes_per_s: amount.bytes as f64 / time_ns as f64 * 1e9, measured: true }
            } else {
                Reference { bytes_per_s: ASSUMED_RATE, measured: false }
            }
        };
        References { read: of(self.read), write: of(self.write) }
    }
}

/// The rates of reading and of writing that others are measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct References {
    /// Of reading.
    pub read: Reference,
    /// Of writing.
    pub write: Reference,
}

impl References {
    /// Without any large request to tell.
    pub(crate) fn assumed() -> References {
        Rates::default().finish()
    }

    /// Time that the bytes of these calls would take in large requests, nanoseconds.
    pub fn time_ns(&self, cost: &Cost) -> f64 {
        let part = |bytes: u64, reference: Reference| bytes as f64 / reference.bytes_per_s * 1e9;
        part(cost.read_bytes, self.read) + part(cost.write_bytes, self.write)
    }
}
