//! What carries messages between nodes.

use crate::kernel::{Model, Time};

/// Number of a message, given by whoever sends it; a network hands it back and looks at nothing else in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u32);

/// A message, all of which is at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message that arrived, by the number it was given when it was sent.
    pub message: MessageId,
    /// When its first byte was there.
    pub first_byte: Time,
    /// When its last byte was there.
    pub last_byte: Time,
}

/// What carries messages between nodes numbered from 0. It has something to do while messages are under way, and gives out
/// those that have arrived.
pub trait Network: Model<Out = Delivery> {
    /// How many nodes there are.
    fn nodes(&self) -> u32;

    /// Takes in a message of `bytes` (which may be 0) at `now`, which is not before the last time it carried on to.
    /// Messages of one node to another arrive in the order in which they were sent.
    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64);
}
