//! Flits and the packets they are of.

/// A flit: the number of its packet, and whether it is the first or the last one of it.
pub(super) type Flit = u32;
pub(super) const HEAD: Flit = 1;
pub(super) const TAIL: Flit = 2;
pub(super) const PACKET: u32 = 2;

/// No waypoint; and one that the packet is past.
pub(super) const DIRECT: u32 = u32::MAX;
pub(super) const PAST: u32 = u32::MAX - 1;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) message: u32,
    pub(super) destination: u32,
    /// Where it goes first, [`DIRECT`] or [`PAST`].
    pub(super) waypoint: u32,
    /// Whether its first switch is still to choose between the waypoint and the straight way.
    pub(super) is_open: bool,
    pub(super) flits: u32,
    pub(super) age: u64,
}
