//! The blocks of a file's part on a server, by which it keeps checksums.

use std::ops::Range;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 64 << 10;

/// Of a run of bytes of a part, those in whole blocks. Their checksums come with them; the others' blocks a server must read and
/// sum at the next sync.
pub fn in_whole_blocks(bytes: &Range<u64>) -> u64 {
    let end = bytes.end - bytes.end % BLOCK_BYTES;
    bytes.start.checked_next_multiple_of(BLOCK_BYTES).map_or(0, |start| end.saturating_sub(start))
}

/// Whether a whole block is among them. While a server writes such a run it lets nobody else write to that part of the file.
pub fn has_whole_block(bytes: &Range<u64>) -> bool {
    in_whole_blocks(bytes) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_block_begins_at_a_multiple_of_its_bytes() {
        let found = [
            0..BLOCK_BYTES,
            1..BLOCK_BYTES + 1,
            1..2 * BLOCK_BYTES,
            0..BLOCK_BYTES - 1,
            u64::MAX - 5..u64::MAX,
        ]
        .map(|bytes| has_whole_block(&bytes));
        assert_eq!(found, [true, false, true, false, false]);
        assert_eq!([1..3 * BLOCK_BYTES + 5, 5..9].map(|bytes| in_whole_blocks(&bytes)), [2 * BLOCK_BYTES, 0]);
    }
}
