//! What is between a node's memory and its link (Elan): direct-memory-access engine, processor, bus, thread processor.
//!
//! The engine cuts messages into packets, and lets those to different nodes take turns, so that a short one is not kept
//! by a long one. It sends one packet at a time: the next, on another virtual channel, once the whole of the one before
//! has left. A message to a node follows the one before it when that is acknowledged. One processor is busy with the
//! transactions that go out and with those that come in; one bus carries the data of both. The next packet's data cross
//! the bus while the one before is sent.

use pio_machine::Duration;

use super::Circuit;
use super::costs::BusCosts;
use super::state::{Bus, Event, Flow, NONE, Priority, Way};
use crate::kernel::Time;

impl Circuit {
    /// A message joins those to its node.
    pub(super) fn posted(&mut self, now: Time, message: u32) {
        let state = &self.messages[message];
        let (from, to, priority) = (state.from, state.to, state.priority);
        let slice = self.costs.slice;
        let flows = &mut self.adapters[from as usize].flows;
        match flows.iter_mut().find(|flow| flow.to == to && flow.priority == priority) {
            Some(flow) => {
                self.messages[flow.last].next = message;
                flow.last = message;
            }
            None => flows.push_back(Flow { to, priority, first: message, last: message, slice }),
        }
        self.pump(now, from);
    }

    /// Sends the next packet, if there is one and everything it needs.
    pub(super) fn pump(&mut self, now: Time, node: u32) {
        self.prepare(now, node);
        let channel = self.wiring.injection(node);
        let is_free = self.has_free(now, channel);
        let adapter = &mut self.adapters[node as usize];
        if adapter.is_sending || !is_free {
            return;
        }
        let Some((packet, ready)) = adapter.next else { return };
        if ready > now {
            return self.events.add(ready, Event::Pump { node });
        }
        adapter.next = None;
        adapter.is_sending = true;
        let transactions = self.costs.transactions(self.packets[packet].payload);
        let begin = adapter.processor.max(now);
        adapter.processor = begin + self.costs.transaction_out.saturating_mul(transactions);
        if begin == now {
            self.inject(now, packet);
        } else {
            self.events.add(begin, Event::Inject { packet });
        }
        self.prepare(now, node);
    }

    /// A packet enters the network.
    pub(super) fn inject(&mut self, now: Time, packet: u32) {
        let state = &mut self.packets[packet];
        state.born = now;
        state.since = now;
        let channel = self.wiring.injection(state.from);
        self.take(now, packet, channel);
    }

    /// The head of a packet is here: when its data will be in memory, if they come in time.
    pub(super) fn take_in(&mut self, now: Time, packet: u32) {
        let state = &mut self.packets[packet];
        let adapter = &mut self.adapters[state.to as usize];
        let service = self.costs.transaction_in.saturating_mul(self.costs.transactions(state.payload));
        adapter.processor = adapter.processor.max(now) + service;
        let stored = adapter.bus.carry(now, Way::In, state.payload, self.costs.bus.as_ref());
        state.taken_in = adapter.processor.max(stored);
        if let Some(partners) = &self.costs.partners {
            let position = adapter.known.iter().position(|known| *known == state.from);
            // While there is room, whoever is new costs nothing: only who takes another's place does.
            let is_known = position.is_some() || adapter.known.len() < partners.known as usize;
            state.release = if is_known { Duration::ZERO } else { partners.other };
            position.and_then(|position| adapter.known.remove(position));
            adapter.known.push_front(state.from);
            adapter.known.truncate(partners.known as usize);
        }
    }

    /// So many bytes of a message are in the memory of its receiver.
    pub(super) fn came(&mut self, now: Time, message: u32, bytes: u64) {
        let state = &mut self.messages[message];
        state.there += bytes;
        state.taken_in = state.taken_in.max(now);
        if state.there < state.bytes {
            return;
        }
        let adapter = &mut self.adapters[state.to as usize];
        let mut arrived = state.taken_in;
        if self.costs.matching > Duration::ZERO {
            adapter.thread = adapter.thread.max(arrived) + self.costs.matching;
            arrived = adapter.thread;
        }
        self.events.add(arrived, Event::Arrived { message });
    }

    /// The acknowledgement of a packet is back.
    pub(super) fn closed(&mut self, now: Time, packet: u32) {
        let state = &mut self.packets[packet];
        state.tail_schedule = state.tail_schedule.wrapping_add(1);
        state.left_schedule = state.left_schedule.wrapping_add(1);
        let (slot, node, has_left) = (state.message, state.from, state.has_left);
        self.packets.remove(packet);
        if !has_left {
            self.adapters[node as usize].is_sending = false;
        }
        let message = &mut self.messages[slot];
        message.open -= 1;
        if message.all_cut && message.open == 0 {
            let (to, priority, next) = (message.to, message.priority, message.next);
            let flows = &mut self.adapters[node as usize].flows;
            let found = flows.iter().position(|flow| flow.to == to && flow.priority == priority);
            if let Some(index) = found {
                flows[index].first = next;
                if next == NONE {
                    flows.remove(index);
                }
            }
            self.let_go_of_message(slot);
        }
        self.pump(now, node);
    }

    /// Cuts the next packet of the message whose turn it is, and has its data fetched.
    fn prepare(&mut self, now: Time, node: u32) {
        if self.adapters[node as usize].next.is_some() {
            return;
        }
        let turn = self.turn(node, Priority::High).or_else(|| self.turn(node, Priority::Normal));
        let Some(index) = turn else { return };
        let message = self.adapters[node as usize].flows[index].first;
        let packet = self.cut(message);
        let payload = self.packets[packet].payload;
        let adapter = &mut self.adapters[node as usize];
        let flow = &mut adapter.flows[index];
        flow.slice = flow.slice.saturating_sub(payload);
        if flow.slice == 0 || self.messages[message].all_cut {
            flow.slice = self.costs.slice;
            if let Some(flow) = adapter.flows.remove(index) {
                adapter.flows.push_back(flow);
            }
        }
        let ready = adapter.bus.carry(now, Way::Out, payload, self.costs.bus.as_ref());
        adapter.next = Some((packet, ready));
    }

    /// The first of a node's flows of this priority that has something to send.
    fn turn(&self, node: u32, priority: Priority) -> Option<usize> {
        let has_more = |flow: &Flow| !self.messages[flow.first].all_cut;
        let flows = &self.adapters[node as usize].flows;
        flows.iter().position(|flow| flow.priority == priority && has_more(flow))
    }
}

impl Bus {
    /// When these bytes are on the other side; at once, if they need not cross.
    fn carry(&mut self, now: Time, way: Way, bytes: u64, costs: Option<&BusCosts>) -> Time {
        let Some(costs) = costs.filter(|_| bytes > 0) else { return now };
        let turn = if self.last.is_some_and(|last| last != way) { costs.turn } else { Duration::ZERO };
        self.last = Some(way);
        self.free = self.free.max(now) + turn + costs.packet + costs.bandwidth.time_of(bytes);
        self.free
    }
}
