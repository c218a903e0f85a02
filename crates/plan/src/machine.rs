//! What every strategy is: a machine that takes events and asks for actions.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use pio_layout::{Layout, View};

use crate::hints::Hints;
use crate::independent::Independent;
use crate::message::Message;
use crate::two_phase::TwoPhase;

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

    /// The data bytes that lie in an interval of the file.
    pub fn within(&self, file: Range<u64>) -> Range<u64> {
        self.view.positions_within(self.positions.clone(), file)
    }
}

/// What happened, told to a machine by its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The operation begins. Always the first event, once.
    Start,
    /// A message of this operation arrived.
    Received {
        /// Who sent it.
        from: Rank,
        /// What it says.
        message: Message,
    },
    /// Data arrived, and are where they belong: in this rank's collective buffer (write) or memory (read).
    Data {
        /// Who sent them.
        from: Rank,
        /// Which data: the piece that the sender's [`Action::SendData`] named.
        piece: Piece,
        /// Why the data of a read are not there, if they are not.
        error: Option<IoError>,
    },
    /// The one outstanding [`Action::Io`] ended.
    IoDone {
        /// Bytes moved (fewer than asked only for reads at the end of the file), or why not.
        result: Result<u64, IoError>,
    },
}

/// What a machine asks its driver to do. Actions are carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send a message to another rank.
    Send {
        /// To whom.
        to: Rank,
        /// What to say.
        message: Message,
    },
    /// Move a piece of data to another rank: from this rank's memory into the aggregator's collective buffer (write),
    /// or from this rank's collective buffer into the client's memory (read). The far side's machine gets
    /// [`Event::Data`].
    SendData {
        /// To whom.
        to: Rank,
        /// Which data.
        piece: Piece,
        /// Tells the far side of a read that there are none, and why.
        error: Option<IoError>,
    },
    /// The same within this rank: between its own memory and its own collective buffer. Done when carried out.
    Copy {
        /// Which data.
        piece: Piece,
    },
    /// Read or write the file; [`Event::IoDone`] answers. At most one is outstanding.
    Io(Io),
    /// The operation is over for this rank: bytes moved to or from its memory, or why not.
    Finish {
        /// What the program is told.
        result: Result<u64, IoError>,
    },
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

/// A request to the file system.
#[derive(Clone, Debug, PartialEq)]
pub enum Io {
    /// One request for each contiguous piece of this rank's access, in order, between its memory and the file.
    Pieces {
        /// Which way.
        direction: Direction,
        /// Which data bytes of the view.
        positions: Range<u64>,
    },
    /// One contiguous request between the collective buffer and the file.
    Window {
        /// Which way.
        direction: Direction,
        /// File offset of the first byte of the collective buffer.
        origin: u64,
        /// Which bytes of the file.
        file: Range<u64>,
    },
    /// One write request for each of these parts of the collective buffer, in order.
    WriteParts {
        /// File offset of the first byte of the collective buffer.
        origin: u64,
        /// Which bytes of the file (absolute offsets, ascending).
        parts: Layout,
    },
    /// Complete the collective buffer with what the file holds in the gaps between the ranks' data (bytes beyond the end
    /// of the file read as zero), then write the whole window: read, modify, write.
    FillAndWrite {
        /// File offset of the first byte of the collective buffer.
        origin: u64,
        /// Which bytes of the file to write.
        file: Range<u64>,
        /// The gaps (absolute offsets, ascending).
        holes: Layout,
    },
}

/// Why a request failed: the operating system's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IoError {
    /// `errno`, positive.
    pub errno: i32,
}

/// One operation of one rank under one strategy.
pub trait Machine {
    /// Takes an event and appends the actions it leads to.
    ///
    /// # Panics
    /// If the driver breaks the protocol of [`Event`] (a second start, an answer to nothing). Nothing that another rank
    /// sends makes it panic: a message that makes no sense ends the operation with `EPROTO`.
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>);

    /// The access of a rank that takes part, as far as this rank was told: its own, and on an aggregator all clients'.
    /// A driver needs it to place and to gather the data of a [`Piece`].
    fn access_of(&self, rank: Rank) -> Option<&Access>;
}

/// The strategies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Every rank makes one request for each contiguous piece of its own access.
    Independent,
    /// Ranks exchange data so that a few aggregators make few, large, contiguous requests.
    TwoPhase,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 2] = [Strategy::Independent, Strategy::TwoPhase];

    /// The name users type and see.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Independent => "independent",
            Strategy::TwoPhase => "two-phase",
        }
    }

    /// The machine for a collective operation.
    pub fn collective(
        self,
        group: Group,
        direction: Direction,
        access: Access,
        hints: &Hints,
    ) -> Box<dyn Machine + Send> {
        match self {
            Strategy::Independent => Box::new(Independent::new(group.rank, direction, access)),
            Strategy::TwoPhase => Box::new(TwoPhase::new(group, direction, access, hints)),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Strategy, String> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
            format!("unknown strategy '{name}' (expected {})", known.join(" or "))
        })
    }
}
