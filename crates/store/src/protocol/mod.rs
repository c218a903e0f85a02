//! What clients and servers say to each other, as bytes. Sockets are elsewhere.
//!
//! A *message* is a head and, for some, data. A session begins with a [handshake](handshake); then the client sends
//! [requests](Request) and the server answers each with a [reply](Reply) of the same number. Numbers count up; requests
//! may be repeated, and replies may come twice. Nothing is sent that was not asked for.
//!
//! A message on a stream of bytes is a [frame].

pub mod frame;
pub mod handshake;
mod reply;
mod request;

pub use reply::{Answer, FileRecord, Holder, Reply, ReplyBody, Usage};
pub(crate) use reply::{MOST_BLOCKS, MOST_NAMES};
pub use request::{Access, Body, FileId, FileRef, Name, Register, Request, ViewRef};

/// The version of the protocol: both sides must have the same.
pub const VERSION: u32 = 6;

/// A client, by a random number that it keeps through all its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u128);
