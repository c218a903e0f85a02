//! An order of nodes as a log of what was put at its hot end.
//!
//! A node knows which entry is its, and strikes it out when it is taken out or put at the hot end again. So nothing that
//! has to be read changes but the node, and what the next entries from the cold end are is known before their turn; the
//! neighbours in a linked list would each have to be waited for. A log that is full is rewritten without what was struck
//! out.

use super::nodes::{NONE, Node, NodeId};

/// Number of a list on a rail.
pub(crate) type ListId = u8;

/// Not in a list.
pub(crate) const NO_LIST: ListId = u8::MAX;

/// A full log is rewritten in one this many times as long as the nodes that are in it.
const ENTRIES_PER_NODE: usize = 4;

/// Entries from the cold end that are looked at before their turn.
const AHEAD: usize = 64;

/// Nodes in an order: the first is the coldest.
pub(crate) struct List {
    rail: usize,
    number: ListId,
    /// Whether the nodes that leave its cold end are forgotten, so that the table is looked at.
    pub(crate) forgotten: bool,
    /// [`NONE`] where one was struck out.
    entries: Vec<NodeId>,
    /// Everything before it was struck out.
    head: usize,
    /// Entries before it have been looked at before their turn.
    warmed: usize,
    /// How many entries there may be before they are rewritten.
    limit: usize,
    nodes: usize,
}

impl List {
    pub(crate) fn new(rail: usize, number: ListId, forgotten: bool) -> List {
        List { rail, number, forgotten, entries: Vec::new(), head: 0, warmed: 0, limit: 0, nodes: 0 }
    }

    /// Number of nodes.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.nodes as u64
    }

    /// The coldest node.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<NodeId> {
        while let Some(node) = self.entries.get(self.head) {
            if *node != NONE {
                return Some(*node);
            }
            self.head += 1;
        }
        None
    }

    /// The hottest node.
    #[inline]
    pub(crate) fn last(&mut self) -> Option<NodeId> {
        while let Some(node) = self.entries.last() {
            if *node != NONE {
                return Some(*node);
            }
            self.entries.pop();
        }
        self.head = 0;
        None
    }

    /// The nodes, the coldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.entries.iter().copied().filter(|node| *node != NONE)
    }

    /// Puts a node, which is in no list of the rail, at the hot end.
    #[inline]
    pub(crate) fn push(&mut self, nodes: &mut [Node], node: NodeId) {
        if self.entries.len() == self.limit {
            self.rewrite(nodes);
        }
        let this = &mut nodes[node as usize];
        this.list[self.rail] = self.number;
        this.entry[self.rail] = self.entries.len() as u32;
        self.entries.push(node);
        self.nodes += 1;
    }

    /// Takes out a node that is in.
    #[inline]
    pub(crate) fn take(&mut self, nodes: &mut [Node], node: NodeId) {
        let this = &mut nodes[node as usize];
        this.list[self.rail] = NO_LIST;
        let entry = this.entry[self.rail] as usize;
        self.entries[entry] = NONE;
        self.head += usize::from(entry == self.head);
        self.nodes -= 1;
    }

    /// The next entries from the cold end that have not been looked at.
    #[inline]
    pub(crate) fn next_to_warm(&mut self) -> &[NodeId] {
        let start = self.warmed.max(self.head).min(self.entries.len());
        self.warmed = (self.head + AHEAD).clamp(start, self.entries.len().max(start));
        &self.entries[start..self.warmed]
    }

    /// Leaves out the entries that were struck out.
    #[cold]
    fn rewrite(&mut self, nodes: &mut [Node]) {
        self.warmed = self.warmed.saturating_sub(self.head);
        let mut kept = 0;
        for entry in self.head..self.entries.len() {
            // Without a branch: which are left is nothing that a processor could predict.
            let node = self.entries[entry];
            self.entries[kept] = node;
            kept += usize::from(node != NONE);
        }
        self.head = 0;
        self.entries.truncate(kept);
        for (node, entry) in self.entries.iter().zip(0..) {
            nodes[*node as usize].entry[self.rail] = entry;
        }
        self.limit = ENTRIES_PER_NODE * kept + AHEAD;
        assert!(self.limit < NONE as usize, "fewer than a billion blocks are held one by one");
        self.entries.reserve_exact(self.limit - kept);
    }
}
