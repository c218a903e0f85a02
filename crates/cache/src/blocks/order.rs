//! An order of blocks as a log of what was put at its hot end.
//!
//! A block knows which entry of the log is its; taken out or put at the hot end again, it clears the bit of that entry. So
//! nothing changes that would have to be read from memory, as the neighbours in a linked list would, and the next from
//! the cold end are known before their turn. Bits are found 64 at a time: how many entries were struck out between two is
//! nothing that a processor could predict.

use super::table::{Slot, Table};

/// Entries of a word of bits.
const WORD: usize = u64::BITS as usize;

/// Entries that are put in between two calls of [`Order::make_room`], at most.
pub(crate) const PUSHES: usize = 2 * super::GROUP;

/// A full log is rewritten in one with at least this many times as many entries as there are blocks.
const ENTRIES_PER_BLOCK: usize = 4;

/// Blocks are brought into the processor's cache when the cold end is so many words of bits before them.
const WORDS_AHEAD: usize = 2;

/// Blocks in an order on a rail: the first is the coldest.
pub(crate) struct Order<const RAIL: usize> {
    /// A ring; a power of two of them.
    entries: Vec<Slot>,
    /// A bit for each entry that was not struck out.
    live: Vec<u64>,
    /// No entry before this word of bits is live. Counted on beyond the end of the ring, as is `tail`.
    head_word: usize,
    /// The next entry.
    tail: usize,
    length: usize,
}

impl<const RAIL: usize> Order<RAIL> {
    pub(crate) fn new() -> Order<RAIL> {
        Order { entries: Vec::new(), live: Vec::new(), head_word: 0, tail: 0, length: 0 }
    }

    /// Number of blocks.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.length as u64
    }

    /// Puts a block, which is in no order of the rail, at the hot end.
    #[inline]
    pub(crate) fn push(&mut self, table: &mut Table, slot: Slot) {
        let entry = self.tail & (self.entries.len() - 1);
        self.entries[entry] = slot;
        self.live[entry / WORD] |= 1 << (entry % WORD);
        self.tail += 1;
        self.length += 1;
        table.set_position::<RAIL>(slot, entry as u32);
    }

    /// Takes out a block that is in.
    #[inline]
    pub(crate) fn take(&mut self, table: &Table, slot: Slot) {
        let entry = table.position::<RAIL>(slot) as usize;
        self.strike_out(entry);
    }

    /// Puts a block that is in at the hot end.
    #[inline]
    pub(crate) fn renew(&mut self, table: &mut Table, slot: Slot) {
        self.take(table, slot);
        self.push(table, slot);
    }

    /// The coldest block.
    #[inline]
    pub(crate) fn first(&mut self, table: &Table) -> Option<Slot> {
        let entry = self.first_entry(table)?;
        Some(self.entries[entry])
    }

    /// Takes out the coldest block.
    #[inline]
    pub(crate) fn pop_first(&mut self, table: &Table) -> Option<Slot> {
        let entry = self.first_entry(table)?;
        self.strike_out(entry);
        Some(self.entries[entry])
    }

    /// Takes out the hottest block.
    #[inline]
    pub(crate) fn pop_last(&mut self) -> Option<Slot> {
        if self.length == 0 {
            return None;
        }
        loop {
            self.tail -= 1;
            let entry = self.tail & (self.entries.len() - 1);
            if self.live[entry / WORD] >> (entry % WORD) & 1 != 0 {
                self.strike_out(entry);
                return Some(self.entries[entry]);
            }
        }
    }

    /// The blocks, the coldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        let mask = self.entries.len().wrapping_sub(1);
        (self.head_word * WORD..self.tail)
            .map(move |entry| entry & mask)
            .filter(|entry| self.live[entry / WORD] >> (entry % WORD) & 1 != 0)
            .map(|entry| self.entries[entry])
    }

    /// Makes room for so many that are put in.
    #[inline]
    pub(crate) fn make_room(&mut self, table: &mut Table) {
        if self.free() < PUSHES {
            self.rewrite(table);
        }
    }

    /// Blocks have new slots.
    pub(crate) fn renumber(&mut self, moved: &[Slot]) {
        for (word, live) in self.live.iter().enumerate() {
            for entry in bits(*live) {
                let slot = &mut self.entries[word * WORD + entry];
                *slot = moved[*slot as usize];
            }
        }
    }

    #[inline]
    fn strike_out(&mut self, entry: usize) {
        self.live[entry / WORD] &= !(1 << (entry % WORD));
        self.length -= 1;
    }

    #[inline]
    fn first_entry(&mut self, table: &Table) -> Option<usize> {
        if self.length == 0 {
            return None;
        }
        loop {
            let word = self.head_word & (self.live.len() - 1);
            let live = self.live[word];
            if live != 0 {
                return Some(word * WORD + live.trailing_zeros() as usize);
            }
            self.advance(table);
        }
    }

    /// Goes on to the next word of bits.
    fn advance(&mut self, table: &Table) {
        self.head_word += 1;
        let ahead = self.head_word + WORDS_AHEAD & (self.live.len() - 1);
        for entry in bits(self.live[ahead]) {
            table.prefetch_slot(self.entries[ahead * WORD + entry]);
        }
    }

    /// Entries that can be put in without meeting a word that may be in use.
    #[inline]
    fn free(&self) -> usize {
        (self.head_word + self.live.len()).saturating_sub(self.tail / WORD + 1) * WORD
    }

    /// Leaves out the entries that were struck out.
    #[cold]
    fn rewrite(&mut self, table: &mut Table) {
        let blocks: Vec<Slot> = self.iter().collect();
        let entries = (ENTRIES_PER_BLOCK * blocks.len() + 2 * PUSHES).next_power_of_two();
        assert!(entries <= 1 << 31, "fewer than half a billion blocks are held one by one");
        *self = Order { entries: vec![0; entries], live: vec![0; entries / WORD], ..Order::new() };
        for slot in blocks {
            self.push(table, slot);
        }
    }
}

/// The numbers of the bits that are set, the lowest first.
#[inline]
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let mut left = word;
    std::iter::from_fn(move || {
        let bit = (left != 0).then(|| left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        bit
    })
}
