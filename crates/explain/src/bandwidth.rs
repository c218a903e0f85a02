//! Bandwidth, which has one meaning everywhere: bytes moved, over the time in which at least one call that moves such
//! bytes was under way. What overlaps, of threads or of processes, counts once.

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
