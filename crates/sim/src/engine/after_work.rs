//! Calls after other work: what they used last has left the processor's caches, and they take longer.

use pio_machine::{Duration, LibraryCosts, Nodes, Repeated};
use pio_plan::Direction;

use super::Engine;
use crate::kernel::Time;
use crate::process::Process;
use crate::workload::What;

impl Process {
    /// Which part of what its calls to the kernel used last has left the caches by now, of 0 to 1.
    pub(super) fn part_cooled(&self, now: Time, nodes: &Nodes) -> f64 {
        cooled(self.called_at, now, nodes)
    }

    /// The same of what the MPI-IO library used last, when the call began.
    fn library_cooled(&self, nodes: &Nodes) -> f64 {
        cooled(self.in_library_at, self.since, nodes)
    }
}

fn cooled(last: Option<Time>, now: Time, nodes: &Nodes) -> f64 {
    if nodes.cooling == Duration::ZERO {
        return 0.0;
    }
    last.map_or(1.0, |last| (now.since(last).seconds() / nodes.cooling.seconds()).min(1.0))
}

impl Engine<'_> {
    /// What a call to the kernel takes longer as its process did something else before. The memory of the call counts if it is the
    /// program's: what a library exchanges was put in its buffer just before. That of calls one behind the other is the same.
    pub(super) fn time_after_work(&self, rank: u32, direction: Direction, bytes: u64) -> Duration {
        let process = &self.processes[rank as usize];
        let (Some(costs), Some(transfer)) = (&self.machine.calls.after_work, &process.transfer) else {
            return Duration::ZERO;
        };
        let cost = match direction {
            Direction::Read => &costs.read,
            Direction::Write => &costs.write,
        };
        let whole = if transfer.is_buffered { cost.call } else { cost.of(bytes) };
        part_of(whole, process.part_cooled(self.now, &self.machine.nodes))
    }

    /// What a rank's call of all takes now that takes so long after other work, and again.
    pub(super) fn repeated(&self, rank: u32, time: Repeated) -> Duration {
        time.after(self.processes[rank as usize].library_cooled(&self.machine.nodes))
    }

    /// What the library takes longer for a read or write after other work, whatever its strategy does: as much as one rank's.
    pub(super) fn library_after_work(&self, rank: u32, costs: &LibraryCosts) -> Duration {
        let What::Access { .. } = self.step(rank) else { return Duration::ZERO };
        // In what was measured is a write by the kernel.
        let kernel = self.machine.calls.after_work.as_ref().map_or(Duration::ZERO, |costs| costs.write.call);
        let whole = longer_alone(costs).saturating_sub(kernel);
        part_of(whole, self.processes[rank as usize].library_cooled(&self.machine.nodes))
    }

    /// What ranks that talk with each other take in all: the rest of what that takes longer after other work.
    pub(super) fn talking(&self, rank: u32, costs: &LibraryCosts, ranks: u32) -> Duration {
        let time = costs.of(ranks).collective;
        let rest = longer(time).saturating_sub(longer_alone(costs));
        let part = part_of(rest, self.processes[rank as usize].library_cooled(&self.machine.nodes));
        time.again.saturating_add(part)
    }

    /// A rank's call is over: the library was at work last now, or, if its data took a while, before.
    pub(super) fn leave_library(&mut self, rank: u32) {
        let last = match self.step(rank) {
            What::Open(_) | What::Close(_) | What::SetView(..) | What::Resize(..) | What::Sync(..) => {
                self.now
            }
            What::Access { .. } => self.processes[rank as usize].since,
            _ => return,
        };
        self.processes[rank as usize].in_library_at = Some(last);
    }
}

/// What one rank's takes longer, if that was measured.
fn longer_alone(costs: &LibraryCosts) -> Duration {
    let alone = costs.together.first().filter(|one| one.ranks == 1);
    alone.map_or(Duration::ZERO, |one| longer(one.collective))
}

fn longer(time: Repeated) -> Duration {
    time.after_work.saturating_sub(time.again)
}

fn part_of(time: Duration, part: f64) -> Duration {
    Duration::from_picoseconds((time.picoseconds() as f64 * part) as u64)
}
