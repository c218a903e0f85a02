//! Simulated time.

use std::ops::Add;

use pio_machine::Duration;

/// A moment: picoseconds since the start of the simulated job. 64 bits last 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The end of simulated time: no result reaches it.
    pub const NEVER: Time = Time(u64::MAX);

    /// Whole nanoseconds, as traces have them.
    pub fn nanoseconds(self) -> u64 {
        self.0 / 1000
    }

    /// How long after `earlier` it is.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_picoseconds(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration.picoseconds()))
    }
}
