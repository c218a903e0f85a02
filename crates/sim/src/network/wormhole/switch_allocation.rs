//! Which flits cross a switch in a cycle: at most one from each input and one to each output.

use pio_machine::{Allocator, Arbitration};

use super::bits::{Bits, first_from};
use super::lanes::Stage;
use super::{TAIL, Wormhole};

const PORTS: usize = 64;

/// Requests of a switch, kept so that no memory is asked for in each cycle.
#[derive(Debug)]
pub(super) struct Requests {
    /// The input ports that ask for each output port, and the other way round.
    inputs: [u64; PORTS],
    outputs: [u64; PORTS],
    /// The lane that each input port would send from to each output port.
    lane: Box<[[u8; PORTS]; PORTS]>,
}

/// Who is not matched yet.
struct Unmatched {
    inputs: u64,
    outputs: u64,
}

impl Requests {
    pub(super) fn new() -> Requests {
        Requests { inputs: [0; PORTS], outputs: [0; PORTS], lane: Box::new([[0; PORTS]; PORTS]) }
    }
}

impl Wormhole {
    /// Matches inputs and outputs of a switch, and sends a flit from each input that is matched.
    pub(super) fn allocate_switch(&mut self, switch: usize) {
        let mut unmatched = self.gather_requests(switch);
        for iteration in 0..self.description.iterations {
            let matched = match self.description.allocator {
                Allocator::Islip => self.match_outputs_first(switch, &mut unmatched, iteration == 0),
                Allocator::SeparableInputFirst => {
                    self.match_inputs_first(switch, &mut unmatched, iteration == 0)
                }
            };
            if !matched {
                break;
            }
        }
    }

    /// Each input port asks for every output port that one of its lanes wants; of several lanes that want the same, one
    /// stands for it.
    fn gather_requests(&mut self, switch: usize) -> Unmatched {
        let first_channel = self.wiring.inputs[switch] as usize;
        let by_age = self.description.arbitration == Arbitration::Age;
        let mut unmatched = Unmatched { inputs: self.switches.ready_ports[switch], outputs: 0 };
        for input in Bits(unmatched.inputs) {
            let channel = first_channel + input;
            let ready = self.switches.ready[channel];
            let first = self.switches.first_lane[channel];
            let later = ready & (!0 << first);
            let mut asked = 0_u64;
            for lane in Bits(later).chain(Bits(ready & !later)) {
                let number = (channel << self.lanes.shift) | lane;
                let output = usize::from(self.lanes.at[number].port);
                if asked & 1 << output == 0 {
                    asked |= 1 << output;
                    self.requests.lane[input][output] = lane as u8;
                    if unmatched.outputs & 1 << output == 0 {
                        unmatched.outputs |= 1 << output;
                        self.requests.inputs[output] = 0;
                    }
                    self.requests.inputs[output] |= 1 << input;
                } else if by_age {
                    let rival =
                        (channel << self.lanes.shift) | usize::from(self.requests.lane[input][output]);
                    if self.front_packet(number as u32).age < self.front_packet(rival as u32).age {
                        self.requests.lane[input][output] = lane as u8;
                    }
                }
            }
            self.requests.outputs[input] = asked;
        }
        unmatched
    }

    /// Outputs grant, inputs accept.
    fn match_outputs_first(&mut self, switch: usize, unmatched: &mut Unmatched, is_first: bool) -> bool {
        let first_output = self.wiring.outputs[switch] as usize;
        let first_channel = self.wiring.inputs[switch] as usize;
        let mut granted = 0_u64;
        let mut grants = [0_u64; PORTS];
        for output in Bits(unmatched.outputs) {
            let asking = self.requests.inputs[output] & unmatched.inputs;
            if asking != 0 {
                let start = usize::from(self.switches.first_input[first_output + output]);
                let input = self.first_of(asking, start, |input| (first_channel, input, output));
                granted |= 1 << input;
                grants[input] |= 1 << output;
            }
        }
        for input in Bits(granted) {
            let start = usize::from(self.switches.first_output[first_channel + input]);
            let output = self.first_of(grants[input], start, |output| (first_channel, input, output));
            self.connect(switch, input, output, is_first);
            unmatched.inputs &= !(1 << input);
            unmatched.outputs &= !(1 << output);
        }
        granted != 0
    }

    /// Inputs ask for one output each, outputs grant.
    fn match_inputs_first(&mut self, switch: usize, unmatched: &mut Unmatched, is_first: bool) -> bool {
        let first_output = self.wiring.outputs[switch] as usize;
        let first_channel = self.wiring.inputs[switch] as usize;
        let mut asked = 0_u64;
        let mut asking = [0_u64; PORTS];
        for input in Bits(unmatched.inputs) {
            let wanted = self.requests.outputs[input] & unmatched.outputs;
            if wanted != 0 {
                let start = usize::from(self.switches.first_output[first_channel + input]);
                let output = self.first_of(wanted, start, |output| (first_channel, input, output));
                asked |= 1 << output;
                asking[output] |= 1 << input;
            }
        }
        for output in Bits(asked) {
            let start = usize::from(self.switches.first_input[first_output + output]);
            let input = self.first_of(asking[output], start, |input| (first_channel, input, output));
            self.connect(switch, input, output, is_first);
            unmatched.inputs &= !(1 << input);
            unmatched.outputs &= !(1 << output);
        }
        asked != 0
    }

    /// Who goes first of `asking`, which is not empty: the next in turn, or whose packet is the oldest. `request` gives
    /// the first channel of the switch, and the input and output that one stands for.
    fn first_of(&self, asking: u64, start: usize, request: impl Fn(usize) -> (usize, usize, usize)) -> usize {
        let next = first_from(asking, start);
        if self.description.arbitration == Arbitration::RoundRobin || asking.is_power_of_two() {
            return next;
        }
        let age = |one: usize| {
            let (first_channel, input, output) = request(one);
            let lane = usize::from(self.requests.lane[input][output]);
            self.front_packet((((first_channel + input) << self.lanes.shift) | lane) as u32).age
        };
        Bits(asking).min_by_key(|one| (age(*one), *one < start, *one)).unwrap_or(next)
    }

    /// Sends the flit that an input has for an output.
    fn connect(&mut self, switch: usize, input: usize, output: usize, is_first: bool) {
        let channel = self.wiring.inputs[switch] as usize + input;
        let lane = self.requests.lane[input][output];
        if is_first {
            let inputs = self.wiring.inputs[switch + 1] - self.wiring.inputs[switch];
            let outputs = self.wiring.outputs[switch + 1] - self.wiring.outputs[switch];
            let after =
                |index: usize, count: u32| if index as u32 + 1 == count { 0 } else { index as u8 + 1 };
            self.switches.first_input[self.wiring.outputs[switch] as usize + output] = after(input, inputs);
            self.switches.first_output[channel] = after(output, outputs);
        }
        self.switches.first_lane[channel] =
            if u32::from(lane) + 1 == self.description.virtual_channels { 0 } else { lane + 1 };
        self.forward(((channel << self.lanes.shift) as u32) | u32::from(lane));
        if self.switches.ready[channel] == 0 {
            self.switches.ready_ports[switch] &= !(1 << input);
            if self.switches.ready_ports[switch] == 0 {
                self.switches.switching.remove(switch);
            }
        }
    }

    /// Sends a lane's front flit into the output lane that it has.
    fn forward(&mut self, lane: u32) {
        let (flit, left) = self.lanes.pop(lane);
        let out = self.lanes.at[lane as usize].out;
        let credits = self.lanes.use_credit(out);
        self.flit_hops += 1;
        self.lines.forwarded.put(self.now, (out, flit));
        self.lines.credits.put(self.now, lane);
        let is_slow = self.description.pipeline.switch_allocation > 1;
        if flit & TAIL != 0 {
            self.lanes.release(out, self.is_free_when_empty());
            self.note_free(self.wiring.sender[self.lanes.channel(out)]);
            self.lanes.at[lane as usize].stage = if left == 0 { Stage::Idle } else { Stage::Routing };
            if left > 0 {
                self.lines.uncovered.put(self.now, lane);
            }
        } else if left > 0 && is_slow {
            self.lanes.at[lane as usize].stage = Stage::Settling;
            self.lines.settled.put(self.now, lane);
        } else if left > 0 && credits > 0 {
            return;
        }
        let channel = self.lanes.channel(lane);
        self.switches.ready[channel] &= !(1 << self.lanes.within(lane));
    }
}
