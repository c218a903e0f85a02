//! Calls in which a rank waits for the others: collective opens, closes and views, and collective calls of MPI.

use pio_machine::{Duration, LibraryCosts, MpiIo};
use pio_plan::Strategy;

use super::{Engine, Happening};
use crate::process::{Content, Delivery, Key, Running, Then};
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
        let meets = self.machine.calls.collective_waits && (ranks > 1 || self.machine.mpi_io.is_some());
        if open.group.is_none() || !meets || process.own_part_done.is_some() {
            return false;
        }
        process.own_part_done = Some(self.now);
        self.meet(rank, open.collective, ranks as u32);
        true
    }

    /// What calls of MPI-IO cost with the library that carries them out, if that was measured.
    pub(super) fn library_costs(&self) -> Option<&'_ LibraryCosts> {
        let MpiIo { pioscope, own, .. } = self.machine.mpi_io.as_ref()?;
        Some(if Strategy::OWN.contains(&self.strategy) { own } else { pioscope })
    }

    /// How long it takes after the last rank has come until ranks leave a call of all, if that was measured.
    fn time_together(&mut self, rank: u32, ranks: u32) -> Option<Duration> {
        let costs = self.library_costs()?.of(ranks.min(self.ranks_per_node));
        Some(match self.step(rank) {
            What::Open(_) if !std::mem::replace(&mut self.processes[rank as usize].has_opened, true) => {
                costs.first_open
            }
            What::Open(_) => costs.open,
            What::Close(_) => costs.close,
            What::SetView(..) => costs.view,
            _ => costs.barrier,
        })
    }

    /// A collective call of MPI that no rank leaves before all have come: as long as was measured, or if ranks spin that
    /// share cores, as their turns let them.
    pub(super) fn begin_meeting(&mut self, rank: u32) {
        let spins = self.machine.mpi_io.as_ref().is_some_and(|mpi_io| mpi_io.spins);
        if !spins || self.ranks_per_node <= self.machine.nodes.cores {
            return self.meet(rank, Key::WORLD, self.workload.ranks());
        }
        let count = self.operations.entry((rank, Key::WORLD)).or_insert(0);
        *count += 1;
        self.processes[rank as usize].running = Running::Meet { count: *count, round: 0, sent: false };
        self.advance(rank);
    }

    pub(super) fn go_on_meeting(&mut self, rank: u32) {
        let ranks = self.workload.ranks();
        let process = &mut self.processes[rank as usize];
        let Running::Meet { count, round, sent } = &mut process.running else { return };
        if 1_u64 << *round >= u64::from(ranks) {
            return self.end(rank, 0);
        }
        if std::mem::replace(sent, true) {
            self.take_next(rank);
            let process = &mut self.processes[rank as usize];
            process.spins = process.idle;
            return;
        }
        let (key, to) = (Key::meet(*count, *round), (rank + (1 << *round)) % ranks);
        let delivery = Delivery { key, from: rank, to, bytes: 0, what: Content::Come };
        self.send(rank, delivery, Duration::ZERO);
    }

    /// A rank waits for so many others at the place `of`. Who comes last lets all go on.
    pub(super) fn meet(&mut self, rank: u32, of: u64, ranks: u32) {
        let waiting = self.meetings.entry(of).or_default();
        waiting.push(rank);
        if waiting.len() < ranks as usize {
            return;
        }
        for rank in std::mem::take(waiting) {
            match self.time_together(rank, ranks) {
                Some(time) => {
                    self.processes[rank as usize].then = Then::End;
                    self.events.add(self.now + time, Happening::Resume(rank));
                }
                None => self.compute(rank, self.machine.messages.receive, Then::End),
            }
        }
    }
}
