//! One rank: what it is doing, and what waits for it.

use std::collections::VecDeque;
use std::ops::Range;

use pio_layout::Extents;
use pio_machine::Duration;
use pio_plan::{Access, Action, Direction, Io, IoError, Message, Piece, StateMachine};
use pio_protocol::client::{Exchange, Naming};
use pio_trace::{Call, Flags, HandleId};

use crate::kernel::Time;
use crate::server::Part;

/// A rank's state.
#[derive(Default)]
pub(crate) struct Process {
    pub(crate) node: u32,
    /// Steps of its program that it has begun.
    pub(crate) begun: usize,
    /// When the call began that it is in.
    pub(crate) since: Time,
    /// Time it computed before that call.
    pub(crate) think_ns: u64,
    /// What it is in.
    pub(crate) running: Running,
    /// What the strategy still asks for.
    pub(crate) actions: VecDeque<Action>,
    /// Messages that have arrived, in order.
    pub(crate) mailbox: VecDeque<u32>,
    /// What follows when the core, the disk or the delay it waits for is done.
    pub(crate) then: Then,
    /// Whether it waits for a message.
    pub(crate) idle: bool,
    /// Whether it keeps its processor meanwhile.
    pub(crate) spins: bool,
    /// The requests that it is making. Few ranks make any at a time, and the events of all go through their states.
    pub(crate) transfer: Option<Box<Transfer>>,
    /// Servers that have not brought a file to their disks for it yet.
    pub(crate) syncs_left: u32,
    /// The lock it asks for or gives back.
    pub(crate) lock: Option<Range<u64>>,
    /// What it does under a lock that its strategy has not asked for by itself.
    pub(crate) locked: Locked,
    /// The message it sent last, to which the time counts until it does something else.
    pub(crate) sending: Option<Sending>,
    /// When its own part of a collective open, close or view was done; it waits for the others since.
    pub(crate) own_part_done: Option<Time>,
    /// Whether it has opened a file with others.
    pub(crate) has_opened: bool,
    /// Whether it has closed one.
    pub(crate) has_closed: bool,
    /// Whether it has set a view.
    pub(crate) has_viewed: bool,
    /// When its last call to the kernel for a read or write was made.
    pub(crate) called_at: Option<Time>,
    /// When the MPI-IO library was last at work for it.
    pub(crate) in_library_at: Option<Time>,
    /// Most bytes that it exchanged in one operation.
    pub(crate) exchanged: u64,
    /// The step of its program, and the stage of that operation, for which it last paid for talking with others.
    pub(crate) talked_in: Option<(usize, u64)>,
    /// Processor time that it still needs before its next call.
    pub(crate) think_left: Duration,
    /// Since when it waits for a message.
    pub(crate) idle_since: Time,
    /// Number of its last MPI-IO call.
    pub(crate) operation: u64,
    pub(crate) finished: bool,
}

/// A request that is carried out under a lock of its own.
#[derive(Default)]
pub(crate) enum Locked {
    /// There is none.
    #[default]
    No,
    /// The lock of an interval, and then the request.
    Locking(Range<u64>, Io),
    /// The request.
    Requesting(Range<u64>),
    /// The lock is given back, after so many bytes were moved.
    Unlocking(u64),
}

/// What a rank is in.
#[derive(Default)]
pub(crate) enum Running {
    /// Between two calls.
    #[default]
    Nothing,
    /// A call that does one thing.
    Simple,
    /// A read or write that a strategy carries out.
    Operation {
        /// The strategy's machine.
        machine: Box<dyn StateMachine + Send>,
        /// Which operation: messages carry it.
        key: Key,
        /// The ranks of the group, in the order of their numbers in it.
        group: u32,
        /// This rank's number in it.
        number: u32,
        /// When it began.
        began: Time,
        /// After how long its ranks had chosen a strategy, if they have.
        chose_after: Option<Duration>,
    },
    /// A collective call of MPI in which all ranks meet: by dissemination, a message each way in each round.
    Meet {
        /// Which of them.
        count: u64,
        round: u32,
        /// Whether this round's message has been sent.
        sent: bool,
        /// How often it meets them again.
        left: u32,
    },
    /// A broadcast.
    Broadcast {
        /// The broadcast, by which the ranks find it.
        key: Key,
        /// Whether this rank has the data.
        has_data: bool,
        /// The ranks it is passed on to.
        children: VecDeque<u32>,
    },
}

/// Which collective operation a message belongs to: the group's or handle's number, and a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// The collective open whose operations are counted; [`Key::WORLD`] for broadcasts.
    pub(crate) of: u64,
    pub(crate) count: u64,
}

impl Key {
    pub(crate) const WORLD: u64 = u64::MAX;

    /// Of a round of a call in which all ranks meet.
    pub(crate) fn meet(count: u64, round: u32) -> Key {
        Key { of: u64::MAX - 1, count: count * u64::from(u32::BITS) + u64::from(round) }
    }
}

/// What follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// Carry on.
    #[default]
    Continue,
    /// The message goes off.
    Depart(u32),
    /// The message has been taken in.
    Take(u32),
    /// It was woken, and tries to get the file that it wants to write.
    TakeFile,
    /// The call before a request is made: the request goes off.
    Issue,
    /// It has connected to the servers of its request, whose parts go off.
    SendParts,
    /// The data of a part are copied: it goes off.
    SendPart,
    /// The data of parts that servers have sent are copied.
    TakeParts,
    /// A writer of its node is through, and it is its turn to write.
    Turn,
    /// The locks are there that a part of a request to a shared file system needs.
    Granted,
    /// A shared file system has answered a part of a request.
    Answered,
    /// A parallel file system has done a request.
    Moved,
    /// The data of a request are in memory.
    Complete,
    /// The request to the directory goes off, if there is one; then the call is over.
    Directory,
    /// The data of a file go to its device.
    Flush,
    /// It has computed for a while, and gives its processor away for a moment.
    Pause,
    /// The word that it wants a lock is where locks are given.
    Lock {
        /// Whether others may share it.
        shared: bool,
    },
    /// The word that it is through with a lock is there.
    Unlock,
    /// It computes what lies before its next call.
    Think,
    /// The call begins.
    Begin,
    /// It goes on from a call that no rank leaves before all have come.
    Leave,
    /// The call is over.
    End,
}

/// A message under way.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) key: Key,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) bytes: u64,
    pub(crate) what: Content,
}

/// What it says.
#[derive(Debug)]
pub(crate) enum Content {
    Message(Message),
    Data(Piece, Option<IoError>),
    Broadcast,
    /// A rank has come to the round of a meeting that the key names.
    Come,
}

/// A message event that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) call: Call,
    pub(crate) peer: u32,
    pub(crate) bytes: u64,
    pub(crate) start: Time,
}

/// Requests that a rank makes one after the other.
pub(crate) struct Transfer {
    /// Those to come.
    pub(crate) requests: Requests,
    /// The one under way.
    pub(crate) current: Option<Request>,
    /// The requests to servers of a store that it is.
    pub(crate) asked: Vec<StoreRequest>,
    /// Its pieces, if they are scattered over its interval.
    pub(crate) scattered: Option<Scattered>,
    /// Its parts that servers have not answered.
    pub(crate) parts_left: u32,
    /// Parts that have not been sent yet, with their messages; where their data are copied first, the next one last.
    pub(crate) to_send: Vec<(Part, Exchange)>,
    /// What the rank copies of it beside its servers' threads.
    pub(crate) copies: Copies,
    /// Its bytes that a shared file system has been asked for.
    pub(crate) asked_bytes: u64,
    /// Bytes of pages that it is the first to touch, if it is a write.
    pub(crate) new_bytes: u64,
    /// Of the open: see [`Workload::modes`](crate::workload::Workload::modes).
    pub(crate) mode: Flags,
    /// Bytes of pages that it is the first to touch, if it is a read.
    pub(crate) cold_bytes: u64,
    /// Bytes of pages that it makes dirty.
    pub(crate) soiled: u64,
    /// Bytes of the operation's data moved so far.
    pub(crate) moved: u64,
    /// Where in its page its memory begins.
    pub(crate) memory_at: u64,
    /// Whether that is a buffer of the MPI-IO library.
    pub(crate) is_buffered: bool,
    pub(crate) file: u32,
    /// The handle that the program opened.
    pub(crate) opened: HandleId,
    /// The one under it, for calls to the kernel in the trace.
    pub(crate) handle: HandleId,
    /// The function for the trace; none: `pread` and `pwrite`.
    pub(crate) call: Option<Call>,
    /// Whether an MPI-IO operation makes it.
    pub(crate) physical: bool,
}

/// Data of a read that its rank copies part by part.
#[derive(Default)]
pub(crate) struct Copies {
    /// Bytes that servers have sent and that are not copied yet.
    pub(crate) come: u64,
    /// Whether it copies what they have sent.
    pub(crate) is_busy: bool,
}

/// A contiguous request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) direction: Direction,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) start: Time,
}

/// A request to a server of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreRequest {
    pub(crate) server: u32,
    /// The part of the access that it goes with.
    pub(crate) part: u32,
    /// Offset in the file of its first byte.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) exchange: Exchange,
}

/// What a request that names many pieces says.
#[derive(Clone, Debug)]
pub(crate) struct Scattered {
    pub(crate) access: Access,
    pub(crate) naming: Naming,
}

/// Requests to come, never as a list.
pub(crate) enum Requests {
    /// One for each extent.
    Extents(Direction, Extents),
    /// Reads the span of the gaps, then writes the whole.
    FillAndWrite { gaps: Option<(u64, u64)>, whole: Option<(u64, u64)> },
    /// One for all pieces.
    Scattered(Direction, Option<Scattered>),
}

/// A request: direction, offset of its first byte, data bytes, and what else it says.
pub(crate) type Asked = (Direction, u64, u64, Option<Scattered>);

impl Iterator for Requests {
    type Item = Asked;

    fn next(&mut self) -> Option<Asked> {
        match self {
            Requests::Extents(direction, extents) => {
                extents.next().map(|extent| (*direction, extent.offset as u64, extent.len, None))
            }
            Requests::FillAndWrite { gaps, whole } => match gaps.take() {
                Some((offset, bytes)) => Some((Direction::Read, offset, bytes, None)),
                None => whole.take().map(|(offset, bytes)| (Direction::Write, offset, bytes, None)),
            },
            Requests::Scattered(direction, scattered) => {
                let scattered = scattered.take()?;
                let (first, bytes) = (scattered.access.bounds().start, scattered.access.bytes());
                Some((*direction, first, bytes, Some(scattered)))
            }
        }
    }
}
