//! Cold reads: pages that the memory of a node does not have come from its device first.

use std::collections::BTreeMap;

use pio_machine::Duration;

use super::{Engine, Happening};
use crate::process::Then;

/// What readers of cold files have come to.
#[derive(Debug, Default)]
pub(super) struct ColdReaders {
    /// Where a rank's last read of a file ended.
    ends: BTreeMap<(u32, u32), u64>,
}

impl ColdReaders {
    /// Whether a rank goes on in a file where it was.
    fn goes_on(&mut self, rank: u32, file: u32, offset: u64, bytes: u64) -> bool {
        self.ends.insert((rank, file), offset + bytes) == Some(offset)
    }
}

impl Engine<'_> {
    /// A rank's read goes on when its pages are in memory. The kernel has asked for them when the call began.
    pub(super) fn wait_for_pages(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let costs = self.machine.calls.cold_reads.as_ref();
        let transfer = process.transfer.as_ref();
        let Some((costs, transfer)) = costs.zip(transfer.filter(|it| self.files[it.file as usize].is_cold))
        else {
            return self.complete(rank);
        };
        let Some(request) = transfer.current else { return };
        let goes_on = self.cold_readers.goes_on(rank, transfer.file, request.offset, request.bytes);
        if transfer.cold_bytes == 0 {
            return self.complete(rank);
        }
        let missed = if goes_on { Duration::ZERO } else { costs.request };
        let here = request.start + missed + costs.stream.time_of(transfer.cold_bytes);
        let time = costs.bandwidth.time_of(transfer.cold_bytes);
        let there = self.devices.take(process.node, request.start, time);
        process.then = Then::Complete;
        self.events.add(here.max(there).max(self.now), Happening::Resume(rank));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_where_it_was_goes_on() {
        let mut readers = ColdReaders::default();
        assert!(!readers.goes_on(0, 0, 0, 10));
        assert!(readers.goes_on(0, 0, 10, 10));
        assert!(!readers.goes_on(0, 0, 30, 10));
        assert!(!readers.goes_on(1, 0, 40, 10), "another rank");
        assert!(!readers.goes_on(0, 1, 40, 10), "another file");
        assert!(readers.goes_on(0, 0, 40, 10));
    }
}
