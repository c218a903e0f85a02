//! What a cache is told, and what it asks for.

/// A file, by any number that its user gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

/// A process that makes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// A request, by any number that its user gives it: the cache hands it back and looks at nothing else in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A transfer between the cache and what is below. The number is given again when the transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId(pub u32);

/// What happened, told to a cache by its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process wants to read.
    Read {
        /// Which request this is.
        request: RequestId,
        /// The process that reads: read-ahead follows each process and file by itself.
        process: ProcessId,
        /// The file it reads.
        file: FileId,
        /// From which byte on.
        offset: u64,
        /// How many bytes: none is complete at once.
        length: u64,
    },
    /// A process wants to write.
    Write {
        /// Which request this is.
        request: RequestId,
        /// The process that writes.
        process: ProcessId,
        /// The file it writes.
        file: FileId,
        /// From which byte on.
        offset: u64,
        /// How many bytes: none is complete at once.
        length: u64,
    },
    /// Somebody wants to know when all that was written to a file so far is below.
    Flush {
        /// Which request this is.
        request: RequestId,
        /// Which file.
        file: FileId,
    },
    /// A file has so many bytes: nothing is read ahead behind them, and nothing has to be fetched from there before part
    /// of a block is written. Of a file of which this was never said the cache expects that it goes on for ever.
    Size {
        /// Which file.
        file: FileId,
        /// Its bytes; writes behind its end make it longer.
        bytes: u64,
    },
    /// A file is gone: its data are dropped, written or not. No request of it may be under way.
    Forget {
        /// Which file.
        file: FileId,
    },
    /// What an [`Action::Fetch`] asked for is in the cache's memory.
    Fetched {
        /// Which transfer ended.
        transfer: TransferId,
    },
    /// What an [`Action::Write`] asked for is below.
    Written {
        /// Which transfer ended.
        transfer: TransferId,
    },
}

/// What a cache asks its driver to do. Actions are carried out in order; transfers go on while others begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bring an extent from below into the cache's memory, and say [`Event::Fetched`].
    Fetch {
        /// Which transfer this is.
        transfer: TransferId,
        /// For whom.
        process: ProcessId,
        /// Which file.
        file: FileId,
        /// From which byte on.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// Whether nobody asked for it yet.
        ahead: bool,
    },
    /// Write an extent from the cache's memory below, and say [`Event::Written`].
    Write {
        /// Which transfer this is.
        transfer: TransferId,
        /// Which file.
        file: FileId,
        /// From which byte on.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// Copy an extent between the cache's memory and the memory of a request: out of the cache for a read, into it for
    /// a write.
    Copy {
        /// Whose memory.
        request: RequestId,
        /// From which byte of the file on.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// The memory of an extent is free.
    Evict {
        /// Which file.
        file: FileId,
        /// From which byte on.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// A request is complete.
    Complete {
        /// The request that is done: the number it came with.
        request: RequestId,
    },
}
