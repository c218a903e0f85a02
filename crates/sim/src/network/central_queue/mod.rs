//! Packet switches with a central queue and a bypass, and adapters in front of the nodes (Baylor et al. 1995, section II;
//! Stunkel et al. 1994, "The SP1 High-Performance Switch").
//!
//! A packet is an unbroken train of bytes. Where an output is free and nothing is in line for it, the train passes by
//! while it is still arriving (bypass). Otherwise it goes into the queue that all outputs of the switch share, if there is
//! room for all of it. Otherwise its head stays in the small buffer of the input port, its body stretches back over the
//! channels that it has passed, and these are in use until the head gets on. One slot of the queue is set aside for each
//! output: a train can be in line for an output with its head only, so that outputs never wait for each other. The input
//! ports that want room in the queue get it in turn, the least recently served first.
//!
//! A message's first byte is there when it comes to the destination's adapter, its last byte when the adapter is done with it.
//!
//! No packet is simulated cycle by cycle. All channels have the same bandwidth, so once a head is taken in, when its tail
//! leaves each channel behind it follows ([`worm`]): an event or two a packet and hop. Nothing is lost, and packets of a
//! pair of nodes stay in order, since there is one route and no overtaking on it.

mod adapter;
mod error;
mod routes;
mod state;
mod switch;
mod worm;

use std::collections::VecDeque;

use pio_machine::{CentralQueue as Description, Link};

use crate::kernel::{Events, Model, Slab, Time, advance_events};
use crate::network::carrier::{Delivery, MessageId, Network};
use crate::network::topology::{self, Device, Topology};

pub use error::CentralQueueError;

use routes::Routes;
use state::{Channel, Message, Packet, Receiver, Sender, Switch, UNKNOWN};

/// A network of such switches.
#[derive(Debug)]
pub struct CentralQueue {
    topology: Topology,
    times: Times,
    packet_bytes: u32,
    /// Chunks that a packet of so many bytes takes.
    chunks_of: Vec<u32>,
    events: Events<Event>,
    /// The last moment that was simulated.
    now: u64,
    messages: Slab<Message>,
    packets: Slab<Packet>,
    routes: Routes,
    channels: Vec<Channel>,
    switches: Vec<Switch>,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// Counts up whenever a packet goes into a queue.
    turn: u64,
    counts: Counts,
}

/// What a network has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets made of messages.
    pub packets: u64,
    /// Packets whose messages' last byte has arrived, or is sure to.
    pub received: u64,
    /// Times that a packet passed a switch by the bypass.
    pub bypassed: u64,
    /// Times that a packet went into a queue.
    pub queued: u64,
    /// Times that a packet had to wait at an input port.
    pub blocked: u64,
}

/// How long packets take at each step, picoseconds.
#[derive(Debug)]
struct Times {
    /// On a link, and in an adapter, by bytes of a packet.
    on_link: Vec<u64>,
    in_adapter: Vec<u64>,
    /// What an input port holds, on a link.
    input: u64,
    /// A chunk on a link.
    chunk: u64,
    link_latency: u64,
    bypass: u64,
    queue: u64,
}

/// What happens. In eight bytes, as most of the time goes into moving it through the queue of events.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The adapter of a node has made a packet.
    Made { node: u32 },
    /// The head of a packet is at the end of its channel.
    Head { packet: u32 },
    /// A channel that packets are in line for is free.
    Free { channel: u32 },
    /// A packet has left so many chunks of a switch's queue.
    Left { switch: u32, chunks: u16 },
    /// There is room again in the buffer of a node's adapter.
    Room { node: u32 },
    /// All of a message is at its destination.
    Arrived { message: u32 },
}

impl CentralQueue {
    /// A network of this shape, with nothing on its way.
    ///
    /// # Errors
    /// If the topology needs classes of virtual channels, which these switches do not have, a packet is cut into too many
    /// chunks, or a switch has more ports than the queue has room for.
    pub fn new(
        topology: Topology,
        link: &Link,
        described: &Description,
    ) -> Result<CentralQueue, CentralQueueError> {
        check(&topology, described)?;
        let nodes = topology.nodes();
        let device = |device| match device {
            Device::Node(node) => node,
            Device::Switch(switch) => nodes + switch,
        };
        let channel = |channel: &topology::Channel| Channel {
            from: device(channel.from.device),
            to: device(channel.to.device),
            started: 0,
            free_at: 0,
            clear_at: 0,
            served: 0,
            is_watched: false,
            is_claimed: false,
            line: VecDeque::new(),
        };
        let switch = |switch| Switch {
            free: described.shared_chunks(topology.outgoing(Device::Switch(switch)).len() as u32),
            waiting: Vec::new(),
        };
        let adapter_buffer = described.adapter.buffer;
        Ok(CentralQueue {
            times: Times::new(link, described),
            packet_bytes: described.packet,
            chunks_of: (0..=described.packet).map(|bytes| described.chunks_of(bytes)).collect(),
            events: Events::new(),
            now: 0,
            messages: Slab::new(),
            packets: Slab::new(),
            routes: Routes::new(nodes),
            channels: topology.channels().iter().map(channel).collect(),
            switches: (0..topology.switches()).map(switch).collect(),
            senders: (0..nodes)
                .map(|_| Sender {
                    messages: VecDeque::new(),
                    is_busy: false,
                    room: adapter_buffer,
                    leaving: VecDeque::new(),
                    is_stalled: false,
                })
                .collect(),
            receivers: (0..nodes)
                .map(|_| Receiver { held: VecDeque::new(), room: adapter_buffer, room_at: 0, done_at: 0 })
                .collect(),
            turn: 0,
            counts: Counts::default(),
            topology,
        })
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.messages.count() == 0 && self.packets.count() == 0
    }

    fn handle(&mut self, now: Time, event: Event, delivered: &mut Vec<Delivery>) {
        self.now = now.0;
        match event {
            Event::Made { node } => self.packet_made(node),
            Event::Head { packet } => self.head_arrived(packet),
            Event::Free { channel } => self.channel_freed(channel),
            Event::Left { switch, chunks } => {
                self.switches[switch as usize].free += u32::from(chunks);
                self.give_room(switch);
            }
            Event::Room { node } => self.make_packet(node),
            Event::Arrived { message } => delivered.push(self.message_arrived(message)),
        }
    }

    /// The head of a packet is at the end of a channel.
    fn head_arrived(&mut self, number: u32) {
        let to = self.channels[self.channel_of(number) as usize].to;
        match to.checked_sub(self.topology.nodes()) {
            None => self.head_at_node(number, to),
            Some(switch) => self.head_at_switch(number, switch),
        }
    }

    /// The channel that the head of a packet is on.
    fn channel_of(&self, number: u32) -> u32 {
        let packet = &self.packets[number];
        self.routes.channel(packet.route, packet.hop)
    }

    /// The channel that it goes on by.
    fn next_channel_of(&self, number: u32) -> u32 {
        let packet = &self.packets[number];
        self.routes.channel(packet.route, packet.hop + 1)
    }

    fn add(&mut self, time: u64, event: Event) {
        self.events.add(Time(time), event);
    }
}

impl Network for CentralQueue {
    fn nodes(&self) -> u32 {
        self.topology.nodes()
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        self.now = now.0;
        let route = self.routes.find(&self.topology, from, to);
        let number = self.messages.insert(Message { id: message, route, unsent: bytes, first_byte: None });
        self.senders[from as usize].messages.push_back(number);
        self.make_packet(from);
    }
}

impl Model for CentralQueue {
    type Out = Delivery;

    fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        advance_events(self, |network| &mut network.events, CentralQueue::handle, until, delivered);
    }
}

impl Times {
    fn new(link: &Link, described: &Description) -> Times {
        let on_link = |bytes: u32| link.bandwidth.time_of(bytes.into()).picoseconds();
        let in_adapter = |bytes: u32| described.adapter.bandwidth.time_of(bytes.into()).picoseconds();
        Times {
            on_link: (0..=described.packet).map(on_link).collect(),
            in_adapter: (0..=described.packet).map(in_adapter).collect(),
            input: on_link(described.input),
            chunk: on_link(described.chunk),
            link_latency: link.latency.picoseconds(),
            bypass: described.bypass.picoseconds(),
            queue: described.latency.picoseconds(),
        }
    }
}

fn check(topology: &Topology, described: &Description) -> Result<(), CentralQueueError> {
    if topology.classes() > 1 {
        return Err(CentralQueueError::Classes {
            topology: topology.to_string(),
            needed: topology.classes(),
        });
    }
    let needed = described.chunks_of(described.packet);
    if needed > u16::MAX.into() {
        return Err(CentralQueueError::Packet { chunks: needed, bytes: described.packet });
    }
    for switch in 0..topology.switches() {
        let ports = topology.outgoing(Device::Switch(switch)).len() as u32;
        if described.shared_chunks(ports) < needed {
            let chunks = needed + described.reserved * ports;
            return Err(CentralQueueError::Chunks { switch, ports, chunks, found: described.chunks });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Event;

    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<Event>(), 8);
    }
}
