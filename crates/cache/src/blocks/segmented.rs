//! SLRU: LRU lists one above the other.

use super::nodes::{ListId, MAIN, NodeId, Nodes};
use super::{BlockPolicy, Missing};

pub(crate) struct Segmented {
    /// Of each list, in blocks; the lowest is the first.
    pub sizes: Vec<u64>,
    pub capacity: u64,
}

impl BlockPolicy for Segmented {
    #[inline]
    fn hit(&mut self, nodes: &mut Nodes, node: NodeId) {
        let list = nodes.get(node).list(MAIN);
        let above = list + 1;
        let Some(size) = self.sizes.get(usize::from(above)) else {
            return nodes.move_to(MAIN, list, node);
        };
        // A full list sends down its coldest block for each that comes up.
        let falling = if nodes.length(MAIN, above) < *size { None } else { nodes.first(MAIN, above) };
        nodes.move_to(MAIN, above, node);
        if let Some(falling) = falling {
            nodes.move_to(MAIN, list, falling);
        }
    }

    #[inline]
    fn miss(&mut self, nodes: &mut Nodes, missing: Missing) {
        let leaving = if nodes.count() < self.capacity {
            None
        } else {
            self.lists().find_map(|list| nodes.first(MAIN, list))
        };
        let node = match leaving {
            Some(node) => {
                nodes.give_to(node, missing.key, missing.hash);
                nodes.unlink(MAIN, node);
                node
            }
            None => nodes.add(missing.key, missing.hash),
        };
        let has_room = |list: &ListId| nodes.length(MAIN, *list) < self.sizes[usize::from(*list)];
        let list = self.lists().find(has_room).unwrap_or(0);
        nodes.push(MAIN, list, node);
    }

    fn resident(&self, nodes: &Nodes) -> u64 {
        nodes.count()
    }
}

impl Segmented {
    #[inline]
    fn lists(&self) -> std::ops::Range<ListId> {
        0..self.sizes.len() as ListId
    }
}
