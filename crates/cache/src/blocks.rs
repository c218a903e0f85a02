//! Replacement policies on single blocks: for requests of a block or a few, where keeping runs does not pay.
//!
//! What is decided is what the policies on runs decide; how is different: all that is known of a block is in one bucket of
//! a hash table, and orders are logs of where in the table their blocks are. So a hit looks at one place in memory and a
//! miss at two, and both are known before their turn: the processor is told of them early enough that it does not wait.

mod arc;
mod clock;
mod convert;
mod links;
mod lirs;
mod log;
mod order;
mod prefetch;
mod recency;
mod segmented;
mod table;

use std::ops::Range;

use crate::policy::Policy;
use crate::runs::{ListId, Rail};
use links::Links;
use log::Log;
use table::{Found, Hash, Key, Slot, State, Table};

/// Blocks that are looked up together: what comes from memory takes about as long as so many requests.
const GROUP: usize = 16;

/// A block that is not here.
#[derive(Clone, Copy)]
struct Missing {
    key: Key,
    hash: Hash,
    /// Where its history is, if it is remembered.
    history: Option<Found>,
}

/// The blocks of a list, the coldest first.
type Slots<'a> = Box<dyn Iterator<Item = Slot> + 'a>;

/// A policy on single blocks.
trait BlockPolicy {
    /// Whether a block that is known is here, or only its history is remembered.
    #[inline(always)]
    fn is_here(&self, _: &Found) -> bool {
        true
    }

    /// A block that is here is touched.
    fn hit(&mut self, table: &mut Table, found: Found);

    /// A block that is not here is touched, and comes in.
    fn miss(&mut self, table: &mut Table, missing: Missing);

    /// Number of blocks that are here.
    fn resident(&self) -> u64;

    /// Makes room in the orders for the next [`GROUP`] blocks.
    fn make_room(&mut self, table: &mut Table);

    /// The table has grown: blocks have new slots.
    fn renumber(&mut self, table: &Table, moved: &[Slot]);

    /// Puts a block at the hot end of a list of runs' policies.
    fn put(&mut self, table: &mut Table, slot: Slot, rail: Rail, list: ListId, mark: bool);

    /// What is in a list of runs' policies.
    fn in_order(&self, rail: Rail, list: ListId) -> Slots<'_>;

    /// Whether runs' policies mark a block in such a state.
    fn mark(&self, _: State) -> bool {
        false
    }
}

/// A policy at work on single blocks.
pub(crate) struct Blocks {
    table: Table,
    policy: AtWork,
}

enum AtWork {
    Recency(recency::Recency<Log>),
    NearRecency(recency::Recency<Links>),
    Clock(clock::Clock),
    Segmented(segmented::Segmented<Log>),
    NearSegmented(segmented::Segmented<Links>),
    Arc(arc::Arc),
    Lirs(lirs::Lirs),
}

impl AtWork {
    fn recency(table: &Table, capacity: u64, most_recent_leaves: bool) -> AtWork {
        if table.stays_near() {
            AtWork::NearRecency(recency::Recency::new(table, capacity, most_recent_leaves))
        } else {
            AtWork::Recency(recency::Recency::new(table, capacity, most_recent_leaves))
        }
    }

    fn segmented(table: &Table, capacity: u64, segments: u8) -> AtWork {
        if table.stays_near() {
            AtWork::NearSegmented(segmented::Segmented::new(table, capacity, segments))
        } else {
            AtWork::Segmented(segmented::Segmented::new(table, capacity, segments))
        }
    }

    fn as_dyn(&self) -> &dyn BlockPolicy {
        match self {
            AtWork::Recency(policy) => policy,
            AtWork::NearRecency(policy) => policy,
            AtWork::Clock(policy) => policy,
            AtWork::Segmented(policy) => policy,
            AtWork::NearSegmented(policy) => policy,
            AtWork::Arc(policy) => policy,
            AtWork::Lirs(policy) => policy,
        }
    }

    fn as_dyn_mut(&mut self) -> &mut dyn BlockPolicy {
        match self {
            AtWork::Recency(policy) => policy,
            AtWork::NearRecency(policy) => policy,
            AtWork::Clock(policy) => policy,
            AtWork::Segmented(policy) => policy,
            AtWork::NearSegmented(policy) => policy,
            AtWork::Arc(policy) => policy,
            AtWork::Lirs(policy) => policy,
        }
    }
}

impl Blocks {
    /// A policy at work on a cache of so many blocks (at least 1), empty.
    pub(crate) fn new(policy: Policy, capacity: u64) -> Blocks {
        // On how many rails blocks are, and how many are known at most.
        let (rails, most) = match policy {
            Policy::Lru | Policy::Mru | Policy::Clock | Policy::Slru { .. } => (1, capacity),
            Policy::Arc => (1, capacity.saturating_mul(2)),
            // All of S, one too many for a moment, and what is in Q only.
            Policy::Lirs => (2, capacity.saturating_mul(2).saturating_add(hir_capacity(capacity) + 1)),
        };
        let table = Table::new(rails, most);
        let policy = match policy {
            Policy::Lru | Policy::Mru => AtWork::recency(&table, capacity, policy == Policy::Mru),
            Policy::Clock => AtWork::Clock(clock::Clock::new(capacity)),
            Policy::Slru { segments } => AtWork::segmented(&table, capacity, segments),
            Policy::Arc => AtWork::Arc(arc::Arc::new(capacity)),
            Policy::Lirs => AtWork::Lirs(lirs::Lirs::new(capacity)),
        };
        Blocks { table, policy }
    }

    /// Touches the blocks of extents of a file one after the other, and gives how many were here. `single` says that each
    /// extent is one block.
    #[inline(always)]
    pub(crate) fn touch(&mut self, file: u32, extents: &[Range<u64>], single: bool) -> u64 {
        if single {
            self.touch_blocks(file, extents.iter().map(|extent| extent.start))
        } else {
            self.touch_blocks(file, extents.iter().cloned().flatten())
        }
    }

    #[inline(always)]
    fn touch_blocks(&mut self, file: u32, blocks: impl Iterator<Item = u64>) -> u64 {
        let table = &mut self.table;
        match &mut self.policy {
            AtWork::Recency(policy) => touch_blocks(policy, table, file, blocks),
            AtWork::NearRecency(policy) => touch_blocks(policy, table, file, blocks),
            AtWork::Clock(policy) => touch_blocks(policy, table, file, blocks),
            AtWork::Segmented(policy) => touch_blocks(policy, table, file, blocks),
            AtWork::NearSegmented(policy) => touch_blocks(policy, table, file, blocks),
            AtWork::Arc(policy) => touch_blocks(policy, table, file, blocks),
            AtWork::Lirs(policy) => touch_blocks(policy, table, file, blocks),
        }
    }

    /// Number of blocks that are known of, here or remembered.
    #[inline(always)]
    pub(crate) fn known(&self) -> u64 {
        self.table.count()
    }

    /// Number of blocks that are here.
    pub(crate) fn resident(&self) -> u64 {
        self.policy.as_dyn().resident()
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

/// Touches blocks in groups: how many were here. The processor is told of each group before the one before it is
/// touched.
#[inline(never)]
fn touch_blocks<P: BlockPolicy>(
    policy: &mut P,
    table: &mut Table,
    file: u32,
    mut blocks: impl Iterator<Item = u64>,
) -> u64 {
    let mut groups = [[(0, Hash::default()); GROUP]; 2];
    let [group, next] = &mut groups;
    let (mut group, mut next) = (group, next);
    let mut filled = look_up(table, file, &mut blocks, group);
    let mut hits = 0;
    while filled > 0 {
        let filled_next = look_up(table, file, &mut blocks, next);
        hits += touch_group(policy, table, file, &group[..filled]);
        std::mem::swap(&mut group, &mut next);
        filled = filled_next;
    }
    hits
}

/// Begins to bring the buckets of the next blocks into the processor's cache: how many blocks. Inlined, so that the
/// iterator is in registers.
#[inline(always)]
fn look_up(
    table: &Table,
    file: u32,
    blocks: &mut impl Iterator<Item = u64>,
    group: &mut [(u64, Hash); GROUP],
) -> usize {
    let mut count = 0;
    for (place, block) in group.iter_mut().zip(blocks) {
        let hash = Key { file, block }.hash();
        table.prefetch(hash);
        *place = (block, hash);
        count += 1;
    }
    count
}

/// Touches the blocks of a group: how many were here. Not inlined, so that what it calls is.
#[inline(never)]
fn touch_group<P: BlockPolicy>(policy: &mut P, table: &mut Table, file: u32, group: &[(u64, Hash)]) -> u64 {
    make_room(policy, table);
    let mut hits = 0;
    for (block, hash) in group {
        hits += u64::from(touch(policy, table, Key { file, block: *block }, *hash));
    }
    hits
}

/// Touches a block: whether it was here.
#[inline(always)]
fn touch<P: BlockPolicy>(policy: &mut P, table: &mut Table, key: Key, hash: Hash) -> bool {
    match table.find(key, hash) {
        Some(found) if policy.is_here(&found) => {
            policy.hit(table, found);
            true
        }
        history => {
            policy.miss(table, Missing { key, hash, history });
            false
        }
    }
}

/// Makes room for the next [`GROUP`] blocks.
#[inline(always)]
fn make_room(policy: &mut (impl BlockPolicy + ?Sized), table: &mut Table) {
    if table.must_grow(GROUP) {
        let moved = table.grow();
        policy.renumber(table, &moved);
    }
    policy.make_room(table);
}
