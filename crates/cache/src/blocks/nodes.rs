//! Blocks one by one: half a cache line each, in lists, with a table to find them.

use super::list::List;
pub(crate) use super::list::{ListId, NO_LIST};
use super::table::{Guess, Slot, Table, hash};

/// Number of a node.
pub(crate) type NodeId = u32;

/// No node.
pub(crate) const NONE: NodeId = u32::MAX;

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
    hash: u32,
    /// Where it is in the table.
    slot: Slot,
    /// Which entry of its list is its, on each rail.
    pub(super) entry: [u32; 2],
    /// The list it is in, on each rail.
    pub(super) list: [ListId; 2],
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

/// All nodes, the lists they are in, and where to find them.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    table: Table,
    lists: [Vec<List>; 2],
}

impl Nodes {
    /// None yet, in lists on the main rail and on the second: for each, whether what leaves its cold end is usually
    /// forgotten.
    pub(crate) fn new(lists: [&[bool]; 2]) -> Nodes {
        let rail = |rail: usize| {
            let lists = (0..).zip(lists[rail]);
            lists.map(|(list, forgotten)| List::new(rail, list, *forgotten)).collect()
        };
        Nodes { nodes: Vec::new(), free: Vec::new(), table: Table::new(), lists: [rail(MAIN), rail(SECOND)] }
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

    /// Looks up blocks of these hashes together, and what may leave for them, so that the processor waits for its memory
    /// once and not for each.
    #[inline]
    pub(crate) fn warm(&mut self, hashes: &[u32], guesses: &mut [Guess]) {
        let mut seen = 0;
        for list in self.lists.iter_mut().flatten() {
            let forgotten = list.forgotten;
            for node in list.next_to_warm().iter().filter_map(|node| self.nodes.get(*node as usize)) {
                seen ^= if forgotten { self.table.peek(node.hash) } else { node.hash };
            }
        }
        for (guess, hash) in guesses.iter_mut().zip(hashes) {
            *guess = self.table.guess(*hash);
        }
        if let Some(last) = self.nodes.len().checked_sub(1) {
            // Without a branch on whether it is a node.
            seen = guesses.iter().fold(seen, |seen, node| seen ^ self.nodes[last.min(*node as usize)].hash);
        }
        std::hint::black_box(seen);
    }

    /// Number of nodes in a list.
    #[inline]
    pub(crate) fn length(&self, rail: usize, list: ListId) -> u64 {
        self.lists[rail][list as usize].length()
    }

    /// The coldest node of a list.
    #[inline]
    pub(crate) fn first(&mut self, rail: usize, list: ListId) -> Option<NodeId> {
        self.lists[rail][list as usize].first()
    }

    /// The hottest node of a list.
    #[inline]
    pub(crate) fn last(&mut self, rail: usize, list: ListId) -> Option<NodeId> {
        self.lists[rail][list as usize].last()
    }

    /// The nodes of a list, the coldest first.
    pub(crate) fn in_list(&self, rail: usize, list: ListId) -> impl Iterator<Item = NodeId> {
        self.lists[rail][list as usize].iter()
    }

    /// Adds a block, which is not known yet, in no list.
    #[inline]
    pub(crate) fn add(&mut self, key: Key, hash: u32) -> NodeId {
        let node = Node {
            block: key.block,
            file: key.file,
            hash,
            slot: Slot::default(),
            entry: [NONE; 2],
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
        self.enter_in_table(hash, id);
        id
    }

    /// Gives a node to another block, which is not known yet; it stays where it is in its lists.
    #[inline]
    pub(crate) fn give_to(&mut self, node: NodeId, key: Key, hash: u32) {
        self.take_from_table(node);
        let this = self.get_mut(node);
        (this.file, this.block, this.hash) = (key.file, key.block, hash);
        self.enter_in_table(hash, node);
    }

    #[inline]
    fn enter_in_table(&mut self, hash: u32, node: NodeId) {
        let nodes = &mut self.nodes;
        let slot = self.table.insert(hash, node, |node, slot| nodes[node as usize].slot = slot);
        nodes[node as usize].slot = slot;
    }

    #[inline]
    fn take_from_table(&mut self, node: NodeId) {
        let node = &self.nodes[node as usize];
        self.table.remove(node.hash, node.slot);
    }

    /// Forgets a block altogether.
    #[inline]
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.unlink(MAIN, node);
        self.unlink(SECOND, node);
        self.take_from_table(node);
        // Whoever remembers its number does not take it for the block's.
        self.get_mut(node).file = NONE;
        self.free.push(node);
    }

    /// Puts a node, which is in no list of the rail, at the hot end of one.
    #[inline]
    pub(crate) fn push(&mut self, rail: usize, list: ListId, node: NodeId) {
        self.lists[rail][list as usize].push(&mut self.nodes, node);
    }

    /// Takes a node out of its list, if it is in one.
    #[inline]
    pub(crate) fn unlink(&mut self, rail: usize, node: NodeId) {
        let list = self.get(node).list[rail];
        if list != NO_LIST {
            self.lists[rail][list as usize].take(&mut self.nodes, node);
        }
    }

    /// Takes a node out of its list and puts it at the hot end of another (or the same).
    #[inline]
    pub(crate) fn move_to(&mut self, rail: usize, list: ListId, node: NodeId) {
        self.unlink(rail, node);
        self.push(rail, list, node);
    }
}
