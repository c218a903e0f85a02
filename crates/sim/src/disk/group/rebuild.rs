//! Disks that have failed, and how far they are rebuilt.
//!
//! One strip after the other is computed from the other disks and written to a spare, which takes the failed disk's place.
//! The next one begins when the last is written, and not before its turn at the rate that the description allows. Strips
//! that are there again are read and written like those of other disks.

use pio_machine::Duration;
use pio_machine::disk::Raid;

use crate::kernel::Time;

/// Failed disks.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    failed: Vec<Failed>,
    unit: u64,
    /// Strips of each disk to be rebuilt, and the least time of one; nothing without a rebuild.
    rebuild: Option<(u64, Duration)>,
    /// When the disk that is being rebuilt was begun.
    begun: Option<Time>,
    /// When all were there again.
    pub(super) rebuilt: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Failed {
    disk: u32,
    /// Strips that are there again.
    strips: u64,
}

/// When the next strip is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    At(Time),
    /// All are.
    Never,
}

impl Failures {
    /// Those of a description. `held` bytes are on each disk, if that is known.
    pub(super) fn new(raid: Option<&Raid>, unit: u64, held: Option<u64>) -> Failures {
        let Some(raid) = raid else { return Failures::default() };
        let rebuild = raid.rebuild.map(|rebuild| {
            let bytes = held.map_or(rebuild.bytes, |held| held.min(rebuild.bytes));
            // A strip that is cut short by the end of the disk does not take part.
            ((bytes / unit).max(1), rebuild.rate.time_of(unit))
        });
        let failed = raid.failed.iter().map(|disk| Failed { disk: *disk, strips: 0 }).collect();
        Failures { failed, unit, rebuild, begun: None, rebuilt: None }
    }

    /// Whether a disk has what it should have from this byte on, for a strip.
    pub(super) fn is_there(&self, disk: u32, offset: u64) -> bool {
        let failed = self.failed.iter().find(|failed| failed.disk == disk);
        failed.is_none_or(|failed| offset / self.unit < failed.strips)
    }

    /// A request comes. Whether the rebuild begins with it.
    pub(super) fn begin(&mut self, now: Time) -> bool {
        let begins = self.rebuild.is_some() && self.begun.is_none();
        if begins {
            self.begun = Some(now);
        }
        begins
    }

    /// The disk that is being rebuilt, and its next strip.
    pub(super) fn next(&self) -> Option<(u32, u64)> {
        let (strips, _) = self.rebuild?;
        let next = self.failed.iter().find(|failed| failed.strips < strips);
        next.map(|failed| (failed.disk, failed.strips))
    }

    /// The strip of [`Failures::next`] is there again.
    pub(super) fn strip_is_done(&mut self, now: Time) -> Turn {
        let Some((strips, each)) = self.rebuild else { return Turn::Never };
        let Some(failed) = self.failed.iter_mut().find(|failed| failed.strips < strips) else {
            return Turn::Never;
        };
        failed.strips += 1;
        let done = failed.strips;
        if done < strips {
            let begun = self.begun.unwrap_or(now);
            let turn = begun + each.saturating_mul(done);
            return Turn::At(turn.max(now));
        }
        if self.next().is_some() {
            self.begun = Some(now);
            return Turn::At(now);
        }
        self.rebuilt = Some(now);
        Turn::Never
    }
}
