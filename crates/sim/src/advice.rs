//! A workload as it would be if its program followed an advice: the same bytes for the same purpose, in other calls.
//!
//! Each change is made to the recorded calls themselves, on the files that it is about; what is not concerned stays as
//! it is. The time between calls goes along: what a program computed before a call that it no longer makes, it computes
//! before the next one. What comes out is simulated like any other workload.

mod collect;
mod gather;
mod keep;
mod ranges;

use std::collections::BTreeSet;

use pio_machine::Duration;
use pio_trace::{FileId, HandleId};

use crate::workload::{Step, What, Workload};

/// What a program may do instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// POSIX requests that follow one another in a file become one, of up to 1 MiB.
    Gather,
    /// The same for reads with gaps between them, which are read too.
    GatherWithGaps,
    /// What ranks move for themselves, between two calls that they make together, they move in one collective call, each
    /// through a view of all its pieces. POSIX requests become such calls too.
    Collect,
    /// No pointer is moved before a request that can say where it is.
    NoSeeks,
    /// What a rank has read it does not read again.
    KeepReads,
    /// What a rank has written lately it does not read.
    KeepWritten,
    /// What a rank writes again before anybody could use it, it writes once.
    WriteOnce,
    /// Where all ranks read the same, one does, and broadcasts it.
    ReadOnce,
    /// A rank opens a file once and closes it once.
    OpenOnce,
}

impl Workload {
    /// What it would be with a change, on some of its files. None if that changes no call, or cannot be done: processes
    /// that would have to take part in a collective call did not open the file together, or are not at one place.
    pub fn with_change(&self, change: Change, files: &BTreeSet<FileId>) -> Option<Workload> {
        let concerns = Concern { workload: self, files };
        let programs = match change {
            Change::Collect => return collect::collected(self, files),
            Change::ReadOnce => return keep::read_once(self, &concerns),
            Change::Gather => each(self, |program| gather::gathered(program, &concerns, false)),
            Change::GatherWithGaps => each(self, |program| gather::gathered(program, &concerns, true)),
            Change::NoSeeks => each(self, |program| {
                without(program, |_, what| matches!(what, What::Seek(handle, _) if concerns.handle(*handle)))
            }),
            Change::KeepReads => each(self, |program| keep::without_rereads(program, &concerns)),
            Change::KeepWritten => each(self, |program| keep::without_reads_of_written(program, &concerns)),
            Change::WriteOnce => each(self, |program| keep::without_overwritten(program, &concerns)),
            Change::OpenOnce => each(self, |program| keep::opened_once(program, &concerns)),
        };
        (programs != self.programs).then(|| Workload { programs, ..self.clone() })
    }
}

fn each(workload: &Workload, change: impl Fn(&[Step]) -> Vec<Step>) -> Vec<Vec<Step>> {
    workload.programs.iter().map(|program| change(program)).collect()
}

/// What a change is about.
struct Concern<'a> {
    workload: &'a Workload,
    files: &'a BTreeSet<FileId>,
}

impl Concern<'_> {
    fn file(&self, handle: HandleId) -> Option<u32> {
        let file = self.workload.handles.get(handle.index())?.file;
        self.files.contains(&FileId(file)).then_some(file)
    }

    fn handle(&self, handle: HandleId) -> bool {
        self.file(handle).is_some()
    }

    /// File and bytes of a read or write that it is about, if they are one piece.
    fn piece(&self, what: &What) -> Option<(u32, pio_plan::Direction, std::ops::Range<u64>)> {
        match what {
            What::Request { handle, direction, offset, bytes, .. } => {
                let end = offset.checked_add(*bytes)?;
                Some((self.file(*handle)?, *direction, *offset..end))
            }
            What::Access { handle, direction, view, positions, collective: false, .. } => {
                let file = self.file(*handle)?;
                let view = self.workload.views.get(view.index())?;
                if positions.is_empty() || !view.is_contiguous_over(positions.clone()) {
                    return None;
                }
                let start = view.offset_of(positions.start)?;
                Some((file, *direction, start..start.checked_add(positions.end - positions.start)?))
            }
            _ => None,
        }
    }
}

/// A program being written anew.
#[derive(Default)]
struct Rewriting {
    steps: Vec<Step>,
    /// What is computed before the next call, and the time that passes beside that.
    think: Duration,
    idle: Duration,
}

impl Rewriting {
    /// What lies before a call of the program that is rewritten.
    fn before(&mut self, step: &Step) {
        self.think = self.think.saturating_add(step.think);
        self.idle = self.idle.saturating_add(step.idle);
    }

    fn call(&mut self, what: What) {
        let (think, idle) = (std::mem::take(&mut self.think), std::mem::take(&mut self.idle));
        self.steps.push(Step { think, idle, what });
    }
}

/// The program without some of its calls.
fn without(program: &[Step], mut is_left_out: impl FnMut(usize, &What) -> bool) -> Vec<Step> {
    let mut rest = Rewriting::default();
    for (index, step) in program.iter().enumerate() {
        rest.before(step);
        if !is_left_out(index, &step.what) {
            rest.call(step.what.clone());
        }
    }
    rest.steps
}
