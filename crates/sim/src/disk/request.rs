//! What is asked of a disk, and what becomes of it.

use pio_plan::Direction;
use thiserror::Error;

use crate::kernel::Time;

/// Contiguous blocks to read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether blocks are read or written.
    pub direction: Direction,
    /// The first.
    pub block: u64,
    /// Blocks that the request asks for.
    pub blocks: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When the host has its answer.
    pub done: Time,
    /// What the buffer had to do with it.
    pub outcome: Outcome,
}

/// What the buffer had to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was enough by itself.
    Hit,
    /// It had the first blocks of a read.
    PartialHit,
    /// The request waited for the surface.
    Miss,
}

/// A request that a disk cannot serve.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DiskError {
    /// Blocks beyond the end, or none at all.
    #[error(
        "{blocks_asked} blocks from {first} on: expected at least 1 within the {blocks} of the disk",
        blocks_asked = request.blocks,
        first = request.block
    )]
    NoSuchBlocks {
        /// What was asked for.
        request: Request,
        /// How many the disk has.
        blocks: u64,
    },
}
