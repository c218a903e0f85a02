//! The index: which blocks a finished file has, so that a reader can go to any of them.
//!
//! Blocks lie one behind the other from the file header to the index, so lengths are enough to know offsets. The index
//! repeats the block headers: a reader plans its work without touching the blocks.

use crate::format::{BLOCK_HEADER_LEN, BlockHeader, BlockKind, FILE_HEADER_LEN};
use crate::varint;

/// A block in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// Offset of its header in the file.
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
}

impl Located {
    /// Offset of the first byte behind it.
    pub(crate) fn end(&self) -> u64 {
        self.offset + BLOCK_HEADER_LEN as u64 + u64::from(self.header.stored_len)
    }
}

/// Appends the entry of a block to the payload of the index.
pub(crate) fn put_entry(out: &mut Vec<u8>, header: &BlockHeader) {
    out.push(header.kind as u8);
    varint::put(out, u64::from(header.stored_len));
    varint::put(out, u64::from(header.raw_len));
    varint::put(out, u64::from(header.count));
    varint::put(out, u64::from(header.payload_checksum));
    varint::put(out, header.first_start_ns);
    varint::put(out, header.last_start_ns - header.first_start_ns);
    varint::put(out, header.end_ns - header.last_start_ns);
}

/// The blocks that an index names, or what was expected instead. They fill the file up to `index_offset`.
pub(crate) fn decode(mut raw: &[u8], count: u32, index_offset: u64) -> Result<Vec<Located>, String> {
    let input = &mut raw;
    let mut blocks = Vec::new();
    let mut offset = FILE_HEADER_LEN as u64;
    for i in 0..count {
        let header = take_entry(input).ok_or_else(|| format!("entry {i} of the index"))?;
        let block = Located { offset, header };
        offset = block.end();
        blocks.push(block);
    }
    if !input.is_empty() || offset != index_offset {
        return Err("an index of all blocks before it".into());
    }
    Ok(blocks)
}

fn take_entry(input: &mut &[u8]) -> Option<BlockHeader> {
    let (&kind, rest) = input.split_first()?;
    *input = rest;
    let stored_len = varint::take_u32(input)?;
    let raw_len = varint::take_u32(input)?;
    let count = varint::take_u32(input)?;
    let payload_checksum = varint::take_u32(input)?;
    let first_start_ns = varint::take(input)?;
    let last_start_ns = first_start_ns.checked_add(varint::take(input)?)?;
    let end_ns = last_start_ns.checked_add(varint::take(input)?)?;
    let kind = BlockKind::from_number(kind).filter(|kind| *kind != BlockKind::Index)?;
    Some(BlockHeader { kind, stored_len, raw_len, count, payload_checksum, first_start_ns, last_start_ns, end_ns })
}
