//! End links: what a network costs whose inside never is the bottleneck.
//!
//! Each node has one link in and one out, first come, first served; a message occupies the sender's for as long as its
//! bytes take, its first byte is at the other end after the latency of every link on the way, and it then occupies the
//! receiver's. Inside, messages do not meet. An empty message occupies nothing and waits for nothing.

use pio_machine::{Bandwidth, Duration, Network as Description, Topology};

use super::{Delivery, MessageId, Network};
use crate::kernel::{Events, Queue, Time};

/// A network of end links.
#[derive(Debug)]
pub struct Links {
    outgoing: Vec<Queue>,
    incoming: Vec<Queue>,
    topology: Topology,
    /// Links between any two nodes, where they are the same between all.
    stages: u64,
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
    pub fn new(description: &Description, nodes: u32) -> Links {
        Links {
            outgoing: vec![Queue::default(); nodes as usize],
            incoming: vec![Queue::default(); nodes as usize],
            topology: description.topology,
            stages: stages(description.topology, nodes),
            bandwidth: description.link.bandwidth,
            latency: description.link.latency,
            events: Events::new(),
        }
    }

    /// Time of the first byte from node to node.
    fn latency(&self, from: u32, to: u32) -> Duration {
        Duration::from_picoseconds(self.latency.picoseconds().saturating_mul(self.hops(from, to)))
    }

    /// How many links lie between two nodes.
    fn hops(&self, from: u32, to: u32) -> u64 {
        match self.topology {
            Topology::Flat | Topology::Omega { .. } => self.stages,
            Topology::Mesh { width } => {
                let far = |one: u32, other: u32| u64::from(one.abs_diff(other));
                far(from % width, to % width) + far(from / width, to / width)
            }
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

    fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        let mut limit = until;
        while self.events.next_time().is_some_and(|time| time <= limit) {
            match self.events.pop() {
                Some((now, Happening::Arrive { message, to, bytes })) => {
                    let (_, there) = self.incoming[to as usize].serve(now, self.bandwidth.time_of(bytes));
                    let delivery = Delivery { message, first_byte: now, last_byte: there };
                    self.events.add(there, Happening::Deliver(delivery));
                }
                Some((now, Happening::Deliver(delivery))) => {
                    delivered.push(delivery);
                    limit = now;
                }
                None => return,
            }
        }
    }
}

/// Links from node to node where they are the same between all: one into each switch, and one out of the last.
fn stages(topology: Topology, nodes: u32) -> u64 {
    match topology {
        Topology::Flat => 2,
        Topology::Omega { radix } => {
            let mut stages = 1;
            let mut reached = u64::from(radix);
            while reached < u64::from(nodes) {
                reached *= u64::from(radix);
                stages += 1;
            }
            stages + 1
        }
        Topology::Mesh { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use pio_machine::Machine;

    use super::*;

    #[test]
    fn hops_follow_the_shape() {
        let mut network = Machine::built_in("paragon-caltech").unwrap().network;
        network.topology = Topology::Mesh { width: 16 };
        let links = Links::new(&network, 64);
        assert_eq!(links.hops(0, 0), 0);
        assert_eq!(links.hops(0, 17), 2);
        assert_eq!(links.hops(15, 16), 16);
        assert_eq!(stages(Topology::Flat, 1000), 2);
        assert_eq!(stages(Topology::Omega { radix: 4 }, 128), 5);
        assert_eq!(stages(Topology::Omega { radix: 2 }, 2), 2);
    }
}
