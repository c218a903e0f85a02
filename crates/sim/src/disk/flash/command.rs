//! What the host asks of a flash device, while it is carried out.

use pio_plan::Direction;

/// A command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    /// Its number at whoever asks.
    pub(super) id: u32,
    pub(super) direction: Direction,
    /// First byte.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Pages to be read, or units to be taken into the buffer, until it is done.
    pub(super) left: u32,
}

/// The units of a write that are not yet in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) command: u32,
    pub(super) next: u32,
    /// The unit after the last.
    pub(super) end: u32,
}
