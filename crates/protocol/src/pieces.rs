//! Pieces of a part of a file: which of them a server puts together into one access.

/// Bytes that are copied in the time of a system call: to skip a gap costs one more call, to take it along costs copying the gap, and
/// the piece once more.
const CALL_BYTES: u64 = 8 << 10;

/// Whether a server takes a piece of `len` bytes along with the one before it, `gap` bytes behind that, in one access to its file (in
/// which it leaves the gap as it is), and does not make an access of its own for it.
pub fn goes_along(gap: u64, len: u64) -> bool {
    gap == 0 || gap.saturating_mul(2).saturating_add(len) <= CALL_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_with_small_gaps_go_along() {
        let along = [(0, u64::MAX), (2048, 4096), (4095, 2), (0, 1)];
        let alone = [(2048, 4097), (4096, 1), (u64::MAX, 1)];
        assert!(along.iter().all(|(gap, len)| goes_along(*gap, *len)));
        assert!(!alone.iter().any(|(gap, len)| goes_along(*gap, *len)));
    }
}
