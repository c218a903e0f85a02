//! Messages between ranks, and broadcasts.

use std::collections::VecDeque;

use pio_machine::Duration;
use pio_plan::{Strategy, Waiting};
use pio_trace::{Call, Event, Flags, Target};

use super::{Cargo, Engine, Happening};
use crate::process::{Content, Delivery, Key, Running, Sending, Then};
use crate::workload::What;

impl Engine<'_> {
    pub(super) fn begin_broadcast(&mut self, rank: u32, root: u32) {
        let count = self.operations.entry((rank, Key::WORLD)).or_insert(0);
        *count += 1;
        let key = Key { of: Key::WORLD, count: *count };
        let ranks = self.workload.ranks();
        let number = (rank + ranks - root % ranks) % ranks;
        // A binomial tree: number n passes on to n + 2^k for every 2^k above n.
        let first = if number == 0 { 0 } else { number.ilog2() + 1 };
        let children = (first..32).map(|power| number as u64 + (1_u64 << power));
        let children = children.take_while(|child| *child < u64::from(ranks));
        let children: VecDeque<u32> =
            children.map(|child| ((child + u64::from(root % ranks)) % u64::from(ranks)) as u32).collect();
        self.processes[rank as usize].running = Running::Broadcast { key, has_data: number == 0, children };
        self.advance(rank);
    }

    pub(super) fn pass_on(&mut self, rank: u32, to: u32, key: Key) {
        let What::Broadcast { bytes, .. } = self.step(rank) else { return };
        let delivery = Delivery { key, from: rank, to, bytes: *bytes, what: Content::Broadcast };
        self.send(rank, delivery, Duration::ZERO);
    }

    /// Keeps the sender's core busy, `extra` included; then the message goes off.
    pub(super) fn send(&mut self, rank: u32, delivery: Delivery, extra: Duration) {
        let id = self.deliveries.insert(Some(delivery));
        self.compute(rank, self.machine.messages.send.saturating_add(extra), Then::Depart(id));
    }

    pub(super) fn depart(&mut self, id: u32) {
        let Some(delivery) = &self.deliveries[id] else { return };
        let (from, to) =
            (self.processes[delivery.from as usize].node, self.processes[delivery.to as usize].node);
        self.ship(from, to, delivery.bytes, Cargo::Message(id));
    }

    /// A rank that waited for messages goes on: if it sleeps, a while after the first has come.
    pub(super) fn message_came(&mut self, rank: u32) {
        let late = self.sleeps_on(rank);
        if late == Duration::ZERO {
            return self.advance(rank);
        }
        self.processes[rank as usize].then = Then::Continue;
        self.events.add(self.now + late, Happening::Resume(rank));
    }

    /// How long a rank that waits goes on sleeping when its message has come. Those of an MPI's own MPI-IO never sleep.
    fn sleeps_on(&self, rank: u32) -> Duration {
        let process = &self.processes[rank as usize];
        let Running::Operation { group, .. } = &process.running else { return Duration::ZERO };
        if self.machine.nodes.wake == Duration::ZERO || Strategy::OWN.contains(&self.strategy) {
            return Duration::ZERO;
        }
        let one_node = self.sites[*group as usize].nodes.as_ref().is_some_and(|nodes| nodes.count() == 1);
        let waiting = Waiting {
            ranks_a_processor: self.ranks_per_node.div_ceil(self.machine.nodes.cores),
            is_woken: one_node,
            with_servers: !self.hardware.servers.is_empty(),
        };
        let waited = std_time(self.now.since(process.idle_since));
        if waited <= waiting.awake() {
            return Duration::ZERO;
        }
        // Who is not woken finds its message in the middle of a sleep.
        let rest = if one_node { Default::default() } else { waiting.sleep(waited) / 2 };
        Duration::from_picoseconds(self.machine.nodes.wake.picoseconds() + rest.as_nanos() as u64 * 1000)
    }

    /// The receiver's processor time: the message's own, unpacking data into a collective buffer, and, within a node,
    /// the copy out of the sender's memory.
    pub(super) fn receive_cost(&self, rank: u32, id: u32) -> Duration {
        let Some(delivery) = &self.deliveries[id] else { return Duration::ZERO };
        let process = &self.processes[rank as usize];
        let unpacked = match (&delivery.what, &process.running) {
            (Content::Data(piece, _), Running::Operation { number, .. }) if piece.client.0 != *number => {
                Some(self.copy_cost(rank, piece))
            }
            _ => None,
        };
        let is_local = self.processes[delivery.from as usize].node == process.node;
        let copy = match unpacked {
            Some(cost) => cost,
            None if is_local => self.copy_time(delivery.bytes, 1),
            None => Duration::ZERO,
        };
        self.machine.messages.receive.saturating_add(copy)
    }

    /// A message event begins, and the one before it ends.
    pub(super) fn begin_message(&mut self, rank: u32, call: Call, peer: u32, bytes: u64) {
        self.end_message(rank);
        self.processes[rank as usize].sending = Some(Sending { call, peer, bytes, start: self.now });
    }

    pub(super) fn end_message(&mut self, rank: u32) {
        let Some(sending) = self.processes[rank as usize].sending.take() else { return };
        self.tally.count(sending.call, sending.bytes, self.now.since(sending.start));
        let operation = self.processes[rank as usize].operation + 1;
        self.write(Event {
            target: Target::Peer { rank: sending.peer },
            size: sending.bytes,
            result: sending.bytes as i64,
            flags: Flags::PHYSICAL,
            operation,
            ..self.event(rank, sending.call, sending.start)
        });
    }
}

fn std_time(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.picoseconds() / 1000)
}
