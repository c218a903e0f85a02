//! What a cache is to be like.

use thiserror::Error;

use crate::policy::Policy;

/// What a cache is to be like. [`crate::Cache::new`] checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of data that it holds at most; what is more than whole blocks is not used.
    pub capacity_bytes: u64,
    /// Bytes in a block: what is fetched, written and evicted is whole blocks. With 1 the cache is one of extents,
    /// which never reads before it writes.
    pub block_bytes: u64,
    /// Which block leaves when another needs its place.
    pub policy: Policy,
    /// What is read before anybody asks for it.
    pub read_ahead: ReadAhead,
    /// When written data go below.
    pub writes: Writes,
    /// Bytes of the cache that one process may own at most: what it brought in, and nobody evicted since.
    pub process_limit_bytes: Option<u64>,
}

/// What is read before anybody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadAhead {
    /// Only what is asked for is fetched.
    Off,
    /// When a process reads on from where it stopped in a file (or at its start): as much again as it just read
    /// (Miller and Katz 1991, section 6.2).
    JustRead,
}

/// When written data go below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writes {
    /// At once, and the writer waits for it.
    Through,
    /// At once, but the writer goes on (Miller and Katz 1991, section 6.2), unless more than the limit is then newer
    /// than below: it waits until there is less.
    Behind {
        /// Bytes that may be newer than below.
        dirty_limit_bytes: u64,
    },
    /// When their place or their share of the limit is needed, the oldest first, or on a flush.
    Back {
        /// Bytes that may be newer than below.
        dirty_limit_bytes: u64,
    },
}

/// Why a cache cannot be like that.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A block without bytes.
    #[error("a cache's block has 0 bytes: expected at least 1")]
    EmptyBlock,
    /// Less than a block of something that must hold a block.
    #[error("a cache's {what} is {bytes} bytes: expected at least a block of {block_bytes}")]
    LessThanABlock {
        /// What is too small.
        what: &'static str,
        /// How small.
        bytes: u64,
        /// What it must hold.
        block_bytes: u64,
    },
    /// More or fewer lists than an SLRU can have.
    #[error(
        "an SLRU of {blocks} blocks in {segments} segments: expected 1 to 64 segments of at least a block"
    )]
    Segments {
        /// How many were asked for.
        segments: u8,
        /// How many blocks there are.
        blocks: u64,
    },
    /// No such policy.
    #[error(
        "no replacement policy is called `{0}`: expected lru, mru, clock, slru, slru:SEGMENTS, arc or lirs"
    )]
    UnknownPolicy(String),
}

impl Settings {
    /// Whether such a cache can be.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if self.block_bytes == 0 {
            return Err(SettingsError::EmptyBlock);
        }
        let dirty_limit = match self.writes {
            Writes::Through => None,
            Writes::Behind { dirty_limit_bytes } | Writes::Back { dirty_limit_bytes } => {
                Some(dirty_limit_bytes)
            }
        };
        let limits = [
            ("size", Some(self.capacity_bytes)),
            ("dirty limit", dirty_limit),
            ("limit of a process", self.process_limit_bytes),
        ];
        for (what, bytes) in limits {
            if let Some(bytes) = bytes.filter(|bytes| *bytes < self.block_bytes) {
                return Err(SettingsError::LessThanABlock { what, bytes, block_bytes: self.block_bytes });
            }
        }
        check_policy(self.policy, self.capacity_bytes / self.block_bytes)
    }
}

/// Whether a policy can work on so many blocks.
pub(crate) fn check_policy(policy: Policy, blocks: u64) -> Result<(), SettingsError> {
    match policy {
        Policy::Slru { segments } if segments == 0 || segments > 64 || u64::from(segments) > blocks => {
            Err(SettingsError::Segments { segments, blocks })
        }
        _ if blocks == 0 => Err(SettingsError::LessThanABlock { what: "size", bytes: 0, block_bytes: 1 }),
        _ => Ok(()),
    }
}
