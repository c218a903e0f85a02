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
const ENTRIES_PER_BLOCK: usize = 6;

/// Blocks are brought into the processor's cache when the cold end is so many words of bits before them.
const WORDS_AHEAD: usize = 2;

/// Blocks in an order on a rail: the first is the coldest.
pub(crate) struct Order {
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

impl Order {
    pub(crate) fn new() -> Order {
        Order { entries: Vec::new(), live: Vec::new(), head_word: 0, tail: 0, length: 0 }
    }

    /// Number of blocks.
    #[inline(always)]
    pub(crate) fn length(&self) -> u64 {
        self.length as u64
    }

    /// Where what is put in next will be.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        (self.tail & (self.entries.len() - 1)) as u32
    }

    /// Puts a block at the hot end, and gives its position.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: Slot) -> u32 {
        let position = self.next();
        let entry = position as usize;
        self.entries[entry] = slot;
        self.live[entry / WORD] |= 1 << (entry % WORD);
        self.tail += 1;
        self.length += 1;
        position
    }

    /// Takes out the block at a position.
    #[inline(always)]
    pub(crate) fn take(&mut self, position: u32) {
        let entry = position as usize;
        self.live[entry / WORD] &= !(1 << (entry % WORD));
        self.length -= 1;
    }

    /// The coldest block.
    #[inline(always)]
    pub(crate) fn first(&mut self, table: &Table) -> Option<Slot> {
        let entry = self.first_entry(table)?;
        Some(self.entries[entry])
    }

    /// Takes out the coldest block.
    #[inline(always)]
    pub(crate) fn pop_first(&mut self, table: &Table) -> Option<Slot> {
        let entry = self.first_entry(table)?;
        self.take(entry as u32);
        Some(self.entries[entry])
    }

    /// Takes out the hottest block.
    #[inline(always)]
    pub(crate) fn pop_last(&mut self) -> Option<Slot> {
        if self.length == 0 {
            return None;
        }
        loop {
            self.tail -= 1;
            let entry = self.tail & (self.entries.len() - 1);
            if self.live[entry / WORD] >> (entry % WORD) & 1 != 0 {
                self.take(entry as u32);
                return Some(self.entries[entry]);
            }
        }
    }

    /// Where the hot end is: counted on, so that what is put in later is behind it.
    #[inline(always)]
    pub(crate) fn end(&self) -> usize {
        self.tail
    }

    /// Whether the block at a position was put in when the hot end was there, or later.
    #[inline(always)]
    pub(crate) fn is_behind(&self, end: usize, position: u32) -> bool {
        let back = self.tail.wrapping_sub(position as usize + 1) & (self.entries.len() - 1);
        back < self.tail - end
    }

    /// What the hot end was when the first block that was put in at `end` or later was in. There is one.
    #[inline(always)]
    pub(crate) fn pass_one(&self, end: usize) -> usize {
        let from = end.max(self.head_word * WORD);
        let mut word = from / WORD;
        let mut live = self.live[word & (self.live.len() - 1)] & (u64::MAX << (from % WORD));
        while live == 0 {
            word += 1;
            live = self.live[word & (self.live.len() - 1)];
        }
        word * WORD + live.trailing_zeros() as usize + 1
    }

    /// The blocks, the coldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        let words = self.head_word..self.tail.div_ceil(WORD);
        words.map(|word| word & (self.live.len() - 1)).flat_map(|word| self.in_word(word))
    }

    /// Makes room for [`PUSHES`] that are put in. `moved` is told of the new position of blocks. Gives whether they
    /// have moved: they are then without gaps from 0 on.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, moved: impl FnMut(Slot, u32)) -> bool {
        let full = self.free() < PUSHES;
        if full {
            self.rewrite(moved);
        }
        full
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

    #[inline(always)]
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
    #[inline(never)]
    fn advance(&mut self, table: &Table) {
        self.head_word += 1;
        if !table.is_far() {
            return;
        }
        for slot in self.in_word((self.head_word + WORDS_AHEAD) & (self.live.len() - 1)) {
            table.prefetch_slot(slot);
        }
    }

    fn in_word(&self, word: usize) -> impl Iterator<Item = Slot> {
        let entries = &self.entries[word * WORD..][..WORD];
        bits(self.live[word]).map(|bit| entries[bit])
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
        let mut rewritten =
            Order { entries: vec![0; entries], live: vec![0; entries / WORD], ..Order::new() };
        for slot in self.iter() {
            moved(slot, rewritten.push(slot));
        }
        *self = rewritten;
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
