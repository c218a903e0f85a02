//! The path of data between ranks that share memory: straight to their place in the aggregator's collective buffer, or through
//! an [outbox](crate::core::run::buffers).
//!
//! In place takes from half as long to five times as long, by the size of the pieces, what else goes through the caches, and
//! whether the two processors share one; what a virtual machine says of that is no guide, and ranks move. So it begins with what
//! is right for most, tries the other path now and then in the program's own operations, and takes the faster one. Each message
//! says which path its data went: ranks need not agree.

use std::cmp::Ordering;
use std::time::Duration;

use pio_plan::Direction;

/// Smaller pieces gain nothing from an outbox: how soon they arrive is what counts.
pub(crate) const LEAST_BYTES: u64 = 64 << 10;
/// Smaller pieces begin in place: two ranks' caches hold them.
const LARGE_BYTES: u64 = 256 << 10;
/// Every so many operations the path that was slower is tried again.
const TRIAL_EVERY: u32 = 64;
/// The first of these operations is one. Programs with fewer do not suffer from trials.
const TRIAL_AT: u32 = 8;
/// Operations of a trial: the first finds the memory of the other path in the wrong caches, or never touched.
const TRIAL_TAKES: u32 = 2;
/// A path is as fast as in the fastest of so many of its last operations: others may have disturbed some.
const KEPT: usize = 4;
/// Pieces are compared with pieces of about their size: within a power of two, from [`LEAST_BYTES`] on.
const CLASSES: usize = 8;

/// How data go from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferPath {
    /// The client puts them into the aggregator's collective buffer, or takes them out.
    InPlace,
    /// Through the sender's outbox.
    Outbox,
}

impl TransferPath {
    fn other(self) -> TransferPath {
        match self {
            TransferPath::InPlace => TransferPath::Outbox,
            TransferPath::Outbox => TransferPath::InPlace,
        }
    }
}

/// What this rank knows about the two paths.
#[derive(Debug, Default)]
pub(crate) struct PathTuner {
    classes: [[Class; CLASSES]; 2],
}

#[derive(Debug, Default)]
struct Class {
    operations: u32,
    /// The path of the trial that is on.
    tried: Option<TransferPath>,
    in_place: Times,
    outbox: Times,
}

/// One operation, and the path of its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// The path that its data take.
    pub(crate) path: TransferPath,
    direction: usize,
    class: usize,
}

impl PathTuner {
    /// The path of an operation in which this rank sends pieces of about so many bytes.
    pub(crate) fn next(&mut self, direction: Direction, bytes: u64) -> Trial {
        let direction = usize::from(direction == Direction::Read);
        let class = ((bytes / LEAST_BYTES).max(1).ilog2() as usize).min(CLASSES - 1);
        let path = self.classes[direction][class].next(bytes);
        Trial { path, direction, class }
    }

    /// So many bytes took this path, and the operation took so long since all ranks had come to it.
    pub(crate) fn took(&mut self, trial: Trial, bytes: u64, time: Duration) {
        let class = &mut self.classes[trial.direction][trial.class];
        let times = match trial.path {
            TransferPath::InPlace => &mut class.in_place,
            TransferPath::Outbox => &mut class.outbox,
        };
        times.add(time.as_secs_f64() / bytes.max(1) as f64);
    }
}

impl Class {
    fn next(&mut self, bytes: u64) -> TransferPath {
        let number = self.operations % TRIAL_EVERY;
        self.operations = self.operations.wrapping_add(1);
        if number == TRIAL_AT {
            self.tried = Some(self.faster(bytes).other());
        } else if number == TRIAL_AT + TRIAL_TAKES {
            self.tried = None;
        }
        self.tried.unwrap_or_else(|| self.faster(bytes))
    }

    fn faster(&self, bytes: u64) -> TransferPath {
        match self.in_place.at_best().total_cmp(&self.outbox.at_best()) {
            Ordering::Less => TransferPath::InPlace,
            Ordering::Greater => TransferPath::Outbox,
            Ordering::Equal if bytes < LARGE_BYTES => TransferPath::InPlace,
            Ordering::Equal => TransferPath::Outbox,
        }
    }
}

/// Seconds a byte in the last operations, newest first.
#[derive(Debug, Default)]
struct Times {
    kept: [Option<f64>; KEPT],
}

impl Times {
    fn add(&mut self, time: f64) {
        self.kept.rotate_right(1);
        self.kept[0] = Some(time);
    }

    /// What to expect of the next one; a path that was not tried is the slower one.
    fn at_best(&self) -> f64 {
        self.kept.iter().flatten().copied().fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs operations of 1 MiB that take so many microseconds in place and through the outbox; how many went in place.
    fn run(paths: &mut PathTuner, operations: u32, in_place: u64, outbox: u64) -> u32 {
        let mut went_in_place = 0;
        for _ in 0..operations {
            let trial = paths.next(Direction::Write, 1 << 20);
            let time = if trial.path == TransferPath::InPlace { in_place } else { outbox };
            paths.took(trial, 1 << 20, Duration::from_micros(time));
            went_in_place += u32::from(trial.path == TransferPath::InPlace);
        }
        went_in_place
    }

    #[test]
    fn the_faster_way_is_taken_but_for_trials() {
        // Large pieces begin through the outbox.
        assert_eq!(run(&mut PathTuner::default(), 640, 30, 50), 640 - 8 - 9 * 2);
        assert_eq!(run(&mut PathTuner::default(), 640, 250, 60), 10 * 2);
        assert_eq!(run(&mut PathTuner::default(), 8, 30, 50), 0);
    }

    #[test]
    fn what_changes_is_noticed() {
        let mut paths = PathTuner::default();
        run(&mut paths, 100, 30, 50);
        run(&mut paths, 1000, 250, 50);
        assert_eq!(run(&mut paths, 640, 250, 50), 20);
        run(&mut paths, 1000, 30, 50);
        assert_eq!(run(&mut paths, 640, 30, 50), 620);
    }

    #[test]
    fn a_disturbance_and_a_cold_start_change_nothing() {
        let mut paths = PathTuner::default();
        run(&mut paths, 20, 30, 50);
        run(&mut paths, 3, 5000, 50);
        assert_eq!(run(&mut paths, 20, 30, 50), 20);
        // In place was cold, and is the faster path.
        let mut paths = PathTuner::default();
        run(&mut paths, 9, 80, 50);
        assert_eq!(run(&mut paths, 20, 40, 50), 20);
    }

    #[test]
    fn sizes_and_directions_are_apart() {
        let mut paths = PathTuner::default();
        run(&mut paths, 60, 30, 60);
        assert_eq!(paths.next(Direction::Write, 1 << 20).path, TransferPath::InPlace);
        assert_eq!(paths.next(Direction::Read, 1 << 20).path, TransferPath::Outbox);
        for (bytes, path) in [
            (0, TransferPath::InPlace),
            (1 << 16, TransferPath::InPlace),
            (LARGE_BYTES, TransferPath::Outbox),
            (1 << 30, TransferPath::Outbox),
            (u64::MAX, TransferPath::Outbox),
        ] {
            assert_eq!(paths.next(Direction::Write, bytes).path, path);
        }
    }
}
