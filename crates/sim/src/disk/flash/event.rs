//! What happens in a flash device, and what it has done.

use crate::kernel::Time;

/// What a device has done, in units of its mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Units written for the host.
    pub written: u64,
    /// Units written again by garbage collection.
    pub moved: u64,
    /// Lines erased.
    pub erased: u64,
}

impl Work {
    /// Units written to the flash for each that the host writes; nothing if it wrote none.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.written > 0).then(|| (self.written + self.moved) as f64 / self.written as f64)
    }

    /// What was done since an earlier moment.
    pub fn since(&self, earlier: &Work) -> Work {
        Work {
            written: self.written - earlier.written,
            moved: self.moved - earlier.moved,
            erased: self.erased - earlier.erased,
        }
    }
}

/// What happens later in a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// The controller is done with a command.
    Begin(u32),
    /// Units of a write are in the buffer, in this page of all.
    Taken {
        /// The command.
        command: u32,
        /// The page.
        page: u32,
        /// How many.
        units: u32,
    },
    /// Data for a page are at its die.
    Sent {
        /// The page.
        page: u32,
    },
    /// A die is done with what it did.
    Die(u32),
    /// Data of a page are over the bus.
    Over(Read),
    /// Data of a command are at the host.
    Linked(u32),
}

/// Data that come from a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// For a command: bytes that the host wants of these units.
    Command {
        /// The command.
        command: u32,
        /// Bytes over the link.
        bytes: u64,
    },
    /// To be moved.
    Moved {
        /// The page.
        page: u32,
        /// How many units were valid in it.
        units: u32,
    },
}

/// What a device asks of whoever has it.
#[derive(Debug, Default)]
pub struct FlashActions {
    /// To be given to [`FlashModel::handle`](super::FlashModel::handle) at these times, ties in this order.
    pub later: Vec<(Time, FlashEvent)>,
    /// Requests that are done now.
    pub done: Vec<u32>,
}
