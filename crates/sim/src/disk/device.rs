//! A disk of any kind whose times are known when a request begins.

use pio_machine::disk::{Disk, Disks, SolidState};
use pio_machine::{Bandwidth, Duration};
use pio_plan::Direction;

use super::drive::DriveModel;
use super::request::{DiskError, Request};
use crate::kernel::Time;

/// A disk, or an array that acts as one.
#[derive(Clone, Debug)]
pub struct Device {
    kind: Kind,
    /// Disks with data that act as one.
    array: u64,
    /// Where the last request ended, in bytes; nothing before the first.
    position: Option<u64>,
}

#[derive(Clone, Debug)]
enum Kind {
    Simple { seek: Duration, bandwidth: Bandwidth },
    Drive(Box<DriveModel>),
    SolidState(SolidState),
}

impl Device {
    /// One of the disks of a description; nothing for flash, which is a [`FlashModel`](super::FlashModel).
    pub fn new(disks: &Disks) -> Option<Device> {
        let kind = match &disks.disk {
            Disk::Simple { seek, bandwidth } => Kind::Simple { seek: *seek, bandwidth: *bandwidth },
            Disk::Drive { drive, .. } => Kind::Drive(Box::new(DriveModel::new(drive))),
            Disk::SolidState(device) => Kind::SolidState(*device),
            Disk::Flash(_) => return None,
        };
        Some(Device { kind, array: u64::from(disks.array.max(1)), position: None })
    }

    /// How many requests it serves at the same time.
    pub fn channels(&self) -> u32 {
        match &self.kind {
            Kind::SolidState(device) => device.channels,
            Kind::Simple { .. } | Kind::Drive(_) => 1,
        }
    }

    /// Where the last request ended, in bytes.
    pub fn position(&self) -> u64 {
        self.position.unwrap_or(0)
    }

    /// How many bytes it holds; nothing if the description does not say.
    pub fn bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::Drive(drive) => Some(drive.blocks() * u64::from(drive.block_bytes()) * self.array),
            Kind::Simple { .. } | Kind::SolidState(_) => None,
        }
    }

    /// Begins to serve a request at `now`, which is not before it was done with an earlier one that left it no channel.
    /// When it is done.
    ///
    /// # Errors
    /// If a drive does not have such blocks.
    pub fn serve(
        &mut self,
        now: Time,
        direction: Direction,
        offset: u64,
        bytes: u64,
    ) -> Result<Time, DiskError> {
        let continues = self.position == Some(offset);
        self.position = Some(offset.saturating_add(bytes));
        match &mut self.kind {
            Kind::Simple { seek, bandwidth } => {
                let transfer = bandwidth.time_of(bytes.div_ceil(self.array));
                Ok(now + if continues { Duration::ZERO } else { *seek } + transfer)
            }
            Kind::Drive(drive) => {
                // The sectors of all disks of an array at one place are one block.
                let block_bytes = u64::from(drive.block_bytes()) * self.array;
                let block = offset / block_bytes;
                let blocks = offset.saturating_add(bytes).div_ceil(block_bytes) - block;
                Ok(drive.serve(now, Request { direction, block, blocks })?.done)
            }
            Kind::SolidState(device) => {
                let begin = match direction {
                    Direction::Read => device.read,
                    Direction::Write => device.write,
                };
                Ok(now + begin + device.bandwidth.time_of(bytes))
            }
        }
    }
}
