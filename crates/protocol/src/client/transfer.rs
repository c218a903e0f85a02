//! A read or write of a file: what its answers come to.

use std::ops::Range;

use pio_layout::View;
use thiserror::Error;

use super::{Chunk, Lost, Unsynced};
use crate::{Answer, Failure, ReplyBody};

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to servers.
    Write,
    /// From servers to the client.
    Read,
}

/// Why an operation of a client failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// A server lost data that were written and not yet synced.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A server said no.
    #[error("server {server}: {failure}")]
    Failed {
        /// The server.
        server: u32,
        /// What it said.
        failure: Failure,
    },
    /// A server answered something else than was asked.
    #[error("server {server} answered something else than was asked")]
    Confused {
        /// The server.
        server: u32,
    },
}

/// What came of a read or write so far.
#[derive(Debug)]
pub struct Transfer {
    direction: Direction,
    /// Data bytes that a part ended before, counted from the first of the access.
    missing: Vec<Range<u64>>,
    failed: Option<(u32, Failure)>,
}

impl Transfer {
    /// Nothing was answered yet.
    pub fn new(direction: Direction) -> Transfer {
        Transfer { direction, missing: Vec::new(), failed: None }
    }

    /// Which way data go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether a server said no: then no more is asked, and what was asked is waited for.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes the answer of a server to the request for a chunk.
    ///
    /// # Errors
    /// If it is none, or the server lost what was written before: then the operation is over, and all that is not answered is
    /// to be abandoned.
    pub fn settle(
        &mut self,
        unsynced: &mut Unsynced,
        server: u32,
        chunk: Option<&Chunk>,
        body: ReplyBody,
    ) -> Result<(), OperationError> {
        match (self.direction, body, chunk) {
            (Direction::Write, Ok(Answer::Written { epoch }), Some(_)) => {
                Ok(unsynced.note_written(server, epoch)?)
            }
            (Direction::Read, Ok(Answer::Data { bytes }), Some(chunk)) if bytes <= chunk.len => {
                self.missing.extend(bytes_behind(chunk, bytes));
                Ok(())
            }
            (_, Err(failure), _) => {
                self.failed.get_or_insert((server, failure));
                Ok(())
            }
            _ => Err(OperationError::Confused { server }),
        }
    }

    /// All is answered, by servers that are in these epochs: data bytes (counted from the first of the access) that parts
    /// ended before. They are holes, or behind the end of the file: see [`holes`].
    ///
    /// # Errors
    /// If a server said no, or lost what was written before.
    pub fn finish(
        self,
        unsynced: &Unsynced,
        epochs: impl IntoIterator<Item = (u32, u64)>,
    ) -> Result<Vec<Range<u64>>, OperationError> {
        epochs.into_iter().try_for_each(|(server, epoch)| unsynced.check(server, epoch))?;
        match self.failed {
            Some((server, failure)) => Err(OperationError::Failed { server, failure }),
            None => Ok(self.missing),
        }
    }
}

/// What missing bytes are when the file has `size` bytes: how many bytes of `positions` lie before its end, and those of the
/// missing ones that do, which are holes and read as zero.
pub fn holes(
    missing: Vec<Range<u64>>,
    view: &View,
    positions: &Range<u64>,
    size: u64,
) -> (u64, impl Iterator<Item = Range<u64>>) {
    let end = view.position_at_or_after(size);
    let len = end.clamp(positions.start, positions.end) - positions.start;
    let holes = missing.into_iter().map(move |missing| missing.start..missing.end.min(len));
    (len, holes.filter(|hole| !hole.is_empty()))
}

/// What lies behind the first `bytes` bytes of a chunk.
fn bytes_behind(chunk: &Chunk, bytes: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    let mut left = bytes;
    let behind = chunk.bytes.iter().map(move |range| {
        let there = left.min(range.end - range.start);
        left -= there;
        range.start + there..range.end
    });
    behind.filter(|range| !range.is_empty())
}
