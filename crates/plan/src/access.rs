//! Who takes part in an operation, and with which bytes.

use std::ops::Range;

use pio_layout::View;

/// After so many runs, the pieces of an access are estimated instead of counted.
const COUNTED_RUNS: usize = 256;

/// A rank of the communicator that opened the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// As an index into a table with one entry a rank.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who takes part: this rank, of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The rank whose machine this is.
    pub rank: Rank,
    /// How many ranks the communicator has.
    pub ranks: u32,
}

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// The part of a file that one rank reads or writes in one operation, symbolic: data bytes `positions` of `view`.
///
/// Data byte `positions.start` is the first byte of the rank's (packed) memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The file view in force.
    pub view: View,
    /// Which data bytes of the view.
    pub positions: Range<u64>,
}

impl Access {
    /// Number of data bytes.
    pub fn bytes(&self) -> u64 {
        self.positions.end.saturating_sub(self.positions.start)
    }

    /// The smallest interval of the file that holds every byte; empty if there is none.
    pub fn bounds(&self) -> Range<u64> {
        if self.bytes() == 0 {
            return 0..0;
        }
        match (self.view.offset_of(self.positions.start), self.view.offset_of(self.positions.end - 1)) {
            (Some(first), Some(last)) => first..last + 1,
            _ => 0..0,
        }
    }

    /// How many contiguous pieces of the file the data are; where they are many and irregular, as the first of them
    /// suggest.
    pub fn pieces(&self) -> u64 {
        let (mut pieces, mut seen) = (0_u64, 0_u64);
        for run in self.view.runs(self.positions.clone()).take(COUNTED_RUNS) {
            pieces = pieces.saturating_add(run.count);
            seen = seen.saturating_add(run.size());
        }
        if seen == 0 || seen >= self.bytes() {
            return pieces;
        }
        let estimate = u128::from(pieces) * u128::from(self.bytes()) / u128::from(seen);
        u64::try_from(estimate).unwrap_or(u64::MAX)
    }

    /// How far in the file this access must be moved to be another one; none if it cannot become that.
    pub(crate) fn shift(&self, to: &Access) -> Option<i64> {
        let alike = self.bytes() == to.bytes() && self.view == to.view;
        self.view.shift(self.positions.start, to.positions.start).filter(|_| alike)
    }

    /// The data bytes that lie in an interval of the file.
    pub fn within(&self, file: Range<u64>) -> Range<u64> {
        self.view.positions_within(self.positions.clone(), file)
    }
}

/// Data of one client that lie in one window of an aggregator's file domain.
///
/// The collective buffer holds the window: file offset `window.start` is its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The rank in whose memory the data are (or go).
    pub client: Rank,
    /// The number of the window in the aggregator's file domain.
    pub index: u64,
    /// The interval of the file that the collective buffer holds.
    pub window: Range<u64>,
    /// Which data bytes of the client's view. Reads: only those before the end of the file.
    pub positions: Range<u64>,
}

impl Piece {
    /// In place of a window's number: the data go between a rank and the [leader](crate::Leaders) of its node.
    const GATHERED: u64 = u64::MAX;

    /// Data of a client in the gathered data of its leader, so many bytes: positions of both are counted from the client's first byte
    /// on.
    pub(crate) fn gathered(client: Rank, bytes: u64, positions: Range<u64>) -> Piece {
        Piece { client, index: Piece::GATHERED, window: 0..bytes, positions }
    }

    /// Whether it is one of those.
    pub fn is_gathered(&self) -> bool {
        self.index == Piece::GATHERED
    }

    /// Data of a rank's own, in a window that it accesses alone.
    pub(crate) fn alone(client: Rank, window: Range<u64>, positions: Range<u64>) -> Piece {
        Piece { client, index: 0, window, positions }
    }

    /// Which of the aggregator's two collective buffers holds the window; or the leader's buffer of gathered data.
    pub fn slot(&self) -> Slot {
        if self.is_gathered() { Slot::GATHERED } else { Slot::of(self.index) }
    }
}

/// One of the two collective buffers of a rank: while the file is accessed from one, data are exchanged through the
/// other. Windows take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(usize);

impl Slot {
    /// How many there are.
    pub const COUNT: usize = 2;
    /// A third buffer, of a leader: what it gathered, or is to give out.
    pub const GATHERED: Slot = Slot(Slot::COUNT);
    /// How many there are with that one.
    pub const BUFFERS: usize = Slot::COUNT + 1;

    /// The buffer of the window with this number.
    pub fn of(index: u64) -> Slot {
        Slot((index % Slot::COUNT as u64) as usize)
    }

    /// As an index into an array of [`Slot::BUFFERS`].
    pub fn index(self) -> usize {
        self.0
    }
}

/// Why a request failed: the operating system's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IoError {
    /// `errno`, positive.
    pub errno: i32,
}

impl IoError {
    /// `EOVERFLOW`: offsets or sizes that do not fit.
    pub const TOO_LARGE: IoError = IoError { errno: 75 };

    /// `EPROTO`: a message that makes no sense at this point.
    pub const PROTOCOL: IoError = IoError { errno: 71 };

    /// Whether a lock failed with this because nothing can be locked there: the file system has no locks (`ENOLCK`, `EOPNOTSUPP`,
    /// `ENOSYS`; NFS without its lock daemon, Lustre mounted without `flock`), the file is none that has (`EINVAL`), or it is not
    /// open for that (`EBADF`). Anything else, as that whoever gives locks does not answer, is an error of the operation.
    pub fn says_that_nothing_can_be_locked(self) -> bool {
        matches!(self.errno, 9 | 22 | 37 | 38 | 95)
    }
}
