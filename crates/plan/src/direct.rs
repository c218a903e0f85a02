//! When two-phase I/O exchanges nothing, and each rank makes its own requests.

use pio_layout::View;

use crate::operation::Operation;

/// Contiguous accesses of at least this mean size, that do not touch each other's bytes, gain nothing from passing through
/// an aggregator's buffer: each rank then makes its own request. A page: with less, ranks would share pages.
const DIRECT_BYTES: u64 = 4 << 10;

/// Nor do interleaved accesses whose pieces are at least so large in the mean: a request for each costs less than to
/// copy it once more. Where strips are known they come first: the borders of such pieces would make servers share them.
const DIRECT_PIECE_BYTES: u64 = 16 << 10;

/// Whether a view shows the file in pieces that gain nothing, whichever part of them is accessed. Each must be large: a rank that
/// writes some of the others alone sieves them, while other ranks write between them.
pub(crate) fn has_large_pieces(view: &View) -> bool {
    view.runs(0..view.filetype().size()).all(|run| run.len >= DIRECT_PIECE_BYTES)
}

/// Whether two-phase I/O exchanges nothing, and each rank makes its own requests: every rank's data are contiguous, large
/// enough, and apart from each other's; or all pieces are large. `strips_are_known`: file domains begin where strips do.
pub(crate) fn is_direct(operation: &Operation, strips_are_known: bool) -> bool {
    if !strips_are_known && operation.bytes >= operation.pieces.saturating_mul(DIRECT_PIECE_BYTES) {
        return true;
    }
    let is_contiguous = operation.bytes == operation.spans;
    let mean = operation.bytes / u64::from(operation.busy.max(1));
    is_contiguous && !operation.is_interleaved && (operation.busy <= 1 || mean >= DIRECT_BYTES)
}
