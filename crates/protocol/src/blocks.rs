//! The blocks of a file's part on a server, by which it keeps checksums.

use std::ops::Range;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 64 << 10;

/// Whether a whole block is among these bytes of a part. While a server writes such a run it lets nobody else write to that
/// part of the file: its blocks get new checksums.
pub fn has_whole_block(bytes: &Range<u64>) -> bool {
    let first = bytes.start.checked_next_multiple_of(BLOCK_BYTES);
    first.and_then(|first| first.checked_add(BLOCK_BYTES)).is_some_and(|end| end <= bytes.end)
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
    }
}
