//! The client: what programs use.
//!
//! [`Store`] connects, [`StoreFile`] reads and writes. Underneath, a [link] a server carries messages for
//! `pio_protocol::client`, which decides what is sent, and comes back when a connection breaks.
//!
//! One operation talks to all servers it needs at once: it sends to each in turn, some megabytes ahead of the answers.

mod file;
mod link;
mod memory;
mod options;
mod store;
mod watch;

pub use file::{Lock, StoreFile};
pub use memory::{GATHER_BYTES, Layed, Sink, Source};
pub use options::{MOST_SECONDS, Options, Unanswered, timeout_of};
pub use store::{Checked, Mode, PartChecked, Stat, Store, StripingHints, Unreferenced};
pub use watch::{Moved, Watch};
