//! A workload as an ordinary trace: what a recorder would have written if no call had taken any time.
//!
//! The trace says what the program asks for and when it computes. How long its calls take depends on a machine, and is
//! what a prediction says; here it is 0. Read back, it gives the same workload, times to the nearest nanosecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use pio_trace::{
    Call, Event, FileId, Flags, Handle, HandleId, Layer, Process, ProcessId, Tables, Target, TraceWriter,
};

use super::steps::{Open, Step, What, Workload};
use crate::error::SimError;

const PICOSECONDS_PER_NANOSECOND: u64 = 1000;

/// Writes `workload` as a trace to `path`; `notes` (name, text) say how it was made.
///
/// # Errors
/// If the workload names what it does not have, or the file cannot be written.
pub fn write_trace(workload: &Workload, notes: &[(String, String)], path: &Path) -> Result<(), SimError> {
    workload.check()?;
    let mut writer = TraceWriter::create(path, tables(workload, notes))?;
    let mut ranks: Vec<Rank> = workload.programs.iter().map(|steps| Rank::new(steps)).collect();
    let ready = |(rank, state): (usize, &Rank)| state.next().map(|start| Reverse((start, rank)));
    let mut next: BinaryHeap<_> = ranks.iter().enumerate().filter_map(ready).collect();
    while let Some(Reverse((_, rank))) = next.pop() {
        if let Some(event) = ranks[rank].take(workload, ProcessId(rank as u32)) {
            writer.push(&event)?;
        }
        next.extend(ready((rank, &ranks[rank])));
    }
    for (process, rank) in writer.tables_mut().processes.iter_mut().zip(&ranks) {
        process.end_ns = Some(rank.now_ps / PICOSECONDS_PER_NANOSECOND);
    }
    Ok(writer.finish()?)
}

/// How far a rank is.
struct Rank<'w> {
    steps: std::slice::Iter<'w, Step>,
    now_ps: u64,
    operations: u64,
}

impl<'w> Rank<'w> {
    fn new(steps: &'w [Step]) -> Rank<'w> {
        Rank { steps: steps.iter(), now_ps: 0, operations: 0 }
    }

    /// When it makes its next call, nanoseconds.
    fn next(&self) -> Option<u64> {
        let next = self.steps.as_slice().first()?;
        Some(self.after(next) / PICOSECONDS_PER_NANOSECOND)
    }

    fn after(&self, step: &Step) -> u64 {
        self.now_ps.saturating_add(step.think.picoseconds()).saturating_add(step.idle.picoseconds())
    }

    /// The event of its next call.
    fn take(&mut self, workload: &Workload, process: ProcessId) -> Option<Event> {
        let step = self.steps.next()?;
        let before_ns = self.now_ps / PICOSECONDS_PER_NANOSECOND;
        self.now_ps = self.after(step);
        if step.what == What::Rendezvous {
            return None;
        }
        // Rounded together, so that what is not thinking is idle time, and not a part of a nanosecond.
        let idle_ns = step.idle.picoseconds() / PICOSECONDS_PER_NANOSECOND;
        let mut event = Event {
            think_ns: (self.now_ps / PICOSECONDS_PER_NANOSECOND - before_ns).saturating_sub(idle_ns),
            ..Event::new(Call::MpiBcast, process, self.now_ps / PICOSECONDS_PER_NANOSECOND)
        };
        describe(&step.what, workload, &mut event);
        if event.layer() == Layer::MpiIo {
            self.operations += 1;
            event.operation = self.operations;
        }
        Some(event)
    }
}

/// What a call is, as the trace says it.
fn describe(what: &What, workload: &Workload, event: &mut Event) {
    let through_mpi = |handle: &HandleId| workload.handles[handle.index()].group.is_some();
    let moves = |event: &mut Event, bytes: u64| {
        event.size = bytes;
        event.result = i64::try_from(bytes).unwrap_or(i64::MAX);
    };
    match what {
        What::Open(handle) => {
            event.handle = Some(*handle);
            event.call = if through_mpi(handle) { Call::MpiFileOpen } else { Call::Open };
        }
        What::Close(handle) => {
            event.handle = Some(*handle);
            event.call = if through_mpi(handle) { Call::MpiFileClose } else { Call::Close };
        }
        What::SetView(handle, view) => {
            event.handle = Some(*handle);
            event.call = Call::MpiFileSetView;
            event.target = Target::View { view: *view, position: 0 };
        }
        What::Seek(handle, call) | What::Sync(handle, call) => {
            event.handle = Some(*handle);
            event.call = *call;
        }
        What::Resize(handle, call, size) => {
            event.handle = Some(*handle);
            event.call = *call;
            event.size = *size;
        }
        What::Access { handle, call, view, positions, collective, .. } => {
            event.handle = Some(*handle);
            event.call = *call;
            event.target = Target::View { view: *view, position: positions.start };
            event.flags = if *collective { Flags::COLLECTIVE } else { Flags::NONE };
            moves(event, positions.end - positions.start);
        }
        What::Request { handle, call, offset, bytes, .. } => {
            event.handle = Some(*handle);
            event.call = *call;
            event.target = Target::Extent { offset: *offset };
            event.flags = if call.is_asynchronous() { Flags::ASYNC } else { Flags::NONE };
            moves(event, *bytes);
        }
        What::Name { call, file } => {
            event.call = *call;
            event.target = Target::Name { file: FileId(*file), other: None };
        }
        // No call: only time passes.
        What::Rendezvous => {}
        What::Meet { call, bytes } => {
            event.call = *call;
            event.flags = Flags::COLLECTIVE;
            moves(event, *bytes);
        }
        What::Broadcast { root, bytes } => {
            event.target = Target::Peer { rank: *root };
            event.flags = Flags::COLLECTIVE;
            moves(event, *bytes);
        }
    }
}

fn tables(workload: &Workload, notes: &[(String, String)]) -> Tables {
    let process = |rank: u32| Process {
        rank: Some(rank),
        pid: rank,
        host: String::new(),
        command: workload.name.clone(),
        start_ns: 0,
        end_ns: None,
    };
    let handle = |open: &Open| Handle {
        file: FileId(open.file),
        process: ProcessId(open.rank),
        ranks: open.group.map_or(1, |group| workload.groups[group as usize].len() as u32),
        collective: if open.group.is_some() { open.collective } else { 0 },
    };
    let generator = ("generator".to_owned(), format!("pio-sim {}", env!("CARGO_PKG_VERSION")));
    Tables {
        job: workload.name.clone(),
        notes: std::iter::once(generator).chain(notes.iter().cloned()).collect(),
        epoch_ns: 0,
        processes: (0..workload.ranks()).map(process).collect(),
        files: workload.files.clone(),
        handles: workload.handles.iter().map(handle).collect(),
        views: workload.views.clone(),
        ..Tables::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::catalogue;
    use pio_trace::Trace;

    #[test]
    fn every_generated_workload_comes_back_from_its_trace() {
        let folder = tempfile::tempdir().unwrap();
        for entry in catalogue() {
            // What has a million calls by default is broken off.
            let cycles = [("cycles".to_owned(), "2".to_owned())];
            let given = if ["bvi", "forma"].contains(&entry.name) { &cycles[..] } else { &[] };
            let written = entry.build(given, 1).unwrap();
            let path = folder.path().join(entry.name);
            let notes = [("seed".to_owned(), "1".to_owned())];
            write_trace(&written, &notes, &path).unwrap();
            let trace = Trace::open(&path).unwrap();
            assert!(trace.tables().notes.contains(&notes[0]));
            let read = Workload::from_trace(&trace).unwrap();
            assert_eq!((&read.files, read.ranks()), (&written.files, written.ranks()), "{}", entry.name);
            for (rank, (read, written)) in read.programs.iter().zip(&written.programs).enumerate() {
                assert_eq!(read.len(), written.len(), "{} rank {rank}", entry.name);
                let (mut read_ps, mut written_ps) = (0, 0);
                for (number, (read, written)) in read.iter().zip(written).enumerate() {
                    assert_eq!(read.what, written.what, "{} rank {rank} call {number}", entry.name);
                    read_ps += read.think.picoseconds();
                    written_ps += written.think.picoseconds();
                    assert!(written_ps - read_ps < 1000, "{} rank {rank} call {number}", entry.name);
                }
            }
        }
    }
}
