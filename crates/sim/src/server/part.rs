//! What servers are asked for.

use pio_plan::Direction;

/// A rank's request, as far as one server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rank: u32,
    pub(crate) file: u32,
    pub(crate) server: u32,
    /// Which one of its request it is.
    pub(crate) number: u32,
    /// Whether one before it of its request is that server's, too.
    pub(crate) follows: bool,
    pub(crate) direction: Direction,
    /// Where it begins among the bytes that the server has of the file.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Those of them in its first strip here, which it may have only the end of. The others begin at their strip's start.
    pub(crate) first_strip: u64,
    /// Pieces that the server puts in their places (or picks out) itself; 0 where the bytes are in one run.
    pub(crate) pieces: u64,
    /// Whether they are so far apart that each is an access of its own to the server's file.
    pub(crate) apart: bool,
    /// Bytes of pages that it is the first to touch, if it is a write.
    pub(crate) new_bytes: u64,
    /// Bytes of the message that goes back, data included.
    pub(crate) answer_bytes: u64,
    /// Whether it asks for nothing but that all be on the disks that the server has taken in of the file. It has no bytes then.
    pub(crate) syncs: bool,
}

impl Part {
    /// A rank asks a server to bring a file to its disks.
    pub(crate) fn sync(rank: u32, file: u32, server: u32, answer_bytes: u64) -> Part {
        Part {
            rank,
            file,
            server,
            number: 0,
            follows: false,
            direction: Direction::Write,
            offset: 0,
            bytes: 0,
            first_strip: 0,
            pieces: 0,
            apart: false,
            new_bytes: 0,
            answer_bytes,
            syncs: true,
        }
    }
}
