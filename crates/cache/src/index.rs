//! Where the runs of a file begin: a tree of 64 ways, from block number to run.
//!
//! Only a run's first block is entered, so that a run costs the same whatever its length. The run that holds a block is
//! the last one that begins at or before it. A tree is as high as its file is long (six bits a level), and bits tell
//! which ways are taken: finding a neighbour is a matter of shifts, not of searching.

/// Number of a run.
pub(crate) type RunId = u32;

/// No run.
pub(crate) const NONE: RunId = u32::MAX;

const WAYS: u32 = 6;

/// Which ways of a node are taken. Kept apart from where they lead, so that all of these stay in the processor's cache:
/// most questions need nothing else.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// By a node, or by a run.
    all: u64,
    /// At the lowest level: by a run that may have more than one block. The others need not be looked at to know that
    /// they do not reach as far as a later block.
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
    ways: Vec<[u32; 64]>,
    free: Vec<u32>,
    roots: Vec<Option<Root>>,
}

impl Index {
    /// The only run that may hold `block`: the last one that begins at or before it, if it may be long enough to.
    #[inline]
    pub(crate) fn candidate(&self, file: u32, block: u64) -> Option<RunId> {
        let Some(leaf) = self.leaf(file, block) else { return self.candidate_elsewhere(file, block) };
        let taken = self.taken[leaf as usize];
        let way = way(block, 0);
        if taken.all & (1 << way) != 0 {
            return Some(self.ways[leaf as usize][way]);
        }
        match taken.all & below(way) {
            0 => self.candidate_elsewhere(file, block),
            before => {
                let last = last_way(before);
                (taken.long & (1 << last) != 0).then(|| self.ways[leaf as usize][last])
            }
        }
    }

    /// The node of the lowest level that `block` belongs to, if there is one.
    #[inline]
    fn leaf(&self, file: u32, block: u64) -> Option<u32> {
        let root = self.root(file)?;
        if above(block, root.height) != 0 {
            return None;
        }
        let mut node = root.node;
        for level in (1..root.height).rev() {
            node = self.ways[node as usize][way(block, level)];
            if node == NONE {
                return None;
            }
        }
        Some(node)
    }

    /// The last run that begins before the node of the lowest level that `block` belongs to, if it may be long.
    fn candidate_elsewhere(&self, file: u32, block: u64) -> Option<RunId> {
        let root = self.root(file)?;
        if above(block, root.height) != 0 {
            return self.last_if_long(root.node, root.height - 1);
        }
        let mut node = root.node;
        let mut aside = None;
        for level in (1..root.height).rev() {
            let way = way(block, level);
            let before = self.taken[node as usize].all & below(way);
            if before != 0 {
                aside = Some((self.ways[node as usize][last_way(before)], level - 1));
            }
            node = self.ways[node as usize][way];
            if node == NONE {
                break;
            }
        }
        aside.and_then(|(node, level)| self.last_if_long(node, level))
    }

    /// The first run that begins after `block`.
    pub(crate) fn after(&self, file: u32, block: u64) -> Option<RunId> {
        let root = self.root(file)?;
        if above(block, root.height) != 0 {
            return None;
        }
        let mut node = root.node;
        let mut aside = None;
        for level in (0..root.height).rev() {
            let taken = self.taken[node as usize].all;
            let way = way(block, level);
            let behind = taken & !below(way) & !(1 << way);
            if behind != 0 {
                aside = Some((self.ways[node as usize][behind.trailing_zeros() as usize], level));
            }
            node = self.ways[node as usize][way];
            if taken & (1 << way) == 0 {
                break;
            }
        }
        aside.map(|(node, level)| self.first(node, level))
    }

    /// Enters a run that begins at `block`, in place of any other that does; whether it may have more than one block.
    pub(crate) fn insert(&mut self, file: u32, block: u64, run: RunId, long: bool) {
        let node = match self.leaf(file, block) {
            Some(leaf) => leaf,
            None => self.new_leaf(file, block),
        };
        let way = way(block, 0);
        self.set(node, way, run);
        let taken = &mut self.taken[node as usize];
        taken.long = taken.long & !(1 << way) | u64::from(long) << way;
    }

    /// Takes out the run that begins at `block`.
    pub(crate) fn remove(&mut self, file: u32, block: u64) {
        let Some(leaf) = self.leaf(file, block) else { return };
        let taken = &mut self.taken[leaf as usize];
        taken.all &= !(1 << way(block, 0));
        if taken.all == 0 {
            self.remove_leaf(file, block);
        }
    }

    /// Takes out a node of the lowest level that has become empty, and those above it that become so.
    fn remove_leaf(&mut self, file: u32, block: u64) {
        let Some(root) = self.root(file) else { return };
        let mut path = [NONE; 11];
        let mut node = root.node;
        for level in (1..root.height).rev() {
            path[level as usize] = node;
            node = self.ways[node as usize][way(block, level)];
        }
        self.free.push(node);
        for level in 1..root.height {
            let node = path[level as usize];
            let way = way(block, level);
            self.ways[node as usize][way] = NONE;
            let taken = &mut self.taken[node as usize];
            taken.all &= !(1 << way);
            if taken.all != 0 {
                return;
            }
            self.free.push(node);
        }
        self.roots[file as usize] = None;
    }

    /// Makes the node of the lowest level that `block` belongs to.
    fn new_leaf(&mut self, file: u32, block: u64) -> u32 {
        let root = self.root_for(file, block);
        let mut node = root.node;
        for level in (1..root.height).rev() {
            let way = way(block, level);
            let next = self.ways[node as usize][way];
            node = if next != NONE {
                next
            } else {
                let new = self.new_node();
                self.set(node, way, new);
                new
            };
        }
        node
    }

    #[inline]
    fn root(&self, file: u32) -> Option<Root> {
        self.roots.get(file as usize).copied().flatten()
    }

    /// The root of a file's tree, after growing it to reach `block`.
    fn root_for(&mut self, file: u32, block: u64) -> Root {
        if self.roots.len() <= file as usize {
            self.roots.resize(file as usize + 1, None);
        }
        let mut root = match self.roots[file as usize] {
            Some(root) => root,
            None => {
                let height = (1..).find(|height| above(block, *height) == 0).unwrap_or(1);
                Root { node: self.new_node(), height }
            }
        };
        while above(block, root.height) != 0 {
            let node = self.new_node();
            self.set(node, 0, root.node);
            root = Root { node, height: root.height + 1 };
        }
        self.roots[file as usize] = Some(root);
        root
    }

    fn new_node(&mut self) -> u32 {
        let node = self.free.pop().unwrap_or_else(|| {
            self.taken.push(Taken::default());
            self.ways.push([NONE; 64]);
            (self.ways.len() - 1) as u32
        });
        self.taken[node as usize] = Taken::default();
        // Ways that lead nowhere say so, above the lowest level; there the bits alone tell.
        self.ways[node as usize] = [NONE; 64];
        node
    }

    fn set(&mut self, node: u32, way: usize, to: u32) {
        self.taken[node as usize].all |= 1 << way;
        self.ways[node as usize][way] = to;
    }

    /// The last run below a node, if it may have more than one block.
    fn last_if_long(&self, mut node: u32, level: u32) -> Option<RunId> {
        for _ in 0..level {
            node = self.ways[node as usize][last_way(self.taken[node as usize].all)];
        }
        let taken = self.taken[node as usize];
        let last = last_way(taken.all);
        (taken.long & (1 << last) != 0).then(|| self.ways[node as usize][last])
    }

    /// The first run below what a way of `level` leads to.
    fn first(&self, mut node: u32, level: u32) -> RunId {
        for _ in 0..level {
            node = self.ways[node as usize][self.taken[node as usize].all.trailing_zeros() as usize];
        }
        node
    }
}

/// The ways before a way.
#[inline]
fn below(way: usize) -> u64 {
    (1 << way) - 1
}

/// The last of some ways, at least one.
fn last_way(ways: u64) -> usize {
    63 - ways.leading_zeros() as usize
}

/// The way that leads to `block` at a level; 0 is the lowest.
#[inline]
fn way(block: u64, level: u32) -> usize {
    (block >> (WAYS * level)) as usize & 63
}

/// What of a block's number a tree of this height does not reach.
#[inline]
fn above(block: u64, height: u32) -> u64 {
    block.checked_shr(WAYS * height).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn block() -> impl Strategy<Value = u64> {
        prop_oneof![0..200u64, 4000..4200u64, Just(1 << 40), Just(u64::MAX), any::<u64>()]
    }

    proptest! {
        #[test]
        fn finds_what_an_ordered_map_finds(
            steps in prop::collection::vec((block(), 0..2u32, any::<bool>(), any::<bool>()), 1..150),
        ) {
            let mut index = Index::default();
            let mut model = [BTreeMap::new(), BTreeMap::new()];
            for (number, (block, file, insert, long)) in (0u32..).zip(steps) {
                let map = &mut model[file as usize];
                if insert {
                    index.insert(file, block, number, long);
                    map.insert(block, (number, long));
                } else if map.remove(&block).is_some() {
                    index.remove(file, block);
                }
                for probe in [block, block.saturating_add(1), block.saturating_sub(1), block ^ 64] {
                    let map = &model[file as usize];
                    let last = map.range(..=probe).next_back();
                    let candidate = last.filter(|(start, (_, long))| **start == probe || *long);
                    prop_assert_eq!(index.candidate(file, probe), candidate.map(|run| run.1.0));
                    let behind = probe.checked_add(1).and_then(|from| map.range(from..).next());
                    prop_assert_eq!(index.after(file, probe), behind.map(|run| run.1.0));
                }
            }
        }
    }
}
