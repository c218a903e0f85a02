//! Switches that hold virtual channels at their inputs and pass flits on by credit: wormhole and virtual cut-through
//! switching on any topology, exact to the flit and the cycle.
//!
//! The model is that of an input-queued virtual-channel router (Dally and Towles, *Principles and Practices of
//! Interconnection Networks*, 2004, chapters 16 to 19): a packet's head waits for its route, for a virtual channel of the
//! output, and each flit for the switch and a credit; then it crosses switch and link. `docs/networks-wormhole.md` says
//! what happens in which cycle.
//!
//! Cost follows the flits that move: what waits for a credit or a virtual channel is woken by it and costs nothing until
//! then, and cycles in which nothing happens are skipped. A *lane* is one virtual channel of one channel: on one side the
//! credits of who sends into it, on the other the buffer of the switch that it leads to. Lanes are numbered by the switch
//! they lead to, so that what a switch looks at lies together.

mod bits;
mod channel_allocation;
mod error;
mod fabric;
mod line;
mod messages;
mod routes;
mod sources;
mod switch_allocation;

pub use error::WormholeError;

use pio_machine::{Link, Wormhole as Description};

use crate::kernel::{Stream, Time};
use crate::network::topology::Topology;
use crate::network::{Delivery, MessageId, Network};
use bits::Active;
use channel_allocation::Grants;
use fabric::{FROM_NODE, Fabric, Lane, NO_LANE, Stage};
use line::Line;
use messages::Messages;
use routes::Routes;
use sources::Sources;
use switch_allocation::Requests;

/// A flit: the number of its packet, and whether it is the first or the last one of it.
type Flit = u32;
const HEAD: Flit = 1;
const TAIL: Flit = 2;
const PACKET: u32 = 2;

/// No waypoint; and one that the packet is past.
const DIRECT: u32 = u32::MAX;
const PAST: u32 = u32::MAX - 1;

/// Nodes at most: messages are kept in order by pairs of nodes.
const MOST_NODES: u32 = 8192;

/// A network of switches with virtual channels and credits.
#[derive(Debug)]
pub struct Wormhole {
    description: Description,
    topology: Topology,
    routes: Routes,
    stream: Stream,
    /// Picoseconds of a cycle.
    cycle_time: u64,
    /// The cycle that is carried out, or was last.
    now: u64,
    /// Whether the nodes have put in their flits of this cycle.
    is_injected: bool,
    fabric: Fabric,
    packets: Vec<Packet>,
    free_packets: Vec<u32>,
    messages: Messages,
    sources: Sources,
    requests: Box<Requests>,
    /// For each output port and class of all switches, the places of the lanes whose heads ask for an output lane.
    wanting: Vec<u64>,
    /// Words for each.
    words: usize,
    /// Switches where lanes are free and asked for, and those with flits that may cross them.
    allocating: Active,
    switching: Active,
    /// Who was granted which lanes: kept so that no memory is asked for in each cycle.
    grants: Grants,
    lines: Lines,
    flit_hops: u64,
    /// Virtual channels of each class.
    classes: Vec<u64>,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Packet {
    message: u32,
    destination: u32,
    /// Where it goes first, [`DIRECT`] or [`PAST`].
    waypoint: u32,
    flits: u32,
    age: u64,
}

/// What is under way for a known number of cycles.
#[derive(Debug)]
struct Lines {
    /// Flits from nodes and from switches to the lane that they come in by.
    injected: Line<(u32, Flit)>,
    forwarded: Line<(u32, Flit)>,
    /// Credits for a lane, to who sends into it.
    credits: Line<u32>,
    /// Lanes whose head comes to the front as a tail leaves.
    uncovered: Line<u32>,
    /// Lanes whose head may ask for an output lane.
    routed: Line<u32>,
    /// Lanes whose front flit may ask for the switch: after another step, and after it arrived.
    settled: Line<u32>,
    fresh: Line<u32>,
}

impl Wormhole {
    /// The network of this topology and description; `link` is every link's. What is random is drawn from the run's
    /// `seed`.
    ///
    /// # Errors
    /// If a switch has more than 64 ports a side, there are fewer virtual channels than the topology's routes need to be
    /// free of deadlock, or it is too large.
    pub fn new(
        topology: &Topology,
        link: &Link,
        description: &Description,
        seed: u64,
    ) -> Result<Wormhole, WormholeError> {
        let name = || topology.to_string();
        let nodes = topology.nodes();
        if nodes > MOST_NODES {
            return Err(WormholeError::Nodes { topology: name(), nodes, most: MOST_NODES });
        }
        let (needed, found) = (u32::from(topology.classes()), description.virtual_channels);
        if found < needed {
            return Err(WormholeError::VirtualChannels { topology: name(), found, needed });
        }
        let channels = topology.channels().len();
        if channels as u64 * u64::from(found.next_power_of_two()) > 1 << 30 {
            return Err(WormholeError::TooLarge { topology: name(), channels, each: found });
        }
        let fabric = Fabric::wire(topology, found, description.buffer)?;
        let cycle_time = link.bandwidth.time_of(description.flit).picoseconds();
        let latency = link.latency.picoseconds().div_ceil(cycle_time);
        let most_inputs = fabric.switches.iter().map(|switch| switch.inputs).max().unwrap_or(0);
        let words = ((most_inputs as usize) << fabric.shift).div_ceil(64).max(1);
        Ok(Wormhole {
            topology: topology.clone(),
            routes: Routes::of(topology, description.choice),
            stream: Stream::named(seed, "wormhole network"),
            cycle_time,
            now: 0,
            is_injected: false,
            packets: Vec::new(),
            free_packets: Vec::new(),
            messages: Messages::between(nodes as usize),
            sources: Sources::new(nodes as usize),
            requests: Requests::new(),
            wanting: vec![0; fabric.outputs.len() * needed as usize * words],
            words,
            allocating: Active::none_of(fabric.switches.len()),
            switching: Active::none_of(fabric.switches.len()),
            grants: Grants::among(64 * words),
            lines: Lines::new(description, latency),
            flit_hops: 0,
            description: description.clone(),
            classes: (0..needed).map(|class| class_lanes(class, needed, found)).collect(),
            fabric,
        })
    }

    /// How long a cycle is: the time of one flit on a link.
    pub fn cycle(&self) -> pio_machine::Duration {
        pio_machine::Duration::from_picoseconds(self.cycle_time)
    }

    /// Bytes of messages of this size that the link of a node carries in a second: their load is 1. Flits of headers and
    /// flits that are not full take their part.
    pub fn capacity_bytes_per_s(&self, message_bytes: u64) -> f64 {
        let description = &self.description;
        let whole = message_bytes / description.payload;
        let rest = message_bytes % description.payload;
        let rest_flits = if rest > 0 || whole == 0 { description.flits(rest) } else { 0 };
        let flits = whole * description.flits(description.payload) + rest_flits;
        message_bytes as f64 / (flits * self.cycle_time) as f64 * 1e12
    }

    /// How many links flits have been sent over up to now, all together.
    pub fn flit_hops(&self) -> u64 {
        self.flit_hops
    }

    /// How many messages are under way. If nothing happens any more ([`Network::next_time`]) and there are some, the
    /// network is in deadlock.
    pub fn under_way(&self) -> u64 {
        self.messages.count()
    }

    fn time_of(&self, cycle: u64) -> Time {
        Time(cycle.saturating_mul(self.cycle_time))
    }

    /// The next cycle in which something happens.
    fn next_cycle(&self) -> Option<u64> {
        if !self.is_injected && (self.sources.is_active() || self.sources.due() <= self.now) {
            return Some(self.now);
        }
        if !self.switching.is_empty() || !self.allocating.is_empty() || self.sources.is_active() {
            return Some(self.now + 1);
        }
        let due = self.lines.due().min(self.sources.due());
        (due != u64::MAX).then(|| due.max(self.now + 1))
    }

    /// Carries out a cycle but for what nodes put in: that comes first when time goes on, so that what they are told of
    /// this cycle's arrivals can make them send in it.
    fn step(&mut self, delivered: &mut Vec<Delivery>) {
        let now = self.now;
        self.lines.begin(now);
        let batch = self.lines.uncovered.take(now);
        for lane in batch.iter().copied() {
            self.find_route(lane);
        }
        self.lines.uncovered.give_back(now, batch);
        let batch = self.lines.injected.take(now);
        for (lane, flit) in batch.iter().copied() {
            self.take_flit(lane, flit, delivered);
        }
        self.lines.injected.give_back(now, batch);
        let batch = self.lines.forwarded.take(now);
        for (lane, flit) in batch.iter().copied() {
            self.take_flit(lane, flit, delivered);
        }
        self.lines.forwarded.give_back(now, batch);
        let batch = self.lines.credits.take(now);
        for lane in batch.iter().copied() {
            self.take_credit(lane);
        }
        self.lines.credits.give_back(now, batch);
        let batch = self.lines.fresh.take(now);
        for lane in batch.iter().copied() {
            self.settle(lane);
        }
        self.lines.fresh.give_back(now, batch);
        let batch = self.lines.settled.take(now);
        for lane in batch.iter().copied() {
            self.settle(lane);
        }
        self.lines.settled.give_back(now, batch);
        let batch = self.lines.routed.take(now);
        for lane in batch.iter().copied() {
            self.ask_for_lane(lane);
        }
        self.lines.routed.give_back(now, batch);
        for word in 0..self.allocating.words() {
            for switch in self.allocating.members(word) {
                self.allocate_channels(switch);
            }
        }
        for word in 0..self.switching.words() {
            for switch in self.switching.members(word) {
                self.allocate_switch(switch);
            }
        }
    }

    /// A flit comes in by a lane.
    fn take_flit(&mut self, number: u32, flit: Flit, delivered: &mut Vec<Delivery>) {
        if self.fabric.channel(number) >= self.fabric.switch_channels {
            return self.eject(number, flit, delivered);
        }
        let length = self.fabric.push(number, flit);
        let lane = &mut self.fabric.lanes[number as usize];
        match lane.stage {
            Stage::Idle => self.find_route(number),
            Stage::Moving if length == 1 => {
                if self.description.pipeline.switch_allocation == 1 {
                    self.settle(number);
                } else {
                    lane.stage = Stage::Settling;
                    self.lines.fresh.put(self.now, number);
                }
            }
            _ => {}
        }
    }

    /// A flit comes to a node, which takes it out at once.
    fn eject(&mut self, number: u32, flit: Flit, delivered: &mut Vec<Delivery>) {
        self.lines.credits.put(self.now, number);
        let message = self.packets[(flit >> PACKET) as usize].message;
        if flit & HEAD != 0 {
            self.messages.note_first(message, self.now);
        }
        if flit & TAIL != 0 {
            self.free_packets.push(flit >> PACKET);
            let cycle_time = self.cycle_time;
            let time_of = |cycle: u64| Time(cycle.saturating_mul(cycle_time));
            self.messages.note_packet(message, self.now, time_of, delivered);
        }
    }

    /// A credit for a lane comes back to who sends into it.
    fn take_credit(&mut self, number: u32) {
        let is_freed = self.fabric.return_credit(number);
        let channel = &self.fabric.channels[self.fabric.channel(number)];
        let (sender, output) = (channel.sender, channel.output);
        if output == FROM_NODE {
            return self.sources.wake(sender);
        }
        if is_freed {
            self.note_free(sender as usize, output as usize);
        }
        let holder = self.fabric.lanes[number as usize].holder;
        if holder != NO_LANE {
            let Lane { stage, length, .. } = self.fabric.lanes[holder as usize];
            if stage == Stage::Moving && length > 0 {
                self.make_ready(holder);
            }
        }
    }

    /// A packet's head is at the front of a lane: its output port is chosen, and it may ask for an output lane when the
    /// stages before are over.
    fn find_route(&mut self, number: u32) {
        let switch = self.fabric.channels[self.fabric.channel(number)].switch;
        let packet = &mut self.packets[(self.fabric.front(number) >> PACKET) as usize];
        if packet.waypoint < PAST && self.topology.is_past(switch, packet.waypoint) {
            packet.waypoint = PAST;
        }
        let target = if packet.waypoint < PAST { packet.waypoint } else { packet.destination };
        let fabric = &self.fabric;
        let outputs = fabric.switches[switch as usize].first_output;
        let load = |port: u16| {
            let channel = fabric.outputs[(outputs + u32::from(port)) as usize].channel;
            fabric.channels[channel as usize].used
        };
        let port = self.routes.port(switch, target, &mut self.stream, load);
        let class = match self.classes.len() {
            1 => 0,
            _ => self.topology.class(switch, port, target) + u8::from(packet.waypoint == PAST),
        };
        let lane = &mut self.fabric.lanes[number as usize];
        (lane.port, lane.class, lane.stage) = (port as u8, class, Stage::Routing);
        self.lines.routed.put(self.now, number);
    }

    /// A lane's front flit may ask for the switch from now on.
    fn settle(&mut self, number: u32) {
        let lane = &mut self.fabric.lanes[number as usize];
        lane.stage = Stage::Moving;
        let (length, out) = (lane.length, lane.out);
        if length > 0 && self.fabric.lanes[out as usize].credits > 0 {
            self.make_ready(number);
        }
    }

    /// A lane's front flit asks for the switch, and has a credit.
    fn make_ready(&mut self, number: u32) {
        let within = self.fabric.within(number);
        let channel = self.fabric.channel(number);
        let channel = &mut self.fabric.channels[channel];
        channel.ready |= 1 << within;
        let (switch, port) = (channel.switch as usize, channel.port);
        self.fabric.switches[switch].ready_ports |= 1 << port;
        self.switching.insert(switch);
    }
}

impl Network for Wormhole {
    fn nodes(&self) -> u32 {
        self.topology.nodes()
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        assert!(
            from < self.nodes() && to < self.nodes(),
            "a message from node {from} to {to} of {}",
            self.nodes()
        );
        let slot = self.messages.add(message, from, to, bytes);
        self.sources.add(now.0.div_ceil(self.cycle_time), slot);
    }

    fn next_time(&self) -> Option<Time> {
        self.next_cycle().map(|cycle| self.time_of(cycle))
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        let before = delivered.len();
        while let Some(cycle) = self.next_cycle() {
            if self.time_of(cycle) > until {
                return;
            }
            if cycle == self.now && !self.is_injected {
                self.inject();
                self.is_injected = true;
                continue;
            }
            self.now = cycle;
            self.is_injected = false;
            self.step(delivered);
            if delivered.len() > before {
                return;
            }
        }
    }
}

impl Lines {
    fn new(description: &Description, latency: u64) -> Lines {
        let pipeline = &description.pipeline;
        let (vc_allocation, switch_allocation) =
            (u64::from(pipeline.vc_allocation), u64::from(pipeline.switch_allocation));
        Lines {
            injected: Line::new(u64::from(pipeline.injection) + latency),
            forwarded: Line::new(1 + u64::from(pipeline.switch_traversal) + latency),
            credits: Line::new(1 + latency + u64::from(pipeline.credit)),
            uncovered: Line::new(1),
            routed: Line::new(u64::from(pipeline.routing) + vc_allocation - 1),
            settled: Line::new(switch_allocation),
            fresh: Line::new(switch_allocation - 1),
        }
    }

    fn begin(&mut self, cycle: u64) {
        self.injected.begin(cycle);
        self.forwarded.begin(cycle);
        self.credits.begin(cycle);
        self.uncovered.begin(cycle);
        self.routed.begin(cycle);
        self.settled.begin(cycle);
        self.fresh.begin(cycle);
    }

    fn due(&self) -> u64 {
        let flits = self.injected.due().min(self.forwarded.due()).min(self.credits.due());
        let lanes = self.uncovered.due().min(self.routed.due());
        flits.min(lanes).min(self.settled.due()).min(self.fresh.due())
    }
}

/// The virtual channels of a class, of `classes` that share `channels` evenly.
fn class_lanes(class: u32, classes: u32, channels: u32) -> u64 {
    (class * channels / classes..(class + 1) * channels / classes).fold(0, |lanes, lane| lanes | 1 << lane)
}
