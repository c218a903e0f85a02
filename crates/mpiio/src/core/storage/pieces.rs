//! Independent requests: one for each contiguous piece of the file.

use std::ops::Range;

use pio_layout::View;
use pio_plan::{Direction, IoError};

use crate::core::mpi::memory::Memory;
use crate::core::storage::backend::Storage;

/// A piece whose memory is not contiguous goes through a block of at most so many bytes.
const BLOCK_BYTES: u64 = 16 << 20;

/// Moves the data bytes `positions` of `view` between the file and memory, where the first is data byte `start`.
/// Returns the bytes moved: fewer than asked only when the file ends.
pub(crate) fn transfer(
    storage: &Storage,
    direction: Direction,
    view: &View,
    positions: Range<u64>,
    start: u64,
    memory: &mut Memory,
    block: &mut Vec<u8>,
) -> Result<u64, IoError> {
    let mut moved = 0;
    for extent in view.extents(positions) {
        let piece = start + moved..start + moved + extent.len;
        let offset = extent.offset as u64;
        let done = match memory.contiguous(piece.clone()) {
            Some(bytes) => request(storage, direction, offset, bytes)?,
            None => blockwise(storage, direction, offset, piece, memory, block)?,
        };
        moved += done;
        if done < extent.len {
            break;
        }
    }
    Ok(moved)
}

fn blockwise(
    storage: &Storage,
    direction: Direction,
    offset: u64,
    piece: Range<u64>,
    memory: &mut Memory,
    block: &mut Vec<u8>,
) -> Result<u64, IoError> {
    let mut at = piece.start;
    while at < piece.end {
        let end = piece.end.min(at + BLOCK_BYTES);
        let len = (end - at) as usize;
        if block.len() < len {
            block.resize(len, 0);
        }
        let bytes = &mut block[..len];
        if direction == Direction::Write {
            memory.pack(at..end, bytes).map_err(|_| IoError { errno: libc::EFAULT })?;
        }
        let done = request(storage, direction, offset + (at - piece.start), bytes)?;
        if direction == Direction::Read {
            memory
                .unpack(at..at + done, &bytes[..done as usize])
                .map_err(|_| IoError { errno: libc::EFAULT })?;
        }
        at += done;
        if done < len as u64 {
            break;
        }
    }
    Ok(at - piece.start)
}

/// One request.
pub(crate) fn request(
    storage: &Storage,
    direction: Direction,
    offset: u64,
    bytes: &mut [u8],
) -> Result<u64, IoError> {
    match direction {
        Direction::Read => storage.read(offset, bytes),
        Direction::Write => storage.write(offset, bytes),
    }
}
