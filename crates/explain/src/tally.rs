//! Counters.

use pio_trace::{Event, Flags, Layer, Op};

use crate::bandwidth::Covered;

/// How many, and how many bytes in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of calls.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Amount {
    /// Counts one more.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.merge(Amount { count: 1, bytes });
    }

    /// Counts those of another one.
    pub(crate) fn merge(&mut self, other: Amount) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What one kind of call amounts to. Sums saturate instead of overflowing: a hostile trace cannot stop the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of calls, failed and unfinished ones too.
    pub count: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Bytes moved: for reads, writes and messages only.
    pub bytes: u64,
    /// Sum of the calls' elapsed times, nanoseconds.
    pub time_ns: u64,
    /// The longest call, nanoseconds.
    pub longest_ns: u64,
}

impl Tally {
    /// Counts one event.
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        self.count += 1;
        self.failed += u64::from(event.failed);
        self.bytes = self.bytes.saturating_add(event.bytes);
        self.time_ns = self.time_ns.saturating_add(event.elapsed_ns);
        self.longest_ns = self.longest_ns.max(event.elapsed_ns);
    }

    /// Both together.
    pub fn merged(self, other: Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            failed: self.failed + other.failed,
            bytes: self.bytes.saturating_add(other.bytes),
            time_ns: self.time_ns.saturating_add(other.time_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }

    /// Without another one that is part of it. The longest call may have been one of those.
    pub(crate) fn less(self, part: Tally) -> Tally {
        Tally {
            count: self.count.saturating_sub(part.count),
            failed: self.failed.saturating_sub(part.failed),
            bytes: self.bytes.saturating_sub(part.bytes),
            time_ns: self.time_ns.saturating_sub(part.time_ns),
            longest_ns: self.longest_ns,
        }
    }

    /// Sum of the calls' elapsed times, seconds.
    pub fn time_s(&self) -> f64 {
        self.time_ns as f64 / 1e9
    }

    /// Mean elapsed time of a call, seconds; none if there was no call.
    pub fn mean_time_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.time_s() / self.count as f64)
    }

    /// Mean bytes moved by a call; none if there was no call.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.count > 0).then(|| self.bytes as f64 / self.count as f64)
    }

    /// Bytes per second of call time: what one process saw while it waited. None if no time passed.
    pub fn bandwidth_bytes_per_s(&self) -> Option<f64> {
        (self.time_ns > 0 && self.bytes > 0).then(|| self.bytes as f64 / self.time_s())
    }
}

/// The calls on one file or of one process, at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Opens.
    pub open: Tally,
    /// What read calls did.
    pub read: Tally,
    /// What write calls did.
    pub write: Tally,
    /// Everything else but messages: close, seek, sync, view, metadata.
    pub other: Tally,
}

impl Traffic {
    /// Counts one event; messages are not file traffic and are left out.
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        match event.op() {
            Op::Open => self.open.add(event),
            Op::Read => self.read.add(event),
            Op::Write => self.write.add(event),
            Op::Communicate | Op::Mark => {}
            Op::Close | Op::Seek | Op::Sync | Op::View | Op::Metadata => self.other.add(event),
        }
    }

    /// Both together.
    pub(crate) fn merged(self, other: Traffic) -> Traffic {
        Traffic {
            open: self.open.merged(other.open),
            read: self.read.merged(other.read),
            write: self.write.merged(other.write),
            other: self.other.merged(other.other),
        }
    }

    /// Reads and writes together.
    pub fn data(&self) -> Tally {
        self.read.merged(self.write)
    }

    /// All calls together.
    pub fn all(&self) -> Tally {
        self.data().merged(self.open).merged(self.other)
    }
}

/// The calls on one file or of one process, at both levels: most calls are at both, and are counted once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Levels {
    both: Traffic,
    program: Traffic,
    file_system: Traffic,
}

impl Levels {
    /// Counts an event at the levels it belongs to.
    #[inline]
    pub(crate) fn add(&mut self, event: &Seen<'_>, program: bool, file_system: bool) {
        match (program, file_system) {
            (true, true) => self.both.add(event),
            (true, false) => self.program.add(event),
            (false, true) => self.file_system.add(event),
            (false, false) => {}
        }
    }

    /// What the program asked for.
    pub(crate) fn program(&self) -> Traffic {
        self.both.merged(self.program)
    }

    /// What reached the files.
    pub(crate) fn file_system(&self) -> Traffic {
        self.both.merged(self.file_system)
    }
}

/// A process waits for several requests to I/O servers at a time. Each is counted from when those before it were answered:
/// so their times add up to what the process waited.
#[derive(Clone, Debug, Default)]
pub(crate) struct InTurn {
    covered: Vec<Covered>,
}

impl InTurn {
    /// For the requests of so many processes.
    pub(crate) fn new(processes: usize) -> InTurn {
        InTurn { covered: vec![Covered::default(); processes] }
    }

    /// A request as it counts; none for all other events, which count as they are. They come in order of their start.
    #[inline]
    pub(crate) fn request(&mut self, event: &Event) -> Option<Event> {
        if event.layer() != Layer::Server {
            return None;
        }
        let covered = self.covered.get_mut(event.process.index())?;
        let end_ns = event.end_ns();
        let (_, elapsed_ns) = covered.add(event.start_ns, end_ns);
        Some(Event { start_ns: end_ns - elapsed_ns, elapsed_ns, ..event.clone() })
    }
}

/// An event, and what is asked of it again and again.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'e> {
    event: &'e Event,
    op: Op,
    layer: Layer,
    /// Whether the call returned an error. An unfinished call has no result yet.
    pub(crate) failed: bool,
    /// What of its time counts as its process's: less than elapsed where an earlier call of the process, by another
    /// thread, overlaps with it (see [`Seen::overlapped`]), nanoseconds.
    pub(crate) own_ns: u64,
    /// Bytes that a read, write or message moved. A call of a library that returns before its data
    /// move is taken at its word; what the system was asked for is recorded with what came of it.
    pub(crate) bytes: u64,
}

impl<'e> Seen<'e> {
    pub(crate) fn of(event: &'e Event) -> Seen<'e> {
        let op = event.op();
        let failed = event.result < 0 && !event.flags.contains(Flags::UNFINISHED);
        let bytes = match op {
            Op::Read | Op::Write | Op::Communicate => {
                let later =
                    event.result == 0 && event.flags.contains(Flags::ASYNC) && event.layer() != Layer::Posix;
                if later { event.size } else { event.transferred() }
            }
            Op::Open | Op::Close | Op::Seek | Op::Sync | Op::View | Op::Metadata | Op::Mark => 0,
        };
        Seen { event, op, layer: event.layer(), failed, own_ns: event.elapsed_ns, bytes }
    }

    /// The same call, with what of its time no earlier one covers.
    pub(crate) fn overlapped(self, own_ns: u64) -> Seen<'e> {
        Seen { own_ns, ..self }
    }

    /// The kind of operation.
    pub(crate) fn op(&self) -> Op {
        self.op
    }

    /// The layer of the call.
    pub(crate) fn layer(&self) -> Layer {
        self.layer
    }
}

impl std::ops::Deref for Seen<'_> {
    type Target = Event;

    fn deref(&self) -> &Event {
        self.event
    }
}
