//! An order of blocks as a log of what was put at its hot end.
//!
//! A block knows which entry of the log is its; taken out or put at the hot end again, it clears the bit of that entry. So
//! nothing changes that would have to be read from memory, as the neighbours in a linked list would, and the next from
//! the cold end are known before their turn. Bits are found 64 at a time: how many entries were struck out between two is
//! nothing that a processor could predict.

use super::order::Order;
use super::table::{Found, Slot, Table};

/// Entries of a word of bits.
const WORD: usize = u64::BITS as usize;

/// Entries that are put in between two calls of [`Log::make_room`], at most.
pub(crate) const PUSHES: usize = 2 * super::GROUP;

/// A full log is rewritten in one with at least this many times as many entries as there are blocks.
const ENTRIES_PER_BLOCK: usize = 6;

/// Blocks in an order on a rail: the first is the coldest.
pub(crate) struct Log {
    /// A ring; a power of two of them.
    entries: Vec<Slot>,
    /// A bit for each entry that was not struck out: in little memory, for bits are cleared anywhere. Those of entries that
    /// are still to be put in are set, as far as there is room made for.
    live: Vec<u64>,
    /// No entry before this word is live. Counted on beyond the end of the ring, as is `tail`.
    head_word: usize,
    /// The next entry.
    tail: usize,
    /// Up to this word, bits of entries that are still to be put in are set.
    ready: usize,
    length: usize,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { entries: Vec::new(), live: Vec::new(), head_word: 0, tail: 0, ready: 0, length: 0 }
    }

    /// Puts a block at the hot end, and gives its position.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: Slot) -> u32 {
        self.length += 1;
        self.append(slot)
    }

    /// Puts the block at a position at the hot end, and gives its new position.
    #[inline(always)]
    pub(crate) fn renew(&mut self, position: u32, slot: Slot) -> u32 {
        self.strike_out(position);
        self.append(slot)
    }

    /// Takes out the block at a position.
    #[inline(always)]
    pub(crate) fn take(&mut self, position: u32) {
        self.length -= 1;
        self.strike_out(position);
    }

    /// The coldest block.
    #[inline(always)]
    pub(crate) fn first(&mut self, table: &Table) -> Option<Slot> {
        let live = self.first_live(table)?;
        Some(self.entry(self.head_word, live))
    }

    /// Where the hot end is: counted on, so that what is put in later is behind it.
    #[inline(always)]
    pub(crate) fn end(&self) -> usize {
        self.tail
    }

    /// Whether the block at a position was put in when the hot end was there, or later.
    #[inline(always)]
    pub(crate) fn is_behind(&self, end: usize, position: u32) -> bool {
        (self.tail as u32).wrapping_sub(position) <= (self.tail - end) as u32
    }

    /// What the hot end was when the first block that was put in at `end` or later was in. There is one.
    #[inline(always)]
    pub(crate) fn pass_one(&self, end: usize) -> usize {
        let from = end.max(self.head_word * WORD);
        let mut word = from / WORD;
        let mut live = self.live(word) & (u64::MAX << (from % WORD));
        while live == 0 {
            word += 1;
            live = self.live(word);
        }
        word * WORD + live.trailing_zeros() as usize + 1
    }

    /// Makes room for [`PUSHES`] that are put in. `moved` is told of the new position of blocks. Gives whether they
    /// have moved: they are then without gaps from 0 on.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, moved: impl FnMut(Slot, u32)) -> bool {
        let full = self.free() < PUSHES;
        if full {
            self.rewrite(moved);
        }
        self.make_ready();
        full
    }

    /// Blocks have new slots.
    pub(crate) fn renumber(&mut self, moved: &[Slot]) {
        for word in self.head_word..self.tail.div_ceil(WORD) {
            let live = self.put_in(word);
            let start = self.place(word * WORD);
            for entry in bits(live) {
                let slot = &mut self.entries[start + entry];
                *slot = moved[*slot as usize];
            }
        }
    }

    /// Sets the bits of the entries for which there is room.
    #[inline(always)]
    fn make_ready(&mut self) {
        let last = (self.tail + PUSHES - 1) / WORD;
        while self.ready <= last {
            *self.live_mut(self.ready) = u64::MAX;
            self.ready += 1;
        }
    }

    #[inline(always)]
    fn append(&mut self, slot: Slot) -> u32 {
        let position = self.next();
        let place = self.place(self.tail);
        self.entries[place] = slot;
        self.tail += 1;
        position
    }

    /// Where in the ring an entry is.
    #[inline(always)]
    fn place(&self, entry: usize) -> usize {
        entry & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn strike_out(&mut self, position: u32) {
        let position = position as usize;
        *self.live_mut(position / WORD) &= !(1 << (position % WORD));
    }

    #[inline(always)]
    fn live(&self, word: usize) -> u64 {
        self.live[word & (self.live.len() - 1)]
    }

    #[inline(always)]
    fn live_mut(&mut self, word: usize) -> &mut u64 {
        let ring = self.live.len() - 1;
        &mut self.live[word & ring]
    }

    /// The entry of a word to which the lowest of some bits belongs.
    #[inline(always)]
    fn entry(&self, word: usize, bits: u64) -> Slot {
        self.entries[self.place(word * WORD + bits.trailing_zeros() as usize)]
    }

    /// The bits of the first word with a block, which the head goes on to.
    #[inline(always)]
    fn first_live(&mut self, table: &Table) -> Option<u64> {
        if self.length == 0 {
            return None;
        }
        loop {
            let live = self.live(self.head_word);
            if live != 0 {
                return Some(live);
            }
            self.advance(table);
        }
    }

    /// Goes on to the next word, and has its blocks brought into the processor's cache: earlier, they would be out of the
    /// nearest one again before they are needed.
    #[inline(never)]
    fn advance(&mut self, table: &Table) {
        self.head_word += 1;
        for slot in self.in_word(self.head_word) {
            table.prefetch_slot(slot);
        }
    }

    /// The blocks of a word, the coldest first.
    fn in_word(&self, word: usize) -> impl Iterator<Item = Slot> {
        let start = self.place(word * WORD);
        let entries = &self.entries[start..start + WORD];
        bits(self.put_in(word)).map(|entry| entries[entry])
    }

    /// The bits of the entries of a word that were put in and not struck out.
    #[inline(always)]
    fn put_in(&self, word: usize) -> u64 {
        let behind = (self.tail - word * WORD).min(WORD);
        self.live(word) & u64::MAX.checked_shr((WORD - behind) as u32).unwrap_or(0)
    }

    /// Entries that can be put in without meeting a word that may be in use.
    #[inline(always)]
    fn free(&self) -> usize {
        (self.head_word + self.live.len()).saturating_sub(self.tail / WORD + 1) * WORD
    }

    /// Leaves out the entries that were struck out.
    #[cold]
    fn rewrite(&mut self, mut moved: impl FnMut(Slot, u32)) {
        let entries = (ENTRIES_PER_BLOCK * self.length + 2 * PUSHES).next_power_of_two();
        assert!(entries <= 1 << 31, "fewer than half a billion blocks are held one by one");
        let mut rewritten = Log { entries: vec![0; entries], live: vec![0; entries / WORD], ..Log::new() };
        for slot in self.iter() {
            if rewritten.tail.is_multiple_of(WORD) {
                rewritten.make_ready();
            }
            moved(slot, rewritten.push(slot));
        }
        *self = rewritten;
    }
}

/// On the main rail: the table knows where blocks are.
impl Order for Log {
    fn of(_: &Table) -> Log {
        Log::new()
    }

    #[inline(always)]
    fn length(&self) -> u64 {
        self.length as u64
    }

    /// Where it will be.
    #[inline(always)]
    fn next(&self) -> u32 {
        self.tail as u32
    }

    #[inline(always)]
    fn push_new(&mut self, slot: Slot) {
        self.push(slot);
    }

    #[inline(always)]
    fn push(&mut self, table: &mut Table, slot: Slot) {
        *table.entry(slot).position = self.push(slot);
    }

    #[inline(always)]
    fn renew(&mut self, table: &mut Table, found: Found) {
        *table.entry(found.slot).position = self.renew(found.position, found.slot);
    }

    #[inline(always)]
    fn take(&mut self, found: Found) {
        self.take(found.position);
    }

    #[inline(always)]
    fn pop_first(&mut self, table: &Table) -> Option<Slot> {
        let live = self.first_live(table)?;
        *self.live_mut(self.head_word) = live & (live - 1);
        self.length -= 1;
        Some(self.entry(self.head_word, live))
    }

    #[inline(always)]
    fn pop_last(&mut self) -> Option<Slot> {
        if self.length == 0 {
            return None;
        }
        loop {
            self.tail -= 1;
            let (word, bit) = (self.tail / WORD, 1 << (self.tail % WORD));
            let live = self.live_mut(word);
            let was_live = *live & bit != 0;
            *live |= bit;
            if was_live {
                self.length -= 1;
                return Some(self.entry(word, bit));
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = Slot> {
        (self.head_word..self.tail.div_ceil(WORD)).flat_map(|word| self.in_word(word))
    }

    #[inline(always)]
    fn make_room(&mut self, table: &mut Table) {
        self.make_room(|slot, position| *table.entry(slot).position = position);
    }

    fn renumber(&mut self, _: &Table, moved: &[Slot]) {
        self.renumber(moved);
    }
}

/// The numbers of the bits that are set, the lowest first.
#[inline(always)]
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let mut left = word;
    std::iter::from_fn(move || {
        let bit = (left != 0).then(|| left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        bit
    })
}
