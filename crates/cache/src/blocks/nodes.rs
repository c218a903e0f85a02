//! Blocks one by one: half a cache line each, in lists, with a table to find them.

use super::table::{Table, hash};

/// Number of a node.
pub(crate) type NodeId = u32;

/// No node.
pub(crate) const NONE: NodeId = u32::MAX;

/// Number of a list on a rail.
pub(crate) type ListId = u8;

/// Not in a list.
pub(crate) const NO_LIST: ListId = u8::MAX;

/// The rail of the policy's order.
pub(crate) const MAIN: usize = 0;

/// A second one, which only LIRS needs.
pub(crate) const SECOND: usize = 1;

/// A block of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub file: u32,
    pub block: u64,
}

impl Key {
    #[inline]
    pub(crate) fn hash(self) -> u32 {
        hash(self.file, self.block)
    }
}

/// What is known of a block.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Node {
    block: u64,
    file: u32,
    previous: [NodeId; 2],
    next: [NodeId; 2],
    list: [ListId; 2],
    /// A mark of the policy: recently used (clock), low inter-reference recency (LIRS).
    pub mark: bool,
    /// Not here: only its history is remembered.
    pub gone: bool,
}

impl Node {
    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key { file: self.file, block: self.block }
    }

    /// The list it is in.
    #[inline]
    pub(crate) fn list(&self, rail: usize) -> ListId {
        self.list[rail]
    }
}

/// Nodes in an order: the first is the coldest.
#[derive(Clone, Copy)]
struct List {
    first: NodeId,
    last: NodeId,
    nodes: u32,
}

/// All nodes, the lists they are in, and where to find them.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    table: Table,
    lists: [Vec<List>; 2],
}

impl Nodes {
    /// None yet, in so many lists on the main rail and on the second.
    pub(crate) fn new(lists: [usize; 2]) -> Nodes {
        let empty = List { first: NONE, last: NONE, nodes: 0 };
        Nodes {
            nodes: Vec::new(),
            free: Vec::new(),
            table: Table::new(),
            lists: lists.map(|count| vec![empty; count]),
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        (self.nodes.len() - self.free.len()) as u64
    }

    /// How many numbers of nodes there are, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub(crate) fn get(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Whether a number is that of the node of a block.
    #[inline]
    pub(crate) fn holds(&self, node: NodeId, key: Key) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.key() == key)
    }

    /// The node of a block.
    #[inline]
    pub(crate) fn find(&self, key: Key, hash: u32) -> Option<NodeId> {
        self.table.find(hash, |node| self.holds(node, key))
    }

    /// Looks up blocks of these hashes together, so that the processor waits for its memory once and not for each: the
    /// table, then the nodes, then their neighbours. Gives for each a node to try first. Only time depends on it.
    #[inline]
    pub(crate) fn warm(&self, hashes: &[u32], likely: &mut [NodeId], neighbours_too: bool) {
        for (likely, hash) in likely.iter_mut().zip(hashes) {
            *likely = self.table.guess(*hash);
        }
        let mut seen = 0;
        if neighbours_too {
            let ends = |node: &NodeId| {
                self.nodes.get(*node as usize).map(|node| (node.previous[MAIN], node.next[MAIN]))
            };
            let block = |node: NodeId| self.nodes.get(node as usize).map_or(0, |node| node.block);
            for (previous, next) in likely.iter().filter_map(ends) {
                seen ^= block(previous) ^ block(next);
            }
        } else {
            seen = likely
                .iter()
                .fold(0, |seen, node| seen ^ self.nodes.get(*node as usize).map_or(0, |node| node.block));
        }
        std::hint::black_box(seen);
    }

    /// Number of nodes in a list.
    #[inline]
    pub(crate) fn length(&self, rail: usize, list: ListId) -> u64 {
        u64::from(self.lists[rail][list as usize].nodes)
    }

    /// The coldest node of a list.
    #[inline]
    pub(crate) fn first(&self, rail: usize, list: ListId) -> Option<NodeId> {
        some(self.lists[rail][list as usize].first)
    }

    /// The hottest node of a list.
    #[inline]
    pub(crate) fn last(&self, rail: usize, list: ListId) -> Option<NodeId> {
        some(self.lists[rail][list as usize].last)
    }

    /// The nodes of a list, the coldest first.
    pub(crate) fn in_list(&self, rail: usize, list: ListId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.first(rail, list), move |node| some(self.get(*node).next[rail]))
    }

    /// Adds a block, which is not known yet, in no list.
    #[inline]
    pub(crate) fn add(&mut self, key: Key, hash: u32) -> NodeId {
        let node = Node {
            block: key.block,
            file: key.file,
            previous: [NONE; 2],
            next: [NONE; 2],
            list: [NO_LIST; 2],
            mark: false,
            gone: false,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                assert!(self.nodes.len() < NONE as usize, "fewer than 4 G blocks are held one by one");
                self.nodes.push(node);
                (self.nodes.len() - 1) as NodeId
            }
        };
        self.table.insert(hash, id);
        id
    }

    /// Gives a node to another block, which is not known yet; it stays where it is in its lists.
    #[inline]
    pub(crate) fn give_to(&mut self, node: NodeId, key: Key, hash: u32) {
        self.table.remove(self.get(node).key().hash(), node);
        let this = self.get_mut(node);
        (this.file, this.block) = (key.file, key.block);
        self.table.insert(hash, node);
    }

    /// Forgets a block altogether.
    #[inline]
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.unlink(MAIN, node);
        self.unlink(SECOND, node);
        self.table.remove(self.get(node).key().hash(), node);
        // Whoever remembers its number does not take it for the block's.
        self.get_mut(node).file = NONE;
        self.free.push(node);
    }

    /// Puts a node, which is in no list of the rail, at the hot end of one.
    #[inline]
    pub(crate) fn push(&mut self, rail: usize, list: ListId, node: NodeId) {
        let ends = &mut self.lists[rail][list as usize];
        let last = ends.last;
        ends.last = node;
        ends.nodes += 1;
        if last == NONE {
            ends.first = node;
        } else {
            self.nodes[last as usize].next[rail] = node;
        }
        let this = &mut self.nodes[node as usize];
        this.list[rail] = list;
        this.previous[rail] = last;
        this.next[rail] = NONE;
    }

    /// Takes a node out of its list, if it is in one.
    #[inline]
    pub(crate) fn unlink(&mut self, rail: usize, node: NodeId) {
        let this = &mut self.nodes[node as usize];
        let (list, next, previous) = (this.list[rail], this.next[rail], this.previous[rail]);
        if list == NO_LIST {
            return;
        }
        this.list[rail] = NO_LIST;
        let ends = &mut self.lists[rail][list as usize];
        ends.nodes -= 1;
        match next {
            NONE => ends.last = previous,
            next => self.nodes[next as usize].previous[rail] = previous,
        }
        match previous {
            NONE => ends.first = next,
            previous => self.nodes[previous as usize].next[rail] = next,
        }
    }

    /// Takes a node out of its list and puts it at the hot end of another (or the same).
    #[inline]
    pub(crate) fn move_to(&mut self, rail: usize, list: ListId, node: NodeId) {
        if self.lists[rail][list as usize].last != node {
            self.unlink(rail, node);
            self.push(rail, list, node);
        }
    }
}

#[inline]
fn some(node: NodeId) -> Option<NodeId> {
    (node != NONE).then_some(node)
}
