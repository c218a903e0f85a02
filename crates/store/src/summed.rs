//! Data in blocks, with their checksums: disks keep them so, and some transports bring them so.

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 64 << 10;

/// Data, and what is known of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summed<'a> {
    /// The data.
    pub data: &'a [u8],
    /// The CRC-32 of each [`BLOCK_BYTES`] of them (the last may be fewer); empty if not known.
    pub sums: &'a [u32],
}
