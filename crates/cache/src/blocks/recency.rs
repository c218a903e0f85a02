//! LRU and MRU.

use super::nodes::{MAIN, NodeId, Nodes};
use super::{BlockPolicy, Missing};

pub(crate) struct Recency {
    pub capacity: u64,
    pub most_recent_leaves: bool,
}

impl BlockPolicy for Recency {
    #[inline]
    fn hit(&mut self, nodes: &mut Nodes, node: NodeId) {
        nodes.move_to(MAIN, 0, node);
    }

    #[inline]
    fn miss(&mut self, nodes: &mut Nodes, missing: Missing) {
        let leaving = if nodes.length(MAIN, 0) < self.capacity {
            None
        } else if self.most_recent_leaves {
            nodes.last(MAIN, 0)
        } else {
            nodes.first(MAIN, 0)
        };
        match leaving {
            Some(node) => {
                nodes.give_to(node, missing.key, missing.hash);
                nodes.move_to(MAIN, 0, node);
            }
            None => {
                let node = nodes.add(missing.key, missing.hash);
                nodes.push(MAIN, 0, node);
            }
        }
    }

    fn resident(&self, nodes: &Nodes) -> u64 {
        nodes.length(MAIN, 0)
    }
}
