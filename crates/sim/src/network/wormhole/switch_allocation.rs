//! Which flits cross a switch in a cycle: at most one from each input and one to each output.

use pio_machine::{Allocator, Arbitration};

use super::Wormhole;
use super::fabric::{Sent, Stage};
use super::flit::TAIL;
use super::requests::{PORTS, Requests};
use crate::network::bits::{Bits, first_from};

/// Who is not matched yet at a switch.
struct Unmatched {
    switch: usize,
    first_channel: usize,
    first_output: usize,
    inputs: u64,
    outputs: u64,
}

impl Unmatched {
    /// An input port asks for an output port; gives whether it is the first to do so.
    #[inline]
    fn ask(&mut self, requests: &mut Requests, input: usize, output: u8) -> bool {
        let inputs = &mut requests.inputs[usize::from(output)];
        let is_first = self.outputs & 1 << output == 0;
        *inputs = if is_first { 0 } else { *inputs } | 1 << input;
        self.outputs |= 1 << output;
        is_first
    }
}

impl Wormhole {
    /// Matches inputs and outputs of a switch, and sends a flit from each input that is matched.
    pub(super) fn allocate_switch<const PLAIN: bool>(&mut self, switch: usize) {
        let state = &self.fabric.switches[switch];
        let mut unmatched = Unmatched {
            switch,
            first_channel: state.first_channel as usize,
            first_output: state.first_output as usize,
            inputs: state.ready_ports,
            outputs: 0,
        };
        if self.gather_requests::<PLAIN>(&mut unmatched) {
            // Nobody is in anybody's way: every allocator matches them all.
            for input in Bits(unmatched.inputs) {
                let output = self.requests.outputs[input].trailing_zeros() as usize & (PORTS - 1);
                self.connect::<PLAIN>(&unmatched, input, output, true);
            }
            return;
        }
        for iteration in 0..self.description.iterations {
            let anybody = match self.description.allocator {
                _ if PLAIN => self.match_outputs_first::<PLAIN>(&mut unmatched, iteration == 0),
                Allocator::Islip => self.match_outputs_first::<PLAIN>(&mut unmatched, iteration == 0),
                Allocator::SeparableInputFirst => {
                    self.match_inputs_first::<PLAIN>(&mut unmatched, iteration == 0)
                }
            };
            if !anybody {
                break;
            }
        }
    }

    /// Each input port asks for every output port that one of its lanes wants; of several lanes that want the same, one
    /// stands for it. Gives whether no two want the same.
    fn gather_requests<const PLAIN: bool>(&mut self, unmatched: &mut Unmatched) -> bool {
        let mut is_simple = true;
        let is_in_turn_always = PLAIN || self.description.pipeline.switch_allocation == 1;
        for input in Bits(unmatched.inputs) {
            let channel = unmatched.first_channel + input;
            let state = &self.fabric.channels[channel];
            let (mut ready, first) = (state.ready, state.first_lane);
            if !is_in_turn_always {
                ready = self.those_in_turn::<PLAIN>(channel, ready);
                if ready == 0 {
                    unmatched.inputs &= !(1 << input);
                    continue;
                }
            }
            if ready.is_power_of_two() {
                let lane = ready.trailing_zeros();
                let number = self.fabric.lane(channel, lane as usize);
                let output = self.fabric.lanes[number as usize].port & (PORTS as u8 - 1);
                self.requests.lane[input][usize::from(output)] = lane as u8;
                self.requests.outputs[input] = 1 << output;
                is_simple &= unmatched.ask(&mut self.requests, input, output);
                continue;
            }
            let later = ready & (!0 << first);
            let mut asked = 0_u64;
            for lanes in [later, ready & !later] {
                for lane in Bits(lanes) {
                    let number = self.fabric.lane(channel, lane);
                    let output = self.fabric.lanes[number as usize].port & (PORTS as u8 - 1);
                    if asked & 1 << output == 0 {
                        asked |= 1 << output;
                        self.requests.lane[input][usize::from(output)] = lane as u8;
                        is_simple &= unmatched.ask(&mut self.requests, input, output);
                    } else if !PLAIN && self.description.arbitration == Arbitration::Age {
                        self.prefer_older(channel, input, usize::from(output), lane);
                    }
                }
            }
            self.requests.outputs[input] = asked;
            is_simple &= asked.is_power_of_two();
        }
        is_simple
    }

    /// Of the lanes of a channel that are ready, those whose turn to ask it is in this cycle.
    fn those_in_turn<const PLAIN: bool>(&self, channel: usize, ready: u64) -> u64 {
        let turn = self.turn_of::<PLAIN>(self.now, self.description.pipeline.switch_allocation);
        let is_in_turn = |lane: &usize| {
            let number = self.fabric.lane(channel, *lane);
            self.fabric.turns[number as usize] == turn
        };
        Bits(ready).filter(is_in_turn).fold(0, |lanes, lane| lanes | 1 << lane)
    }

    /// Of two lanes of an input that want the same output, the one with the older packet stands for both.
    fn prefer_older(&mut self, channel: usize, input: usize, output: usize, lane: usize) {
        let rival = usize::from(self.requests.lane[input][output]);
        let age = |lane: usize| self.front_rest(self.fabric.lane(channel, lane)).age;
        if age(lane) < age(rival) {
            self.requests.lane[input][output] = lane as u8;
        }
    }

    /// Outputs grant, inputs accept; gives whether anybody was matched.
    fn match_outputs_first<const PLAIN: bool>(&mut self, unmatched: &mut Unmatched, is_first: bool) -> bool {
        let mut granted = 0_u64;
        for output in Bits(unmatched.outputs) {
            let asking = self.requests.inputs[output] & unmatched.inputs;
            if asking != 0 {
                let start = self.fabric.outputs[unmatched.first_output + output].first_input;
                let input = self.first_of::<PLAIN>(asking, start, |input| self.age(unmatched, input, output));
                if granted & 1 << input == 0 {
                    self.requests.granted[input] = 0;
                }
                granted |= 1 << input;
                self.requests.granted[input] |= 1 << output;
            }
        }
        for input in Bits(granted) {
            let start = self.fabric.channels[unmatched.first_channel + input].first_output;
            let grants = self.requests.granted[input];
            let output = self.first_of::<PLAIN>(grants, start, |output| self.age(unmatched, input, output));
            self.connect::<PLAIN>(unmatched, input, output, is_first);
            unmatched.inputs &= !(1 << input);
            unmatched.outputs &= !(1 << output);
        }
        granted != 0
    }

    /// Inputs ask for one output each, outputs grant; gives whether anybody was matched.
    fn match_inputs_first<const PLAIN: bool>(&mut self, unmatched: &mut Unmatched, is_first: bool) -> bool {
        let mut asked = 0_u64;
        for input in Bits(unmatched.inputs) {
            let wanted = self.requests.outputs[input] & unmatched.outputs;
            if wanted != 0 {
                let start = self.fabric.channels[unmatched.first_channel + input].first_output;
                let output =
                    self.first_of::<PLAIN>(wanted, start, |output| self.age(unmatched, input, output));
                if asked & 1 << output == 0 {
                    self.requests.granted[output] = 0;
                }
                asked |= 1 << output;
                self.requests.granted[output] |= 1 << input;
            }
        }
        for output in Bits(asked) {
            let start = self.fabric.outputs[unmatched.first_output + output].first_input;
            let asking = self.requests.granted[output];
            let input = self.first_of::<PLAIN>(asking, start, |input| self.age(unmatched, input, output));
            self.connect::<PLAIN>(unmatched, input, output, is_first);
            unmatched.inputs &= !(1 << input);
            unmatched.outputs &= !(1 << output);
        }
        asked != 0
    }

    /// Who goes first of `asking`, which is not empty: the next in turn, or whose packet is the oldest.
    fn first_of<const PLAIN: bool>(&self, asking: u64, start: u8, age: impl Fn(usize) -> u64) -> usize {
        let next = first_from(asking, usize::from(start));
        if PLAIN || self.description.arbitration == Arbitration::RoundRobin || asking.is_power_of_two() {
            return next;
        }
        Bits(asking).min_by_key(|one| (age(*one), *one < usize::from(start), *one)).unwrap_or(next)
    }

    /// The age of the packet that an input has for an output.
    fn age(&self, unmatched: &Unmatched, input: usize, output: usize) -> u64 {
        let lane = usize::from(self.requests.lane[input][output]);
        self.front_rest(self.fabric.lane(unmatched.first_channel + input, lane)).age
    }

    /// An input that is matched with an output sends the flit that it has for it, when the stage is over. Only the first
    /// iteration moves the round robin on.
    #[inline(always)]
    fn connect<const PLAIN: bool>(&mut self, at: &Unmatched, input: usize, output: usize, is_first: bool) {
        let lane = self.requests.lane[input][output];
        let switch = &mut self.fabric.switches[at.switch];
        let channel = at.first_channel + input;
        let state = &mut self.fabric.channels[channel];
        if is_first {
            self.fabric.outputs[at.first_output + output].first_input = after(input, switch.inputs);
            state.first_output = after(output, switch.outputs);
        }
        state.first_lane = after(usize::from(lane), self.description.virtual_channels);
        let number = ((channel as u32) << self.fabric.geometry.shift) | u32::from(lane);
        let is_from_node = state.is_from_node;
        let is_at_once = PLAIN || self.description.pipeline.switch_allocation == 1;
        if is_at_once && self.forward::<PLAIN>(number, is_from_node) {
            return;
        }
        if !is_at_once {
            self.fabric.lanes[number as usize].stage = Stage::Crossing;
            self.lines.matched.put(number);
        }
        let state = &mut self.fabric.channels[channel];
        state.ready &= !(1 << lane);
        if state.ready == 0 {
            let ready_ports = &mut self.fabric.switches[at.switch].ready_ports;
            *ready_ports &= !(1 << input);
            if *ready_ports == 0 {
                self.switching.remove(at.switch);
            }
        }
    }

    /// A lane sends the flit for which it was given the switch some cycles ago.
    pub(super) fn cross<const PLAIN: bool>(&mut self, number: u32) {
        self.fabric.lanes[number as usize].stage = Stage::Moving;
        let is_from_node = self.fabric.channels[self.fabric.channel(number)].is_from_node;
        self.forward::<PLAIN>(number, is_from_node);
        let lane = &self.fabric.lanes[number as usize];
        if lane.stage == Stage::Moving && lane.length > 0 {
            self.move_from::<PLAIN>(number, self.now + 1);
        }
    }

    /// Sends a lane's front flit into the output lane that it has; gives whether the next flit may follow at once.
    #[inline(always)]
    fn forward<const PLAIN: bool>(&mut self, number: u32, is_from_node: bool) -> bool {
        let Sent { flit, out, left, credits } = self.fabric.pop::<PLAIN>(number, |flit| flit & TAIL != 0);
        self.flit_hops += 1;
        self.lines.forwarded.put((out, flit));
        let credits_back = if is_from_node { &mut self.lines.node_credits } else { &mut self.lines.credits };
        credits_back.put(number);
        if flit & TAIL == 0 {
            return left > 0 && credits > 0;
        }
        self.released.push(out);
        if left > 0 {
            self.lines.uncovered.put(number);
        }
        false
    }
}

/// Who goes first when `index` of so many has had its turn.
#[inline]
fn after(index: usize, count: u32) -> u8 {
    if index as u32 + 1 == count { 0 } else { index as u8 + 1 }
}
