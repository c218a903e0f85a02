//! Which channels a flow crosses, and with how much of itself.

use pio_machine::FlowRoutes;

use crate::network::topology::{ChannelId, Device, Topology};

/// Finds routes, and keeps the room it needs for that.
#[derive(Debug)]
pub(super) struct Router {
    topology: Topology,
    routes: FlowRoutes,
    channels: Vec<ChannelId>,
    shares: Vec<Share>,
    candidates: Vec<u16>,
    /// Switches that parts of the flow have come to.
    front: Vec<Part>,
    next_front: Vec<Part>,
}

/// A channel that a flow crosses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) channel: u32,
    /// The part of the flow that crosses it.
    pub(super) weight: f64,
}

/// All that a flow crosses.
#[derive(Debug)]
pub(super) struct Hops<'r> {
    pub(super) shares: &'r [Share],
    /// Channels from end to end: of the longest way, if there are several.
    pub(super) length: u32,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    switch: u32,
    weight: f64,
    /// The node it goes by first.
    waypoint: Option<u32>,
}

impl Router {
    pub(super) fn new(topology: Topology, routes: FlowRoutes) -> Router {
        Router {
            topology,
            routes,
            channels: Vec::new(),
            shares: Vec::new(),
            candidates: Vec::new(),
            front: Vec::new(),
            next_front: Vec::new(),
        }
    }

    pub(super) fn hops(&mut self, from: u32, to: u32) -> Hops<'_> {
        self.shares.clear();
        let length = match self.routes {
            FlowRoutes::Static => {
                self.topology.route_into(from, to, &mut self.channels);
                let whole = |channel: &ChannelId| Share { channel: channel.0, weight: 1.0 };
                self.shares.extend(self.channels.iter().map(whole));
                self.channels.len() as u32
            }
            FlowRoutes::Spread => self.spread(from, to),
        };
        Hops { shares: &self.shares, length }
    }

    /// Divides the flow at every switch among the candidates, until all of it is there.
    fn spread(&mut self, from: u32, to: u32) -> u32 {
        let waypoint = self.topology.static_waypoint(from, to);
        self.front.clear();
        self.cross(self.topology.outgoing(Device::Node(from))[0], 1.0, waypoint);
        let mut length = 1;
        while !self.next_front.is_empty() {
            std::mem::swap(&mut self.front, &mut self.next_front);
            self.next_front.clear();
            self.merge();
            for index in 0..self.front.len() {
                let Part { switch, weight, waypoint } = self.front[index];
                let waypoint = waypoint.filter(|waypoint| !self.topology.is_past(switch, *waypoint));
                self.topology.candidates(switch, waypoint.unwrap_or(to), &mut self.candidates);
                let part = weight / self.candidates.len() as f64;
                for candidate in 0..self.candidates.len() {
                    let port = usize::from(self.candidates[candidate]);
                    self.cross(self.topology.outgoing(Device::Switch(switch))[port], part, waypoint);
                }
            }
            length += 1;
        }
        length
    }

    fn cross(&mut self, id: ChannelId, weight: f64, waypoint: Option<u32>) {
        self.shares.push(Share { channel: id.0, weight });
        if let Device::Switch(switch) = self.topology.channel(id).to.device {
            self.next_front.push(Part { switch, weight, waypoint });
        }
    }

    /// Parts that meet at a switch are one again.
    fn merge(&mut self) {
        self.front.sort_by_key(|part| (part.switch, part.waypoint));
        self.front.dedup_by(|part, kept| {
            let is_same = (part.switch, part.waypoint) == (kept.switch, kept.waypoint);
            if is_same {
                kept.weight += part.weight;
            }
            is_same
        });
    }
}
