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
        let Some(asked) = self.next_part(rank) else { return };
        if asked.bytes == 0 {
            return self.moved(rank);
        }
        let Some(shared) = &mut self.shared else { return };
        let granted = shared.ask(self.now, rank, asked);
        self.processes[rank as usize].then = Then::Granted;
        match granted {
            Some(granted) if granted > self.now => self.events.add(granted, Happening::Resume(rank)),
            Some(_) => self.begin_part(rank),
            None => {}
        }
    }

    /// A rank has the locks that the next part of its request needs.
    pub(super) fn begin_part(&mut self, rank: u32) {
        let Some(asked) = self.next_part(rank) else { return };
        let process = &mut self.processes[rank as usize];
        let (Some(shared), Some(transfer)) = (&mut self.shared, &mut process.transfer) else { return };
        transfer.asked_bytes += asked.bytes;
        process.then = Then::Answered;
        let (end, woken) = shared.begin(self.now, rank, asked);
        self.events.add(end, Happening::Resume(rank));
        for (other, granted) in woken {
            self.events.add(granted, Happening::Resume(other));
        }
    }

    /// What a rank's request asks for next; no bytes if the whole has been answered.
    fn next_part(&self, rank: u32) -> Option<Asked> {
        let shared = self.shared.as_ref()?;
        let asked_bytes = self.processes[rank as usize].transfer.as_ref()?.asked_bytes;
        let whole = self.asked(rank)?;
        let bytes = shared.next_of(whole.bytes - asked_bytes);
        Some(Asked { offset: whole.offset + asked_bytes, bytes, ..whole })
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
