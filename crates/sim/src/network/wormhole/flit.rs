//! Flits.

/// A flit: the number of its packet, and whether it is the first or the last one of it.
pub(super) type Flit = u32;
pub(super) const HEAD: Flit = 1;
pub(super) const TAIL: Flit = 2;
pub(super) const PACKET: u32 = 2;
