//! Where the time of collective calls went, for tables of events: waiting for late ranks, the MPI library, the files.
//!
//! A trace does not hold it: `pio-explain` finds it out by a look at all ranks. Here is only its place in the exports.

use crate::call::Layer;
use crate::event::{Event, Flags};

/// Where the time of one rank's part in a collective call went. The parts add up to the call's elapsed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Waiting for ranks that came later, nanoseconds.
    pub late_ns: u64,
    /// Inside the MPI library, nanoseconds. Where `files_ns` is not known, the time at the files is in here.
    pub library_ns: u64,
    /// At the files, nanoseconds. None where the trace saw nothing of them.
    pub files_ns: Option<u64>,
}

/// The splits of a trace's collective calls, in order of the events: some 32 bytes a call of a rank.
#[derive(Clone, Debug, Default)]
pub struct Splits {
    /// Late ranks, library and files, nanoseconds. None where it is not known.
    calls: Vec<Option<[u64; 3]>>,
    /// Calls before each block of the trace.
    blocks: Vec<usize>,
    /// Whether the trace says what the calls did at the files.
    files_seen: bool,
}

impl Splits {
    /// Whether a call is one that is split: of MPI-IO, and made by all ranks of a file together.
    pub fn has_one(event: &Event) -> bool {
        event.layer() == Layer::MpiIo && event.flags.contains(Flags::COLLECTIVE)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// A block of events begins.
    pub fn begin_block(&mut self) {
        self.blocks.push(self.calls.len());
    }

    /// Takes the next event. If it is a call that is split, it has the number that [`Splits::set`] knows it by: 0 for the
    /// first, and so on.
    pub fn add(&mut self, event: &Event) {
        if Splits::has_one(event) {
            self.calls.push(None);
        }
    }

    /// Notes the parts of a call: late ranks, library, files, nanoseconds. Does nothing if there is no such call.
    pub fn set(&mut self, call: usize, parts_ns: [u64; 3]) {
        if let Some(parts) = self.calls.get_mut(call) {
            *parts = Some(parts_ns);
        }
    }

    /// Notes whether the trace says what the calls did at the files.
    pub fn set_files_seen(&mut self, files_seen: bool) {
        self.files_seen = files_seen;
    }

    /// For a walk over all events of the trace, from the first on.
    pub fn walk(&self) -> SplitWalk<'_> {
        SplitWalk { splits: self, next: 0 }
    }

    /// For a walk over the events of one block of the trace.
    pub fn walk_block(&self, block: usize) -> SplitWalk<'_> {
        SplitWalk { splits: self, next: self.blocks.get(block).copied().unwrap_or(self.calls.len()) }
    }
}

/// Gives the splits of events that are met in their order, none left out.
#[derive(Clone, Debug)]
pub struct SplitWalk<'a> {
    splits: &'a Splits,
    next: usize,
}

impl SplitWalk<'_> {
    /// That of the next event; none if it has none, or if it is not known.
    pub fn of(&mut self, event: &Event) -> Option<Split> {
        if !Splits::has_one(event) {
            return None;
        }
        let parts_ns = self.splits.calls.get(self.next).copied();
        self.next += 1;
        let [late_ns, library_ns, files_ns] = parts_ns??;
        Some(Split { late_ns, library_ns, files_ns: self.splits.files_seen.then_some(files_ns) })
    }
}
