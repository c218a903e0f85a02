//! Which head gets which lane of its output.
//!
//! A head asks for every free lane of its class at its one output port, so that the ports of a switch, and the classes of
//! a port, are matched apart. Each free lane grants one head, each head accepts one lane; those left over try again in
//! the next cycle, or in the same one if there are more iterations.

use pio_machine::{Arbitration, Reuse};

use super::bits::{Bits, first_from, first_from_in};
use super::fabric::{Fabric, Stage};
use super::{PACKET, Packet, Wormhole};

/// A head that was granted lanes, as its place among the lanes of the switch, and these.
pub(super) type Grant = (usize, u64);

/// Where lanes are matched: an output port of a switch, and a class of its lanes.
#[derive(Clone, Copy)]
struct Point {
    switch: usize,
    port: usize,
    class: usize,
}

impl Wormhole {
    /// A head asks for a lane of its output from now on.
    pub(super) fn ask_for_lane(&mut self, number: u32) {
        let Fabric { switches, outputs, channels, lanes, shift, .. } = &mut self.fabric;
        let lane = &lanes[number as usize];
        let index = channels[(number >> *shift) as usize].switch as usize;
        let switch = &mut switches[index];
        let output = switch.first_output as usize + usize::from(lane.port);
        let class = usize::from(lane.class);
        let place = number as usize - ((switch.first_channel as usize) << *shift);
        let wanting = (output * self.classes.len() + class) * self.words;
        self.wanting[wanting + place / 64] |= 1 << (place % 64);
        if channels[outputs[output].channel as usize].free & self.classes[class] != 0 {
            switch.allocating_ports |= 1 << lane.port;
            self.allocating.insert(index);
        }
    }

    /// A lane that leaves by this output port of all has become free.
    pub(super) fn note_free(&mut self, switch: usize, output: usize) {
        if self.is_wanted(output) {
            let state = &mut self.fabric.switches[switch];
            state.allocating_ports |= 1 << (output - state.first_output as usize);
            self.allocating.insert(switch);
        }
    }

    /// Whether a head asks for a lane that is free at this output port.
    fn is_wanted(&self, output: usize) -> bool {
        let free = self.fabric.channels[self.fabric.outputs[output].channel as usize].free;
        let classes = self.classes.len();
        let asking = &self.wanting[output * classes * self.words..(output + 1) * classes * self.words];
        let mut asking = asking.chunks_exact(self.words).zip(&self.classes);
        asking.any(|(places, lanes)| free & lanes != 0 && places.iter().any(|word| *word != 0))
    }

    /// Matches heads with free lanes at every output port of a switch.
    pub(super) fn allocate_channels(&mut self, switch: usize) {
        let (mut ports, first_output) = {
            let switch = &self.fabric.switches[switch];
            (switch.allocating_ports, switch.first_output as usize)
        };
        for port in Bits(ports) {
            for class in 0..self.classes.len() {
                for iteration in 0..self.description.iterations {
                    if !self.match_lanes(Point { switch, port, class }, iteration == 0) {
                        break;
                    }
                }
            }
            if !self.is_wanted(first_output + port) {
                ports &= !(1 << port);
            }
        }
        self.fabric.switches[switch].allocating_ports = ports;
        if ports == 0 {
            self.allocating.remove(switch);
        }
    }

    /// One iteration; gives whether anybody got a lane. Only the first one moves the round robin on.
    fn match_lanes(&mut self, point: Point, is_first: bool) -> bool {
        let switch = &self.fabric.switches[point.switch];
        let output = switch.first_output as usize + point.port;
        let first_place = switch.first_channel << self.fabric.shift;
        let places = switch.inputs << self.fabric.shift;
        let wanting = (output * self.classes.len() + point.class) * self.words;
        let channel = self.fabric.outputs[output].channel as usize;
        let free = self.fabric.channels[channel].free & self.classes[point.class];
        let mut grants = std::mem::take(&mut self.grants);
        grants.clear();
        self.grant_lanes(
            &self.wanting[wanting..wanting + self.words],
            free,
            channel,
            first_place,
            &mut grants,
        );
        for (place, lanes) in &grants {
            let asking = first_place + *place as u32;
            let accept = usize::from(self.fabric.lanes[asking as usize].accept);
            let is_here = accept >> self.fabric.shift == point.port;
            let start = if is_here { accept & ((1 << self.fabric.shift) - 1) } else { 0 };
            let chosen = first_from(*lanes, start);
            let number = self.fabric.lane(channel, chosen);
            self.fabric.take(number, asking);
            if is_first {
                let after = *place as u32 + 1;
                self.fabric.lanes[number as usize].grant = if after == places { 0 } else { after as u16 };
                let accept = (point.port << self.fabric.shift) + chosen + 1;
                self.fabric.lanes[asking as usize].accept = accept as u16;
            }
            let lane = &mut self.fabric.lanes[asking as usize];
            (lane.out, lane.stage) = (number, Stage::Settling);
            self.wanting[wanting + place / 64] &= !(1 << (place % 64));
            self.lines.settled.put(self.now, asking);
        }
        let anybody = !grants.is_empty();
        self.grants = grants;
        anybody
    }

    /// Each free lane of a channel chooses one of the heads that ask for it and fit into it.
    fn grant_lanes(
        &self,
        wanting: &[u64],
        free: u64,
        channel: usize,
        first_place: u32,
        grants: &mut Vec<Grant>,
    ) {
        if free == 0 {
            return;
        }
        if let [word] = wanting
            && word.is_power_of_two()
            && !self.description.cut_through
        {
            grants.push((word.trailing_zeros() as usize, free));
            return;
        }
        for within in Bits(free) {
            let number = self.fabric.lane(channel, within);
            let Some(place) = self.choose_head(wanting, number, first_place) else { continue };
            match grants.iter_mut().find(|(granted, _)| *granted == place) {
                Some((_, lanes)) => *lanes |= 1 << within,
                None => grants.push((place, 1 << within)),
            }
        }
    }

    /// The head that goes first of those that ask for a lane.
    fn choose_head(&self, wanting: &[u64], number: u32, first_place: u32) -> Option<usize> {
        let lane = &self.fabric.lanes[number as usize];
        let start = usize::from(lane.grant);
        let is_by_age = self.description.arbitration == Arbitration::Age;
        if !is_by_age && !self.description.cut_through {
            return first_from_in(wanting, start);
        }
        let places = wanting.iter().enumerate();
        let places = places.flat_map(|(word, bits)| Bits(*bits).map(move |bit| 64 * word + bit));
        let packet = |place: usize| self.front_packet(first_place + place as u32);
        let fits =
            |place: &usize| !self.description.cut_through || packet(*place).flits <= u32::from(lane.credits);
        let age = |place: usize| if is_by_age { packet(place).age } else { 0 };
        places.filter(fits).min_by_key(|place| (age(*place), *place < start, *place))
    }

    /// The packet whose flit is at the front of a lane.
    pub(super) fn front_packet(&self, number: u32) -> &Packet {
        &self.packets[(self.fabric.front(number) >> PACKET) as usize]
    }

    /// Whether a lane is free only when the packet before has left it.
    pub(super) fn is_free_when_empty(&self) -> bool {
        self.description.reuse == Reuse::TailCredit
    }
}
