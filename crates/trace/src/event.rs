//! One recorded call.

use crate::call::{Call, Layer, Op};
use crate::tables::{DatatypeId, FileId, HandleId, MarkNameId, ProcessId, ViewId};

/// One recorded call: Miller and Katz's trace record (1991, Figure 1), with what MPI adds to it.
///
/// Times are nanoseconds since the start of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The function that was called.
    pub call: Call,
    /// The process that called it.
    pub process: ProcessId,
    /// The thread within the process: 0 is the one that called first.
    pub thread: u32,
    /// The open file it works on; none for messages and for calls that name a path ([`Target::Name`]).
    pub handle: Option<HandleId>,
    /// Which bytes of the file, or which other process.
    pub target: Target,
    /// The datatype of the memory side, where it is not plain contiguous bytes.
    pub memory: Option<DatatypeId>,
    /// Bytes asked for: of data, of a message, or the new size for calls that set one.
    pub size: u64,
    /// Bytes moved; or, if negative, minus the error number (POSIX `errno`, the MPI error class for MPI layers, PnetCDF's
    /// number; 1 for HDF5, which has none).
    /// For calls that move nothing: 0 on success.
    pub result: i64,
    /// When the call began.
    pub start_ns: u64,
    /// How long it took (wall clock).
    pub elapsed_ns: u64,
    /// CPU time that the thread used between its previous recorded call and this one (*think time*). 0 for calls that
    /// an upper layer's call caused.
    pub think_ns: u64,
    /// CPU time that the thread used within the call, at most `elapsed_ns`: it waited asleep, or had no processor, for the
    /// rest. Known of recorded calls of MPI and the libraries above it that returned.
    pub used_ns: Option<u64>,
    /// What else is known of it.
    pub flags: Flags,
    /// The operation this event *is* or *belongs to*: a call of MPI-IO, HDF5 or PnetCDF has an id of its own, the POSIX
    /// calls and messages that it caused carry the same id. An MPI-IO call that HDF5 or PnetCDF caused is *physical*, has
    /// its own id, and lies within the time of the call that caused it, in the same thread. Unique within a process, 0 for
    /// none.
    pub operation: u64,
}

impl Event {
    /// A call of no handle and no data that took no time.
    pub fn new(call: Call, process: ProcessId, start_ns: u64) -> Event {
        Event {
            call,
            process,
            thread: 0,
            handle: None,
            target: Target::None,
            memory: None,
            size: 0,
            result: 0,
            start_ns,
            elapsed_ns: 0,
            think_ns: 0,
            used_ns: None,
            flags: Flags::NONE,
            operation: 0,
        }
    }

    /// The kind of operation.
    pub fn op(&self) -> Op {
        self.call.op()
    }

    /// The layer of the call.
    pub fn layer(&self) -> Layer {
        self.call.layer()
    }

    /// When the call returned.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.elapsed_ns)
    }

    /// Bytes really moved (0 if it failed).
    pub fn transferred(&self) -> u64 {
        u64::try_from(self.result).unwrap_or(0)
    }

    /// Whether an upper layer's call caused this one (Miller and Katz's *physical* record).
    pub fn is_physical(&self) -> bool {
        self.flags.contains(Flags::PHYSICAL)
    }
}

/// Which bytes an event is about, or whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing of the kind: open, close, sync.
    None,
    /// Contiguous bytes of the file from `offset`.
    Extent {
        /// Absolute offset in the file, bytes.
        offset: u64,
    },
    /// Bytes `position .. position + size` of the data that a view shows. `View` operations use it to say which view.
    View {
        /// The view in force.
        view: ViewId,
        /// First data byte of the view that is meant.
        position: u64,
    },
    /// Another rank (of the communicator used): the destination, source or root of a message.
    Peer {
        /// Its rank.
        rank: u32,
    },
    /// Bytes of the file that a request asks an I/O server for, or sends it: not contiguous where the request names them by a
    /// list or a view.
    Server {
        /// Its number in the store.
        server: u32,
        /// Absolute offset in the file of the first of them, bytes.
        offset: u64,
    },
    /// A file or folder by its name, which need not be there: calls that open nothing (stat, unlink, a failed open).
    Name {
        /// The file of this path. Of calls with two paths the old one (rename, link), or that of the link (symlink).
        file: FileId,
        /// Of calls with two paths the other one, if it is known: the new one, or what the symbolic link stands for.
        other: Option<FileId>,
    },
    /// What the program called the moment or the phase. Of an open, the call site ([`CallSite`](crate::CallSite)).
    Mark {
        /// Its name.
        name: MarkNameId,
        /// Its number: of the epoch, of the step, of the line.
        number: u64,
    },
}

/// A set of yes-or-no facts about an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No fact.
    pub const NONE: Flags = Flags(0);
    /// Caused by a call of an upper layer.
    pub const PHYSICAL: Flags = Flags(1);
    /// All ranks of the communicator take part.
    pub const COLLECTIVE: Flags = Flags(2);
    /// Returned before the data moved.
    pub const ASYNC: Flags = Flags(4);
    /// Opened or used for appending.
    pub const APPEND: Flags = Flags(8);
    /// Had not returned when the trace ends: the process was killed inside it.
    pub const UNFINISHED: Flags = Flags(16);

    /// Of an open: every write reaches the device before it returns (`O_SYNC`, `O_DSYNC`).
    pub const SYNC: Flags = Flags(32);
    /// Of an open: past the page cache (`O_DIRECT`).
    pub const DIRECT: Flags = Flags(64);
    /// Of an open for reading: the file was there, and memory had less than half of it.
    pub const COLD: Flags = Flags(128);
    /// Of an open: what the file had is cut off first (`O_TRUNC`).
    pub const TRUNCATE: Flags = Flags(512);
    /// All of them. (256 has a meaning of its own in trace files.)
    pub(crate) const ALL: Flags = Flags(0x2ff);

    /// The set as stored.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The set of these bits: each has a meaning.
    pub fn from_bits(bits: u16) -> Flags {
        Flags(bits)
    }

    /// Whether every fact of `other` holds.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}
