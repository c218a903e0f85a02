//! Which head gets which lane of its output.
//!
//! A head asks for every free lane of its class at its one output port, so that the ports of a switch, and the classes of
//! a port, are matched apart. Each free lane grants one head, and each head accepts one lane; or each head asks for one
//! free lane, and each lane grants one head. Those left over try again in the next cycle, or in the same one if there are
//! more iterations. If the stage takes several cycles, a head has its lane when they are over, if the lane is still free
//! then, and else tries again as many later.

use pio_machine::{Allocator, Arbitration, Reuse};

use super::Wormhole;
use super::fabric::{Channel, Stage};
use super::flit::PACKET;
use super::packets::Rest;
use crate::network::bits::{Bits, first_from_in, only_member};

/// Where lanes are matched: a class of a channel.
struct Point {
    channel: usize,
    /// The lanes that are free.
    free: u64,
    /// Where the words of those who ask begin.
    wanting: usize,
    /// The switch that sends into the channel, and the first of the lanes that lead into it.
    sender: u32,
    first_place: u32,
}

impl Wormhole {
    /// A head asks for a lane of its output from now on.
    #[inline]
    pub(super) fn ask_for_lane<const PLAIN: bool>(&mut self, number: u32) {
        if !PLAIN {
            let turn = self.turn_of::<PLAIN>(self.now, self.description.pipeline.vc_allocation);
            self.fabric.turns[number as usize] = turn;
        }
        let asked = self.fabric.lanes[number as usize].out;
        let (channel, class) = (self.fabric.channel(asked), self.fabric.within(asked) as usize);
        let state = &self.fabric.channels[channel];
        let place = (number - self.fabric.first_place(state.sender)) as usize;
        let wanting = self.wanting_of(channel, class);
        self.wanting[wanting + place / 64] |= 1 << (place % 64);
        if state.free & self.classes[class] != 0 {
            self.allocating.insert(channel);
        }
    }

    /// A lane of a channel that leaves a switch has become free.
    #[inline]
    pub(super) fn note_free(&mut self, number: u32) {
        let channel = self.fabric.channel(number);
        let first = self.wanting_of(channel, 0);
        if self.wanting[first..first + self.words_of_channel].iter().any(|word| *word != 0) {
            self.allocating.insert(channel);
        }
    }

    /// Where the words begin of those who ask for the lanes of a class.
    #[inline]
    pub(super) fn wanting_of(&self, channel: usize, class: usize) -> usize {
        channel * self.words_of_channel + class * self.words
    }

    /// Matches heads with free lanes of a channel, class by class; gives whether free lanes are still asked for.
    #[inline]
    pub(super) fn allocate<const PLAIN: bool>(&mut self, channel: usize) -> bool {
        let Channel { free, sender, .. } = self.fabric.channels[channel];
        let first_place = self.fabric.first_place(sender);
        let mut is_wanted = false;
        for class in 0..self.classes.len() {
            let (free, wanting) = (free & self.classes[class], self.wanting_of(channel, class));
            let point = Point { channel, free, wanting, sender, first_place };
            is_wanted |= if PLAIN { self.match_plainly(point) } else { self.match_class(point) };
        }
        is_wanted
    }

    /// Matches heads with free lanes of a class in the plainest way; gives whether free lanes are still asked for.
    #[inline]
    fn match_plainly(&mut self, mut point: Point) -> bool {
        if point.free == 0 {
            return false;
        }
        if let Some(place) = only_member(self.asking(&point)) {
            self.accept_lane::<true>(&point, place, point.free, true);
            return false;
        }
        let is_asked =
            |network: &Wormhole, point: &Point| network.asking(point).iter().any(|word| *word != 0);
        for iteration in 0..self.description.iterations {
            if point.free == 0 || !is_asked(self, &point) {
                break;
            }
            for within in Bits(point.free) {
                let number = self.fabric.lane(point.channel, within);
                let start = usize::from(self.fabric.entries[number as usize].grant);
                let asking = &self.wanting[point.wanting..point.wanting + self.words];
                self.grants.add(first_from_in(asking, start), within);
            }
            point.free &= !self.accept_lanes::<true>(&point, iteration == 0);
        }
        point.free != 0 && is_asked(self, &point)
    }

    /// Matches heads with free lanes of a class; gives whether free lanes are still asked for.
    fn match_class(&mut self, mut point: Point) -> bool {
        let free = point.free;
        for iteration in 0..self.description.iterations {
            if !self.match_lanes(&mut point, iteration == 0) {
                break;
            }
        }
        // Where that takes several cycles, those granted are free until then.
        let is_free = self.fabric.channels[point.channel].free & free != 0;
        is_free && self.asking(&point).iter().any(|word| *word != 0)
    }

    /// Who asks for a lane at a point.
    fn asking(&self, point: &Point) -> &[u64] {
        &self.wanting[point.wanting..point.wanting + self.words]
    }

    /// One iteration; gives whether anybody got a lane. Only the first one moves the round robin on.
    fn match_lanes(&mut self, point: &mut Point, is_first: bool) -> bool {
        if point.free == 0 {
            return false;
        }
        let mut trying = std::mem::take(&mut self.grants.trying);
        trying.copy_from_slice(self.asking(point));
        if self.description.pipeline.vc_allocation > 1 {
            self.leave_those_in_turn(point, &mut trying);
        }
        let is_plain =
            self.description.arbitration == Arbitration::RoundRobin && !self.description.cut_through;
        if trying.iter().any(|word| *word != 0) {
            match self.description.allocator {
                Allocator::SeparableInputFirst => self.grant_lanes_asked_for(point, &trying),
                Allocator::Islip if is_plain && only_member(&trying).is_some() => {
                    let place = only_member(&trying).unwrap_or(0);
                    self.grants.places.push(place);
                    self.grants.lanes[place] = point.free;
                }
                Allocator::Islip => {
                    for within in Bits(point.free) {
                        let number = self.fabric.lane(point.channel, within);
                        if is_plain {
                            let start = usize::from(self.fabric.entries[number as usize].grant);
                            self.grants.add(first_from_in(&trying, start), within);
                        } else if let Some(place) = self.choose_head(&trying, number, point.first_place) {
                            self.grants.add(place, within);
                        }
                    }
                }
            }
        }
        self.grants.trying = trying;
        let taken = self.accept_lanes::<false>(point, is_first);
        point.free &= !taken;
        taken != 0
    }

    /// Of those who ask for what takes several cycles, only those whose turn it is in this one.
    fn leave_those_in_turn(&self, point: &Point, trying: &mut [u64]) {
        let turn = self.turn_of::<false>(self.now, self.description.pipeline.vc_allocation);
        for (index, word) in trying.iter_mut().enumerate() {
            for bit in Bits(*word) {
                let number = point.first_place as usize + 64 * index + bit;
                if self.fabric.turns[number] != turn {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Each head that is trying asks for the next free lane in turn, and each lane grants one of those who ask for it.
    fn grant_lanes_asked_for(&mut self, point: &Point, trying: &[u64]) {
        let mut asking = std::mem::take(&mut self.grants.asking);
        for within in Bits(point.free) {
            asking.fill(0);
            for (index, word) in trying.iter().enumerate() {
                for bit in Bits(*word) {
                    let head = point.first_place as usize + 64 * index + bit;
                    if self.fabric.lanes[head].next_out(point.free, self.fabric.geometry) == within {
                        asking[index] |= 1 << bit;
                    }
                }
            }
            let number = self.fabric.lane(point.channel, within);
            if let Some(place) = self.choose_head(&asking, number, point.first_place) {
                self.grants.add(place, within);
            }
        }
        self.grants.asking = asking;
    }

    /// Heads accept one each of the lanes that they were granted; gives those taken.
    fn accept_lanes<const PLAIN: bool>(&mut self, point: &Point, is_first: bool) -> u64 {
        let mut taken = 0;
        while let Some(place) = self.grants.places.pop() {
            let lanes = std::mem::take(&mut self.grants.lanes[place]);
            taken |= 1 << self.accept_lane::<PLAIN>(point, place, lanes, is_first);
        }
        taken
    }

    /// A head accepts one of the lanes that it was granted; gives which.
    #[inline]
    fn accept_lane<const PLAIN: bool>(
        &mut self,
        point: &Point,
        place: usize,
        granted: u64,
        is_first: bool,
    ) -> usize {
        let asking = point.first_place + place as u32;
        let head = &mut self.fabric.lanes[asking as usize];
        let chosen = head.next_out(granted, self.fabric.geometry);
        let number = self.fabric.geometry.lane(point.channel, chosen);
        if is_first {
            head.accept(chosen);
        }
        self.wanting[point.wanting + place / 64] &= !(1 << (place % 64));
        if PLAIN {
            (head.out, head.stage) = (number, Stage::Moving);
        }
        let places = self.fabric.places(point.sender);
        let entry = &mut self.fabric.entries[number as usize];
        if is_first {
            let after = place as u32 + 1;
            entry.grant = if after == places { 0 } else { after as u16 };
        }
        if PLAIN {
            entry.holder = asking;
            let is_credit = entry.credits > 0;
            self.fabric.channels[point.channel].free &= !(1 << chosen);
            if is_credit {
                self.make_ready(asking);
            }
        } else if self.description.pipeline.vc_allocation > 1 {
            self.lines.granted.put((asking, number));
        } else {
            self.take_lane::<PLAIN>(asking, number);
        }
        chosen
    }

    /// A head has an output lane now.
    fn take_lane<const PLAIN: bool>(&mut self, head: u32, number: u32) {
        self.fabric.lanes[head as usize].out = number;
        self.fabric.take(number, head);
        self.move_from::<PLAIN>(head, self.now + 1);
    }

    /// A head has the lane that it was granted some cycles ago, unless that is not free any more.
    pub(super) fn take_lane_or_retry<const PLAIN: bool>(&mut self, head: u32, number: u32) {
        let is_room = !self.description.cut_through
            || self.front_rest(head).flits <= u32::from(self.fabric.entries[number as usize].credits);
        if self.fabric.is_free(number) && is_room {
            self.take_lane::<PLAIN>(head, number);
        } else {
            // A cycle less than it takes has gone by: its turn is the next one.
            let turn = self.fabric.turns[head as usize];
            self.ask_for_lane::<PLAIN>(head);
            self.fabric.turns[head as usize] = turn;
        }
    }

    /// The head that goes first of those that ask for a lane.
    fn choose_head(&self, asking: &[u64], number: u32, first_place: u32) -> Option<usize> {
        let entry = &self.fabric.entries[number as usize];
        let start = usize::from(entry.grant);
        let is_by_age = self.description.arbitration == Arbitration::Age;
        let places = asking.iter().enumerate();
        let places = places.flat_map(|(word, bits)| Bits(*bits).map(move |bit| 64 * word + bit));
        let packet = |place: usize| self.front_rest(first_place + place as u32);
        let fits =
            |place: &usize| !self.description.cut_through || packet(*place).flits <= u32::from(entry.credits);
        let age = |place: usize| if is_by_age { packet(place).age } else { 0 };
        places.filter(fits).min_by_key(|place| (age(*place), *place < start, *place))
    }

    /// What only some networks ask of the packet whose flit is at the front of a lane.
    pub(super) fn front_rest(&self, number: u32) -> &Rest {
        self.packets.rest(self.fabric.front(number) >> PACKET)
    }

    /// Whether a lane is free only when the packet before has left it.
    pub(super) fn is_free_when_empty(&self) -> bool {
        self.description.reuse == Reuse::TailCredit
    }
}
