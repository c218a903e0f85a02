//! What nodes put into the network: one flit a cycle each, message after message, packet after packet.

use pio_machine::Choice;

use super::Wormhole;
use super::fabric::NO_LANE;
use super::flit::{HEAD, PACKET, TAIL};
use super::messages::NONE;
use super::packets::{DIRECT, Rest, Way};
use super::senders::Sender;
use crate::network::bits::first_from;

impl Wormhole {
    /// Every node that can puts in a flit.
    pub(super) fn inject(&mut self) {
        while self.senders.due() <= self.now {
            if let Some((_, message)) = self.senders.coming.pop_front() {
                self.queue(message);
            }
        }
        for group in 0..self.senders.active.groups() {
            for word in self.senders.active.words(group) {
                for node in self.senders.active.members(word) {
                    self.inject_from(node);
                }
            }
        }
    }

    /// A message joins the queue of its sender.
    fn queue(&mut self, message: u32) {
        let node = self.messages.get(message).from as usize;
        let source = &mut self.senders.at[node];
        if source.first == NONE {
            source.first = message;
        } else {
            self.messages.set_next(source.last, message);
        }
        source.last = message;
        self.senders.active.insert(node);
    }

    fn inject_from(&mut self, node: usize) {
        if self.senders.at[node].packet == NONE && !self.begin_packet(node) {
            return self.senders.active.remove(node);
        }
        let Sender { packet, left, lane, .. } = self.senders.at[node];
        let is_head = lane == NO_LANE;
        let lane = if is_head { self.free_lane(node, left) } else { lane };
        if lane == NO_LANE || self.fabric.entries[lane as usize].credits == 0 {
            return self.senders.active.remove(node);
        }
        let mut flit = packet << PACKET;
        if is_head {
            flit |= HEAD;
            self.fabric.take(lane, NO_LANE);
        }
        let source = &mut self.senders.at[node];
        (source.left, source.lane) = (left - 1, lane);
        if left == 1 {
            flit |= TAIL;
            (source.packet, source.lane) = (NONE, NO_LANE);
            self.fabric.release(lane, self.is_free_when_empty());
        }
        if self.is_plain {
            self.fabric.use_credit::<true>(lane);
        } else {
            self.fabric.use_credit::<false>(lane);
        }
        self.flit_hops += 1;
        self.lines.injected.put((lane, flit));
    }

    /// Cuts the next packet off the first message of a node, if there is one.
    fn begin_packet(&mut self, node: usize) -> bool {
        let message = self.senders.at[node].first;
        if message == NONE {
            return false;
        }
        let (bytes, is_last) = self.messages.next_packet(message, self.description.payload);
        let (from, to, age, next) = {
            let message = self.messages.get(message);
            (message.from, message.to, message.age, message.next)
        };
        let waypoint = match self.description.choice {
            // A route by an intermediate node takes a class of its own.
            _ if self.classes.len() == 1 => None,
            Choice::Static => self.topology.static_detour(from, to),
            _ => self.topology.waypoint(from, to, self.stream.bits()),
        };
        let is_open = waypoint.is_some() && self.topology.may_leave_out_waypoint();
        let waypoint = waypoint.unwrap_or(DIRECT);
        let flits = self.description.flits(bytes) as u32;
        let rest = (!self.is_plain).then_some(Rest { waypoint, is_open, flits, age });
        let number = self.packets.insert(Way { message, destination: to }, rest);
        let source = &mut self.senders.at[node];
        (source.packet, source.left) = (number, flits);
        if is_last {
            source.first = next;
        }
        true
    }

    /// The next lane in turn that a packet of so many flits may begin in, if there is one.
    fn free_lane(&mut self, node: usize, flits: u32) -> u32 {
        let channel = self.fabric.injection[node];
        let mut free = self.fabric.channels[channel as usize].free;
        let needed = if self.description.cut_through { flits } else { 1 };
        let source = &mut self.senders.at[node];
        while free != 0 {
            let within = first_from(free, usize::from(source.next_lane));
            let lane = self.fabric.lane(channel as usize, within);
            if u32::from(self.fabric.entries[lane as usize].credits) >= needed {
                let after = within as u32 + 1;
                source.next_lane = if after == self.description.virtual_channels { 0 } else { after as u8 };
                return lane;
            }
            free &= !(1 << within);
        }
        NO_LANE
    }
}
