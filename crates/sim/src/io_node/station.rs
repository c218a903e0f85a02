//! Where a request may have to wait.

use pio_machine::Duration;

use crate::kernel::Time;

/// First come, first served, one at a time. As requests come in order of time, when it will be free says all there is to
/// know of those that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Station {
    free: Time,
    busy: Duration,
}

impl Station {
    /// Takes in what comes at `now` and needs `service`: when it is done.
    pub(super) fn serve(&mut self, now: Time, service: Duration) -> Time {
        self.free = self.free.max(now) + service;
        self.busy = Duration::from_picoseconds(self.busy.picoseconds().saturating_add(service.picoseconds()));
        self.free
    }

    pub(super) fn busy(&self) -> Duration {
        self.busy
    }
}

/// For how long each part of an I/O node was in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Adapter, what came in.
    pub adapter_in: Duration,
    /// Adapter, what went out.
    pub adapter_out: Duration,
    /// Processor.
    pub cpu: Duration,
    /// Bus.
    pub bus: Duration,
    /// Channels to the disks' caches, all together.
    pub channels: Duration,
    /// Disks, all together, and each channel of a solid-state device by itself.
    pub disks: Duration,
}
