//! Replacement policies on single blocks: for requests of a block or a few, where keeping runs does not pay.
//!
//! What is decided is what the policies on runs decide; how is different: a node of half a cache line for each block, in
//! doubly linked lists, found by one probe of a hash table. What the next requests will look at is brought into the
//! processor's cache before the first of them is handled.

mod arc;
mod clock;
mod convert;
mod lirs;
mod list;
mod nodes;
mod recency;
mod segmented;
mod table;

use std::ops::Range;

use crate::policy::Policy;
use nodes::{Key, NodeId, Nodes};
use table::ABSENT;

/// Blocks that are looked up together: more than the misses of its cache that a processor follows at once.
const GROUP: usize = 32;

/// A block that is not here.
#[derive(Clone, Copy)]
struct Missing {
    key: Key,
    hash: u32,
    /// The node in which its history is remembered.
    history: Option<NodeId>,
}

/// A policy on single blocks.
trait BlockPolicy {
    /// A block that is here is touched.
    fn hit(&mut self, nodes: &mut Nodes, node: NodeId);

    /// A block that is not here is touched, and comes in.
    fn miss(&mut self, nodes: &mut Nodes, missing: Missing);

    /// Number of blocks that are here.
    fn resident(&self, nodes: &Nodes) -> u64;
}

/// A policy at work on single blocks.
pub(crate) struct Blocks {
    nodes: Nodes,
    policy: AtWork,
}

enum AtWork {
    Recency(recency::Recency),
    Clock(clock::Clock),
    Segmented(segmented::Segmented),
    Arc(arc::Arc),
    Lirs(lirs::Lirs),
}

impl Blocks {
    /// A policy at work on a cache of so many blocks (at least 1), empty.
    pub(crate) fn new(policy: Policy, capacity: u64) -> Blocks {
        let mut only_lowest = [false; u8::MAX as usize];
        only_lowest[0] = true;
        let (policy, lists): (_, [&[bool]; 2]) = match policy {
            Policy::Lru | Policy::Mru => {
                let most_recent_leaves = policy == Policy::Mru;
                (AtWork::Recency(recency::Recency { capacity, most_recent_leaves }), [&[true], &[]])
            }
            Policy::Clock => (AtWork::Clock(clock::Clock { capacity, hand: 0 }), [&[true], &[]]),
            Policy::Slru { segments } => {
                let sizes = segment_sizes(capacity, segments);
                let lists = [&only_lowest[..sizes.len()], &[]];
                (AtWork::Segmented(segmented::Segmented { sizes, capacity }), lists)
            }
            Policy::Arc => (AtWork::Arc(arc::Arc { capacity, p: 0.0 }), [&[false, false, true, true], &[]]),
            Policy::Lirs => {
                let hir_capacity = hir_capacity(capacity);
                let lir_capacity = capacity - hir_capacity;
                (AtWork::Lirs(lirs::Lirs { lir_capacity, hir_capacity, lir: 0 }), [&[false], &[false, true]])
            }
        };
        Blocks { nodes: Nodes::new(lists), policy }
    }

    /// Touches the blocks of extents of a file one after the other, and gives how many were here.
    #[inline]
    pub(crate) fn touch(&mut self, file: u32, extents: &[Range<u64>]) -> u64 {
        let nodes = &mut self.nodes;
        match &mut self.policy {
            AtWork::Recency(policy) => touch_extents(policy, nodes, file, extents),
            AtWork::Clock(policy) => touch_extents(policy, nodes, file, extents),
            AtWork::Segmented(policy) => touch_extents(policy, nodes, file, extents),
            AtWork::Arc(policy) => touch_extents(policy, nodes, file, extents),
            AtWork::Lirs(policy) => touch_extents(policy, nodes, file, extents),
        }
    }

    /// Number of blocks that are known of, here or remembered.
    #[inline]
    pub(crate) fn known(&self) -> u64 {
        self.nodes.count()
    }

    /// Number of blocks that are here.
    pub(crate) fn resident(&self) -> u64 {
        match &self.policy {
            AtWork::Recency(policy) => policy.resident(&self.nodes),
            AtWork::Clock(policy) => policy.resident(&self.nodes),
            AtWork::Segmented(policy) => policy.resident(&self.nodes),
            AtWork::Arc(policy) => policy.resident(&self.nodes),
            AtWork::Lirs(policy) => policy.resident(&self.nodes),
        }
    }
}

/// Blocks of each list of an SLRU, the lowest first: equal, and what does not divide evenly is the lowest one's.
pub(crate) fn segment_sizes(capacity: u64, segments: u8) -> Vec<u64> {
    let size = capacity / u64::from(segments);
    let mut sizes = vec![size; usize::from(segments)];
    sizes[0] = capacity - size * (u64::from(segments) - 1);
    sizes
}

/// Blocks of a LIRS cache that are for HIR blocks: 1 %, at least one.
pub(crate) fn hir_capacity(capacity: u64) -> u64 {
    (capacity / 100).max(1)
}

/// In groups, gathered from as many extents as it takes.
fn touch_extents<P: BlockPolicy>(
    policy: &mut P,
    nodes: &mut Nodes,
    file: u32,
    extents: &[Range<u64>],
) -> u64 {
    let mut blocks = [0; GROUP];
    let mut gathered = 0;
    let mut hits = 0;
    for extent in extents {
        for block in extent.clone() {
            blocks[gathered] = block;
            gathered += 1;
            if gathered == GROUP {
                hits += touch_group(policy, nodes, file, &blocks);
                gathered = 0;
            }
        }
    }
    hits + touch_group(policy, nodes, file, &blocks[..gathered])
}

fn touch_group<P: BlockPolicy>(policy: &mut P, nodes: &mut Nodes, file: u32, blocks: &[u64]) -> u64 {
    let mut hashes = [0; GROUP];
    for (hash, block) in hashes.iter_mut().zip(blocks) {
        *hash = table::hash(file, *block);
    }
    let hashes = &hashes[..blocks.len()];
    let mut guesses = [ABSENT; GROUP];
    nodes.warm(hashes, &mut guesses[..blocks.len()]);
    let mut came = CameIn::default();
    let mut hits = 0;
    for ((block, hash), guess) in blocks.iter().zip(hashes).zip(guesses) {
        let (key, hash) = (Key { file, block: *block }, *hash);
        let found = if nodes.holds(guess, key) {
            Some(guess)
        } else if guess == ABSENT && !came.may_hold(hash) {
            None
        } else {
            nodes.find(key, hash)
        };
        match found.filter(|node| !nodes.get(*node).gone) {
            Some(node) => {
                policy.hit(nodes, node);
                hits += 1;
            }
            None => {
                policy.miss(nodes, Missing { key, hash, history: found });
                came.add(hash);
            }
        }
    }
    hits
}

/// Which blocks came in since they were all looked up, by a byte of their hashes.
#[derive(Default)]
struct CameIn([u64; 4]);

impl CameIn {
    #[inline]
    fn add(&mut self, hash: u32) {
        self.0[(hash >> 6 & 3) as usize] |= 1 << (hash & 63);
    }

    #[inline]
    fn may_hold(&self, hash: u32) -> bool {
        self.0[(hash >> 6 & 3) as usize] & 1 << (hash & 63) != 0
    }
}
