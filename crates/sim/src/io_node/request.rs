//! What is asked of an I/O node, and what becomes of it.

use pio_plan::Direction;
use thiserror::Error;

use crate::kernel::Time;

/// A request to an I/O node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// Number, given by whoever asks; the node hands it back and looks at nothing else in it.
    pub id: u32,
    /// Which way the data go.
    pub direction: Direction,
    /// Where they are on the node, in bytes; they are on the disk of their first byte.
    pub offset: u64,
    /// How many bytes of data; at least one.
    pub bytes: u64,
    /// Bytes that come in beside data: what asks for a read, what announces a write.
    pub message: u64,
    /// Whether the disk's cache has the data, or takes them.
    pub hit: bool,
    /// Between what the data move.
    pub between: Between,
}

/// Between what the data of a request move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// The network and a disk: through all of the node.
    NetworkAndDisk,
    /// The network and the node's memory: past bus and disks.
    NetworkAndMemory,
    /// The node's memory and a disk: past the adapter, and answered to nobody.
    MemoryAndDisk,
}

/// A request that is done: a read's last byte has left the node, a write's is on the disk or in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoDone {
    /// The number that the caller gave the request.
    pub id: u32,
    /// When it came.
    pub came: Time,
    /// When it was done.
    pub done: Time,
}

/// Which adapter a node's data pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// The node's own, as its description says.
    Own,
    /// One that the network before it already models: the node has none.
    OfTheNetwork,
}

/// A request that an I/O node cannot serve.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum IoNodeError {
    /// More than the node's memory for requests, or nothing at all.
    #[error("a request of {bytes} bytes: expected from 1 to {most}, the node's buffer")]
    Size {
        /// Bytes of the request.
        bytes: u64,
        /// Bytes of the buffer.
        most: u64,
    },
    /// Where the disks have nothing.
    #[error("bytes {offset} to {end} of a disk: expected at most {bytes}")]
    Beyond {
        /// First byte on the disk.
        offset: u64,
        /// The byte after the last.
        end: u64,
        /// What the disk holds.
        bytes: u64,
    },
    /// A load that makes no sense.
    #[error("{what} = {found}: expected {expected}")]
    Load {
        /// Which number of it.
        what: &'static str,
        /// Its value.
        found: f64,
        /// What is allowed.
        expected: &'static str,
    },
}
