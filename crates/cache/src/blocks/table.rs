//! From block to node: a hash table of buckets of a cache line each.
//!
//! A bucket is looked through as a whole, without a branch on what is in it: that many requests are of unlike blocks is
//! nothing that a processor could predict. Entries that find their bucket full are in one of those behind it; a bucket
//! counts those that passed it, so that others need not be looked for there. Nodes remember their slot, so that they are
//! taken out without being looked for.

use super::nodes::{NONE, NodeId};

/// Slots of a bucket; the place of one more has other uses.
const WAYS: usize = 7;

/// There are at most so many entries for each bucket, on average: few buckets are full then.
const ENTRIES_PER_BUCKET: usize = 4;

/// Hashes and nodes of some blocks.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    /// Of each slot; and last, how many entries passed this bucket because it was full.
    hashes: [u32; WAYS + 1],
    /// Numbers of nodes, plus 1; 0 for none, and last.
    nodes: [u32; WAYS + 1],
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// What a first look at the table says of a block: the number of its node, perhaps. There need not be such a node, nor
/// need it be that block's.
pub(crate) type Guess = NodeId;

/// The guess that says for certain that a block is not in.
pub(crate) const ABSENT: Guess = NONE;

/// The guess that says nothing.
const UNKNOWN: Guess = NONE - 1;

/// Numbers of nodes by the hash of their block.
pub(crate) struct Table {
    /// A power of two of them; the upper bits of a hash say which one is its.
    buckets: Vec<Bucket>,
    entries: usize,
    /// How far a hash is shifted to give its bucket.
    shift: u32,
}

/// The hash of a block.
#[inline]
pub(crate) fn hash(file: u32, block: u64) -> u32 {
    // Twice the upper half of a product with an odd constant (the golden ratio's bits), so that every stride spreads.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (block ^ u64::from(file).rotate_right(20)).wrapping_mul(ODD);
    ((mixed ^ mixed >> 32).wrapping_mul(ODD) >> 32) as u32
}

impl Bucket {
    /// The node with this hash, plus 1; 0 if there is none. If there are several, it may be any number.
    #[inline]
    fn matching(&self, hash: u32) -> u32 {
        let ways = self.hashes.iter().zip(&self.nodes);
        ways.fold(0, |found, (other, node)| found | if *other == hash { *node } else { 0 })
    }

    /// How many entries passed it because it was full.
    #[inline]
    fn passed(&mut self) -> &mut u32 {
        &mut self.hashes[WAYS]
    }

    #[inline]
    fn was_passed(&self) -> bool {
        self.hashes[WAYS] != 0
    }

    /// The first slot that is free.
    #[inline]
    fn free_way(&self) -> Option<usize> {
        const BITS: [u32; WAYS + 1] = [1, 2, 4, 8, 16, 32, 64, 0];
        let free =
            self.nodes.iter().zip(BITS).fold(0, |free, (node, bit)| free | if *node == 0 { bit } else { 0 });
        (free != 0).then_some(free.trailing_zeros() as usize)
    }
}

impl Table {
    pub(crate) fn new() -> Table {
        const BITS: u32 = 4;
        Table { buckets: vec![Bucket::default(); 1 << BITS], entries: 0, shift: 32 - BITS }
    }

    /// What a look at the bucket where a hash would be first says.
    #[inline]
    pub(crate) fn guess(&self, hash: u32) -> Guess {
        let bucket = &self.buckets[self.home(hash)];
        let found = bucket.matching(hash);
        let none = if bucket.was_passed() { UNKNOWN } else { ABSENT };
        if found == 0 { none } else { found - 1 }
    }

    /// Something of the bucket where a hash would be first, to have it in the processor's cache.
    #[inline]
    pub(crate) fn peek(&self, hash: u32) -> u32 {
        self.buckets[self.home(hash)].nodes[0]
    }

    /// The node with this hash that is the one looked for. `is_it` may be asked of any number.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        match self.guess(hash) {
            ABSENT => None,
            node if is_it(node) => Some(node),
            _ => self.find_among(hash, is_it),
        }
    }

    /// Looks at each of several.
    #[cold]
    fn find_among(&self, hash: u32, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let mut place = self.home(hash);
        loop {
            let bucket = &self.buckets[place];
            for (other, node) in bucket.hashes.iter().zip(&bucket.nodes).filter(|(_, node)| **node != 0) {
                if *other == hash && is_it(node - 1) {
                    return Some(node - 1);
                }
            }
            if !bucket.was_passed() {
                return None;
            }
            place = self.behind(place);
        }
    }

    /// Enters a node that is not in, and gives its slot. `moved` is told of others that have a new slot.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, node: NodeId, moved: impl FnMut(NodeId, Slot)) -> Slot {
        if self.buckets.len() * ENTRIES_PER_BUCKET == self.entries {
            self.grow(moved);
        }
        self.entries += 1;
        self.put(hash, node + 1)
    }

    #[inline]
    fn put(&mut self, hash: u32, node: u32) -> Slot {
        let mut place = self.home(hash);
        loop {
            let bucket = &mut self.buckets[place];
            if let Some(way) = bucket.free_way() {
                (bucket.hashes[way], bucket.nodes[way]) = (hash, node);
                return Slot((place * (WAYS + 1) + way) as u32);
            }
            *bucket.passed() += 1;
            place = self.behind(place);
        }
    }

    /// Takes out what is in a slot, which has this hash.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, slot: Slot) {
        let (found, way) = (slot.0 as usize / (WAYS + 1), slot.0 as usize % (WAYS + 1));
        self.entries -= 1;
        self.buckets[found].nodes[way] = 0;
        let mut place = self.home(hash);
        while place != found {
            *self.buckets[place].passed() -= 1;
            place = self.behind(place);
        }
    }

    #[cold]
    fn grow(&mut self, mut moved: impl FnMut(NodeId, Slot)) {
        let twice = 2 * self.buckets.len();
        assert!(twice <= (u32::MAX as usize + 1) / (WAYS + 1), "a table has at most 4 G slots");
        self.shift -= 1;
        for bucket in std::mem::replace(&mut self.buckets, vec![Bucket::default(); twice]) {
            for (hash, node) in bucket.hashes.into_iter().zip(bucket.nodes).filter(|(_, node)| *node != 0) {
                moved(node - 1, self.put(hash, node));
            }
        }
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (u64::from(hash) >> self.shift) as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn behind(&self, place: usize) -> usize {
        (place + 1) & (self.buckets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few hashes near each other and at the end, where probing goes round.
        #[test]
        fn holds_what_a_map_holds(
            steps in prop::collection::vec((prop_oneof![0..40u32, (u32::MAX - 30)..=u32::MAX, any::<u32>()], 0..3u32), 1..300),
        ) {
            let mut table = Table::new();
            let (mut slots, mut moved) = (vec![Slot(0); 300], Vec::new());
            let mut model = BTreeMap::new();
            for (number, (hash, what)) in (0u32..).zip(steps) {
                let entered = model.get(&hash).copied();
                match entered {
                    Some(node) if what == 0 => {
                        table.remove(hash, slots[node as usize]);
                        model.remove(&hash);
                    }
                    None => {
                        slots[number as usize] = table.insert(hash, number, |node, slot| moved.push((node, slot)));
                        for (node, slot) in moved.drain(..) {
                            slots[node as usize] = slot;
                        }
                        model.insert(hash, number);
                    }
                    Some(_) => {}
                }
                for (hash, node) in &model {
                    prop_assert_eq!(table.find(*hash, |node| node < 300), Some(*node));
                    prop_assert_eq!(table.find(*hash, |_| false), None);
                }
                let other = hash ^ 0x100;
                prop_assert_eq!(table.find(other, |node| node < 300), model.get(&other).copied());
            }
        }
    }
}
