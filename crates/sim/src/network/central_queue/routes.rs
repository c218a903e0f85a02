//! The routes of messages that are on their way.

use crate::kernel::Slab;
use crate::network::topology::{ChannelId, Topology};

/// Routes under numbers. A network of not too many nodes keeps each that was ever used, as to find one takes as long as to
/// follow it; of a larger one, only those in use.
#[derive(Debug)]
pub(super) struct Routes {
    routes: Slab<Vec<ChannelId>>,
    nodes: u32,
}

/// The largest network whose routes are kept: a few megabytes.
const KEPT_NODES: u32 = 256;

impl Routes {
    pub(super) fn new(nodes: u32) -> Routes {
        let kept = if nodes <= KEPT_NODES { nodes * nodes } else { 0 };
        let mut routes = Slab::new();
        for _ in 0..kept {
            routes.insert(Vec::new());
        }
        Routes { routes, nodes }
    }

    /// The number of the static route between two nodes.
    pub(super) fn find(&mut self, topology: &Topology, from: u32, to: u32) -> u32 {
        if self.nodes <= KEPT_NODES {
            let number = from * self.nodes + to;
            let route = &mut self.routes[number];
            if route.is_empty() {
                topology.route_into(from, to, route);
            }
            return number;
        }
        let number = self.routes.reuse(Vec::new);
        topology.route_into(from, to, &mut self.routes[number]);
        number
    }

    /// A message needs its route no more.
    pub(super) fn give_back(&mut self, number: u32) {
        if self.nodes > KEPT_NODES {
            self.routes.remove(number);
        }
    }

    /// The channel that a route takes at a hop.
    #[inline]
    pub(super) fn channel(&self, number: u32, hop: u16) -> u32 {
        self.routes[number][usize::from(hop)].0
    }
}
