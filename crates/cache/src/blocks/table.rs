//! What is known of each block, in a hash table: there is nothing else of a block, so that a request looks at one bucket.
//!
//! A bucket is two cache lines: what policies change is in the first, what tells blocks apart mostly in the second. Bytes
//! of the hashes are compared all at once, without a branch on which of them is the one: nothing that a processor could
//! predict. An entry that finds its bucket full is in one of those behind it; a bucket counts those that passed it, so
//! that others need not be looked for there. Entries stay in their slots until the table grows.

use super::prefetch::prefetch;

/// Entries of a bucket.
const WAYS: usize = 7;

/// Numbers of slots for each bucket: the last is never in use.
const SLOTS: usize = 8;

/// Entries for each bucket, on average, when the table is full, at most: few buckets are then. Their number is a power of
/// two.
const ENTRIES_PER_BUCKET: usize = 4;

/// The same of a table that is near: there it is instructions that cost time, not memory.
const NEAR_ENTRIES_PER_BUCKET: usize = 3;

/// A new table is made for at most so many entries, and grows by this factor.
const FIRST_ENTRIES: usize = 4096;
const GROWTH: usize = 4;

/// A table of so many buckets, 256 KiB, is near: it stays in the second level of a processor's cache.
const NEAR_BUCKETS: usize = 2048;

/// So many passed a bucket, or more: not counted any further.
const MANY: u8 = u8::MAX;

/// Where an entry is: eight times the number of its bucket, and its place there.
pub(crate) type Slot = u32;

/// No slot.
pub(crate) const NONE: Slot = u32::MAX;

/// What a policy knows of a block besides its place in an order; 0 at first.
pub(crate) type State = u8;

/// A block that is known.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub slot: Slot,
    pub state: State,
    /// Where it is in its order on the main rail.
    pub position: u32,
}

/// What a policy changes of a block.
pub(crate) struct Entry<'a> {
    pub state: &'a mut State,
    /// Where it is in its order on the main rail.
    pub position: &'a mut u32,
}

/// A block of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub file: u32,
    pub block: u64,
}

/// The hash of a block: the lowest bits say which bucket is its, the highest byte tells it from others there.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hash(u64);

impl Key {
    #[inline(always)]
    pub(crate) fn hash(self) -> Hash {
        // Both halves of a product with an odd constant (the golden ratio's bits), so that every stride spreads.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.block ^ u64::from(self.file).rotate_right(20)) * u128::from(ODD);
        Hash(product as u64 ^ (product >> 64) as u64)
    }
}

impl Hash {
    /// Not 0, which says that a way is free; and not 1, which a free way may be mistaken for.
    #[inline(always)]
    fn tag(self) -> u8 {
        (self.0 >> 56) as u8 | 2
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Bucket {
    /// Of each way, 0 if it is free; and last, a bit for each way whose entry belongs into a bucket before this.
    tags: [u8; SLOTS],
    /// Of each way; and last, how many entries passed this bucket because it was full.
    states: [State; SLOTS],
    /// Where each is in the order of the main rail.
    positions: [u32; WAYS],
    files: [u32; WAYS],
    blocks: [u64; WAYS],
}

impl Bucket {
    const EMPTY: Bucket = Bucket {
        tags: [0; SLOTS],
        states: [0; SLOTS],
        positions: [0; WAYS],
        files: [0; WAYS],
        blocks: [0; WAYS],
    };

    /// The ways whose tag may be this, the highest bit of a byte for each: all whose tag it is, and perhaps others.
    #[inline(always)]
    fn candidates(&self, tag: u8) -> u64 {
        const EACH: u64 = 0x0001_0101_0101_0101;
        let unlike = u64::from_le_bytes(self.tags) ^ (u64::from(tag) * EACH);
        unlike.wrapping_sub(EACH) & !unlike & (EACH << 7)
    }

    /// The way of a block.
    #[inline(always)]
    fn way_of(&self, key: Key, tag: u8) -> Option<usize> {
        let mut candidates = self.candidates(tag);
        while candidates != 0 {
            let way = first_way(candidates);
            if self.key(way) == key {
                return Some(way);
            }
            candidates &= candidates - 1;
        }
        None
    }

    /// The first way that is free.
    #[inline(always)]
    fn free_way(&self) -> Option<usize> {
        let free = self.candidates(0);
        (free != 0).then_some(first_way(free))
    }

    /// Puts an entry into a way that is free: its slot.
    #[inline(always)]
    fn put(&mut self, place: usize, way: usize, key: Key, hash: Hash, state: State, position: u32) -> Slot {
        self.tags[way] = hash.tag();
        self.states[way] = state;
        self.positions[way] = position;
        self.files[way] = key.file;
        self.blocks[way] = key.block;
        (place * SLOTS + way) as Slot
    }

    #[inline(always)]
    fn key(&self, way: usize) -> Key {
        Key { file: self.files[way], block: self.blocks[way] }
    }

    /// What is known of the entry of a way of this bucket, whose number is given.
    #[inline(always)]
    fn found(&self, place: usize, way: usize) -> Found {
        let slot = (place * SLOTS + way) as Slot;
        Found { slot, state: self.states[way], position: self.positions[way] }
    }

    #[inline(always)]
    fn passed(&mut self) -> &mut u8 {
        &mut self.states[WAYS]
    }

    #[inline(always)]
    fn was_passed(&self) -> bool {
        self.states[WAYS] != 0
    }
}

#[inline(always)]
fn first_way(candidates: u64) -> usize {
    (candidates.trailing_zeros() / 8) as usize
}

/// Everything that is known of blocks.
pub(crate) struct Table {
    buckets: Vec<Bucket>,
    /// Positions on the second rail, if there is one.
    second: Vec<[u32; SLOTS]>,
    rails: usize,
    entries: usize,
    /// How many entries the buckets are for.
    limit: usize,
    /// There never are more entries than this.
    most: usize,
}

impl Table {
    /// For blocks on so many rails, at most so many at once.
    pub(crate) fn new(rails: usize, most: u64) -> Table {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut table = Table { buckets: Vec::new(), second: Vec::new(), rails, entries: 0, limit: 0, most };
        table.make(most.min(FIRST_ENTRIES));
        table
    }

    /// Number of entries.
    #[inline(always)]
    pub(crate) fn count(&self) -> u64 {
        self.entries as u64
    }

    /// How many numbers of slots there are, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.buckets.len() * SLOTS
    }

    /// Whether it is near, however many entries are added.
    pub(crate) fn stays_near(&self) -> bool {
        near_buckets(self.most).is_some()
    }

    /// Whether entries may be added only after the table has grown.
    #[inline(always)]
    pub(crate) fn must_grow(&self, adding: usize) -> bool {
        self.entries + adding > self.limit && self.limit < self.most
    }

    /// Grows. Gives the new slot of each old one.
    #[cold]
    pub(crate) fn grow(&mut self) -> Vec<Slot> {
        let (buckets, second) = (std::mem::take(&mut self.buckets), std::mem::take(&mut self.second));
        self.make(self.limit.saturating_mul(GROWTH).min(self.most));
        self.entries = 0;
        let mut moved = vec![NONE; buckets.len() * SLOTS];
        for (place, bucket) in buckets.iter().enumerate() {
            for way in (0..WAYS).filter(|way| bucket.tags[*way] != 0) {
                let key = bucket.key(way);
                let slot = self.insert(key, key.hash(), bucket.states[way], bucket.positions[way]);
                if let Some(second) = second.get(place) {
                    *self.second(slot) = second[way];
                }
                moved[place * SLOTS + way] = slot;
            }
        }
        moved
    }

    fn make(&mut self, limit: usize) {
        let buckets = near_buckets(limit).unwrap_or(limit.div_ceil(ENTRIES_PER_BUCKET).next_power_of_two());
        assert!(buckets < NONE as usize / SLOTS, "fewer than two billion blocks are held one by one");
        self.limit = limit;
        self.buckets = vec![Bucket::EMPTY; buckets];
        self.second = vec![[0; SLOTS]; if self.rails > 1 { buckets } else { 0 }];
    }

    /// Begins to bring the bucket of a hash into the processor's cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: Hash) {
        let bucket = &self.buckets[self.home(hash)];
        prefetch(&bucket.tags);
        prefetch(&bucket.blocks[WAYS - 1]);
    }

    /// Begins to bring what policies change of an entry into the processor's cache.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, slot: Slot) {
        prefetch(&self.buckets[bucket(slot)].tags);
    }

    /// Where a block is.
    #[inline(always)]
    pub(crate) fn find(&self, key: Key, hash: Hash) -> Option<Found> {
        let home = self.home(hash);
        let bucket = &self.buckets[home];
        match bucket.way_of(key, hash.tag()) {
            Some(way) => Some(bucket.found(home, way)),
            None if bucket.was_passed() => self.find_behind(home, key, hash).map(|slot| self.found(slot)),
            None => None,
        }
    }

    /// Where a block is that is not in its own bucket.
    #[cold]
    #[inline(never)]
    fn find_behind(&self, home: usize, key: Key, hash: Hash) -> Option<Slot> {
        let mut place = self.behind(home);
        while place != home {
            let bucket = &self.buckets[place];
            if let Some(way) = bucket.way_of(key, hash.tag()) {
                return Some((place * SLOTS + way) as Slot);
            }
            if !bucket.was_passed() {
                return None;
            }
            place = self.behind(place);
        }
        None
    }

    /// Adds a block, which is not in, at a position of the main rail, and gives its slot.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: Key, hash: Hash, state: State, position: u32) -> Slot {
        debug_assert!(self.entries < self.limit, "room was made before");
        self.entries += 1;
        let home = self.home(hash);
        let bucket = &mut self.buckets[home];
        match bucket.free_way() {
            Some(way) => bucket.put(home, way, key, hash, state, position),
            None => self.insert_behind(home, key, hash, state, position),
        }
    }

    /// Adds a block whose own bucket is full.
    #[cold]
    #[inline(never)]
    fn insert_behind(&mut self, home: usize, key: Key, hash: Hash, state: State, position: u32) -> Slot {
        let mut place = home;
        loop {
            let bucket = &mut self.buckets[place];
            if let Some(way) = bucket.free_way() {
                bucket.tags[WAYS] |= 1 << way;
                return bucket.put(place, way, key, hash, state, position);
            }
            let passed = bucket.passed();
            *passed = passed.saturating_add(1);
            place = self.behind(place);
        }
    }

    /// Forgets a block altogether.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.entries -= 1;
        let bucket = &mut self.buckets[bucket(slot)];
        bucket.tags[way(slot)] = 0;
        if bucket.tags[WAYS] & 1 << way(slot) != 0 {
            self.remove_displaced(slot);
        }
    }

    #[cold]
    fn remove_displaced(&mut self, slot: Slot) {
        let found = bucket(slot);
        self.buckets[found].tags[WAYS] &= !(1 << way(slot));
        let mut place = self.home(self.key(slot).hash());
        while place != found {
            let passed = self.buckets[place].passed();
            if *passed != MANY {
                *passed -= 1;
            }
            place = self.behind(place);
        }
    }

    pub(crate) fn key(&self, slot: Slot) -> Key {
        self.buckets[bucket(slot)].key(way(slot))
    }

    #[inline(always)]
    pub(crate) fn entry(&mut self, slot: Slot) -> Entry<'_> {
        let bucket = &mut self.buckets[bucket(slot)];
        Entry { state: &mut bucket.states[way(slot)], position: &mut bucket.positions[way(slot)] }
    }

    pub(crate) fn found(&self, slot: Slot) -> Found {
        self.buckets[bucket(slot)].found(bucket(slot), way(slot))
    }

    /// Where a block is in its order on the second rail.
    #[inline(always)]
    pub(crate) fn second(&mut self, slot: Slot) -> &mut u32 {
        &mut self.second[bucket(slot)][way(slot)]
    }

    #[inline(always)]
    fn home(&self, hash: Hash) -> usize {
        hash.0 as usize & (self.buckets.len() - 1)
    }

    #[inline(always)]
    fn behind(&self, place: usize) -> usize {
        (place + 1) & (self.buckets.len() - 1)
    }
}

/// Buckets of a table for so many entries, if it is near.
fn near_buckets(entries: usize) -> Option<usize> {
    let buckets = entries.div_ceil(NEAR_ENTRIES_PER_BUCKET).checked_next_power_of_two()?;
    (buckets <= NEAR_BUCKETS).then_some(buckets)
}

#[inline(always)]
fn bucket(slot: Slot) -> usize {
    slot as usize / SLOTS
}

#[inline(always)]
fn way(slot: Slot) -> usize {
    slot as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Blocks that all belong into the first buckets or the last, so that they overflow and probing goes round.
    fn blocks() -> impl Strategy<Value = Key> {
        let all = (0..2000).flat_map(|block| [0, 1].map(|file| Key { file, block }));
        let ends = all.filter(|key| matches!(key.hash().0 & 31, 0 | 31));
        prop::sample::select(ends.take(200).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn holds_what_a_map_holds(most in 1..60usize, steps in prop::collection::vec((blocks(), 0..3u8), 1..300)) {
            let mut table = Table::new(2, most as u64);
            let mut model: BTreeMap<(u32, u64), (Slot, u32)> = BTreeMap::new();
            for (number, (key, what)) in (0u32..).zip(steps) {
                let held = model.get(&(key.file, key.block)).copied();
                match held {
                    Some((slot, _)) if what == 0 => {
                        table.remove(slot);
                        model.remove(&(key.file, key.block));
                    }
                    None if model.len() < most => {
                        let slot = table.insert(key, key.hash(), number as State, number);
                        *table.second(slot) = !number;
                        model.insert((key.file, key.block), (slot, number));
                    }
                    _ => {}
                }
                prop_assert_eq!(table.count(), model.len() as u64);
                for ((file, block), (slot, number)) in &model {
                    let key = Key { file: *file, block: *block };
                    let found = table.find(key, key.hash()).map(|found| (found.slot, found.state));
                    prop_assert_eq!(found, Some((*slot, *number as State)));
                    prop_assert_eq!(table.key(*slot), key);
                    prop_assert_eq!(*table.entry(*slot).position, *number);
                    prop_assert_eq!(*table.second(*slot), !*number);
                    let other = table.find(Key { file: 9, block: *block }, key.hash());
                    prop_assert!(other.is_none());
                }
            }
        }
    }

    #[test]
    fn grows_with_everything_in_it() {
        let mut table = Table::new(2, 1_000_000);
        let mut slots = Vec::new();
        for block in 0..100_000 {
            if table.must_grow(1) {
                let moved = table.grow();
                slots.iter_mut().for_each(|slot| *slot = moved[*slot as usize]);
            }
            let key = Key { file: 3, block };
            let slot = table.insert(key, key.hash(), block as State, block as u32);
            *table.second(slot) = block as u32 + 1;
            slots.push(slot);
        }
        for (block, slot) in (0..).zip(slots) {
            let key = Key { file: 3, block };
            assert_eq!(table.find(key, key.hash()).map(|found| found.slot), Some(slot));
            let found = table.found(slot);
            assert_eq!((found.state, found.position), (block as State, block as u32));
            assert_eq!(*table.second(slot), block as u32 + 1);
        }
    }
}
