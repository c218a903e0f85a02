//! Messages through UCX: hardware that moves data from memory to memory where there is any, TCP where there is none.
//!
//! A message is one of UCX's active messages, whose header is
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | the number of the message, from 0, little endian: messages may overtake each other |
//! | 8 | 16 | the prefix of a [frame](pio_protocol::frame) |
//! | 24 | | the head |
//!
//! and whose data are the data: gathered from where they lie; from 8 KiB up by rendezvous, that is taken from the sender's
//! memory straight to their place when the receiver knows it. A head that is too long for a header goes before its data as
//! the data of a message of its own (whose header ends with the prefix); then the header of the data is a number only.
//!
//! UCX decides which hardware and which of its protocols serve. A peer that died is noticed by UCX, which is told to look.

mod connection;
mod handles;
mod hardware;
mod inbox;
mod interrupt;
mod library;
mod listener;
mod socket_address;
mod worker;

pub use connection::UcxConnection;
pub use hardware::has_hardware;
pub use listener::UcxListener;
pub use worker::available;
