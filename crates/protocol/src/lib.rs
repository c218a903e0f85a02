//! What clients and I/O servers say to each other, and what each side decides: no socket, file, thread or clock.
//!
//! A *message* is a head and, for some, data. A session begins with a [handshake]; then the client sends [requests](Request)
//! and the server answers each with a [reply](Reply) of the same number. Numbers count up; requests may be repeated, and
//! replies may come twice. Nothing is sent that was not asked for. A message on a stream of bytes is a [frame].
//!
//! [`server::Server`] is a server's side as a state machine: what came in, what is to be done about it. [`client`] is the
//! other side: what to send, what to send again when a connection broke, when to give up, and what a sync may acknowledge.
//! [`Placement`] says where the bytes of a file are; both sides work that out for themselves.
//!
//! `pio-store` drives these machines with sockets and disks, and the simulated stores of the tests and of `pio-sim` with
//! modelled ones: what they decide is decided here, once.

#![forbid(unsafe_code)]

mod blocks;
pub mod client;
mod error;
mod extents;
pub mod frame;
pub mod handshake;
mod limits;
mod pieces;
mod placement;
mod process;
mod reply;
mod request;
pub mod server;
pub mod waiting;
pub mod wire;

pub use blocks::{BLOCK_BYTES, has_whole_block, in_whole_blocks};
pub use error::{Expected, Failure, ProtocolError};
pub use extents::{Extents, MOST_EXTENTS};
pub use limits::{Limits, PATH_BYTES};
pub use pieces::goes_along;
pub use placement::{Placement, Share, Shares, SlotStrips, StripRuns, StripShare, owner_of};
pub use process::{ClientId, ClientProcess, HOST_BYTES};
pub use reply::{Answer, Holder, MOST_BLOCKS, MOST_NAMES, Reply, ReplyBody, Usage};
pub use request::{Body, FileId, FileRef, Name, Request, Selection, ViewRef};

/// The version of the protocol: both sides must have the same.
pub const VERSION: u32 = 11;
