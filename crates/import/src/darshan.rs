//! Darshan logs, versions 3.00 to 3.41, in either byte order, read without libdarshan.
//!
//! A log is an uncompressed header and, each compressed for itself, the *job* record, the *names* of the records and one
//! region for each *module*. A module keeps counters per file and process ([`Records`]), or every access ([`Dxt`]). All
//! regions are streams: whatever a log holds and claims, a reader takes a buffer of fixed size and one record.
//!
//! Records of old module versions come out as those of the newest: a counter that a version did not have is −1, as in
//! Darshan's own tools. Bytes that cannot be read end a region with a [`LogDamage`] that names the offset; what came
//! before it was given, and the other regions are not affected.
//!
//! `docs/import.md` says what becomes of a log in a trace.

mod autoperf;
mod convert;
mod counters;
mod damage;
mod dxt;
mod header;
mod heatmap;
mod job;
mod log;
mod lustre;
mod module;
mod names;
mod records;
mod region;
mod shape;
mod totals;

pub use super::order::ByteOrder;
pub use convert::write_trace;
pub use counters::CounterNames;
pub use damage::LogDamage;
pub use dxt::{Dxt, DxtRecord, Segment};
pub use header::{Compression, LogVersion};
pub use heatmap::{Heatmap, Heatmaps};
pub use job::{Job, Mount};
pub use log::{Log, ModuleRegion, is_log};
pub use lustre::{Lustre, LustreComponent, LustreRecord};
pub use module::Module;
pub use names::Names;
pub use records::{Record, Records};
