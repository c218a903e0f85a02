//! What calls of one kind took.

use pio_trace::{Flags, Op};

use super::rates::Regime;
use crate::collectives::Settled;
use crate::tally::Seen;

/// Calls, what they moved and took, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Calls that the cost is made of.
    pub calls: u64,
    /// Of them, those that all ranks of a communicator made together.
    pub collective: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Of the bytes, those that were moved before, of calls that are charged with that: others may be new.
    pub again_bytes: u64,
    /// Sum of their elapsed times, nanoseconds.
    pub time_ns: u64,
    /// The same, but where calls of one process overlap, as those of its threads do, time counts once: for the call that
    /// began first, whatever it is charged to. So the sum over all that a process is charged with is no more than its time
    /// in I/O.
    pub own_ns: u64,
    /// Of the calls, those that waited for a device or server (or the processor), as far as their time tells.
    pub waits: u64,
    /// What these took, nanoseconds.
    pub waited_ns: u64,
    /// Start of the first, nanoseconds since the start of the job.
    pub from_ns: u64,
    /// End of the last.
    pub until_ns: u64,
}

impl Default for Cost {
    fn default() -> Cost {
        Cost {
            calls: 0,
            collective: 0,
            read_bytes: 0,
            write_bytes: 0,
            again_bytes: 0,
            time_ns: 0,
            own_ns: 0,
            waits: 0,
            waited_ns: 0,
            from_ns: u64::MAX,
            until_ns: 0,
        }
    }
}

impl Cost {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }

    /// What it would have taken without the bytes that were moved before, nanoseconds.
    pub(crate) fn without_again_ns(&self) -> f64 {
        let again = self.again_bytes as f64 / self.bytes().max(1) as f64;
        self.time_ns as f64 * (1.0 - again.min(1.0))
    }

    /// From the start of the first call to the end of the last, nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }

    /// Takes away time that turned out to be something else.
    pub(crate) fn take_away(&mut self, time_ns: u64) {
        self.time_ns = self.time_ns.saturating_sub(time_ns);
        self.own_ns = self.own_ns.saturating_sub(time_ns);
    }

    /// Its calls that are under way at a time in one process: 1 without threads.
    pub fn threads(&self) -> f64 {
        (self.time_ns as f64 / self.own_ns.max(1) as f64).max(1.0)
    }

    /// What of its waits larger requests would wait, too, nanoseconds: for what the system reads ahead or writes behind.
    /// Then nobody goes on. Where threads wait for each other instead, as writers of one file do, another one's calls are
    /// served meanwhile: as long as such calls take, nobody waited for a device.
    pub(crate) fn idle_waits_ns(&self) -> u64 {
        let served_ns = self.time_ns.saturating_sub(self.waited_ns);
        let idle_ns = self.own_ns.saturating_sub(served_ns) as f64 * self.threads();
        if self.own_ns >= self.time_ns { self.waited_ns } else { self.waited_ns.min(idle_ns as u64) }
    }

    /// Who serves most of the calls.
    pub(crate) fn regime(&self) -> Regime {
        if self.waits * 2 > self.calls { Regime::Device } else { Regime::Cached }
    }

    #[inline]
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        self.calls += 1;
        self.collective += u64::from(event.flags.contains(Flags::COLLECTIVE));
        match event.op() {
            Op::Read => self.read_bytes = self.read_bytes.saturating_add(event.bytes),
            Op::Write => self.write_bytes = self.write_bytes.saturating_add(event.bytes),
            _ => {}
        }
        self.time_ns = self.time_ns.saturating_add(event.elapsed_ns);
        self.own_ns = self.own_ns.saturating_add(event.own_ns);
        if Regime::of(event) == Regime::Device {
            self.waits += 1;
            self.waited_ns = self.waited_ns.saturating_add(event.elapsed_ns);
        }
        self.from_ns = self.from_ns.min(event.start_ns);
        self.until_ns = self.until_ns.max(event.end_ns());
    }

    /// A part of a call's time.
    pub(crate) fn add_part(&mut self, call: &Settled, time_ns: u64) {
        self.calls += 1;
        self.collective += u64::from(call.collective);
        self.time_ns = self.time_ns.saturating_add(time_ns);
        self.own_ns = self.own_ns.saturating_add(time_ns);
        self.from_ns = self.from_ns.min(call.start_ns);
        self.until_ns = self.until_ns.max(call.end_ns);
    }

    pub(crate) fn merge(&mut self, other: &Cost) {
        self.calls += other.calls;
        self.collective += other.collective;
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(other.write_bytes);
        self.again_bytes = self.again_bytes.saturating_add(other.again_bytes);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
        self.waits += other.waits;
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.from_ns = self.from_ns.min(other.from_ns);
        self.until_ns = self.until_ns.max(other.until_ns);
    }
}
