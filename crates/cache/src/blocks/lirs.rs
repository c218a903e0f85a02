//! LIRS (Jiang and Zhang, SIGMETRICS 2002, section 3), in the paper's names; the mark says that a block is LIR.

use super::nodes::{ListId, MAIN, NO_LIST, NodeId, Nodes, SECOND};
use super::{BlockPolicy, Missing};

/// S is the only list of the main rail.
const S: ListId = 0;
/// Q on the second rail.
const Q: ListId = 0;
/// What is gone, on the second rail, in the order in which it went.
const GONE: ListId = 1;

pub(crate) struct Lirs {
    pub lir_capacity: u64,
    pub hir_capacity: u64,
    pub lir: u64,
}

impl BlockPolicy for Lirs {
    #[inline]
    fn hit(&mut self, nodes: &mut Nodes, node: NodeId) {
        if nodes.get(node).mark {
            let was_bottom = nodes.first(MAIN, S) == Some(node);
            nodes.move_to(MAIN, S, node);
            if was_bottom {
                prune(nodes);
            }
        } else if nodes.get(node).list(MAIN) == NO_LIST {
            nodes.push(MAIN, S, node);
            nodes.move_to(SECOND, Q, node);
            prune(nodes);
        } else {
            nodes.unlink(SECOND, node);
            self.make_lir(nodes, node);
        }
        self.limit_stack(nodes);
    }

    #[inline]
    fn miss(&mut self, nodes: &mut Nodes, missing: Missing) {
        if self.resident(nodes) == self.lir_capacity + self.hir_capacity {
            evict(nodes);
        }
        match missing.history {
            Some(node) => {
                nodes.get_mut(node).gone = false;
                nodes.unlink(SECOND, node);
                self.make_lir(nodes, node);
            }
            None => {
                let node = nodes.add(missing.key, missing.hash);
                if self.lir < self.lir_capacity {
                    self.make_lir(nodes, node);
                } else {
                    nodes.push(MAIN, S, node);
                    nodes.push(SECOND, Q, node);
                    prune(nodes);
                }
            }
        }
        self.limit_stack(nodes);
    }

    fn resident(&self, nodes: &Nodes) -> u64 {
        self.lir + nodes.length(SECOND, Q)
    }
}

impl Lirs {
    /// A block that is in no list of the second rail becomes LIR, and if that is one too many, the least recently used
    /// LIR block becomes HIR.
    #[inline]
    fn make_lir(&mut self, nodes: &mut Nodes, node: NodeId) {
        nodes.get_mut(node).mark = true;
        nodes.move_to(MAIN, S, node);
        self.lir += 1;
        prune(nodes);
        if self.lir > self.lir_capacity
            && let Some(bottom) = nodes.first(MAIN, S)
        {
            nodes.get_mut(bottom).mark = false;
            nodes.unlink(MAIN, bottom);
            nodes.push(SECOND, Q, bottom);
            self.lir -= 1;
            prune(nodes);
        }
    }

    /// Forgets what has been gone for longest, if S is too large.
    #[inline]
    fn limit_stack(&mut self, nodes: &mut Nodes) {
        while nodes.length(MAIN, S) > 2 * (self.lir_capacity + self.hir_capacity) {
            let Some(oldest) = nodes.first(SECOND, GONE) else { return };
            nodes.remove(oldest);
        }
    }
}

/// The HIR block that has been in Q for longest leaves.
#[inline]
fn evict(nodes: &mut Nodes) {
    let Some(victim) = nodes.first(SECOND, Q) else { return };
    if nodes.get(victim).list(MAIN) == NO_LIST {
        nodes.remove(victim);
    } else {
        nodes.get_mut(victim).gone = true;
        nodes.move_to(SECOND, GONE, victim);
    }
}

/// Takes HIR blocks off the bottom of S until it is LIR.
#[inline]
fn prune(nodes: &mut Nodes) {
    while let Some(bottom) = nodes.first(MAIN, S) {
        let node = nodes.get(bottom);
        if node.mark {
            return;
        }
        if node.gone {
            nodes.remove(bottom);
        } else {
            nodes.unlink(MAIN, bottom);
        }
    }
}
