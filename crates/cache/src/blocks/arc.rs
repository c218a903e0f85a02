//! ARC (Megiddo and Modha, FAST 2003, figure 4), in the paper's names.

use super::nodes::{ListId, MAIN, NodeId, Nodes};
use super::{BlockPolicy, Missing};

const T1: ListId = 0;
const T2: ListId = 1;
const B1: ListId = 2;
const B2: ListId = 3;

pub(crate) struct Arc {
    pub capacity: u64,
    pub p: f64,
}

impl BlockPolicy for Arc {
    /// Case I.
    #[inline]
    fn hit(&mut self, nodes: &mut Nodes, node: NodeId) {
        nodes.move_to(MAIN, T2, node);
    }

    #[inline]
    fn miss(&mut self, nodes: &mut Nodes, missing: Missing) {
        match missing.history {
            Some(history) => self.remembered(nodes, history),
            None => self.new_block(nodes, missing),
        }
    }

    fn resident(&self, nodes: &Nodes) -> u64 {
        nodes.length(MAIN, T1) + nodes.length(MAIN, T2)
    }
}

impl Arc {
    /// Cases II and III.
    #[inline]
    fn remembered(&mut self, nodes: &mut Nodes, node: NodeId) {
        let (b1, b2) = (nodes.length(MAIN, B1) as f64, nodes.length(MAIN, B2) as f64);
        let was_in_b2 = nodes.get(node).list(MAIN) == B2;
        self.p = if was_in_b2 {
            (self.p - (b1 / b2).max(1.0)).max(0.0)
        } else {
            (self.p + (b2 / b1).max(1.0)).min(self.capacity as f64)
        };
        self.replace(nodes, was_in_b2);
        nodes.get_mut(node).gone = false;
        nodes.move_to(MAIN, T2, node);
    }

    /// Case IV.
    #[inline]
    fn new_block(&mut self, nodes: &mut Nodes, missing: Missing) {
        let l1 = nodes.length(MAIN, T1) + nodes.length(MAIN, B1);
        let mut leaving = None;
        if l1 == self.capacity {
            leaving = nodes.first(MAIN, B1);
            match leaving {
                Some(_) => self.replace(nodes, false),
                // Nothing is remembered of what leaves here.
                None => leaving = nodes.first(MAIN, T1),
            }
        } else if self.resident(nodes) == self.capacity {
            if nodes.count() == 2 * self.capacity {
                leaving = nodes.first(MAIN, B2);
            }
            self.replace(nodes, false);
        }
        let node = match leaving {
            Some(node) => {
                nodes.give_to(node, missing.key, missing.hash);
                nodes.get_mut(node).gone = false;
                nodes.unlink(MAIN, node);
                node
            }
            None => nodes.add(missing.key, missing.hash),
        };
        nodes.push(MAIN, T1, node);
    }

    /// REPLACE.
    #[inline]
    fn replace(&self, nodes: &mut Nodes, was_in_b2: bool) {
        let t1 = nodes.length(MAIN, T1) as f64;
        let from_t1 = t1 > 0.0 && (t1 > self.p || was_in_b2 && t1 == self.p);
        let (from, to) = if from_t1 || nodes.length(MAIN, T2) == 0 { (T1, B1) } else { (T2, B2) };
        if let Some(node) = nodes.first(MAIN, from) {
            nodes.get_mut(node).gone = true;
            nodes.move_to(MAIN, to, node);
        }
    }
}
