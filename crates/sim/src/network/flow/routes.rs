//! Which channels a flow crosses, and with how much of itself.

use pio_machine::FlowRoutes;

use crate::network::topology::{ChannelId, Device, Topology};

/// Of the waypoints that a pair of nodes could have, a flow that is spread goes by so many at most: enough for its parts to be
/// small, and few enough for a table of all that flows cross.
const MOST_WAYPOINTS: u32 = 8;

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

    /// Whether flows of a pair may go ways of several lengths: each chooses its own.
    pub(super) fn chooses(&self) -> bool {
        self.topology.may_leave_out_waypoint()
    }

    /// What a flow from node to node crosses; `load` tells the flows on a channel now.
    ///
    /// Where the waypoint may be left out, the flow chooses as a packet would (UGAL) when it begins: it takes the way on which
    /// fewer flows are before it, those of all channels together, and the straight one if both have as many.
    pub(super) fn hops(&mut self, from: u32, to: u32, load: impl Fn(u32) -> f64) -> Hops<'_> {
        let mut length = self.find(from, to, !self.chooses());
        if self.chooses() {
            let straight = self.before(&load);
            // Nothing has fewer before it than none.
            if straight > 0.0 {
                length = self.find(from, to, true);
                if straight <= self.before(&load) {
                    length = self.find(from, to, false);
                }
            }
        }
        Hops { shares: &self.shares, length }
    }

    /// Finds the channels of a flow, straight or by the waypoints that its pair has; gives how many the longest way has.
    fn find(&mut self, from: u32, to: u32, has_waypoints: bool) -> u32 {
        self.shares.clear();
        match self.routes {
            FlowRoutes::Static => {
                let waypoint = if has_waypoints { self.topology.static_detour(from, to) } else { None };
                self.topology.route_by_into(from, to, waypoint, &mut self.channels);
                let whole = |channel: &ChannelId| Share { channel: channel.0, weight: 1.0 };
                self.shares.extend(self.channels.iter().map(whole));
                self.channels.len() as u32
            }
            FlowRoutes::Spread => {
                let waypoints =
                    if has_waypoints { self.topology.detours(from, to, MOST_WAYPOINTS) } else { Vec::new() };
                self.spread(from, to, &waypoints)
            }
        }
    }

    /// The flows on all channels between switches that were found, each counted by the share of the way that crosses it. Those
    /// of the nodes are on every way.
    fn before(&self, load: impl Fn(u32) -> f64) -> f64 {
        let is_between = |share: &&Share| {
            let channel = self.topology.channel(ChannelId(share.channel));
            [channel.from, channel.to].iter().all(|port| matches!(port.device, Device::Switch(_)))
        };
        self.shares.iter().filter(is_between).map(|share| share.weight * load(share.channel)).sum()
    }

    /// Divides the flow equally among the waypoints, and at every switch among the candidates, until all of it is there.
    fn spread(&mut self, from: u32, to: u32, waypoints: &[u32]) -> u32 {
        self.front.clear();
        self.next_front.clear();
        let first = self.topology.outgoing(Device::Node(from))[0];
        self.shares.push(Share { channel: first.0, weight: 1.0 });
        if let Device::Switch(switch) = self.topology.channel(first).to.device {
            let weight = 1.0 / waypoints.len().max(1) as f64;
            let part = |waypoint| Part { switch, weight, waypoint };
            self.next_front.extend(waypoints.iter().map(|waypoint| part(Some(*waypoint))));
            if waypoints.is_empty() {
                self.next_front.push(part(None));
            }
        }
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
