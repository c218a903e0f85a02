//! Switches that hold virtual channels at their inputs and pass flits on by credit: wormhole and virtual cut-through
//! switching on any topology, exact to the flit and the cycle.
//!
//! The model is that of an input-queued virtual-channel router (Dally and Towles, *Principles and Practices of
//! Interconnection Networks*, 2004, chapters 16 to 19): a packet's head waits for its route, for a virtual channel of the
//! output, and each flit for the switch and a credit; then it crosses switch and link. `docs/design/networks-wormhole.md` says
//! what happens in which cycle.
//!
//! Cost follows the flits that move: what waits for a credit or a virtual channel is woken by it and costs nothing until
//! then, and cycles in which nothing happens are skipped. A *lane* is one virtual channel of one channel: on one side the
//! credits of who sends into it, on the other the buffer of the switch that it leads to. Lanes are numbered by the switch
//! they lead to, so that what a switch looks at lies together.

mod ahead;
mod channel_allocation;
mod cycle;
mod error;
mod fabric;
mod flit;
mod grants;
mod line;
mod lines;
mod messages;
mod packets;
mod requests;
mod routes;
mod senders;
mod sources;
mod switch_allocation;

pub use error::WormholeError;

use pio_machine::{Allocator, Arbitration, Choice, Link, Reuse, Wormhole as Description};

use crate::kernel::{Model, Stream, Time};
use crate::network::bits::Active;
use crate::network::carrier::{Delivery, MessageId, Network};
use crate::network::topology::Topology;
use fabric::Fabric;
use grants::Grants;
use lines::Lines;
use messages::Messages;
use packets::Packets;
use requests::Requests;
use routes::Routes;
use senders::Senders;

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
    packets: Packets,
    messages: Messages,
    senders: Senders,
    requests: Box<Requests>,
    /// For each channel and class, the places of the lanes at its sender whose heads ask for one of its lanes.
    wanting: Vec<u64>,
    /// Words for each, and for all classes of a channel.
    words: usize,
    words_of_channel: usize,
    /// Channels whose lanes are free and asked for, and switches with flits that may cross them.
    allocating: Active,
    switching: Active,
    /// Who was granted which lanes: kept so that no memory is asked for in each cycle.
    grants: Grants,
    lines: Lines,
    flit_hops: u64,
    /// Virtual channels of each class.
    classes: Vec<u64>,
    /// Lanes into which a tail was sent in this cycle: nobody may have them before the next one.
    released: Vec<u32>,
    /// Whether nothing is out of the ordinary: no waypoints, each in turn, stages of one cycle, and
    /// nobody looks at how full lanes are. What is done for each flit is compiled for that by itself.
    is_plain: bool,
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
        let (needed, found) = (u32::from(topology.classes()), description.virtual_channels);
        if found < needed {
            return Err(WormholeError::VirtualChannels { topology: name(), found, needed });
        }
        let channels = topology.channels().len();
        // Virtual channels are numbered, and so are the places of flits in their buffers.
        let lanes = channels as u64 * u64::from(found.next_power_of_two());
        let places = lanes.saturating_mul(u64::from(description.buffer.next_power_of_two()));
        if lanes > 1 << 30 || places > 1 << 32 {
            return Err(WormholeError::TooLarge {
                topology: name(),
                channels,
                each: found,
                buffer: description.buffer,
            });
        }
        let fabric = Fabric::wire(topology, found, description.buffer)?;
        let cycle_time = link.bandwidth.time_of(description.flit).picoseconds();
        let latency = link.latency.picoseconds().div_ceil(cycle_time);
        let most_inputs = fabric.switches.iter().map(|switch| switch.inputs).max().unwrap_or(0);
        let words = ((most_inputs as usize) << fabric.geometry.shift).div_ceil(64).max(1);
        Ok(Wormhole {
            topology: topology.clone(),
            routes: Routes::of(topology, description.choice),
            stream: Stream::named(seed, "wormhole network"),
            cycle_time,
            now: 0,
            is_injected: false,
            packets: Packets::new(),
            messages: Messages::new(),
            senders: Senders::new(nodes as usize),
            requests: Requests::new(),
            wanting: vec![0; fabric.channels.len() * needed as usize * words],
            words,
            words_of_channel: needed as usize * words,
            allocating: Active::none_of(fabric.channels.len()),
            switching: Active::none_of(fabric.switches.len()),
            grants: Grants::among(words),
            lines: Lines::new(description, latency),
            flit_hops: 0,
            description: description.clone(),
            classes: (0..needed).map(|class| class_lanes(class, needed, found)).collect(),
            released: Vec::new(),
            is_plain: !topology.has_waypoints()
                && description.allocator == Allocator::Islip
                && description.arbitration == Arbitration::RoundRobin
                && description.reuse == Reuse::TailSent
                && matches!(description.choice, Choice::Static | Choice::Random)
                && !description.cut_through
                && description.pipeline.vc_allocation == 1
                && description.pipeline.switch_allocation == 1,
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

    /// How many messages are under way. If nothing happens any more ([`next_time`](crate::kernel::Model::next_time)) and there are some, the
    /// network is in deadlock.
    pub fn under_way(&self) -> u64 {
        self.messages.count()
    }

    fn time_of(&self, cycle: u64) -> Time {
        Time(cycle.saturating_mul(self.cycle_time))
    }

    /// The next cycle in which something happens.
    fn next_cycle(&self) -> Option<u64> {
        if !self.is_injected && (self.senders.is_active() || self.senders.due() <= self.now) {
            return Some(self.now);
        }
        if !self.switching.is_empty() || !self.allocating.is_empty() || self.senders.is_active() {
            return Some(self.now + 1);
        }
        let due = self.lines.due().min(self.senders.due());
        (due != u64::MAX).then(|| due.max(self.now + 1))
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
        self.senders.add(now.0.div_ceil(self.cycle_time), slot);
    }
}

impl Model for Wormhole {
    type Out = Delivery;

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
            if self.is_plain {
                self.step::<true>(delivered);
            } else {
                self.step::<false>(delivered);
            }
            if delivered.len() > before {
                return;
            }
        }
    }
}

/// The virtual channels of a class, of `classes` that share `channels` evenly.
fn class_lanes(class: u32, classes: u32, channels: u32) -> u64 {
    (class * channels / classes..(class + 1) * channels / classes).fold(0, |lanes, lane| lanes | 1 << lane)
}
