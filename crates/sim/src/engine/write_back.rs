//! Write-back: what was written leaves a node's memory for its device while programs go on, and makes them wait when it is too
//! much, as Linux does it (`balance_dirty_pages` in mm/page-writeback.c).
//!
//! A fluid: dirty bytes come with writes, and go at the device's bandwidth while they are more than the background threshold,
//! or old. Who writes beyond the mean of both thresholds is held until no more are left: so writers together are as fast as
//! the device. The kernel lets them slow down bit by bit; in sum that is the same.

use std::collections::VecDeque;

use pio_machine::{Duration, WriteBack};

use super::{Engine, Happening};
use crate::kernel::Time;
use crate::process::Then;

/// Writes so near in time become old together: the kernel looks for old ones no more often.
const TOGETHER: Duration = Duration::from_picoseconds(1_000_000_000_000);

/// The dirty pages of a node.
#[derive(Debug, Default)]
pub(super) struct DirtyPages {
    /// Bytes, and since when the first of them are dirty; the oldest first.
    aged: VecDeque<(Time, u64)>,
    bytes: u64,
    /// Up to when the device's work is accounted for.
    at: Time,
}

impl DirtyPages {
    /// So many more bytes are dirty. How long whoever wrote them has to wait.
    fn add(&mut self, costs: &WriteBack, now: Time, bytes: u64) -> Duration {
        self.write_back(costs, now);
        self.bytes += bytes;
        match self.aged.back_mut() {
            Some((since, there)) if now.since(*since) < TOGETHER => *there += bytes,
            _ => self.aged.push_back((now, bytes)),
        }
        let most = costs.background.midpoint(costs.limit);
        costs.bandwidth.time_of(self.bytes.saturating_sub(most))
    }

    /// So many bytes are dirty no more, because a sync asks for them, or they are dropped: at most those that are not on the device
    /// yet.
    fn clean(&mut self, costs: &WriteBack, now: Time, bytes: u64) -> u64 {
        self.write_back(costs, now);
        let bytes = bytes.min(self.bytes);
        self.take(bytes);
        bytes
    }

    /// What the device has done by now.
    fn write_back(&mut self, costs: &WriteBack, now: Time) {
        while let Some(&(since, oldest)) = self.aged.front().filter(|_| self.at < now) {
            let beyond = self.bytes.saturating_sub(costs.background);
            let going = if beyond > 0 {
                beyond
            } else {
                // Nothing goes until the first are old.
                self.at = self.at.max(since + costs.age).min(now);
                oldest
            };
            let time = costs.bandwidth.time_of(going);
            if now.since(self.at) >= time {
                self.take(going);
                self.at = self.at + time;
            } else {
                self.take(costs.bandwidth.bytes_in(now.since(self.at)).min(going));
                self.at = now;
            }
        }
        self.at = now;
    }

    /// The oldest go first.
    fn take(&mut self, mut bytes: u64) {
        self.bytes -= bytes;
        while let Some((_, oldest)) = self.aged.front_mut().filter(|_| bytes > 0) {
            let part = bytes.min(*oldest);
            bytes -= part;
            *oldest -= part;
            if *oldest == 0 {
                self.aged.pop_front();
            }
        }
    }
}

impl Engine<'_> {
    /// A rank's write is in memory: it goes on when that has room.
    pub(super) fn wait_for_device(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let soiled = process.transfer.as_ref().map_or(0, |transfer| transfer.soiled);
        let Some(costs) = self.machine.calls.write_back.as_ref().filter(|_| soiled > 0) else {
            return self.complete(rank);
        };
        let wait = self.dirty.entry(process.node).or_default().add(costs, self.now, soiled);
        if wait == Duration::ZERO {
            return self.complete(rank);
        }
        process.then = Then::Complete;
        self.events.add(self.now + wait, Happening::Resume(rank));
    }

    /// Of so many dirty bytes of a file that a rank syncs or drops, those that are not on the device yet.
    pub(super) fn not_on_device(&mut self, rank: u32, bytes: u64) -> u64 {
        let Some(costs) = &self.machine.calls.write_back else { return bytes };
        let node = self.processes[rank as usize].node;
        self.dirty.entry(node).or_default().clean(costs, self.now, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_machine::Bandwidth;

    const MEBI: u64 = 1 << 20;

    fn costs() -> WriteBack {
        WriteBack {
            background: 100 * MEBI,
            limit: 300 * MEBI,
            age: Duration::from_seconds(30.0),
            bandwidth: Bandwidth::from_bytes_per_second(10 * MEBI),
        }
    }

    fn at(seconds: f64) -> Time {
        Time::default() + Duration::from_seconds(seconds)
    }

    #[test]
    fn who_writes_more_than_memory_holds_writes_at_the_device_s_speed() {
        let mut dirty = DirtyPages::default();
        assert_eq!(dirty.add(&costs(), at(0.0), 200 * MEBI), Duration::ZERO);
        // 10 MiB too many take a second; by then as many have gone, and so on.
        for second in 0..50 {
            let wait = dirty.add(&costs(), at(f64::from(second)), 10 * MEBI);
            assert_eq!(wait, Duration::from_seconds(1.0), "{second}");
        }
    }

    #[test]
    fn writers_at_once_wait_for_each_other() {
        let mut dirty = DirtyPages::default();
        let waits = [200, 20, 20].map(|mebi| dirty.add(&costs(), at(0.0), mebi * MEBI).seconds());
        assert_eq!(waits, [0.0, 2.0, 4.0]);
    }

    #[test]
    fn the_kernel_stops_at_the_background_threshold() {
        let mut dirty = DirtyPages::default();
        dirty.add(&costs(), at(0.0), 150 * MEBI);
        dirty.write_back(&costs(), at(2.0));
        assert_eq!(dirty.bytes, 130 * MEBI);
        dirty.write_back(&costs(), at(20.0));
        assert_eq!(dirty.bytes, 100 * MEBI);
    }

    #[test]
    fn what_is_old_goes() {
        let mut dirty = DirtyPages::default();
        dirty.add(&costs(), at(0.0), 50 * MEBI);
        dirty.add(&costs(), at(10.0), 20 * MEBI);
        for (seconds, left) in [(30.0, 70), (31.0, 60), (35.0, 20), (39.9, 20), (41.0, 10), (50.0, 0)] {
            dirty.write_back(&costs(), at(seconds));
            assert_eq!(dirty.bytes, left * MEBI, "{seconds}");
        }
    }

    #[test]
    fn a_sync_asks_for_what_is_left() {
        let mut dirty = DirtyPages::default();
        dirty.add(&costs(), at(0.0), 150 * MEBI);
        assert_eq!(dirty.clean(&costs(), at(5.0), 150 * MEBI), 100 * MEBI);
        assert_eq!(dirty.clean(&costs(), at(6.0), MEBI), 0);
        assert!(dirty.aged.is_empty());
    }
}
