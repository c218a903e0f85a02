//! What carries messages between nodes.

use crate::kernel::Time;

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

/// What carries messages between nodes numbered from 0.
pub trait Network {
    /// How many nodes there are.
    fn nodes(&self) -> u32;

    /// Takes in a message of `bytes` (which may be 0) at `now`, which is not before the last time it carried on to.
    /// Messages of one node to another arrive in the order in which they were sent.
    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64);

    /// When something happens next: nothing, if no message is under way.
    fn next_time(&self) -> Option<Time>;

    /// Carries on up to `until`, or, if that comes first, to the first moment at which messages arrive: these are added
    /// to `delivered`.
    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>);
}
