//! Data in blocks, with their checksums: disks keep them so, and some transports bring them so.

pub use pio_protocol::BLOCK_BYTES;

/// Data, and what is known of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summed<'a> {
    /// The data.
    pub data: &'a [u8],
    /// The CRC-32 of each [`BLOCK_BYTES`] of them (the last may be fewer); empty if not known.
    pub sums: &'a [u32],
}
