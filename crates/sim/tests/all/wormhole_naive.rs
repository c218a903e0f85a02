//! Wormhole switching against a model that looks at every lane in every cycle: the same arrivals, to the cycle.

use std::collections::VecDeque;

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Duration, Link, Pipeline, Reuse, Wormhole as Description,
};
use pio_sim::kernel::{Model, Stream, Time};
use pio_sim::network::topology::{Device, Topology};
use pio_sim::network::wormhole::Wormhole;
use pio_sim::network::{Delivery, MessageId, Network};

const CYCLE: u64 = 5_000;

/// A message: when it may be sent, between which nodes, and how many flits it has.
#[derive(Clone, Copy)]
struct Message {
    cycle: u64,
    from: u32,
    to: u32,
    flits: u64,
}

/// A flit: its message, and its number in it.
#[derive(Clone, Copy, PartialEq)]
struct Flit {
    message: usize,
    number: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Idle,
    /// Asks for an output lane in this cycle, and again as many later as that takes. It may have been granted one.
    Asking {
        from: u64,
        port: usize,
        class: u8,
        granted: Option<usize>,
    },
    /// Has an output lane, and asks for the switch in this cycle, and again as many later as that takes. It may have been
    /// given the switch.
    Active {
        from: u64,
        port: usize,
        out: usize,
        is_matched: bool,
    },
}

#[derive(Clone)]
struct Lane {
    buffer: VecDeque<Flit>,
    state: State,
    credits: u32,
    is_taken: bool,
    grant: usize,
    accept: usize,
}

struct Naive<'t> {
    topology: &'t Topology,
    description: &'t Description,
    latency: u64,
    messages: &'t [Message],
    /// By channel and virtual channel.
    lanes: Vec<Lane>,
    flits: Vec<(u64, usize, Flit)>,
    credits: Vec<(u64, usize)>,
    queues: Vec<VecDeque<Flit>>,
    sending: Vec<Option<usize>>,
    next_lane: Vec<usize>,
    /// By switch: for each output the first input; for each input the first output and the first lane.
    first_input: Vec<Vec<usize>>,
    first_output: Vec<Vec<usize>>,
    first_lane: Vec<Vec<usize>>,
    arrivals: Vec<(u64, u64)>,
}

impl Naive<'_> {
    fn lane(&self, channel: u32, within: usize) -> usize {
        channel as usize * self.description.virtual_channels as usize + within
    }

    fn run(&mut self) {
        let pipeline = self.description.pipeline;
        let mut cycle = 0;
        while self.arrivals.iter().any(|(_, last)| *last == 0) {
            for (_, number, flit) in self.flits.extract_if(.., |(due, ..)| *due == cycle).collect::<Vec<_>>()
            {
                self.arrive(cycle, number, flit);
            }
            for (_, number) in self.credits.extract_if(.., |(due, _)| *due == cycle).collect::<Vec<_>>() {
                self.lanes[number].credits += 1;
            }
            for switch in 0..self.topology.switches() {
                self.route(cycle, switch);
                for iteration in 0..self.description.iterations {
                    self.grant_lanes(cycle, switch, iteration == 0);
                }
                self.give_lanes(cycle, switch);
            }
            for switch in 0..self.topology.switches() {
                self.match_ports(cycle, switch);
                self.cross(cycle, switch);
            }
            for node in 0..self.topology.nodes() {
                self.inject(cycle, node, u64::from(pipeline.injection));
            }
            cycle += 1;
            assert!(cycle < 100_000, "it stands still");
        }
    }

    fn arrive(&mut self, cycle: u64, number: usize, flit: Flit) {
        let channel = self.topology.channels()[number / self.description.virtual_channels as usize];
        if let Device::Node(_) = channel.to.device {
            let arrival = &mut self.arrivals[flit.message];
            if flit.number == 0 {
                arrival.0 = cycle;
            }
            if flit.number + 1 == self.messages[flit.message].flits {
                arrival.1 = cycle;
            }
            self.return_credit(cycle, number);
            return;
        }
        let lane = &mut self.lanes[number];
        if let State::Active { from, .. } = &mut lane.state
            && lane.buffer.is_empty()
        {
            *from = (*from).max(cycle);
        }
        lane.buffer.push_back(flit);
        assert!(lane.buffer.len() <= self.description.buffer as usize);
    }

    fn return_credit(&mut self, cycle: u64, number: usize) {
        // A node takes a credit in at once.
        let channel = self.topology.channels()[number / self.description.virtual_channels as usize];
        let taken_in = match channel.from.device {
            Device::Node(_) => 0,
            Device::Switch(_) => self.description.pipeline.credit,
        };
        let due = cycle + 1 + self.latency + u64::from(taken_in);
        self.credits.push((due, number));
    }

    /// The lanes that lead into a switch, in order.
    fn inputs(&self, switch: u32) -> Vec<usize> {
        let channels = self.topology.incoming(Device::Switch(switch));
        let lanes = 0..self.description.virtual_channels as usize;
        channels
            .iter()
            .flat_map(|id| lanes.clone().map(move |within| (id.0, within)))
            .map(|(id, within)| self.lane(id, within))
            .collect()
    }

    fn route(&mut self, cycle: u64, switch: u32) {
        let pipeline = self.description.pipeline;
        for number in self.inputs(switch) {
            let lane = &mut self.lanes[number];
            let Some(front) = lane.buffer.front() else { continue };
            if lane.state == State::Idle {
                let to = self.messages[front.message].to;
                let port = self.topology.port(switch, to);
                let class = self.topology.class(switch, port, to);
                let from = cycle + u64::from(pipeline.routing);
                lane.state = State::Asking { from, port: port.into(), class, granted: None };
            }
        }
    }

    /// One iteration: all output lanes grant, then all input lanes accept.
    fn grant_lanes(&mut self, cycle: u64, switch: u32, is_first: bool) {
        let inputs = self.inputs(switch);
        let outgoing = self.topology.outgoing(Device::Switch(switch)).to_vec();
        let channels = self.description.virtual_channels as usize;
        let classes = usize::from(self.topology.classes());
        let mut granted: Vec<Vec<usize>> = vec![Vec::new(); inputs.len()];
        for output in 0..outgoing.len() * channels {
            let number = self.lane(outgoing[output / channels].0, output % channels);
            let class_of =
                |within: usize| (0..classes).find(|class| within < (class + 1) * channels / classes);
            let asks = |place: &usize| match self.lanes[inputs[*place]].state {
                State::Asking { from, port, class, granted } => {
                    from == cycle
                        && granted.is_none()
                        && port == output / channels
                        && class_of(output % channels) == Some(class.into())
                }
                _ => false,
            };
            let start = self.lanes[number].grant;
            let mut order = (start..inputs.len()).chain(0..start);
            let is_granted = inputs.iter().any(|input| {
                matches!(self.lanes[*input].state, State::Asking { from, granted, .. }
                    if from == cycle && granted == Some(number))
            });
            if !self.lanes[number].is_taken
                && !is_granted
                && let Some(place) = order.find(asks)
            {
                granted[place].push(output);
            }
        }
        for (place, outputs) in granted.iter().enumerate() {
            let accept = self.lanes[inputs[place]].accept;
            let first = outputs.iter().find(|output| **output >= accept).or_else(|| outputs.first());
            let Some(output) = first else { continue };
            let out = self.lane(outgoing[output / channels].0, output % channels);
            if let State::Asking { granted, .. } = &mut self.lanes[inputs[place]].state {
                *granted = Some(out);
            }
            if is_first {
                self.lanes[out].grant = (place + 1) % inputs.len();
                self.lanes[inputs[place]].accept = (output + 1) % (outgoing.len() * channels);
            }
        }
    }

    /// Heads whose stage is over have what they were granted, if nobody else has; the others try again.
    fn give_lanes(&mut self, cycle: u64, switch: u32) {
        let taken: Vec<bool> = self.lanes.iter().map(|lane| lane.is_taken).collect();
        for number in self.inputs(switch) {
            let State::Asking { from, port, class, granted } = self.lanes[number].state else { continue };
            if cycle + 1 != from + u64::from(self.description.pipeline.vc_allocation) {
                continue;
            }
            let from = cycle + 1;
            self.lanes[number].state = match granted.filter(|out| !taken[*out]) {
                Some(out) => {
                    self.lanes[out].is_taken = true;
                    State::Active { from, port, out, is_matched: false }
                }
                None => State::Asking { from, port, class, granted: None },
            };
        }
    }

    fn match_ports(&mut self, cycle: u64, switch: u32) {
        let incoming = self.topology.incoming(Device::Switch(switch)).to_vec();
        let outputs = self.topology.outgoing(Device::Switch(switch)).len();
        let channels = self.description.virtual_channels as usize;
        // The lane that each input would send from to each output.
        let mut requests = vec![vec![None; outputs]; incoming.len()];
        for (input, id) in incoming.iter().enumerate() {
            let start = self.first_lane[switch as usize][input];
            for within in (start..channels).chain(0..start) {
                let lane = &self.lanes[self.lane(id.0, within)];
                let State::Active { from, port, out, .. } = lane.state else { continue };
                if from == cycle && !lane.buffer.is_empty() && self.lanes[out].credits > 0 {
                    requests[input][port].get_or_insert(within);
                }
            }
        }
        let mut is_input_free = vec![true; incoming.len()];
        let mut is_output_free = vec![true; outputs];
        let mut matched = Vec::new();
        for iteration in 0..self.description.iterations {
            let mut grants = vec![Vec::new(); incoming.len()];
            for output in (0..outputs).filter(|output| is_output_free[*output]) {
                let start = self.first_input[switch as usize][output];
                let mut order = (start..incoming.len()).chain(0..start);
                if let Some(input) =
                    order.find(|input| is_input_free[*input] && requests[*input][output].is_some())
                {
                    grants[input].push(output);
                }
            }
            for (input, granted) in grants.iter().enumerate() {
                let start = self.first_output[switch as usize][input];
                let first = granted.iter().find(|output| **output >= start).or_else(|| granted.first());
                let Some(output) = first.copied() else { continue };
                (is_input_free[input], is_output_free[output]) = (false, false);
                matched.push((input, output));
                if iteration == 0 {
                    self.first_input[switch as usize][output] = (input + 1) % incoming.len();
                    self.first_output[switch as usize][input] = (output + 1) % outputs;
                }
            }
        }
        for (input, output) in matched {
            let within = requests[input][output].expect("it was asked for");
            self.first_lane[switch as usize][input] = (within + 1) % channels;
            let number = self.lane(incoming[input].0, within);
            if let State::Active { is_matched, .. } = &mut self.lanes[number].state {
                *is_matched = true;
            }
        }
    }

    /// Flits whose stage is over cross the switch if they were given it; the others try again.
    fn cross(&mut self, cycle: u64, switch: u32) {
        for number in self.inputs(switch) {
            let is_filled = !self.lanes[number].buffer.is_empty();
            let State::Active { from, is_matched, .. } = &mut self.lanes[number].state else { continue };
            if is_filled && cycle + 1 == *from + u64::from(self.description.pipeline.switch_allocation) {
                *from = cycle + 1;
                if std::mem::take(is_matched) {
                    self.send(cycle, number);
                }
            }
        }
    }

    fn send(&mut self, cycle: u64, number: usize) {
        let pipeline = self.description.pipeline;
        let lane = &mut self.lanes[number];
        let (Some(flit), State::Active { out, .. }) = (lane.buffer.pop_front(), lane.state) else {
            panic!("nothing to send");
        };
        let is_tail = flit.number + 1 == self.messages[flit.message].flits;
        if is_tail {
            lane.state = State::Idle;
        }
        self.lanes[out].credits -= 1;
        self.lanes[out].is_taken &= !is_tail;
        let due = cycle + 1 + u64::from(pipeline.switch_traversal) + self.latency;
        self.flits.push((due, out, flit));
        self.return_credit(cycle, number);
    }

    fn inject(&mut self, cycle: u64, node: u32, delay: u64) {
        let queue = &self.queues[node as usize];
        let Some(flit) = queue.front().copied() else { return };
        if self.messages[flit.message].cycle > cycle {
            return;
        }
        let channel = self.topology.outgoing(Device::Node(node))[0].0;
        let channels = self.description.virtual_channels as usize;
        if self.sending[node as usize].is_none() {
            let start = self.next_lane[node as usize];
            let mut order = (start..channels).chain(0..start);
            let within = order.find(|within| self.lanes[self.lane(channel, *within)].credits > 0);
            let Some(within) = within else { return };
            self.next_lane[node as usize] = (within + 1) % channels;
            self.sending[node as usize] = Some(self.lane(channel, within));
        }
        let Some(number) = self.sending[node as usize] else { return };
        if self.lanes[number].credits == 0 {
            return;
        }
        self.lanes[number].credits -= 1;
        self.flits.push((cycle + delay + self.latency, number, flit));
        self.queues[node as usize].pop_front();
        if flit.number + 1 == self.messages[flit.message].flits {
            self.sending[node as usize] = None;
        }
    }
}

/// When the head and the tail of each message arrive, by the naive model.
fn naive(
    topology: &Topology,
    description: &Description,
    latency: u64,
    messages: &[Message],
) -> Vec<(u64, u64)> {
    let lane = Lane {
        buffer: VecDeque::new(),
        state: State::Idle,
        credits: description.buffer,
        is_taken: false,
        grant: 0,
        accept: 0,
    };
    let nodes = topology.nodes() as usize;
    let mut queues = vec![VecDeque::new(); nodes];
    for (message, Message { from, flits, .. }) in messages.iter().enumerate() {
        queues[*from as usize].extend((0..*flits).map(|number| Flit { message, number }));
    }
    let ports = |outgoing: bool| {
        let of = |switch| match outgoing {
            true => topology.outgoing(Device::Switch(switch)).len(),
            false => topology.incoming(Device::Switch(switch)).len(),
        };
        (0..topology.switches()).map(|switch| vec![0; of(switch)]).collect::<Vec<_>>()
    };
    let mut naive = Naive {
        topology,
        description,
        latency,
        messages,
        lanes: vec![lane; topology.channels().len() * description.virtual_channels as usize],
        flits: Vec::new(),
        credits: Vec::new(),
        queues,
        sending: vec![None; nodes],
        next_lane: vec![0; nodes],
        first_input: ports(true),
        first_output: ports(false),
        first_lane: ports(false),
        arrivals: vec![(0, 0); messages.len()],
    };
    naive.run();
    naive.arrivals
}

/// And by the engine.
fn engine(
    topology: &Topology,
    description: &Description,
    latency: u64,
    messages: &[Message],
) -> Vec<(u64, u64)> {
    let link = Link {
        bandwidth: Bandwidth::from_bytes_per_second(400_000_000),
        latency: Duration::from_picoseconds(latency * CYCLE),
    };
    let mut network = Wormhole::new(topology, &link, description, 1).expect("possible");
    for (number, message) in messages.iter().enumerate() {
        let bytes = message.flits * description.flit;
        network.send(Time(message.cycle * CYCLE), MessageId(number as u32), message.from, message.to, bytes);
    }
    let mut delivered: Vec<Delivery> = Vec::new();
    network.advance_through(Time::NEVER, &mut delivered);
    delivered.sort_by_key(|delivery| delivery.message);
    delivered.iter().map(|delivery| (delivery.first_byte.0 / CYCLE, delivery.last_byte.0 / CYCLE)).collect()
}

#[test]
fn every_flit_arrives_when_the_naive_model_says() {
    let topologies = [
        Topology::flat(5),
        // A switch of more lanes than a word has bits, with most numbers of virtual channels.
        Topology::flat(24),
        Topology::fly(2, 3),
        Topology::fat_tree(2, 3),
        Topology::mesh(&[3, 3]),
        Topology::torus(&[4]),
    ];
    for topology in topologies.map(|topology| topology.expect("possible")) {
        for seed in 0..24 {
            let mut stream = Stream::named(seed, "naive");
            let mut draw = |from: u32, to: u32| from + stream.below(u64::from(to - from + 1)) as u32;
            // Half of them with stages of one cycle, for which the engine has code of its own.
            let slowest = if seed % 2 == 0 { 1 } else { 3 };
            let description = Description {
                flit: 2,
                payload: 1 << 20,
                header: 0,
                virtual_channels: u32::from(topology.classes()) * draw(1, 5),
                buffer: draw(1, 6),
                cut_through: false,
                reuse: Reuse::TailSent,
                allocator: Allocator::Islip,
                iterations: draw(1, 2),
                arbitration: Arbitration::RoundRobin,
                choice: Choice::Static,
                pipeline: Pipeline {
                    injection: draw(1, 2),
                    routing: draw(0, 2),
                    vc_allocation: draw(1, slowest),
                    switch_allocation: draw(1, slowest),
                    switch_traversal: draw(0, 2),
                    credit: draw(0, 2),
                },
            };
            let latency = u64::from(draw(0, 3));
            let (longest, spread) = (draw(1, 6), draw(1, 400));
            let mut messages: Vec<Message> = (0..150)
                .map(|_| Message {
                    cycle: draw(0, spread).into(),
                    from: draw(0, topology.nodes() - 1),
                    to: draw(0, topology.nodes() - 1),
                    flits: draw(1, longest).into(),
                })
                .collect();
            messages.sort_by_key(|message| message.cycle);
            let expected = naive(&topology, &description, latency, &messages);
            let found = engine(&topology, &description, latency, &messages);
            assert_eq!(found, expected, "{topology}, seed {seed}: {description:?}");
        }
    }
}
