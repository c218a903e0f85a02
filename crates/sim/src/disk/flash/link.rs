//! The link between host and device.

use pio_machine::Bandwidth;
use pio_machine::disk::{Flash, HalfDuplex};
use pio_plan::Direction;

use crate::kernel::{Queue, Time};

/// The link: both directions independent of each other, or one at a time and commands between them.
#[derive(Debug)]
pub(super) struct Link {
    rate: Bandwidth,
    half_duplex: Option<HalfDuplex>,
    /// To the device, and everything where there is one direction at a time.
    there: Queue,
    back: Queue,
}

impl Link {
    pub(super) fn new(flash: &Flash) -> Link {
        let (there, back) = (Queue::default(), Queue::default());
        Link { rate: flash.link, half_duplex: flash.half_duplex, there, back }
    }

    /// A command comes. When the device has it.
    pub(super) fn take(&mut self, now: Time) -> Time {
        match self.half_duplex {
            Some(HalfDuplex { command }) => self.there.serve(now, command).1,
            None => now,
        }
    }

    /// Data of a read or a write. When they are over.
    pub(super) fn carry(&mut self, now: Time, direction: Direction, bytes: u64) -> Time {
        let queue = match direction {
            Direction::Read if self.half_duplex.is_none() => &mut self.back,
            Direction::Read | Direction::Write => &mut self.there,
        };
        queue.serve(now, self.rate.time_of(bytes)).1
    }
}
