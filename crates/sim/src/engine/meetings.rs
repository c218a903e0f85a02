//! Calls in which a rank waits for the others: collective opens, closes and views, and collective calls of MPI.

use std::collections::BTreeMap;

use pio_machine::{Duration, LibraryCosts, MpiIo, Together};
use pio_plan::{Message, REDUCTIONS_OF_A_WRITE, Strategy};

use super::{Engine, Happening};
use crate::process::{Content, Delivery, Key, Running, Then};
use crate::workload::What;

/// Ranks of a node that have waited for the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Sleepers {
    all: u64,
    woken: u64,
}

/// In one call: no library does more, but a description may be wrong.
const MOST_MEETINGS: f64 = 100.0;

impl Engine<'_> {
    /// Whether a rank that is through with its own part of a call has to wait for others. Who comes last lets all go on.
    pub(super) fn waits_for_others(&mut self, rank: u32) -> bool {
        let (What::Open(handle)
        | What::Close(handle)
        | What::SetView(handle, _)
        | What::Resize(handle, ..)
        | What::Sync(handle, _)) = self.step(rank)
        else {
            return false;
        };
        let open = &self.workload.handles[handle.index()];
        let ranks = open.group.map_or(1, |group| self.workload.groups[group as usize].len());
        let spins = self.mpi_io_spins();
        let process = &mut self.processes[rank as usize];
        let meets = self.machine.calls.collective_waits && (ranks > 1 || self.machine.mpi_io.is_some());
        if open.group.is_none() || !meets || process.own_part_done.is_some() {
            return false;
        }
        process.own_part_done = Some(self.now);
        process.spins = spins;
        if spins && ranks == self.processes.len() {
            let times = self.meetings_in_call(rank, ranks as u32);
            self.meet_by_turns(rank, times);
        } else {
            self.meet(rank, open.collective, ranks as u32);
        }
        true
    }

    /// How often ranks that spin, and share cores, wait for each other in a call of all: it took so many times as long as a
    /// barrier.
    fn meetings_in_call(&mut self, rank: u32, ranks: u32) -> u32 {
        let costs = self
            .library_costs()
            .map_or(Together::default(), |costs| costs.of(ranks.min(self.ranks_per_node)));
        let barrier = costs.barrier.seconds().max(f64::MIN_POSITIVE);
        let time = self.time_together(rank, ranks).unwrap_or_default();
        (time.seconds() / barrier).round().clamp(1.0, MOST_MEETINGS) as u32
    }

    /// What calls of MPI-IO cost with the library that carries them out, if that was measured.
    pub(super) fn library_costs(&self) -> Option<&'_ LibraryCosts> {
        let MpiIo { pioscope, own, .. } = self.machine.mpi_io.as_ref()?;
        Some(if Strategy::OWN.contains(&self.strategy) { own } else { pioscope })
    }

    /// Processor time for memory that a rank uses for the first time when it exchanges data with others.
    pub(super) fn time_for_fresh_memory(&mut self, rank: u32) -> Option<Duration> {
        let (What::Access { positions, collective: true, .. }, Some(costs)) =
            (self.step(rank), self.library_costs())
        else {
            return None;
        };
        let fresh = costs.fresh?;
        let before = &mut self.processes[rank as usize].exchanged;
        let new = (positions.end - positions.start).checked_sub(*before).filter(|new| *new > 0)?;
        *before += new;
        Some(fresh.time_of(new))
    }

    /// What a rank that talks with others in a collective read or write pays for it, beyond messages as the machine knows
    /// them: what the library does for each, and that ranks are woken, or spin where they share processors. It is paid once;
    /// under ROMIO in each reduction, as ranks without data to exchange have none, and reads one less than the write that
    /// was measured.
    pub(super) fn time_to_talk(&mut self, rank: u32, message: Option<&Message>) -> Option<Duration> {
        let (What::Access { handle, collective: true, .. }, Some(costs)) =
            (self.step(rank), self.library_costs())
        else {
            return None;
        };
        let group = self.workload.handles[handle.index()].group?;
        let ranks = (self.workload.groups[group as usize].len() as u32).min(self.ranks_per_node);
        let time = self.talking(rank, costs, ranks);
        let (time, stage) = match (self.strategy, message) {
            (Strategy::Romio, Some(Message::Inside(inside))) if inside.reduces => {
                (Duration::from_picoseconds(time.picoseconds() / REDUCTIONS_OF_A_WRITE), inside.stage)
            }
            (Strategy::Romio, _) => return None,
            _ => (time, 0),
        };
        let process = &mut self.processes[rank as usize];
        let is_first = process.talked_in != Some((process.begun, stage));
        process.talked_in = Some((process.begun, stage));
        (is_first && time > Duration::ZERO).then_some(time)
    }

    /// How long it takes after the last rank has come until ranks leave a call of all, if that was measured.
    fn time_together(&mut self, rank: u32, ranks: u32) -> Option<Duration> {
        let costs = self.library_costs()?.of(ranks.min(self.ranks_per_node));
        let [open, close, view] = [costs.open, costs.close, costs.view].map(|call| self.repeated(rank, call));
        let step = self.step(rank);
        let process = &mut self.processes[rank as usize];
        let (was_made, first, later) = match step {
            What::Open(_) => (&mut process.has_opened, costs.first_open, open),
            What::Close(_) => (&mut process.has_closed, costs.first_close, close),
            What::SetView(..) => (&mut process.has_viewed, costs.first_view, view),
            // Not measured: as little is said and done as for a view.
            What::Resize(..) | What::Sync(..) => return Some(view),
            _ => return Some(costs.barrier),
        };
        Some(if std::mem::replace(was_made, true) { later } else { first })
    }

    /// Whether ranks that wait in a call of MPI-IO take processor time from others: the MPI's own does as the MPI, Pioscope's
    /// gives processors away.
    pub(super) fn mpi_io_spins(&self) -> bool {
        self.mpi_spins() && Strategy::OWN.contains(&self.strategy)
    }

    /// Whether ranks that wait in a call of MPI take processor time from others.
    fn mpi_spins(&self) -> bool {
        let spins = self.machine.mpi_io.as_ref().is_some_and(|mpi_io| mpi_io.spins);
        spins && self.ranks_per_node > self.machine.nodes.cores
    }

    /// A collective call of MPI that no rank leaves before all have come: as long as was measured, or if ranks spin that
    /// share cores, as their turns let them.
    /// Who comes last lets all go on. None has a processor meanwhile: what was spent on waiting is in the
    /// processor times between the calls already.
    pub(super) fn begin_rendezvous(&mut self) {
        self.at_rendezvous += 1;
        let ranks = self.workload.ranks();
        if self.at_rendezvous < ranks {
            return;
        }
        self.at_rendezvous = 0;
        for rank in 0..ranks {
            self.processes[rank as usize].then = Then::End;
            self.events.add(self.now, Happening::Resume(rank));
        }
    }

    pub(super) fn begin_meeting(&mut self, rank: u32) {
        if !self.mpi_spins() {
            return self.meet(rank, Key::WORLD, self.workload.ranks());
        }
        self.meet_by_turns(rank, 1);
    }

    /// All ranks wait for each other so many times.
    fn meet_by_turns(&mut self, rank: u32, times: u32) {
        let count = self.operations.entry((rank, Key::WORLD)).or_insert(0);
        *count += 1;
        let left = times - 1;
        self.processes[rank as usize].running = Running::Meet { count: *count, round: 0, sent: false, left };
        self.advance(rank);
    }

    pub(super) fn go_on_meeting(&mut self, rank: u32) {
        let ranks = self.workload.ranks();
        let process = &mut self.processes[rank as usize];
        let Running::Meet { count, round, sent, left } = &mut process.running else { return };
        if 1_u64 << *round >= u64::from(ranks) {
            let left = *left;
            return if left > 0 { self.meet_by_turns(rank, left) } else { self.end(rank, 0) };
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
        let waiting = std::mem::take(waiting);
        // Those of a node that sleep are woken one after the other; how long it takes in the mean was measured.
        let sleep = of != Key::WORLD && !Strategy::OWN.contains(&self.strategy);
        let wake = if sleep { self.machine.nodes.wake.picoseconds() } else { 0 };
        let mut of_node: BTreeMap<u32, Sleepers> = BTreeMap::new();
        for rank in &waiting {
            of_node.entry(self.processes[*rank as usize].node).or_default().all += 1;
        }
        for rank in waiting {
            match self.time_together(rank, ranks) {
                Some(mean) => {
                    let process = &mut self.processes[rank as usize];
                    process.then = Then::Leave;
                    let sleepers = of_node.entry(process.node).or_default();
                    let after = mean.picoseconds() + sleepers.woken * wake;
                    let time = after.saturating_sub(sleepers.all.saturating_sub(1) * wake / 2);
                    sleepers.woken += 1;
                    self.events.add(self.now + Duration::from_picoseconds(time), Happening::Resume(rank));
                }
                None => self.compute(rank, self.machine.messages.receive, Then::End),
            }
        }
    }
}
