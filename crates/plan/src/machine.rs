//! What every strategy is: a machine that takes events and asks for actions.

use std::ops::Range;

use pio_layout::Layout;

use crate::access::{Access, Direction, IoError, Piece, Rank, Slot};
use crate::message::Message;
use crate::strategy::Strategy;

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
    /// There is room for what this rank gathers ([`Action::Gather`]), or why not.
    Room {
        /// Whether.
        result: Result<(), IoError>,
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
    /// From here on this rank speaks for others of its node: its own memory is now the buffer of what it gathers from them
    /// ([`Slot::GATHERED`]), so many bytes; [`Event::Room`] answers. Only [pieces of gathered data](Piece::is_gathered) go between that and what was its
    /// memory before.
    Gather {
        /// How large the buffer is to be.
        bytes: u64,
    },
    /// Read or write the file; [`Event::IoDone`] answers. At most one is outstanding.
    Io(Io),
    /// The operation is over for this rank: bytes moved to or from its memory, or why not.
    Finish {
        /// What the program is told.
        result: Result<u64, IoError>,
    },
}

/// A request to the file system.
#[derive(Clone, Debug, PartialEq)]
pub enum Io {
    /// One request for each contiguous piece of this rank's access, in order, between its memory and the file.
    Pieces {
        /// Whether the file is read or written.
        direction: Direction,
        /// Which data bytes of the view.
        positions: Range<u64>,
    },
    /// The same with as few requests as lists of extents allow: one that names them all, where the file system takes
    /// such requests.
    List {
        /// Whether the file is read or written.
        direction: Direction,
        /// Which data bytes of the view.
        positions: Range<u64>,
    },
    /// The data go to (or come from) the I/O servers as they are; the servers are told view and positions, and put the
    /// pieces in their places themselves.
    Ship {
        /// Whether the file is read or written.
        direction: Direction,
        /// Which data bytes of the view.
        positions: Range<u64>,
    },
    /// Keeps others that ask for a lock, too, from an interval of the file, once they are out of it.
    Lock {
        /// Which bytes of the file.
        file: Range<u64>,
        /// Whether others may have a shared one meanwhile.
        shared: bool,
    },
    /// Gives the interval free again.
    Unlock {
        /// Which bytes of the file.
        file: Range<u64>,
    },
    /// One contiguous request between the collective buffer and the file. What is read from beyond the end of the file
    /// is zero in the buffer.
    Window {
        /// Whether the file is read or written.
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
        /// Whether others may be writing into the gaps, so that the window is to be locked meanwhile. If it cannot be, what is
        /// not gap is written part by part.
        locks: bool,
    },
}

impl Io {
    /// A window of a rank that has but one at a time: the first collective buffer, from its first byte on.
    pub(crate) fn window(direction: Direction, file: Range<u64>) -> Io {
        Io::Window { direction, slot: Slot::of(0), origin: file.start, file }
    }
}

/// One operation of one rank under one strategy.
pub trait StateMachine {
    /// Takes an event and appends the actions it leads to.
    ///
    /// # Panics
    /// If the driver breaks the protocol of [`Event`] (a second start, an answer to nothing). Nothing that another rank
    /// sends makes it panic: a message that makes no sense ends the operation with `EPROTO`.
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>);

    /// The access of a rank that takes part, as far as this rank was told: its own, and on an aggregator all clients'.
    /// A driver needs it to place and to gather the data of a [`Piece`].
    fn access_of(&self, rank: Rank) -> Option<&Access>;

    /// The place in gathered data of what a rank has, as far as this one knows: its own, and on a leader that of all for which it
    /// speaks. Positions are counted from the first byte on.
    fn place_of(&self, _: Rank) -> Option<&Access> {
        None
    }

    /// Where the data of a piece are, on the side of the file or of gathered data, whose client is (or is to be taken for) this
    /// rank.
    fn access_for(&self, piece: &Piece, client: Rank) -> Option<&Access> {
        if piece.is_gathered() { self.place_of(client) } else { self.access_of(client) }
    }

    /// What the machine chose, if it is one that chooses.
    fn choice(&self) -> Option<&Choice> {
        None
    }
}

/// A strategy that was chosen for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The strategy that was chosen.
    pub strategy: Strategy,
    /// For how many operations like this one it is to be held: before, what is likely to be gained by another choice, as ranks may
    /// wait for each other no longer, is less than what they wait to make it. [`u32::MAX`] where nothing can be gained.
    pub holds: u32,
    /// Microseconds that it is expected to take once all ranks have begun it.
    pub expected_us: u64,
    /// Why, for people to read.
    pub reason: String,
}
