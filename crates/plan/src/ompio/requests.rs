//! The requests that OMPIO makes of pieces: one for each, or sieved.
//!
//! It sieves pieces that are small and near to each other on average: every interval of at most a buffer's size is read, and
//! to write, locked, filled and written back. The distance is that from begin to begin, as it counts them.

use std::ops::Range;

use pio_layout::Layout;

use crate::access::{Direction, Slot};
use crate::machine::Io;

/// `fbtl_posix_max_block_size`, `fbtl_posix_max_gap_size` and `fbtl_posix_max_tmpbuf_size`.
const MOST_PIECE_BYTES: u64 = 1 << 20;
const MOST_DISTANCE: u64 = 4096;
const BUFFER_BYTES: u64 = 64 << 20;

/// The intervals that are sieved; none if each piece is a request.
pub(super) fn sieved(pieces: &Layout) -> Option<Vec<Range<u64>>> {
    let (mut count, mut last) = (0, 0);
    for piece in pieces.extents(0..pieces.size()) {
        (count, last) = (count + 1, piece.offset as u64);
    }
    if count < 2 {
        return None;
    }
    let distance = (last - pieces.lower_bound() as u64) / count;
    if pieces.size() / count > MOST_PIECE_BYTES || distance == 0 || distance > MOST_DISTANCE {
        return None;
    }
    let mut intervals: Vec<Range<u64>> = Vec::new();
    for piece in pieces.extents(0..pieces.size()) {
        let (start, end) = (piece.offset as u64, piece.end() as u64);
        match intervals.last_mut() {
            Some(interval) if end - interval.start <= BUFFER_BYTES => interval.end = end,
            _ => intervals.push(start..end),
        }
    }
    Some(intervals)
}

/// The requests of an aggregator, in order.
pub(super) fn of_aggregator(direction: Direction, pieces: &Layout, slot: Slot) -> Vec<Io> {
    let window =
        |direction, file: &Range<u64>| Io::Window { direction, slot, origin: file.start, file: file.clone() };
    if pieces.is_empty() {
        return Vec::new();
    }
    match (direction, sieved(pieces)) {
        (Direction::Read, Some(intervals)) => {
            intervals.iter().map(|interval| window(Direction::Read, interval)).collect()
        }
        (Direction::Write, Some(intervals)) => intervals
            .iter()
            .flat_map(|interval| [window(Direction::Read, interval), window(Direction::Write, interval)])
            .collect(),
        (Direction::Write, None) => {
            let origin = pieces.lower_bound() as u64;
            vec![Io::WriteParts { slot, origin, parts: pieces.clone() }]
        }
        (Direction::Read, None) => {
            let each = pieces.extents(0..pieces.size());
            each.map(|piece| window(Direction::Read, &(piece.offset as u64..piece.end() as u64))).collect()
        }
    }
}
