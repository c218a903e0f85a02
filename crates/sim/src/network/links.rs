//! End links: what a network costs whose inside never is the bottleneck.
//!
//! Each node has one link in and one out, first come, first served; a message occupies the sender's for as long as its
//! bytes take, its first byte is at the other end after the latency of every link on the way, and it then occupies the
//! receiver's. Inside, messages do not meet. An empty message occupies nothing and waits for nothing.

use pio_machine::{Bandwidth, Duration, Network as Description, Topology as Shape};

use super::carrier::{Delivery, MessageId, Network};
use super::topology::{Topology, TopologyError};
use crate::kernel::{Events, Model, Queue, Time, advance_events};

/// A network of end links.
#[derive(Debug)]
pub struct Links {
    outgoing: Vec<Queue>,
    incoming: Vec<Queue>,
    distance: Distance,
    bandwidth: Bandwidth,
    latency: Duration,
    events: Events<Happening>,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The first byte is at the receiver's node.
    Arrive { message: MessageId, to: u32, bytes: u64 },
    /// The last byte is in.
    Deliver(Delivery),
}

impl Links {
    /// Such a network between `nodes` nodes.
    ///
    /// # Errors
    /// If the description's topology has no room for them.
    pub fn new(description: &Description, nodes: u32) -> Result<Links, TopologyError> {
        Ok(Links {
            outgoing: vec![Queue::default(); nodes as usize],
            incoming: vec![Queue::default(); nodes as usize],
            distance: Distance::new(&description.topology, nodes)?,
            bandwidth: description.link.bandwidth,
            latency: description.link.latency,
            events: Events::new(),
        })
    }

    /// Time of the first byte from node to node.
    fn latency(&self, from: u32, to: u32) -> Duration {
        self.latency.saturating_mul(self.distance.links(from, to))
    }

    fn handle(&mut self, now: Time, happening: Happening, delivered: &mut Vec<Delivery>) {
        match happening {
            Happening::Arrive { message, to, bytes } => {
                let (_, there) = self.incoming[to as usize].serve(now, self.bandwidth.time_of(bytes));
                let delivery = Delivery { message, first_byte: now, last_byte: there };
                self.events.add(there, Happening::Deliver(delivery));
            }
            Happening::Deliver(delivery) => delivered.push(delivery),
        }
    }
}

impl Network for Links {
    fn nodes(&self) -> u32 {
        self.outgoing.len() as u32
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        let latency = self.latency(from, to);
        if bytes == 0 {
            let there = now + latency;
            let delivery = Delivery { message, first_byte: there, last_byte: there };
            return self.events.add(there, Happening::Deliver(delivery));
        }
        let (begin, _) = self.outgoing[from as usize].serve(now, self.bandwidth.time_of(bytes));
        self.events.add(begin + latency, Happening::Arrive { message, to, bytes });
    }
}

impl Model for Links {
    type Out = Delivery;

    fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        advance_events(self, |links| &mut links.events, Links::handle, until, delivered);
    }
}

/// How many links lie between two nodes.
#[derive(Debug)]
enum Distance {
    /// As many between all.
    Same(u64),
    /// As many as the route has, without so many that are inside nodes.
    Route { topology: Topology, inside: u64 },
}

impl Distance {
    fn new(shape: &Shape, nodes: u32) -> Result<Distance, TopologyError> {
        Ok(match shape {
            // One link into each switch, and one out of the last.
            Shape::Flat => Distance::Same(2),
            Shape::Omega { radix } => Distance::Same(stages(*radix, nodes) + 1),
            // A node of these has its switch inside.
            Shape::Mesh { .. } | Shape::Torus { .. } => {
                Distance::Route { topology: Topology::described(shape, nodes)?, inside: 2 }
            }
            _ => Distance::Route { topology: Topology::described(shape, nodes)?, inside: 0 },
        })
    }

    fn links(&self, from: u32, to: u32) -> u64 {
        match self {
            Distance::Same(links) => *links,
            Distance::Route { topology, inside } => u64::from(topology.hops(from, to)) - inside,
        }
    }
}

/// Stages of switches with `radix` ports a side that so many nodes need.
fn stages(radix: u32, nodes: u32) -> u64 {
    let mut stages = 1;
    let mut reached = u64::from(radix);
    while reached < u64::from(nodes) {
        reached *= u64::from(radix);
        stages += 1;
    }
    stages
}

#[cfg(test)]
mod tests {
    use pio_machine::Machine;

    use super::*;

    #[test]
    fn hops_follow_the_shape() {
        let mut network = Machine::built_in("paragon-caltech").unwrap().network;
        network.topology = Shape::Mesh { dimensions: vec![16, 2] };
        let links = Links::new(&network, 32).unwrap();
        assert_eq!(links.distance.links(0, 0), 0);
        assert_eq!(links.distance.links(0, 17), 2);
        assert_eq!(links.distance.links(15, 16), 16);
        assert_eq!(stages(4, 128), 4);
        assert_eq!(stages(2, 2), 1);
    }
}
