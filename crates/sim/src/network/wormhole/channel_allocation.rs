//! Which head gets which lane of its output.
//!
//! A head asks for every free lane of its class at its one output port, so that the ports of a switch, and the classes of
//! a port, are matched apart. Each free lane grants one head, each head accepts one lane; those left over try again in
//! the next cycle, or in the same one if there are more iterations.

use pio_machine::{Arbitration, Reuse};

use super::bits::{Bits, first_from, first_from_in, only_member};
use super::fabric::{Fabric, Stage};
use super::{PACKET, Packet, Wormhole};

/// The heads of a switch that were granted lanes, and which.
#[derive(Debug)]
pub(super) struct Grants {
    /// Their places among the lanes of the switch, each once.
    places: Vec<usize>,
    /// For each place, the lanes: none for who is not in the list.
    lanes: Vec<u64>,
}

/// Where lanes are matched: an output port of a switch, and a class of its lanes.
struct Point {
    port: usize,
    class: usize,
    /// The channel that leaves by the port.
    channel: usize,
    /// Where the words of those who ask begin.
    wanting: usize,
    /// The first of the lanes that lead into the switch, and how many places they have.
    first_place: u32,
    places: u32,
}

impl Grants {
    /// For so many places.
    pub(super) fn among(places: usize) -> Grants {
        Grants { places: Vec::new(), lanes: vec![0; places] }
    }

    #[inline]
    fn add(&mut self, place: usize, within: usize) {
        if self.lanes[place] == 0 {
            self.places.push(place);
        }
        self.lanes[place] |= 1 << within;
    }
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
        let words = self.classes.len() * self.words;
        if self.wanting[output * words..(output + 1) * words].iter().any(|word| *word != 0) {
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
        let state = &self.fabric.switches[switch];
        let (mut ports, first_output) = (state.allocating_ports, state.first_output as usize);
        let (first_place, places) =
            (state.first_channel << self.fabric.shift, state.inputs << self.fabric.shift);
        for port in Bits(ports) {
            let output = first_output + port;
            let channel = self.fabric.outputs[output].channel as usize;
            for class in 0..self.classes.len() {
                let wanting = (output * self.classes.len() + class) * self.words;
                let point = Point { port, class, channel, wanting, first_place, places };
                for iteration in 0..self.description.iterations {
                    if !self.match_lanes(&point, iteration == 0) {
                        break;
                    }
                }
            }
            if !self.is_wanted(output) {
                ports &= !(1 << port);
            }
        }
        self.fabric.switches[switch].allocating_ports = ports;
        if ports == 0 {
            self.allocating.remove(switch);
        }
    }

    /// One iteration; gives whether anybody got a lane. Only the first one moves the round robin on.
    fn match_lanes(&mut self, point: &Point, is_first: bool) -> bool {
        let free = self.fabric.channels[point.channel].free & self.classes[point.class];
        if free == 0 {
            return false;
        }
        let wanting = &self.wanting[point.wanting..point.wanting + self.words];
        if wanting.iter().all(|word| *word == 0) {
            return false;
        }
        if !self.description.cut_through
            && let Some(place) = only_member(wanting)
        {
            self.accept_lane(point, place, free, is_first);
            return true;
        }
        let is_plain =
            self.description.arbitration == Arbitration::RoundRobin && !self.description.cut_through;
        for within in Bits(free) {
            let number = self.fabric.lane(point.channel, within);
            if is_plain {
                let start = usize::from(self.fabric.lanes[number as usize].grant);
                self.grants.add(first_from_in(wanting, start), within);
            } else if let Some(place) = self.choose_head(wanting, number, point.first_place) {
                self.grants.add(place, within);
            }
        }
        let anybody = !self.grants.places.is_empty();
        while let Some(place) = self.grants.places.pop() {
            let lanes = std::mem::take(&mut self.grants.lanes[place]);
            self.accept_lane(point, place, lanes, is_first);
        }
        anybody
    }

    /// A head accepts one of the lanes that it was granted.
    fn accept_lane(&mut self, point: &Point, place: usize, granted: u64, is_first: bool) {
        let shift = self.fabric.shift;
        let asking = point.first_place + place as u32;
        let head = &mut self.fabric.lanes[asking as usize];
        let accept = usize::from(head.accept);
        let start = if accept >> shift == point.port { accept & ((1 << shift) - 1) } else { 0 };
        let chosen = first_from(granted, start);
        let number = ((point.channel << shift) | chosen) as u32;
        (head.out, head.stage) = (number, Stage::Settling);
        if is_first {
            head.accept = ((point.port << shift) + chosen + 1) as u16;
            let after = place as u32 + 1;
            self.fabric.lanes[number as usize].grant = if after == point.places { 0 } else { after as u16 };
        }
        self.fabric.take(number, asking);
        self.wanting[point.wanting + place / 64] &= !(1 << (place % 64));
        self.lines.settled.put(self.now, asking);
    }

    /// The head that goes first of those that ask for a lane.
    fn choose_head(&self, wanting: &[u64], number: u32, first_place: u32) -> Option<usize> {
        let lane = &self.fabric.lanes[number as usize];
        let start = usize::from(lane.grant);
        let is_by_age = self.description.arbitration == Arbitration::Age;
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
