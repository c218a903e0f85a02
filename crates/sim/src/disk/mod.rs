//! Disks: how long requests take.
//!
//! [`DriveModel`] is a whole drive: zones, arm, spindle, buffer. [`replay()`] runs a recorded series of requests through it
//! and sets what it says beside what was measured. `docs/design/disks.md` explains the model and what it leaves out.

mod arm;
mod device;
mod distribution;
mod drive;
#[cfg(test)]
mod example;
mod geometry;
mod replay;
mod segments;
mod trace;
mod waiting;

use pio_plan::Direction;
use thiserror::Error;

pub use device::Device;
pub use distribution::Distribution;
pub use drive::DriveModel;
pub use replay::{Class, Replayed, replay};
pub use trace::{DiskTrace, DiskTraceError, Seen, TracedRequest};
pub use waiting::Waiting;

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
