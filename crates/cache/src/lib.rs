//! The extent buffer cache: what is kept, read ahead and written behind, as a pure state machine.
//!
//! *Event in, actions out*: no clock, file, thread or random number inside. The simulator drives it as the memory
//! of I/O nodes, and the study of Miller and Katz as the buffers of processes. Pioscope's own I/O servers have no cache:
//! the kernel's page cache is theirs.
//! Two caches are stacked by handing what the upper one wants to fetch and write to the lower one as its requests.
//!
//! Blocks are kept as runs of consecutive ones that are alike, so that a large access costs what a small one does. The
//! replacement [`Policy`] is nevertheless exactly the published one, block by block: [`Replacement`] is that alone, for
//! counting misses.

mod cache;
mod event;
mod files;
mod index;
mod owners;
mod policy;
mod read;
mod replacement;
mod runs;
mod settings;
mod slab;
mod statistics;
mod transfer;
mod waiting;
mod write;

pub use cache::Cache;
pub use event::{Action, Event, FileId, ProcessId, RequestId, TransferId};
pub use policy::Policy;
pub use replacement::{Replacement, Touched};
pub use settings::{ReadAhead, Settings, SettingsError, Writes};
pub use statistics::Statistics;
