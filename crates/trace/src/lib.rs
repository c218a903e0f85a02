//! *What happened*: events, the trace file, its reader and writer, and the exports.
//!
//! A job's trace is one file, `NAME.pio`: the processes, files, handles, views and datatypes of the job (the
//! [`Tables`]) and its [`Event`]s in order of their start. It is Miller and Katz's record (1991, Figure 1), kept whole
//! and extended to MPI. `docs/format.md` draws the bytes.

mod call;
mod event;
mod tables;

pub use call::{Call, Layer, Op};
pub use event::{Event, Flags, Target};
pub use tables::{DatatypeId, File, FileId, Handle, HandleId, Process, ProcessId, Tables, ViewId};
