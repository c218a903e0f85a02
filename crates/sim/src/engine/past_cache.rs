//! Requests for which the page cache is not the end: past it (`O_DIRECT`), or through it to the device (`O_SYNC`, `O_DSYNC`).

use pio_machine::Duration;
use pio_plan::Direction;
use pio_trace::{Flags, HandleId};

use super::pages::PAGE;
use super::{Engine, Happening};
use crate::process::{Request, Then};

impl Engine<'_> {
    /// Whether a rank's requests go past the page cache, and it is known what that takes.
    pub(super) fn is_direct(&self, rank: u32) -> bool {
        self.machine.calls.direct.is_some() && self.mode_contains(rank, Flags::DIRECT)
    }

    /// Whether its writes go on to the device, and it is known what that takes.
    pub(super) fn is_synced(&self, rank: u32) -> bool {
        self.machine.calls.sync.is_some() && self.mode_contains(rank, Flags::SYNC)
    }

    fn mode_contains(&self, rank: u32, flag: Flags) -> bool {
        let transfer = self.processes[rank as usize].transfer.as_ref();
        transfer.is_some_and(|transfer| transfer.mode.contains(flag))
    }

    /// How a handle was opened.
    pub(super) fn mode_of(&self, handle: HandleId) -> Flags {
        self.workload.modes.get(&handle).copied().unwrap_or_default()
    }

    /// A request past the page cache is done when the device has served it, which all ranks of the node share.
    pub(super) fn wait_past_cache(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let calls = &self.machine.calls;
        let (Some(costs), Some(transfer)) = (&calls.direct, &process.transfer) else { return };
        let Some(Request { direction, offset, bytes, start }) = transfer.current else { return };
        let bytes = self.files[transfer.file as usize].there(direction, offset, bytes);
        let (cost, device) = match direction {
            Direction::Read => (&costs.read, calls.cold_reads.as_ref().map(|cold| cold.bandwidth)),
            Direction::Write => (&costs.write, calls.write_back.as_ref().map(|back| back.bandwidth)),
        };
        let alone = start + cost.of(bytes);
        let busy = device.map_or(Duration::ZERO, |rate| rate.time_of(bytes));
        let served = self.devices.take(process.node, start, busy);
        process.then = Then::Complete;
        self.events.add(alone.max(served).max(self.now), Happening::Resume(rank));
    }

    /// A write is done when its pages are on the device.
    pub(super) fn wait_for_sync(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let current = process.transfer.as_ref().and_then(|transfer| transfer.current);
        let (Some(Request { offset, bytes, .. }), Some(sync)) = (current, &self.machine.calls.sync) else {
            return;
        };
        let pages = offset.saturating_add(bytes).div_ceil(PAGE) - offset / PAGE;
        process.then = Then::Complete;
        self.events.add(self.now + sync.of(pages.saturating_mul(PAGE)), Happening::Resume(rank));
    }
}
