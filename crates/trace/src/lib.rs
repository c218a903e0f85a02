//! *What happened*: events, the trace file, its reader and writer, and the exports.
//!
//! A job's trace is one file, `NAME.pio`: the processes, files, handles, views and datatypes of the job (the
//! [`Tables`]) and its [`Event`]s in order of their start. It is Miller and Katz's record (1991, Figure 1), kept whole
//! and extended to MPI. `docs/design/format.md` draws the bytes.

mod block;
mod block_events;
mod call;
mod call_sites;
pub mod columns;
mod crowded;
mod definitions;
mod error;
mod event;
pub mod export;
mod file_systems;
mod format;
mod given_hints;
mod index;
mod jobs;
mod large_requests;
mod losses;
pub mod names;
mod page_faults;
mod processor_waits;
mod reader;
mod records;
mod runs;
pub mod source;
mod splits;
mod stripes;
mod tables;
mod varint;
mod writer;

pub use block_events::BlockEvents;
pub use call::{Call, Layer, Op};
pub use call_sites::CallSite;
pub use crowded::CrowdedHost;
pub use error::{Damage, TraceError};
pub use event::{Event, Flags, Target};
pub use file_systems::{FileSystem, Placement, Striping};
pub use given_hints::GivenHints;
pub use jobs::{JobMember, mpi_jobs};
pub use large_requests::{LargeRequests, MeasuredRate, NoRates};
pub use losses::{Calls, CallsByKind, Losses, Reason, Unseen};
pub use page_faults::PageFaults;
pub use processor_waits::ProcessorWait;
pub use reader::{Block, Events, Trace};
pub use runs::{Merged, Runs};
pub use splits::{Split, SplitWalk, Splits};
pub use stripes::Stripes;
pub use tables::{
    DatatypeId, File, FileId, FileSystemId, Handle, HandleId, MarkNameId, Process, ProcessId, Tables, ViewId,
};
pub use writer::TraceWriter;
