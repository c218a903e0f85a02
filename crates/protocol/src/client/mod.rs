//! A client's side: what to send, what to send again, when to give up, and what may be told to the program.
//!
//! [`Link`] is the talk with one server; [`Retry`] says how long a server is tried; [`Split`] cuts an access into requests,
//! [`Transfer`] puts its answers together; [`Unsynced`] knows what a file would lose.

mod link;
mod retry;
mod sizes;
mod split;
mod transfer;
mod unsynced;

pub use link::{Heard, Link};
pub use retry::Retry;
pub use sizes::{Exchange, exchange};
pub use split::{CHUNK_BYTES, Chunk, MOST_STRIPS, Split, chunk_bytes};
pub use transfer::{Direction, Naming, OperationError, Transfer, holes, size};
pub use unsynced::{Lost, Syncing, Unsynced};
