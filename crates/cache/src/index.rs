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

struct Node {
    taken: u64,
    ways: [u32; 64],
}

#[derive(Clone, Copy)]
struct Root {
    node: u32,
    height: u32,
}

/// Where the runs of every file begin.
#[derive(Default)]
pub(crate) struct Index {
    nodes: Vec<Node>,
    free: Vec<u32>,
    roots: Vec<Option<Root>>,
}

impl Index {
    /// The run that begins exactly at `block`.
    pub(crate) fn at(&self, file: u32, block: u64) -> Option<RunId> {
        let root = self.root(file)?;
        if above(block, root.height) != 0 {
            return None;
        }
        let mut node = root.node;
        for level in (0..root.height).rev() {
            node = self.nodes[node as usize].ways[way(block, level)];
            if node == NONE {
                return None;
            }
        }
        Some(node)
    }

    /// The last run that begins at or before `block`.
    pub(crate) fn at_or_before(&self, file: u32, block: u64) -> Option<RunId> {
        let root = self.root(file)?;
        if above(block, root.height) != 0 {
            return Some(self.last(root.node, root.height - 1));
        }
        let mut node = root.node;
        let mut aside = None;
        for level in (0..root.height).rev() {
            let here = &self.nodes[node as usize];
            let way = way(block, level);
            let before = here.taken & !(u64::MAX << way);
            if before != 0 {
                aside = Some((here.ways[63 - before.leading_zeros() as usize], level));
            }
            node = here.ways[way];
            if node == NONE {
                return aside.map(|(node, level)| self.end(node, level, Index::last));
            }
        }
        Some(node)
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
            let here = &self.nodes[node as usize];
            let way = way(block, level);
            let behind = here.taken & (u64::MAX << way) & !(1 << way);
            if behind != 0 {
                aside = Some((here.ways[behind.trailing_zeros() as usize], level));
            }
            node = here.ways[way];
            if node == NONE {
                break;
            }
        }
        aside.map(|(node, level)| self.end(node, level, Index::first))
    }

    /// Enters a run that begins at `block`, where none began.
    pub(crate) fn insert(&mut self, file: u32, block: u64, run: RunId) {
        let root = self.root_for(file, block);
        let mut node = root.node;
        for level in (1..root.height).rev() {
            let way = way(block, level);
            let next = self.nodes[node as usize].ways[way];
            node = if next != NONE {
                next
            } else {
                let new = self.new_node();
                self.set(node, way, new);
                new
            };
        }
        self.set(node, way(block, 0), run);
    }

    /// Takes out the run that begins at `block`.
    pub(crate) fn remove(&mut self, file: u32, block: u64) {
        let Some(root) = self.root(file) else { return };
        let mut path = [NONE; 11];
        let mut node = root.node;
        for level in (0..root.height).rev() {
            path[level as usize] = node;
            node = self.nodes[node as usize].ways[way(block, level)];
        }
        for (level, &node) in (0..).zip(&path[..root.height as usize]) {
            let here = &mut self.nodes[node as usize];
            here.taken &= !(1 << way(block, level));
            here.ways[way(block, level)] = NONE;
            if here.taken != 0 {
                return;
            }
            self.free.push(node);
        }
        self.roots[file as usize] = None;
    }

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
        // A freed node is empty already.
        self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node { taken: 0, ways: [NONE; 64] });
            (self.nodes.len() - 1) as u32
        })
    }

    fn set(&mut self, node: u32, way: usize, to: u32) {
        let node = &mut self.nodes[node as usize];
        node.taken |= 1 << way;
        node.ways[way] = to;
    }

    /// The run that `edge` gives of what is below a way of `level`.
    fn end(&self, node: u32, level: u32, edge: fn(&Index, u32, u32) -> RunId) -> RunId {
        if level == 0 { node } else { edge(self, node, level - 1) }
    }

    fn last(&self, mut node: u32, level: u32) -> RunId {
        for _ in 0..=level {
            let here = &self.nodes[node as usize];
            node = here.ways[63 - here.taken.leading_zeros() as usize];
        }
        node
    }

    fn first(&self, mut node: u32, level: u32) -> RunId {
        for _ in 0..=level {
            let here = &self.nodes[node as usize];
            node = here.ways[here.taken.trailing_zeros() as usize];
        }
        node
    }
}

/// The way that leads to `block` at a level; 0 is the lowest.
fn way(block: u64, level: u32) -> usize {
    (block >> (WAYS * level)) as usize & 63
}

/// What of a block's number a tree of this height does not reach.
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
        fn finds_what_an_ordered_map_finds(steps in prop::collection::vec((block(), 0..2u32, any::<bool>()), 1..150)) {
            let mut index = Index::default();
            let mut model = [BTreeMap::new(), BTreeMap::new()];
            for (number, (block, file, insert)) in (0u32..).zip(steps) {
                let map = &mut model[file as usize];
                if insert && !map.contains_key(&block) {
                    index.insert(file, block, number);
                    map.insert(block, number);
                } else if !insert && map.remove(&block).is_some() {
                    index.remove(file, block);
                }
                for probe in [block, block.saturating_add(1), block.saturating_sub(1), block ^ 64] {
                    let map = &model[file as usize];
                    prop_assert_eq!(index.at(file, probe), map.get(&probe).copied());
                    prop_assert_eq!(index.at_or_before(file, probe), map.range(..=probe).next_back().map(|run| *run.1));
                    let behind = probe.checked_add(1).and_then(|from| map.range(from..).next());
                    prop_assert_eq!(index.after(file, probe), behind.map(|run| *run.1));
                }
            }
        }
    }
}
