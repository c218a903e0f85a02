//! The checksums of a part: a file of its own beside the data.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `PIOSUMS1` |
//! | 8 | 4 | state: 0 closed, 1 open |
//! | 12 | 4 | 0 |
//! | 16 | 16 | the start of the machine during which it was opened (Linux's boot id) |
//! | 32 | 8 | strip of the file in bytes |
//! | 40 | 4 | servers that it is dealt out to |
//! | 44 | 4 | the first of them |
//! | 48 | 4 | servers of the store |
//! | 52 | 12 | 0 |
//! | 64 + 8 i | 4 | CRC-32 of block i of the data |
//! | 68 + 8 i | 4 | bytes of the block that it is of; 0: none was ever written; 2³² − 1: being written |
//!
//! All numbers are little endian; a block has 64 KiB. An entry says *being written* before the first byte of its block
//! is, and has its checksum again when the block is synced. The state says *open*, durably, before anything is: after the
//! machine went down, checksums of a part that was open say nothing, as what reached the disk last is not known.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use pio_protocol::Placement;

use super::extents::next_data;
use super::files::read_up_to;
use crate::summed::BLOCK_BYTES;

const MAGIC: &[u8; 8] = b"PIOSUMS1";
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: u64 = 8;
const OPEN: u32 = u32::MAX;

/// What the head of the checksums says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The start of the machine during which the part was opened, if it is.
    pub(super) open_since: Option<u128>,
    /// Where the file is.
    pub(super) placement: Placement,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nobody wrote to it.
    Unwritten,
    /// Somebody does.
    Open,
    /// Its first bytes have this checksum.
    Sealed {
        /// CRC-32.
        checksum: u32,
        /// How many bytes.
        bytes: u32,
    },
}

impl Header {
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = u8::from(self.open_since.is_some());
        bytes[16..32].copy_from_slice(&self.open_since.unwrap_or(0).to_le_bytes());
        bytes[32..40].copy_from_slice(&self.placement.striping().unit.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.placement.striping().factor.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.placement.base().to_le_bytes());
        bytes[48..52].copy_from_slice(&self.placement.servers().to_le_bytes());
        file.write_all_at(&bytes, 0)
    }

    /// Reads the header; `None` if there is none.
    pub(super) fn read(file: &File) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let unit = u64::from(number(32)) | u64::from(number(36)) << 32;
        let placement = Placement::new(unit, number(40), number(44), number(48));
        let mut boot = [0; 16];
        boot.copy_from_slice(&bytes[16..32]);
        Ok(match (&bytes[..8] == MAGIC, number(8), placement) {
            (true, 0, Some(placement)) => Some(Header { open_since: None, placement }),
            (true, 1, Some(placement)) => {
                Some(Header { open_since: Some(u128::from_le_bytes(boot)), placement })
            }
            _ => None,
        })
    }
}

/// Writes the entries of consecutive blocks.
pub(super) fn write_entries(file: &File, first: u64, entries: &[Entry]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES as usize);
    for entry in entries {
        let (checksum, covered) = match *entry {
            Entry::Unwritten => (0, 0),
            Entry::Open => (0, OPEN),
            Entry::Sealed { checksum, bytes } => (checksum, bytes),
        };
        bytes.extend(checksum.to_le_bytes());
        bytes.extend(covered.to_le_bytes());
    }
    file.write_all_at(&bytes, place(first))
}

/// Reads the entries of consecutive blocks; those behind the end of the file were never written.
pub(super) fn read_entries(file: &File, first: u64, count: usize) -> io::Result<Vec<Entry>> {
    let mut bytes = vec![0; count * ENTRY_BYTES as usize];
    read_up_to(file, &mut bytes, place(first))?;
    let (entries, _) = bytes.as_chunks::<8>();
    Ok(entries
        .iter()
        .map(|&[a, b, c, d, e, f, g, h]| {
            match (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])) {
                (_, 0) => Entry::Unwritten,
                (_, OPEN) => Entry::Open,
                (checksum, bytes) => Entry::Sealed { checksum, bytes },
            }
        })
        .collect())
}

/// The first blocks from `block` on whose entries are not in a hole of the file; those in one were never written.
pub(super) fn next_noted(file: &File, block: u64) -> io::Result<Option<Range<u64>>> {
    let head_bytes = HEADER_BYTES as u64;
    let count = count(file)?;
    if block >= count {
        return Ok(None);
    }
    let Some(found) = next_data(file, place(block))? else { return Ok(None) };
    let end = (found.end - head_bytes).div_ceil(ENTRY_BYTES).min(count);
    Ok(Some((found.start - head_bytes) / ENTRY_BYTES..end).filter(|blocks| !blocks.is_empty()))
}

/// Forgets the entries from block `blocks` on.
pub(super) fn cut(file: &File, blocks: u64) -> io::Result<()> {
    if file.metadata()?.len() > place(blocks) { file.set_len(place(blocks)) } else { Ok(()) }
}

/// The last sealed block, and how long the part must be at least because of it. Only the last entries are looked at.
pub(super) fn sealed_end(file: &File) -> io::Result<Option<(u64, u64)>> {
    let count = count(file)?;
    let first = count.saturating_sub(4096);
    let entries = read_entries(file, first, (count - first) as usize)?;
    let ends = (first..count).zip(entries).filter_map(|(block, entry)| match entry {
        Entry::Sealed { bytes, .. } => Some((block, block.saturating_mul(BLOCK_BYTES) + u64::from(bytes))),
        _ => None,
    });
    Ok(ends.last())
}

/// How many blocks have entries.
pub(super) fn count(file: &File) -> io::Result<u64> {
    Ok((file.metadata()?.len().saturating_sub(HEADER_BYTES as u64)).div_ceil(ENTRY_BYTES))
}

/// The bytes of the entries of these blocks.
pub(super) fn entries(blocks: &Range<u64>) -> Range<u64> {
    place(blocks.start)..place(blocks.end)
}

fn place(block: u64) -> u64 {
    HEADER_BYTES as u64 + block * ENTRY_BYTES
}
