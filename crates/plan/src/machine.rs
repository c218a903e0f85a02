//! What every strategy is: a machine that takes events and asks for actions.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use pio_layout::{Layout, View};

use crate::auto::Auto;
use crate::ecio::Ecio;
use crate::hints::Hints;
use crate::independent::Independent;
use crate::list::List;
use crate::message::Message;
use crate::sieving::Sieving;
use crate::two_phase::TwoPhase;

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

impl Piece {
    /// Which of the aggregator's two collective buffers holds the window.
    pub fn slot(&self) -> Slot {
        Slot::of(self.index)
    }
}

/// One of the two collective buffers of a rank: while the file is accessed from one, data are exchanged through the
/// other. Windows take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(usize);

impl Slot {
    /// How many there are.
    pub const COUNT: usize = 2;

    /// The buffer of the window with this number.
    pub fn of(index: u64) -> Slot {
        Slot((index % Slot::COUNT as u64) as usize)
    }

    /// As an index into an array of [`Slot::COUNT`].
    pub fn index(self) -> usize {
        self.0
    }
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
    /// The same with as few requests as lists of extents allow: one that names them all, where the file system takes
    /// such requests.
    List {
        /// Which way.
        direction: Direction,
        /// Which data bytes of the view.
        positions: Range<u64>,
    },
    /// The data go to (or come from) the I/O servers as they are; the servers are told view and positions, and put the
    /// pieces in their places themselves.
    Ship {
        /// Which way.
        direction: Direction,
        /// Which data bytes of the view.
        positions: Range<u64>,
    },
    /// Keeps others that ask for a lock, too, from an interval of the file, once they are out of it.
    Lock {
        /// Which bytes of the file.
        file: Range<u64>,
    },
    /// Gives the interval free again.
    Unlock {
        /// Which bytes of the file.
        file: Range<u64>,
    },
    /// One contiguous request between the collective buffer and the file. What is read from beyond the end of the file
    /// is zero in the buffer.
    Window {
        /// Which way.
        direction: Direction,
        /// Which collective buffer.
        slot: Slot,
        /// File offset of the first byte of the collective buffer.
        origin: u64,
        /// Which bytes of the file.
        file: Range<u64>,
    },
    /// One write request for each of these parts of the collective buffer, in order.
    WriteParts {
        /// Which collective buffer.
        slot: Slot,
        /// File offset of the first byte of the collective buffer.
        origin: u64,
        /// Which bytes of the file (absolute offsets, ascending).
        parts: Layout,
    },
    /// Complete the collective buffer with what the file holds in the gaps between the ranks' data (bytes beyond the end
    /// of the file read as zero), then write the whole window: read, modify, write.
    FillAndWrite {
        /// Which collective buffer.
        slot: Slot,
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

    /// What the machine chose, if it is one that chooses.
    fn choice(&self) -> Option<&Choice> {
        None
    }
}

/// A strategy that was chosen for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub strategy: Strategy,
    /// Why, for people to read.
    pub reason: String,
}

/// What an operation goes by, beside its access: made by [`Site::context`](crate::Site::context).
#[derive(Clone, Debug)]
pub struct Context {
    /// What the user asks for, as it holds there. The same on all ranks.
    pub hints: Hints,
    /// The view of each rank, if they were exchanged when they were set: what view-based two-phase I/O needs.
    pub views: Option<Arc<[View]>>,
    /// I/O servers that take requests by view; 0 for a plain file.
    pub servers: u32,
    /// Whether another rank may be sieving in the file, so that a write must lock what it writes.
    pub guarded: bool,
    /// Whether no rank's view has gaps, so that each rank's data are always one contiguous run; or if it has, they are
    /// [between large pieces](crate::Gaps::BetweenLargePieces). The same on all ranks.
    pub contiguous: bool,
    /// Whether every rank can reach every other's collective buffer in memory. The same on all ranks.
    pub shared_memory: bool,
    /// How many processors the ranks share. The same on all ranks.
    pub processors: u32,
}

/// The strategies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Every rank makes one request for each contiguous piece of its own access.
    Independent,
    /// Every rank reads (and for a write, writes back) large intervals, and picks its pieces out of them in memory.
    Sieving,
    /// Every rank makes requests that each list many pieces.
    List,
    /// Ranks exchange data so that a few aggregators make few, large, contiguous requests.
    TwoPhase,
    /// Two-phase, the views exchanged once, when they are set.
    ViewBased,
    /// Every rank sends its data and its view to the I/O servers, which put the pieces in place.
    Ecio,
    /// The cheapest of the others, operation by operation.
    Auto,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 7] = [
        Strategy::Independent,
        Strategy::Sieving,
        Strategy::List,
        Strategy::TwoPhase,
        Strategy::ViewBased,
        Strategy::Ecio,
        Strategy::Auto,
    ];

    /// The name users type and see.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Independent => "independent",
            Strategy::Sieving => "sieving",
            Strategy::List => "list",
            Strategy::TwoPhase => "two-phase",
            Strategy::ViewBased => "view-based",
            Strategy::Ecio => "ecio",
            Strategy::Auto => "auto",
        }
    }

    /// Whether the ranks tell each other their views when these are set.
    pub fn exchanges_views(self) -> bool {
        self == Strategy::ViewBased
    }

    /// The machine for a collective operation.
    pub fn collective(
        self,
        group: Group,
        direction: Direction,
        access: Access,
        context: &Context,
    ) -> Box<dyn Machine + Send> {
        // Known without a word: aggregators would help only where a strip has data of many ranks.
        let is_direct = context.contiguous && context.servers == 0 && context.hints.striping_unit.is_none();
        match self {
            Strategy::TwoPhase | Strategy::ViewBased | Strategy::Auto if is_direct => {
                Box::new(Independent::new(group.rank, direction, access))
            }
            Strategy::TwoPhase => Box::new(TwoPhase::new(group, direction, access, &context.hints)),
            Strategy::ViewBased => match &context.views {
                Some(views) => {
                    let views = views.clone();
                    Box::new(TwoPhase::with_views(group, direction, access, &context.hints, views))
                }
                None => Box::new(TwoPhase::new(group, direction, access, &context.hints)),
            },
            Strategy::Auto => Box::new(Auto::new(group, direction, access, context)),
            _ => self.alone(group.rank, direction, access, context),
        }
    }

    /// The machine for an operation of one rank: one that the program makes without the others, or in which they need
    /// not work together.
    pub fn alone(
        self,
        rank: Rank,
        direction: Direction,
        access: Access,
        context: &Context,
    ) -> Box<dyn Machine + Send> {
        let guarded = context.guarded && direction == Direction::Write;
        match self {
            Strategy::Independent => Box::new(Independent::new(rank, direction, access)),
            Strategy::List => Box::new(List::new(rank, direction, access, guarded)),
            Strategy::TwoPhase | Strategy::ViewBased | Strategy::Ecio | Strategy::Auto
                if context.servers > 0 =>
            {
                Box::new(Ecio::new(rank, direction, access))
            }
            _ => Box::new(Sieving::new(rank, direction, access, &context.hints, guarded)),
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
            format!("unknown strategy '{name}' (expected one of {})", known.join(", "))
        })
    }
}
