//! Wormhole switching with circuits: a packet's way is kept open until its acknowledgement is back (QsNET).
//!
//! The head of a packet takes one virtual channel after another on its way, and waits in place where there is none,
//! keeping those it has; the body flows behind it, into the buffers where it waits. When the last flit is in, and the
//! receiver has taken it in, an acknowledgement goes back along the way and frees it, link by link. Packets that flow
//! over a common link share its bandwidth.
//!
//! Time is exact, and cost goes with packets and hops: a body is one stretch of time, not flits. `fabric` holds the
//! switches, `stream` the bodies, `adapter` what is between memory and network. Source: Coll et al. 2003, section 2.
//! `docs/design/networks-circuit.md` says what is left out.

mod adapter;
mod costs;
mod error;
mod fabric;
mod packet;
mod state;
mod stream;
mod wiring;

use pio_machine::{Link, circuit as machine};

use crate::kernel::{Events, Model, Slab, Time, advance_events};
use crate::network::carrier::{Delivery, MessageId, Network};
use crate::network::topology::Topology;

pub use error::CircuitError;
pub use state::Priority;

use costs::Costs;
use state::{Adapter, Event, Message, Packet, VirtualChannel, Waiter};
use wiring::Wiring;

/// What a network has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that are at their destinations.
    pub packets: u64,
    /// Links that they crossed, summed.
    pub hops: u64,
    /// Happenings that the simulation went through.
    pub events: u64,
}

/// A network of switches that keep circuits, with its adapters.
#[derive(Debug)]
pub struct Circuit {
    wiring: Wiring,
    costs: Costs,
    events: Events<Event>,
    packets: Slab<Packet>,
    messages: Slab<Message>,
    /// By channel: see [`Costs::stride_bits`].
    virtual_channels: Vec<VirtualChannel>,
    /// Of each channel: how many packets flow over it.
    streams: Vec<u32>,
    /// Of each switch: the packets whose heads wait there.
    waiting: Vec<Vec<Waiter>>,
    /// Of each switch: the port from which on the next packet that may choose looks first.
    first_choice: Vec<u16>,
    adapters: Vec<Adapter>,
    /// Messages sent and not there yet.
    under_way: usize,
    totals: Totals,
}

impl Circuit {
    /// The network of this shape whose links, switches and adapters are described so. Nothing is under way in it.
    ///
    /// # Errors
    /// If the network needs more than one class of virtual channels.
    pub fn new(
        topology: &Topology,
        link: &Link,
        description: &machine::Circuit,
    ) -> Result<Circuit, CircuitError> {
        if topology.classes() > 1 {
            let classes = topology.classes();
            return Err(CircuitError::Classes { topology: topology.to_string(), classes });
        }
        let wiring = Wiring::new(topology);
        let costs = Costs::new(link, description);
        let channels = wiring.channels();
        Ok(Circuit {
            events: Events::new(),
            packets: Slab::new(),
            messages: Slab::new(),
            virtual_channels: vec![VirtualChannel::default(); channels << costs.stride_bits],
            streams: vec![0; channels],
            waiting: vec![Vec::new(); wiring.switches()],
            first_choice: vec![0; wiring.switches()],
            adapters: (0..wiring.nodes()).map(|_| Adapter::default()).collect(),
            under_way: 0,
            totals: Totals::default(),
            wiring,
            costs,
        })
    }

    /// Like [`Network::send`], with a priority. Messages of one priority between two nodes keep their order.
    ///
    /// # Panics
    /// If a node does not exist.
    pub fn send_with_priority(
        &mut self,
        now: Time,
        message: MessageId,
        from: u32,
        to: u32,
        bytes: u64,
        priority: Priority,
    ) {
        let nodes = self.wiring.nodes();
        assert!(from < nodes && to < nodes, "a message of node {from} to node {to}, of {nodes} nodes");
        let slot = self.new_message(Message::new(message, from, to, bytes, priority));
        self.under_way += 1;
        self.events.add(now + self.costs.start, Event::Posted { message: slot });
    }

    /// What it has done so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The messages under way, and how many bytes of each are there.
    pub fn progress(&self) -> impl Iterator<Item = (MessageId, u64)> + use<'_> {
        let under_way = |message: &&Message| !message.arrived;
        self.messages.all().filter(under_way).map(|message| (message.id, message.there))
    }

    fn handle(&mut self, now: Time, event: Event, delivered: &mut Vec<Delivery>) {
        self.totals.events += 1;
        match event {
            Event::Posted { message } => self.posted(now, message),
            Event::Pump { node } => self.pump(now, node),
            Event::Inject { packet } => self.inject(now, packet),
            Event::AtSwitch { packet } => self.at_switch(now, packet),
            Event::AtNode { packet } => self.at_node(now, packet),
            Event::Left { packet, schedule } => {
                if self.packets[packet].left_schedule == schedule {
                    self.left(now, packet);
                }
            }
            Event::Tail { packet, schedule } => {
                if self.packets[packet].tail_schedule == schedule {
                    self.tail(now, packet);
                }
            }
            Event::Closed { packet } => self.closed(now, packet),
            Event::Free { virtual_channel } => self.freed(now, virtual_channel),
            Event::Arrived { message } => {
                let arrived = &self.messages[message];
                delivered.push(Delivery {
                    message: arrived.id,
                    first_byte: arrived.first_byte,
                    last_byte: now,
                });
                self.under_way -= 1;
                self.messages[message].arrived = true;
                self.let_go_of_message(message);
            }
        }
    }
}

impl Network for Circuit {
    fn nodes(&self) -> u32 {
        self.wiring.nodes()
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        self.send_with_priority(now, message, from, to, bytes, Priority::Normal);
    }
}

impl Model for Circuit {
    type Out = Delivery;

    /// Nothing once every message has arrived, though acknowledgements may still be on their way back.
    fn next_time(&self) -> Option<Time> {
        if self.under_way == 0 { None } else { self.events.next_time() }
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        advance_events(self, |circuit| &mut circuit.events, Circuit::handle, until, delivered);
    }
}
