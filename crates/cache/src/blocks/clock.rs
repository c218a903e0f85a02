//! Clock. Nodes are in no list: the hand meets them in the order of their numbers, and what comes in takes the number
//! of what leaves.

use super::nodes::{NodeId, Nodes};
use super::{BlockPolicy, Missing};

pub(crate) struct Clock {
    pub capacity: u64,
    /// The node that the hand meets next.
    pub hand: NodeId,
}

impl BlockPolicy for Clock {
    #[inline]
    fn hit(&mut self, nodes: &mut Nodes, node: NodeId) {
        nodes.get_mut(node).mark = true;
    }

    #[inline]
    fn miss(&mut self, nodes: &mut Nodes, missing: Missing) {
        if nodes.count() < self.capacity {
            nodes.add(missing.key, missing.hash);
            return;
        }
        while std::mem::take(&mut nodes.get_mut(self.hand).mark) {
            self.advance(nodes);
        }
        nodes.give_to(self.hand, missing.key, missing.hash);
        self.advance(nodes);
    }

    fn resident(&self, nodes: &Nodes) -> u64 {
        nodes.count()
    }
}

impl Clock {
    #[inline]
    fn advance(&mut self, nodes: &Nodes) {
        self.hand = if u64::from(self.hand) + 1 == nodes.count() { 0 } else { self.hand + 1 };
    }
}
