//! A client's side: what to send, what to send again, when to give up, and what may be told to the program.
//!
//! [`ClientSession`] is the talk with one server; [`Retry`] says how long a server is tried; [`Split`] cuts an access into requests,
//! [`Transfer`] puts its answers together; [`Unsynced`] knows what a file would lose.

mod retry;
mod session;
mod sizes;
mod split;
mod transfer;
mod unsynced;

pub use retry::Retry;
pub use session::{ClientSession, Heard};
pub use sizes::{Exchange, exchange};
pub use split::{CHUNK_BYTES, Chunk, MOST_STRIPS, Split, chunk_bytes};
pub use transfer::{Direction, Naming, OperationError, Transfer, holes, lengths};
pub use unsynced::{Lost, Syncing, Unsynced};
