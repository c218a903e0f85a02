//! What happens in a cycle.
//!
//! Everything that arrives is taken in first. Then the switches are allocated, and the lanes after them: neither sees what
//! the other does in the same cycle. A lane that a tail frees is free from the next cycle on, and a head that gets a lane
//! asks for the switch from the next cycle on.

use super::Wormhole;
use super::ahead::AHEAD;
use super::fabric::{NO_LANE, Stage};
use super::flit::{Flit, HEAD, PACKET, TAIL};
use super::packets::{DIRECT, PAST};
use crate::kernel::Time;
use crate::network::carrier::Delivery;
use crate::network::topology::DETOUR;

impl Wormhole {
    /// Carries out a cycle but for what nodes put in: that comes first when time goes on, so that what they are told of
    /// this cycle's arrivals can make them send in it.
    pub(super) fn step<const PLAIN: bool>(&mut self, delivered: &mut Vec<Delivery>) {
        let now = self.now;
        self.lines.begin(now);
        let batch = self.lines.uncovered.take();
        for lane in batch.iter().copied() {
            self.find_route::<PLAIN>(lane, self.fabric.front(lane));
        }
        self.lines.uncovered.give_back(batch);
        let batch = self.lines.injected.take();
        for some in batch.chunks(AHEAD) {
            self.read_ahead_of_flits(some);
            for (lane, flit) in some.iter().copied() {
                self.take_flit::<PLAIN>(lane, flit, delivered);
            }
        }
        self.lines.injected.give_back(batch);
        let batch = self.lines.forwarded.take();
        for some in batch.chunks(AHEAD) {
            self.read_ahead_of_flits(some);
            for (lane, flit) in some.iter().copied() {
                self.take_flit::<PLAIN>(lane, flit, delivered);
            }
        }
        self.lines.forwarded.give_back(batch);
        let batch = self.lines.credits.take();
        for some in batch.chunks(AHEAD) {
            self.read_ahead_of_credits(some);
            for lane in some.iter().copied() {
                self.take_credit::<PLAIN>(lane);
            }
        }
        self.lines.credits.give_back(batch);
        let batch = self.lines.node_credits.take();
        for lane in batch.iter().copied() {
            self.fabric.return_credit::<PLAIN>(lane);
            self.senders.wake(self.fabric.channels[self.fabric.channel(lane)].sender);
        }
        self.lines.node_credits.give_back(batch);
        let batch = self.lines.routed.take();
        for some in batch.chunks(AHEAD) {
            self.read_ahead_of_heads(some);
            for lane in some.iter().copied() {
                self.ask_for_lane::<PLAIN>(lane);
            }
        }
        self.lines.routed.give_back(batch);
        self.allocate_switches::<PLAIN>();
        self.allocate_lanes::<PLAIN>();
        self.free_lanes();
    }

    fn allocate_switches<const PLAIN: bool>(&mut self) {
        for group in 0..self.switching.groups() {
            for word in self.switching.words(group) {
                for switch in self.switching.members(word) {
                    self.allocate_switch::<PLAIN>(switch);
                }
            }
        }
        let batch = self.lines.matched.take();
        for lane in batch.iter().copied() {
            self.cross::<PLAIN>(lane);
        }
        self.lines.matched.give_back(batch);
    }

    fn allocate_lanes<const PLAIN: bool>(&mut self) {
        for group in 0..self.allocating.groups() {
            for word in self.allocating.words(group) {
                for channel in self.allocating.members(word) {
                    let is_left = self.allocate::<PLAIN>(channel);
                    if !is_left {
                        self.allocating.remove(channel);
                    }
                }
            }
        }
        let batch = self.lines.granted.take();
        for (head, out) in batch.iter().copied() {
            self.take_lane_or_retry::<PLAIN>(head, out);
        }
        self.lines.granted.give_back(batch);
    }

    /// Lanes into which tails were sent are free from now on, or when they are empty.
    #[inline]
    fn free_lanes(&mut self) {
        let is_when_empty = self.is_free_when_empty();
        let mut released = std::mem::take(&mut self.released);
        for number in released.drain(..) {
            if self.fabric.release(number, is_when_empty) {
                self.note_free(number);
            }
        }
        self.released = released;
    }

    /// A flit comes in by a lane.
    fn take_flit<const PLAIN: bool>(&mut self, number: u32, flit: Flit, delivered: &mut Vec<Delivery>) {
        if self.fabric.channel(number) >= self.fabric.switch_channels {
            return self.eject(number, flit, delivered);
        }
        let lane = self.fabric.push(number, flit);
        match lane.stage {
            Stage::Idle => self.find_route::<PLAIN>(number, flit),
            Stage::Moving if lane.length == 1 => self.move_from::<PLAIN>(number, self.now),
            _ => {}
        }
    }

    /// A flit comes to a node, which takes it out at once.
    fn eject(&mut self, number: u32, flit: Flit, delivered: &mut Vec<Delivery>) {
        self.lines.credits.put(number);
        let message = self.packets.way(flit >> PACKET).message;
        if flit & HEAD != 0 {
            self.messages.note_first(message, self.now);
        }
        if flit & TAIL != 0 {
            self.packets.remove(flit >> PACKET);
            let cycle_time = self.cycle_time;
            let time_of = |cycle: u64| Time(cycle.saturating_mul(cycle_time));
            self.messages.note_packet(message, self.now, time_of, delivered);
        }
    }

    /// A credit for a lane comes back to the switch that sends into it.
    fn take_credit<const PLAIN: bool>(&mut self, number: u32) {
        let (is_freed, holder) = self.fabric.return_credit::<PLAIN>(number);
        if holder != NO_LANE {
            let lane = &self.fabric.lanes[holder as usize];
            if lane.stage == Stage::Moving && lane.length > 0 {
                self.make_ready(holder);
            }
        } else if is_freed {
            self.note_free(number);
        }
    }

    /// A packet's head is at the front of a lane: its output port is chosen, and it may ask for an output lane when the
    /// stage is over.
    fn find_route<const PLAIN: bool>(&mut self, number: u32, head: Flit) {
        let switch = self.fabric.channels[self.fabric.channel(number)].switch;
        let packet = head >> PACKET;
        let mut target = self.packets.way(packet).destination;
        let mut is_past = false;
        if !PLAIN {
            if self.packets.rest(packet).is_open {
                self.choose_way(switch, packet);
            }
            let rest = self.packets.rest_mut(packet);
            if rest.waypoint < PAST && self.topology.is_past(switch, rest.waypoint) {
                rest.waypoint = PAST;
            }
            is_past = rest.waypoint == PAST;
            target = if rest.waypoint < PAST { rest.waypoint } else { target };
        }
        let fabric = &self.fabric;
        let outputs = fabric.switches[switch as usize].first_output;
        let channel_of = |port: u16| fabric.outputs[(outputs + u32::from(port)) as usize].channel;
        let load = |port: u16| fabric.load(channel_of(port));
        let port = self.routes.port(switch, target, &mut self.stream, load);
        let mut out = channel_of(port) << self.fabric.geometry.shift;
        if self.classes.len() > 1 {
            out |= u32::from(self.topology.class(switch, port, target) + u8::from(is_past));
        }
        let lane = &mut self.fabric.lanes[number as usize];
        (lane.out, lane.port, lane.stage) = (out, port as u8, Stage::Asking);
        self.lines.routed.put(number);
    }

    /// A packet whose head is at its first switch keeps its waypoint or leaves it out, by how much is before it on both ways:
    /// on the channels by which they leave the switch, and in the buffers behind (UGAL-L: Kim et al. 2008, section 4.2).
    fn choose_way(&mut self, switch: u32, number: u32) {
        let destination = self.packets.way(number).destination;
        let waypoint = self.packets.rest(number).waypoint;
        let fabric = &self.fabric;
        let outputs = fabric.switches[switch as usize].first_output;
        let load = |port: u16| fabric.load(fabric.outputs[(outputs + u32::from(port)) as usize].channel);
        let mut before = |target: u32| load(self.routes.port(switch, target, &mut self.stream, load));
        let (straight, detour) = (before(destination), before(waypoint));
        let rest = self.packets.rest_mut(number);
        rest.is_open = false;
        if straight <= DETOUR * detour {
            rest.waypoint = DIRECT;
        }
    }

    /// A lane's front flit, which has an output lane, may ask for the switch from this cycle on.
    #[inline]
    pub(super) fn move_from<const PLAIN: bool>(&mut self, number: u32, cycle: u64) {
        if !PLAIN {
            let turn = self.turn_of::<PLAIN>(cycle, self.description.pipeline.switch_allocation);
            self.fabric.turns[number as usize] = turn;
        }
        let lane = &mut self.fabric.lanes[number as usize];
        lane.stage = Stage::Moving;
        let out = lane.out;
        if self.fabric.entries[out as usize].credits > 0 {
            self.make_ready(number);
        }
    }

    /// A lane's front flit asks for the switch, and has a credit.
    #[inline]
    pub(super) fn make_ready(&mut self, number: u32) {
        let within = self.fabric.within(number);
        let channel = self.fabric.channel(number);
        let channel = &mut self.fabric.channels[channel];
        channel.ready |= 1 << within;
        let (switch, port) = (channel.switch as usize, channel.port);
        self.fabric.switches[switch].ready_ports |= 1 << port;
        self.switching.insert(switch);
    }

    /// Who asks for the first time in this cycle for what takes so many cycles asks again after as many: its turn is in
    /// the cycles that leave the same rest.
    #[inline]
    pub(super) fn turn_of<const PLAIN: bool>(&self, cycle: u64, cycles: u32) -> u16 {
        if PLAIN || cycles == 1 { 0 } else { (cycle % u64::from(cycles)) as u16 }
    }
}
