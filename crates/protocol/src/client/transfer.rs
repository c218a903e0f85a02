//! A read or write of a file: what its answers come to.

use std::ops::Range;

use pio_layout::View;
use thiserror::Error;

use super::split::Chunk;
use super::unsynced::{Lost, Unsynced};
use crate::error::Failure;
use crate::placement::Placement;
use crate::reply::{Answer, ReplyBody};

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

/// How a request says which bytes of a file it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By a view and positions.
    View,
    /// By a list of at most [`MOST_EXTENTS`](crate::MOST_EXTENTS) pieces.
    List,
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
            (Direction::Read, Ok(Answer::Data { bytes, epoch }), Some(chunk)) if bytes <= chunk.len => {
                unsynced.check(server, epoch)?;
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

    /// All is answered: data bytes (counted from the first of the access) that parts ended before. They are holes, or behind
    /// the end of the file: see [`holes`].
    ///
    /// # Errors
    /// If a server said no.
    pub fn finish(self) -> Result<Vec<Range<u64>>, OperationError> {
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

/// Slot and bytes of each part of a file, out of what the servers that have one answered.
///
/// # Errors
/// If a server lost what this client wrote, which may have made its part longer; or one answered something else.
pub fn lengths(
    placement: &Placement,
    unsynced: &Unsynced,
    answers: impl IntoIterator<Item = (u32, Answer)>,
) -> Result<Vec<(u32, u64)>, OperationError> {
    let length = |(server, answer)| {
        let (Answer::Length { bytes, epoch }, Some(slot)) = (answer, placement.slot_of_server(server)) else {
            return Err(OperationError::Confused { server });
        };
        unsynced.check(server, epoch)?;
        Ok((slot, bytes))
    };
    answers.into_iter().map(length).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose disk failed goes on in the next epoch, over the same connection.
    #[test]
    fn a_read_does_not_hide_that_the_server_lost_what_was_written() {
        let mut unsynced = Unsynced::default();
        let chunk = Chunk { slot: 0, positions: 0..8, bytes: vec![0..3, 5..10], len: 8, part: None };
        let settle = |unsynced: &mut Unsynced, direction, answer| {
            let mut transfer = Transfer::new(direction);
            transfer.settle(unsynced, 2, Some(&chunk), Ok(answer))?;
            transfer.finish()
        };
        let written = settle(&mut unsynced, Direction::Write, Answer::Written { epoch: 4 });
        assert_eq!(written, Ok(Vec::new()));
        let read = settle(&mut unsynced, Direction::Read, Answer::Data { bytes: 4, epoch: 4 });
        assert_eq!(read, Ok(std::iter::once(6..10).collect()));
        let read = settle(&mut unsynced, Direction::Read, Answer::Data { bytes: 8, epoch: 5 });
        assert_eq!(read, Err(OperationError::Lost(Lost { server: 2 })));
        let placement = Placement::new(10, 3, 0, 3).unwrap();
        let end = |epoch| {
            let answers = [0, 0, 4].map(|bytes| Answer::Length { bytes, epoch });
            lengths(&placement, &unsynced, (0..).zip(answers))
        };
        assert_eq!(end(4), Ok(vec![(0, 0), (1, 0), (2, 4)]));
        assert_eq!(end(5), Err(OperationError::Lost(Lost { server: 2 })));
        let odd = settle(&mut unsynced, Direction::Read, Answer::Data { bytes: 9, epoch: 4 });
        assert_eq!(odd, Err(OperationError::Confused { server: 2 }));
    }
}
