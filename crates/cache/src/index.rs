//! Where the runs of a file begin: a tree of nodes with 64 slots, from block number to run.
//!
//! Only a run's first block is entered, so that a run costs the same whatever its length. The run that holds a block is
//! the last one that begins at or before it. A tree is as high as its file is long (six bits a level), and bits tell
//! which slots are taken: finding a neighbour is a matter of shifts, not of searching. A slot leads to a run itself as
//! long as there is no other below it (lazy expansion, as in Leis, Kemper and Neumann's adaptive radix tree, ICDE 2013):
//! where runs are far apart, the nodes are few.

/// Number of a run.
pub(crate) type RunId = u32;

/// No run.
pub(crate) const NONE: RunId = u32::MAX;

const SLOT_BITS: u32 = 6;

/// In a slot above the lowest level: leads to a run, not to a node. [`NONE`] has this bit too.
const DIRECT: u32 = 1 << 31;

/// Which slots of a node are taken. Kept apart from where they lead, so that all of these stay in the processor's cache:
/// most questions need nothing else.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// By a node, or by a run.
    all: u64,
    /// By a run that may have more than one block, or by a node below which there may be one. The others need not be
    /// looked at to know that they do not reach as far as a later block.
    long: u64,
}

#[derive(Clone, Copy)]
struct Root {
    node: u32,
    height: u32,
}

/// Where the runs of every file begin.
#[derive(Default)]
pub(crate) struct Index {
    taken: Vec<Taken>,
    slots: Vec<[u32; 64]>,
    free: Vec<u32>,
    roots: Vec<Option<Root>>,
}

/// The nodes on the way to a block, from the highest level down to `lowest`.
struct Path {
    nodes: Nodes,
    lowest: u32,
    height: u32,
    /// Where the slot out of the last node leads, above the lowest level: to a run, or nowhere.
    end: u32,
}

/// A node of each level. A tree that reaches every block has 11; a power of two needs no check of an index.
struct Nodes([u32; 16]);

impl Nodes {
    #[inline]
    fn at(&self, level: u32) -> usize {
        self.0[level as usize & 15] as usize
    }

    #[inline]
    fn put(&mut self, level: u32, node: u32) {
        self.0[level as usize & 15] = node;
    }
}

// `start` tells where a run begins: a run that is far from others is not where its first block would be.
impl Index {
    /// The only run that may hold `block`: the last one that begins at or before it, if it may be long enough to.
    #[inline]
    pub(crate) fn candidate(&self, file: u32, block: u64, start: impl Fn(RunId) -> u64) -> Option<RunId> {
        let root = self.root(file)?;
        if above(block, root.height) != 0 {
            return self.last_if_long(root.node, root.height - 1);
        }
        let Root { mut node, height } = root;
        let mut level = height - 1;
        let mut to = self.slots[node as usize][slot(block, level)];
        while level > 0 && to & DIRECT == 0 {
            node = to;
            level -= 1;
            to = self.slots[node as usize][slot(block, level)];
        }
        let (slot, taken) = (slot(block, level), self.taken[node as usize]);
        if taken.all & (1 << slot) != 0 {
            let run = to & !DIRECT;
            let first = if level == 0 { block } else { start(run) };
            if first <= block {
                return (first == block || taken.long & (1 << slot) != 0).then_some(run);
            }
        }
        match taken.all & below(slot) {
            // Where no run is long, none that begins before the block holds it.
            0 if self.taken[root.node as usize].long == 0 => None,
            0 => self.last_before(&self.path(root, block), block),
            before => {
                let last = last_way(before);
                let is_long = taken.long & (1 << last) != 0;
                if is_long { self.last_if_long_of(self.slots[node as usize][last], level) } else { None }
            }
        }
    }

    /// What a look at `block` reads first: the run that begins there, or another that is no further from it.
    #[inline]
    pub(crate) fn glance(&self, file: u32, block: u64) -> RunId {
        let Some(Root { mut node, height }) = self.root(file).filter(|root| above(block, root.height) == 0)
        else {
            return NONE;
        };
        for level in (1..height).rev() {
            node = self.slots[node as usize][slot(block, level)];
            if node & DIRECT != 0 {
                return if node == NONE { NONE } else { node & !DIRECT };
            }
        }
        let slot = slot(block, 0);
        if self.taken[node as usize].all & (1 << slot) != 0 { self.slots[node as usize][slot] } else { NONE }
    }

    /// The last run that begins before what the last slot of a path leads to, if it may be long.
    #[inline]
    fn last_before(&self, path: &Path, block: u64) -> Option<RunId> {
        for level in path.lowest..path.height {
            let node = path.nodes.at(level);
            let taken = self.taken[node];
            let before = taken.all & below(slot(block, level));
            if before != 0 {
                let last = last_way(before);
                if taken.long & (1 << last) == 0 {
                    return None;
                }
                return self.last_if_long_of(self.slots[node][last], level);
            }
        }
        None
    }

    /// The nodes on the way to a block that the tree reaches.
    #[inline]
    fn path(&self, root: Root, block: u64) -> Path {
        let mut path =
            Path { nodes: Nodes([NONE; 16]), lowest: root.height - 1, height: root.height, end: NONE };
        let mut node = root.node;
        path.nodes.put(path.lowest, node);
        while path.lowest > 0 {
            let to = self.slots[node as usize][slot(block, path.lowest)];
            if to & DIRECT != 0 {
                path.end = to;
                break;
            }
            node = to;
            path.lowest -= 1;
            path.nodes.put(path.lowest, node);
        }
        path
    }

    /// The first run that begins after `block`.
    pub(crate) fn after(&self, file: u32, block: u64, start: impl Fn(RunId) -> u64) -> Option<RunId> {
        let root = self.root(file)?;
        if above(block, root.height) != 0 {
            return None;
        }
        let path = self.path(root, block);
        if path.end != NONE {
            let run = path.end & !DIRECT;
            if start(run) > block {
                return Some(run);
            }
        }
        for level in path.lowest..path.height {
            let node = path.nodes.at(level);
            let slot = slot(block, level);
            let behind = self.taken[node].all & !below(slot) & !(1 << slot);
            if behind != 0 {
                return Some(self.first(self.slots[node][behind.trailing_zeros() as usize], level));
            }
        }
        None
    }

    /// Enters a run that begins at `block`, in place of any other that does; whether it may have more than one block.
    pub(crate) fn insert(
        &mut self,
        file: u32,
        block: u64,
        run: RunId,
        long: bool,
        start: impl Fn(RunId) -> u64,
    ) {
        assert!(run < DIRECT, "more runs than their numbers can tell apart");
        let Root { mut node, height } = self.root_for(file, block);
        for level in (1..height).rev() {
            let slot = slot(block, level);
            let to = self.slots[node as usize][slot];
            let other = if to & DIRECT == 0 {
                None
            } else if to == NONE {
                Some(block)
            } else {
                Some(start(to & !DIRECT))
            };
            if other == Some(block) {
                self.set(node, slot, DIRECT | run, long);
                return;
            }
            let below = match other {
                None => to,
                Some(other) => self.expand(node, slot, level - 1, other),
            };
            if long {
                self.taken[node as usize].long |= 1 << slot;
            }
            node = below;
        }
        self.set(node, slot(block, 0), run, long);
    }

    /// Enters the run that began at `from` as one that begins at `to`, before any other run, if that is done in one node;
    /// gives whether it was. `long` says whether it may have more than one block
    /// still.
    pub(crate) fn move_start(&mut self, file: u32, from: u64, to: u64, long: bool) -> bool {
        let Some(root) = self.root(file) else { return false };
        let path = self.path(root, from);
        if path.lowest > 0 || from >> SLOT_BITS != to >> SLOT_BITS {
            return false;
        }
        let node = path.nodes.at(0) as u32;
        let run = self.slots[node as usize][slot(from, 0)];
        let taken = &mut self.taken[node as usize];
        taken.all &= !(1 << slot(from, 0));
        taken.long &= !(1 << slot(from, 0));
        self.set(node, slot(to, 0), run, long);
        true
    }

    /// Makes a node of `level` between a slot and the run that it leads to, which begins at `start`.
    fn expand(&mut self, above: u32, slot_above: usize, level: u32, start: u64) -> u32 {
        let run = self.slots[above as usize][slot_above];
        let long = self.taken[above as usize].long & (1 << slot_above) != 0;
        let node = self.new_node(level);
        self.slots[above as usize][slot_above] = node;
        self.set(node, slot(start, level), if level == 0 { run & !DIRECT } else { run }, long);
        node
    }

    /// Takes out the run that begins at `block`, which there is.
    pub(crate) fn remove(&mut self, file: u32, block: u64) {
        let Some(root) = self.root(file) else { return };
        let mut node = root.node;
        let mut level = root.height - 1;
        while level > 0 {
            let to = self.slots[node as usize][slot(block, level)];
            if to & DIRECT != 0 {
                break;
            }
            node = to;
            level -= 1;
        }
        let slot = slot(block, level);
        self.slots[node as usize][slot] = NONE;
        let taken = &mut self.taken[node as usize];
        let was_long = taken.long & (1 << slot) != 0;
        taken.all &= !(1 << slot);
        taken.long &= !(1 << slot);
        if taken.all == 0 || was_long && taken.long == 0 {
            self.tell_above(file, root, block);
        }
    }

    /// Tells the nodes above one that has become empty, or without a run that may be long. Those that become empty go.
    fn tell_above(&mut self, file: u32, root: Root, block: u64) {
        let path = self.path(root, block);
        for level in path.lowest..path.height {
            let node = path.nodes.at(level);
            let Taken { all, long } = self.taken[node];
            if all == 0 {
                self.free.push(node as u32);
            } else if long != 0 {
                return;
            }
            if level + 1 == path.height {
                if all == 0 {
                    self.roots[file as usize] = None;
                }
                return;
            }
            let (above, slot) = (path.nodes.at(level + 1), slot(block, level + 1));
            self.taken[above].long &= !(1 << slot);
            if all == 0 {
                self.taken[above].all &= !(1 << slot);
                self.slots[above][slot] = NONE;
            }
        }
    }

    #[inline]
    fn root(&self, file: u32) -> Option<Root> {
        self.roots.get(file as usize).copied().flatten()
    }

    /// The root of a file's tree, after growing it to reach `block`.
    #[inline]
    fn root_for(&mut self, file: u32, block: u64) -> Root {
        match self.root(file) {
            Some(root) if above(block, root.height) == 0 => root,
            _ => self.higher_root(file, block),
        }
    }

    #[cold]
    fn higher_root(&mut self, file: u32, block: u64) -> Root {
        if self.roots.len() <= file as usize {
            self.roots.resize(file as usize + 1, None);
        }
        let mut root = match self.roots[file as usize] {
            Some(root) => root,
            None => {
                let height = (1..).find(|height| above(block, *height) == 0).unwrap_or(1);
                Root { node: self.new_node(height - 1), height }
            }
        };
        while above(block, root.height) != 0 {
            let node = self.new_node(root.height);
            self.set(node, 0, root.node, self.taken[root.node as usize].long != 0);
            root = Root { node, height: root.height + 1 };
        }
        self.roots[file as usize] = Some(root);
        root
    }

    fn new_node(&mut self, level: u32) -> u32 {
        let Some(node) = self.free.pop() else {
            self.taken.push(Taken::default());
            self.slots.push([NONE; 64]);
            return (self.slots.len() - 1) as u32;
        };
        self.taken[node as usize] = Taken::default();
        // Slots that lead nowhere say so, above the lowest level; there the bits alone tell.
        if level > 0 {
            self.slots[node as usize] = [NONE; 64];
        }
        node
    }

    /// Makes a slot lead somewhere; whether to a run that may have more than one block, or to a node above one.
    #[inline]
    fn set(&mut self, node: u32, slot: usize, to: u32, long: bool) {
        let taken = &mut self.taken[node as usize];
        taken.all |= 1 << slot;
        taken.long = taken.long & !(1 << slot) | u64::from(long) << slot;
        self.slots[node as usize][slot] = to;
    }

    /// The last run below a node, if it may have more than one block.
    fn last_if_long(&self, node: u32, level: u32) -> Option<RunId> {
        let taken = self.taken[node as usize];
        let last = last_way(taken.all);
        if taken.long & (1 << last) == 0 {
            return None;
        }
        self.last_if_long_of(self.slots[node as usize][last], level)
    }

    /// The last run below what a slot of `level` leads to, if it may have more than one block.
    fn last_if_long_of(&self, to: u32, level: u32) -> Option<RunId> {
        match level {
            0 => Some(to),
            _ if to & DIRECT != 0 => Some(to & !DIRECT),
            _ => self.last_if_long(to, level - 1),
        }
    }

    /// The first run below what a slot of `level` leads to.
    fn first(&self, mut to: u32, level: u32) -> RunId {
        for _ in 0..level {
            if to & DIRECT != 0 {
                break;
            }
            to = self.slots[to as usize][self.taken[to as usize].all.trailing_zeros() as usize];
        }
        to & !DIRECT
    }
}

/// The slots before a slot.
#[inline]
fn below(slot: usize) -> u64 {
    (1 << slot) - 1
}

/// The last of some slots, at least one.
fn last_way(slots: u64) -> usize {
    63 - slots.leading_zeros() as usize
}

/// The slot that leads to `block` at a level; 0 is the lowest.
#[inline]
fn slot(block: u64, level: u32) -> usize {
    (block >> (SLOT_BITS * level)) as usize & 63
}

/// What of a block's number a tree of this height does not reach.
#[inline]
fn above(block: u64, height: u32) -> u64 {
    block.checked_shr(SLOT_BITS * height).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn block() -> impl Strategy<Value = u64> {
        prop_oneof![0..200u64, 4000..4200u64, Just(1 << 40), Just(u64::MAX), any::<u64>()]
    }

    proptest! {
        #[test]
        fn finds_what_an_ordered_map_finds(
            steps in prop::collection::vec((block(), 0..2u32, any::<bool>(), any::<bool>()), 1..300),
        ) {
            let mut index = Index::default();
            let mut model = [BTreeMap::new(), BTreeMap::new()];
            let starts: RefCell<Vec<u64>> = RefCell::new(steps.iter().map(|step| step.0).collect());
            let start = |run: RunId| starts.borrow()[run as usize];
            for (number, (block, file, insert, long)) in (0u32..).zip(steps) {
                let map = &mut model[file as usize];
                if insert {
                    index.insert(file, block, number, long, start);
                    map.insert(block, (number, long));
                } else if let Some((number, was_long)) = map.remove(&block) {
                    let long = long && was_long;
                    // A run that loses its first block begins at the next one, if there is none.
                    let next = block.saturating_add(1);
                    let is_free = next > block && !map.contains_key(&next);
                    if is_free && index.move_start(file, block, next, long) {
                        starts.borrow_mut()[number as usize] = next;
                        map.insert(next, (number, long));
                    } else {
                        index.remove(file, block);
                    }
                }
                for probe in [block, block.saturating_add(1), block.saturating_sub(1), block ^ 64] {
                    let map = &model[file as usize];
                    let last = map.range(..=probe).next_back();
                    let candidate = last.filter(|(start, (_, long))| **start == probe || *long);
                    prop_assert_eq!(index.candidate(file, probe, start), candidate.map(|run| run.1.0));
                    let behind = probe.checked_add(1).and_then(|from| map.range(from..).next());
                    prop_assert_eq!(index.after(file, probe, start), behind.map(|run| run.1.0));
                }
            }
        }
    }
}
