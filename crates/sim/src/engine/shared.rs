//! What ranks ask of a file system that the nodes share.

use pio_machine::{Duration, Storage};
use pio_plan::Direction;

use super::{Engine, Happening};
use crate::process::{Request, Then};
use crate::shared_files::Asked;
use crate::workload::{Naming, What};

impl Engine<'_> {
    /// The next part of a rank's request goes off, or the whole has been answered.
    pub(super) fn go_on_asking(&mut self, rank: u32) {
        let now = self.now;
        let process = &mut self.processes[rank as usize];
        let (Some(shared), Some(transfer)) = (&mut self.shared, &mut process.transfer) else { return };
        let Some(Request { direction, offset, bytes, .. }) = transfer.current else { return };
        let left = bytes - transfer.asked_bytes;
        if left == 0 {
            return self.moved(rank);
        }
        let part = shared.next_of(left);
        let offset = offset + transfer.asked_bytes;
        transfer.asked_bytes += part;
        let asked = Asked { node: process.node, file: transfer.file, direction, offset, bytes: part };
        process.then = Then::Answered;
        self.events.add(shared.access(now, asked), Happening::Resume(rank));
    }

    /// Whether a rank may make its next request at once: it may be a write that others of its node keep waiting.
    pub(super) fn may_write(&mut self, rank: u32) -> bool {
        let Some(asked) = self.asked(rank).filter(|asked| asked.direction == Direction::Write) else {
            return true;
        };
        self.shared.as_mut().is_none_or(|shared| shared.may_write(rank, &asked))
    }

    /// A rank is through with a request: if it was a write, others of its node may go on with theirs.
    pub(super) fn let_write(&mut self, rank: u32, request: &Request) {
        if request.direction == Direction::Read {
            return;
        }
        let process = &self.processes[rank as usize];
        let (Some(shared), Some(transfer)) = (&mut self.shared, &process.transfer) else { return };
        let Request { direction, offset, bytes, .. } = *request;
        let asked = Asked { node: process.node, file: transfer.file, direction, offset, bytes };
        for next in shared.written(&asked) {
            self.processes[next as usize].then = Then::Turn;
            self.events.add(self.now + shared.handover(), Happening::Resume(next));
        }
    }

    /// The request that a rank is making.
    fn asked(&self, rank: u32) -> Option<Asked> {
        let process = &self.processes[rank as usize];
        let transfer = process.transfer.as_ref()?;
        let Request { direction, offset, bytes, .. } = transfer.current?;
        Some(Asked { node: process.node, file: transfer.file, direction, offset, bytes })
    }

    /// What an open, a close, a change of size, or a call that only names a file takes in a shared file system, if files are in
    /// one.
    pub(super) fn time_in_shared_files(&mut self, rank: u32) -> Option<Duration> {
        let Storage::Shared(costs) = &self.machine.storage else { return None };
        Some(match self.step(rank) {
            What::Open(handle) => {
                let create = if self.makes_file(rank, *handle) { costs.create } else { Duration::ZERO };
                costs.open.saturating_add(create)
            }
            What::Resize(..) => costs.resize,
            What::Name { call, .. } => {
                let time = Naming::of(*call).and_then(|naming| naming.of_both(costs.stat, costs.unlink));
                time.unwrap_or(Duration::ZERO)
            }
            _ => costs.close,
        })
    }

    /// A request without data, which takes a shared file system so long; then the rank goes on with `then`.
    pub(super) fn ask_shared(&mut self, rank: u32, time: Duration, then: Then) {
        let Some(shared) = &mut self.shared else { return };
        let done = shared.plain(self.now, time);
        self.processes[rank as usize].then = then;
        self.events.add(done, Happening::Resume(rank));
    }
}
