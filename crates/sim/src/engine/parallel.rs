//! What ranks ask of a parallel file system, and what it asks for: to be told, woken, and its messages carried.

use pio_machine::{Machine, Storage};
use pio_plan::Direction;

use super::{Cargo, Engine, Happening};
use crate::hardware::Hardware;
use crate::parallel::{Action, ParallelFiles, Wanted};
use crate::process::{Request, Then};
use crate::workload::{Naming, What, Workload};

/// The parallel file system of a machine, if files are in one. `made`: which files the program makes.
pub(super) fn described(
    machine: &Machine,
    hardware: &Hardware,
    workload: &Workload,
    made: &[bool],
) -> Option<ParallelFiles> {
    let Storage::Parallel(costs) = &machine.storage else { return None };
    // Where a file ends that was there before is not known, but that it has all that the program reads.
    let ends = workload.ends();
    let files = workload.files.iter().zip(made).zip(ends);
    let files = files.map(|((file, is_made), end)| (file.path.as_str(), if *is_made { 0 } else { end }));
    Some(ParallelFiles::new(costs, hardware.io_nodes.clone(), files))
}

impl Engine<'_> {
    /// A rank's read or write goes to its node's client.
    pub(super) fn ask_client(&mut self, rank: u32) {
        let Some(transfer) = &self.processes[rank as usize].transfer else { return };
        let Some(Request { direction, offset, bytes, .. }) = transfer.current else { return };
        let (file, range) = (transfer.file, offset..offset.saturating_add(bytes));
        let wanted = match direction {
            Direction::Read => Wanted::Read(range),
            Direction::Write => Wanted::Write(range),
        };
        self.want(rank, file, wanted, Then::Moved);
    }

    /// The metadata servers' part of an open, a close, a change of a file's size, or a call that only names it. A close may wait
    /// for more than them.
    pub(super) fn ask_metadata_server(&mut self, rank: u32) {
        if let What::Name { call, file } = self.step(rank) {
            let Some(naming) = Naming::of(*call) else { return self.end(rank, 0) };
            return self.want(rank, *file, Wanted::Name(naming), Then::End);
        }
        let (What::Open(handle) | What::Close(handle) | What::Resize(handle, ..)) = self.step(rank) else {
            return self.end(rank, 0);
        };
        let file = self.workload.handles[handle.index()].file;
        let wanted = match self.step(rank) {
            What::Open(handle) => Wanted::Open { makes: self.makes_file(rank, *handle) },
            What::Resize(..) => Wanted::Resize,
            _ => Wanted::Close,
        };
        self.want(rank, file, wanted, Then::End);
    }

    /// A rank wants something of a parallel file system, and goes on with `then`.
    pub(super) fn want(&mut self, rank: u32, file: u32, wanted: Wanted, then: Then) {
        let process = &mut self.processes[rank as usize];
        let Some(files) = &mut self.parallel else { return };
        process.then = then;
        files.want(self.now, rank, process.node, file, wanted);
        self.carry_out();
    }

    /// Does what a parallel file system asks for.
    pub(super) fn carry_out(&mut self) {
        let actions = self.parallel.as_mut().map(|files| std::mem::take(&mut files.actions));
        for action in actions.into_iter().flatten() {
            match action {
                Action::Send { from, to, bytes, message } => {
                    self.ship(from, to, bytes, Cargo::Files(message))
                }
                Action::Wake { at, wake } => self.events.add(at, Happening::Files(wake)),
                Action::Done { rank } => self.events.add(self.now, Happening::Resume(rank)),
            }
        }
    }
}
