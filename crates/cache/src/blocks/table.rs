//! From block to node: a hash table of buckets of a cache line each.
//!
//! A bucket is looked through as a whole, without a branch on what is in it: that many requests are of unlike blocks is
//! nothing that a processor could predict. Entries fill a bucket from its start; those that find theirs full are in the
//! next that is not. Taking one out brings them back, so that a bucket that is not full has nothing behind it.

use super::nodes::NodeId;

/// Entries in a bucket.
const WAYS: usize = 8;

/// There are at most so many entries for each bucket, on average: few buckets are full then.
const ENTRIES_PER_BUCKET: usize = 4;

/// Hashes and nodes of some blocks.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    hashes: [u32; WAYS],
    /// Numbers of nodes, plus 1; 0 for none.
    nodes: [u32; WAYS],
}

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

    #[inline]
    fn is_full(&self) -> bool {
        self.nodes[WAYS - 1] != 0
    }

    #[inline]
    fn entries(&self) -> usize {
        self.nodes.iter().map(|node| u32::from(*node != 0)).sum::<u32>() as usize
    }

    #[inline]
    fn push(&mut self, hash: u32, node: u32) {
        let way = self.entries();
        (self.hashes[way], self.nodes[way]) = (hash, node);
    }

    /// Takes an entry out; the last one comes into its place.
    #[inline]
    fn take(&mut self, way: usize) {
        let last = self.entries() - 1;
        (self.hashes[way], self.nodes[way]) = (self.hashes[last], self.nodes[last]);
        (self.hashes[last], self.nodes[last]) = (0, 0);
    }

    /// Where a node is.
    #[inline]
    fn way_of(&self, node: u32) -> Option<usize> {
        let ways = self.nodes.iter().zip(0u32..);
        let bits = ways.fold(0, |bits, (other, way)| bits | u32::from(*other == node) << way);
        (bits != 0).then_some(bits.trailing_zeros() as usize)
    }
}

impl Table {
    pub(crate) fn new() -> Table {
        const BITS: u32 = 4;
        Table { buckets: vec![Bucket::default(); 1 << BITS], entries: 0, shift: 32 - BITS }
    }

    /// The node with this hash in the bucket where it would be first, or [`super::nodes::NONE`]; if there are several, it may be any
    /// number.
    #[inline]
    pub(crate) fn guess(&self, hash: u32) -> NodeId {
        self.buckets[self.home(hash)].matching(hash).wrapping_sub(1)
    }

    /// The node with this hash that is the one looked for. `is_it` may be asked of any number.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let bucket = &self.buckets[self.home(hash)];
        let found = bucket.matching(hash);
        if found != 0 && is_it(found - 1) {
            return Some(found - 1);
        }
        if found == 0 && !bucket.is_full() {
            return None;
        }
        self.find_among(hash, is_it)
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
            if !bucket.is_full() {
                return None;
            }
            place = self.behind(place);
        }
    }

    /// Enters a node that is not in.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, node: NodeId) {
        if self.buckets.len() * ENTRIES_PER_BUCKET == self.entries {
            self.grow();
        }
        self.entries += 1;
        self.put(hash, node + 1);
    }

    #[inline]
    fn put(&mut self, hash: u32, node: u32) {
        let mut place = self.home(hash);
        while self.buckets[place].is_full() {
            place = self.behind(place);
        }
        self.buckets[place].push(hash, node);
    }

    /// Takes out a node that is in.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, node: NodeId) {
        self.entries -= 1;
        let mut place = self.home(hash);
        loop {
            let bucket = &mut self.buckets[place];
            let was_full = bucket.is_full();
            if let Some(way) = bucket.way_of(node + 1) {
                bucket.take(way);
                if was_full {
                    self.bring_back(place);
                }
                return;
            }
            assert!(was_full, "a node that is taken out is in the table");
            place = self.behind(place);
        }
    }

    /// Fills a bucket that is no longer full from those behind it.
    #[cold]
    fn bring_back(&mut self, mut gap: usize) {
        let mask = self.buckets.len() - 1;
        let mut place = gap;
        loop {
            place = self.behind(place);
            let bucket = self.buckets[place];
            // Whether the gap lies between where an entry would like to be and where it is.
            let may_move = |hash: u32| {
                let away = place.wrapping_sub(self.home(hash)) & mask;
                away >= place.wrapping_sub(gap) & mask
            };
            if let Some(way) = (0..bucket.entries()).find(|way| may_move(bucket.hashes[*way])) {
                self.buckets[gap].push(bucket.hashes[way], bucket.nodes[way]);
                self.buckets[place].take(way);
                gap = place;
            }
            if !bucket.is_full() {
                return;
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        assert!(self.shift > 0, "a table has at most 4 G buckets");
        self.shift -= 1;
        let twice = vec![Bucket::default(); 2 * self.buckets.len()];
        for bucket in std::mem::replace(&mut self.buckets, twice) {
            for way in 0..bucket.entries() {
                self.put(bucket.hashes[way], bucket.nodes[way]);
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
            let mut model = BTreeMap::new();
            for (number, (hash, what)) in (0u32..).zip(steps) {
                let entered = model.get(&hash).copied();
                match entered {
                    Some(node) if what == 0 => {
                        table.remove(hash, node);
                        model.remove(&hash);
                    }
                    None => {
                        table.insert(hash, number);
                        model.insert(hash, number);
                    }
                    Some(_) => {}
                }
                for (hash, node) in &model {
                    prop_assert_eq!(table.find(*hash, |_| true), Some(*node));
                    prop_assert_eq!(table.find(*hash, |_| false), None);
                }
                let other = hash ^ 0x100;
                prop_assert_eq!(table.find(other, |_| true), model.get(&other).copied());
            }
        }
    }
}
