//! Which head gets which lane of its output.
//!
//! A head asks for every free lane of its class at its one output port, so that the ports of a switch, and the classes of
//! a port, are matched apart. Each free lane grants one head, each head accepts one lane; those left over try again in
//! the next cycle, or in the same one if there are more iterations.

use pio_machine::{Arbitration, Reuse};

use super::bits::{Bits, first_from, first_from_in};
use super::lanes::Stage;
use super::wiring::Sender;
use super::{PACKET, Wormhole};

/// A head that was granted lanes, as its place among the lanes of the switch, and these.
type Grant = (usize, u64);

impl Wormhole {
    /// A head asks for a lane of its output from now on.
    pub(super) fn ask_for_lane(&mut self, lane: u32) {
        let at = self.lanes.at[lane as usize];
        let switch = self.wiring.receiver[self.lanes.channel(lane)].switch as usize;
        let output = self.wiring.outputs[switch] as usize + usize::from(at.port);
        let index = output * self.classes.len() + usize::from(at.class);
        let place = lane as usize - ((self.wiring.inputs[switch] as usize) << self.lanes.shift);
        self.switches.wanting[index * self.switches.words + place / 64] |= 1 << (place % 64);
        self.switches.wanting_count[index] += 1;
        let channel = self.wiring.output_channel[output] as usize;
        if self.lanes.free[channel] & self.classes[usize::from(at.class)] != 0 {
            self.switches.allocating_ports[switch] |= 1 << at.port;
            self.switches.allocating.insert(switch);
        }
    }

    /// A lane that leaves by a switch's output port has become free.
    pub(super) fn note_free(&mut self, sender: Sender) {
        if self.is_wanted(sender.output as usize) {
            let switch = sender.device as usize;
            let port = sender.output - self.wiring.outputs[switch];
            self.switches.allocating_ports[switch] |= 1 << port;
            self.switches.allocating.insert(switch);
        }
    }

    /// Whether a head asks for a lane that is free at this output port.
    fn is_wanted(&self, output: usize) -> bool {
        let free = self.lanes.free[self.wiring.output_channel[output] as usize];
        let first = output * self.classes.len();
        let mut classes = self.classes.iter().enumerate();
        classes.any(|(class, lanes)| free & lanes != 0 && self.switches.wanting_count[first + class] > 0)
    }

    /// Matches heads with free lanes at every output port of a switch.
    pub(super) fn allocate_channels(&mut self, switch: usize) {
        let mut ports = self.switches.allocating_ports[switch];
        for port in Bits(ports) {
            for class in 0..self.classes.len() {
                for iteration in 0..self.description.iterations {
                    if !self.match_lanes(switch, port, class, iteration == 0) {
                        break;
                    }
                }
            }
            if !self.is_wanted(self.wiring.outputs[switch] as usize + port) {
                ports &= !(1 << port);
            }
        }
        self.switches.allocating_ports[switch] = ports;
        if ports == 0 {
            self.switches.allocating.remove(switch);
        }
    }

    /// One iteration; gives whether anybody got a lane. Only the first one moves the round robin on.
    fn match_lanes(&mut self, switch: usize, port: usize, class: usize, is_first: bool) -> bool {
        let output = self.wiring.outputs[switch] as usize + port;
        let index = output * self.classes.len() + class;
        let channel = self.wiring.output_channel[output];
        let free = self.lanes.free[channel as usize] & self.classes[class];
        if free == 0 || self.switches.wanting_count[index] == 0 {
            return false;
        }
        let first_lane = channel << self.lanes.shift;
        let first_input = self.wiring.inputs[switch] << self.lanes.shift;
        let places = (self.wiring.inputs[switch + 1] << self.lanes.shift) - first_input;
        let mut grants = std::mem::take(&mut self.switches.grants);
        grants.clear();
        self.grant_lanes(index, free, first_lane, first_input, &mut grants);
        for (place, lanes) in &grants {
            let asking = first_input + *place as u32;
            let start = usize::from(self.lanes.at[asking as usize].accept);
            let start =
                if start >> self.lanes.shift == port { start & ((1 << self.lanes.shift) - 1) } else { 0 };
            let chosen = first_from(*lanes, start);
            let lane = first_lane | chosen as u32;
            self.lanes.take(lane, asking);
            let at = &mut self.lanes.at[asking as usize];
            (at.out, at.stage) = (lane, Stage::Settling);
            if is_first {
                at.accept = ((port << self.lanes.shift) + chosen + 1) as u16;
                let after = *place as u32 + 1;
                self.lanes.grant[lane as usize] = if after == places { 0 } else { after as u16 };
            }
            self.switches.wanting[index * self.switches.words + place / 64] &= !(1 << (place % 64));
            self.switches.wanting_count[index] -= 1;
            self.lines.settled.put(self.now, asking);
        }
        let anybody = !grants.is_empty();
        self.switches.grants = grants;
        anybody
    }

    /// Each free lane chooses one of the heads that ask for it and fit into it.
    fn grant_lanes(
        &self,
        index: usize,
        free: u64,
        first_lane: u32,
        first_input: u32,
        grants: &mut Vec<Grant>,
    ) {
        let words = self.switches.words;
        let wanting = &self.switches.wanting[index * words..(index + 1) * words];
        let is_alone = self.switches.wanting_count[index] == 1;
        if is_alone && !self.description.cut_through {
            grants.extend(first_from_in(wanting, 0).map(|place| (place, free)));
            return;
        }
        for within in Bits(free) {
            let lane = first_lane | within as u32;
            let start = usize::from(self.lanes.grant[lane as usize]);
            let Some(place) = self.choose_head(wanting, start, lane, first_input) else { continue };
            match grants.iter_mut().find(|(granted, _)| *granted == place) {
                Some((_, lanes)) => *lanes |= 1 << within,
                None => grants.push((place, 1 << within)),
            }
        }
    }

    /// The head that goes first of those that ask for a lane.
    fn choose_head(&self, wanting: &[u64], start: usize, lane: u32, first_input: u32) -> Option<usize> {
        let is_by_age = self.description.arbitration == Arbitration::Age;
        if !is_by_age && !self.description.cut_through {
            return first_from_in(wanting, start);
        }
        let members = wanting.iter().enumerate();
        let members = members.flat_map(|(word, bits)| Bits(*bits).map(move |bit| 64 * word + bit));
        let fitting = members.filter(|place| {
            let packet = self.front_packet(first_input + *place as u32);
            !self.description.cut_through || packet.flits <= u32::from(self.lanes.credits[lane as usize])
        });
        fitting.min_by_key(|place| {
            let age = if is_by_age { self.front_packet(first_input + *place as u32).age } else { 0 };
            (age, *place < start, *place)
        })
    }

    /// The packet whose flit is at the front of a lane.
    pub(super) fn front_packet(&self, lane: u32) -> &super::Packet {
        &self.packets[(self.lanes.front(lane) >> PACKET) as usize]
    }

    /// Whether a lane is free only when the packet before has left it.
    pub(super) fn is_free_when_empty(&self) -> bool {
        self.description.reuse == Reuse::TailCredit
    }
}
