//! Collective opens, closes and views in which a rank waits for the others.

use super::Engine;
use crate::process::Then;
use crate::workload::What;

impl Engine<'_> {
    /// Whether a rank that is through with its own part of a call has to wait for others. Who comes last lets all go on.
    pub(super) fn waits_for_others(&mut self, rank: u32) -> bool {
        let (What::Open(handle) | What::Close(handle) | What::SetView(handle, _)) = self.step(rank) else {
            return false;
        };
        let open = &self.workload.handles[handle.index()];
        let ranks = open.group.map_or(1, |group| self.workload.groups[group as usize].len());
        let process = &mut self.processes[rank as usize];
        if !self.machine.calls.collective_waits || ranks == 1 || process.own_part_done.is_some() {
            return false;
        }
        process.own_part_done = Some(self.now);
        let waiting = self.meetings.entry(open.collective).or_default();
        waiting.push(rank);
        if waiting.len() == ranks {
            for rank in std::mem::take(waiting) {
                self.compute(rank, self.machine.messages.receive, Then::End);
            }
        }
        true
    }
}
