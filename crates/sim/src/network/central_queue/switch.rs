//! What a switch does with the heads of packets: bypass, queue, or wait.

use super::CentralQueue;
use super::state::Place;

impl CentralQueue {
    /// A packet's head is at an input port, and its output is known.
    pub(super) fn head_at_switch(&mut self, number: u32, switch: u32) {
        let output = self.next_channel_of(number);
        let there = &self.channels[output as usize];
        if there.free_at <= self.now && there.line.is_empty() {
            self.counts.bypassed += 1;
            self.packets[number].hop += 1;
            self.put_on(number, output, self.now + self.times.bypass);
            return;
        }
        self.packets[number].ready = self.now + self.times.queue;
        let chunks = self.chunks_of[self.packets[number].bytes as usize];
        let here = &mut self.switches[switch as usize];
        if here.waiting.is_empty() && here.free >= chunks {
            self.enqueue(number, switch);
        } else {
            self.counts.blocked += 1;
            here.waiting.push(number);
            self.get_in_line(number, output);
        }
    }

    /// A channel that packets are in line for is free: the first of them goes on.
    pub(super) fn channel_freed(&mut self, output: u32) {
        let there = &mut self.channels[output as usize];
        there.is_watched = false;
        let Some(number) = there.line.pop_front() else { return };
        let packet = &mut self.packets[number];
        let (place, started) = (packet.place, packet.ready.max(self.now));
        packet.place = Place::Moving;
        if place == Place::InLine {
            packet.hop += 1;
        }
        let from = there.from;
        self.put_on(number, output, started);
        if place == Place::InLine {
            let switch = from - self.topology.nodes();
            self.switches[switch as usize].waiting.retain(|&waiting| waiting != number);
            self.give_up_slot(output, switch);
        }
    }

    /// There is more room in the queue: gives it to the input ports that wait for it, the least recently served first. As
    /// none is passed over because its packet is too long, none waits forever.
    pub(super) fn give_room(&mut self, switch: u32) {
        loop {
            let waiting = &self.switches[switch as usize].waiting;
            let turn = |number: &u32| self.channels[self.channel_of(*number) as usize].served;
            let Some((index, number)) =
                waiting.iter().copied().enumerate().min_by_key(|(_, number)| turn(number))
            else {
                return;
            };
            if self.switches[switch as usize].free < self.chunks_of[self.packets[number].bytes as usize] {
                return;
            }
            self.switches[switch as usize].waiting.remove(index);
            self.enqueue(number, switch);
        }
    }

    /// Takes a packet into the queue, in which there is room for it.
    fn enqueue(&mut self, number: u32, switch: u32) {
        let (input, output) = (self.channel_of(number), self.next_channel_of(number));
        self.counts.queued += 1;
        self.turn += 1;
        self.channels[input as usize].served = self.turn;
        let tail_in = self.take_in(number, self.now);
        let queue_time = self.times.queue;
        let store = self.topology.nodes() + switch;
        let packet = &mut self.packets[number];
        self.switches[switch as usize].free -= self.chunks_of[packet.bytes as usize];
        packet.hop += 1;
        packet.first = packet.hop;
        packet.store = store;
        packet.fed = tail_in + queue_time;
        let was_in_line = packet.place == Place::InLine;
        packet.place = Place::Stored;
        if was_in_line {
            self.give_up_slot(output, switch);
        } else {
            self.channels[output as usize].line.push_back(number);
        }
        self.look_at(output);
    }

    /// A packet at an input port gets in line for its output, if the output's reserved slot is free.
    fn get_in_line(&mut self, number: u32, output: u32) {
        let there = &mut self.channels[output as usize];
        if there.is_claimed {
            return;
        }
        there.is_claimed = true;
        there.line.push_back(number);
        self.packets[number].place = Place::InLine;
        self.look_at(output);
    }

    /// The reserved slot of an output is free: the least recently served input port with a packet for it gets it.
    fn give_up_slot(&mut self, output: u32, switch: u32) {
        self.channels[output as usize].is_claimed = false;
        let wants = |number: &u32| {
            self.packets[*number].place == Place::Moving && self.next_channel_of(*number) == output
        };
        let turn = |number: &u32| self.channels[self.channel_of(*number) as usize].served;
        let next = self.switches[switch as usize].waiting.iter().copied().filter(wants).min_by_key(turn);
        if let Some(number) = next {
            self.get_in_line(number, output);
        }
    }
}
