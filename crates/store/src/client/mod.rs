//! The client: what programs use.
//!
//! [`Store`] connects, [`StoreFile`] reads and writes. Underneath, a [`Link`] a server is the state machine of what was
//! asked and is not answered yet; a [lane](lane) carries its messages, and comes back when a connection breaks.
//!
//! One operation talks to all servers it needs at once: it sends to each in turn, some megabytes ahead of the answers.

mod file;
mod lane;
mod link;
mod memory;
mod split;
mod store;

pub use file::{Lock, StoreFile};
pub use link::{Heard, Link};
pub use memory::{Layed, Sink, Source};
pub use split::{Chunk, Split};
pub use store::{Checked, Mode, Options, Stat, Store, Striping, Unreferenced};
