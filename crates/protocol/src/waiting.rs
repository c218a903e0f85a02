//! How the two sides of a connection within one machine wait for each other.

use std::time::Duration;

/// Data of a message at most that takes no longer than waking somebody up.
const SMALL_BYTES: u64 = 128 << 10;
/// About as long as it takes to wake somebody up: so that a side loses no more than it may save.
const LOOK_OUT: Duration = Duration::from_micros(50);

/// Whether the other side is better on the same processor, as the two take turns, than on one that may sleep: for a message with
/// so many bytes of data.
pub fn is_small(bytes: u64) -> bool {
    bytes <= SMALL_BYTES
}

/// For how long a side that is on another processor than the other looks out for its next message before it sleeps, after it
/// has sent one with so many bytes of data.
pub fn look_out(sent_bytes: u64) -> Duration {
    if is_small(sent_bytes) { LOOK_OUT } else { Duration::ZERO }
}
