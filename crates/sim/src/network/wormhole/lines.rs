//! Everything that is under way for a known number of cycles.

use pio_machine::Wormhole as Description;

use super::flit::Flit;
use super::line::Line;

#[derive(Debug)]
pub(super) struct Lines {
    /// Flits from nodes and from switches to the lane that they come in by.
    pub(super) injected: Line<(u32, Flit)>,
    pub(super) forwarded: Line<(u32, Flit)>,
    /// Credits for a lane, to the switch and to the node that sends into it: a node takes them in at once.
    pub(super) credits: Line<u32>,
    pub(super) node_credits: Line<u32>,
    /// Lanes whose head comes to the front as a tail leaves.
    pub(super) uncovered: Line<u32>,
    /// Lanes whose head may ask for an output lane.
    pub(super) routed: Line<u32>,
    /// Heads and the output lanes that they were granted, where that takes more than a cycle.
    pub(super) granted: Line<(u32, u32)>,
    /// Lanes that were given the switch, where that takes more than a cycle.
    pub(super) matched: Line<u32>,
}

impl Lines {
    /// For links of so many cycles of latency.
    pub(super) fn new(description: &Description, latency: u64) -> Lines {
        let pipeline = &description.pipeline;
        Lines {
            injected: Line::new(u64::from(pipeline.injection) + latency),
            forwarded: Line::new(1 + u64::from(pipeline.switch_traversal) + latency),
            credits: Line::new(1 + latency + u64::from(pipeline.credit)),
            node_credits: Line::new(1 + latency),
            uncovered: Line::new(1),
            routed: Line::new(u64::from(pipeline.routing)),
            granted: Line::new(u64::from(pipeline.vc_allocation) - 1),
            matched: Line::new(u64::from(pipeline.switch_allocation) - 1),
        }
    }

    pub(super) fn begin(&mut self, cycle: u64) {
        self.injected.begin(cycle);
        self.forwarded.begin(cycle);
        self.credits.begin(cycle);
        self.node_credits.begin(cycle);
        self.uncovered.begin(cycle);
        self.routed.begin(cycle);
        self.granted.begin(cycle);
        self.matched.begin(cycle);
    }

    /// When the next comes out; never, if nothing is under way.
    pub(super) fn due(&self) -> u64 {
        let flits = self.injected.due().min(self.forwarded.due());
        let credits = self.credits.due().min(self.node_credits.due());
        let lanes = self.uncovered.due().min(self.routed.due());
        flits.min(credits).min(lanes).min(self.granted.due()).min(self.matched.due())
    }
}
