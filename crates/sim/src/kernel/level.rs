//! A number that changes with time, such as a queue's length, and its average over time.

use super::time::Time;

/// A level and the area under it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    level: u64,
    greatest: u64,
    /// When it began to be averaged, and when it last changed.
    start: Time,
    changed: Time,
    /// Level times picoseconds, up to `changed`.
    area: u128,
}

impl Level {
    /// What it is.
    pub fn now(&self) -> u64 {
        self.level
    }

    /// The greatest that it has been.
    pub fn max(&self) -> u64 {
        self.greatest
    }

    /// It becomes one more.
    pub fn rise(&mut self, now: Time) {
        self.set(now, self.level + 1);
    }

    /// It becomes one less.
    pub fn fall(&mut self, now: Time) {
        self.set(now, self.level - 1);
    }

    /// It becomes `level`.
    pub fn set(&mut self, now: Time, level: u64) {
        self.area += u128::from(self.level) * u128::from(now.0 - self.changed.0);
        self.changed = now;
        self.level = level;
        self.greatest = self.greatest.max(level);
    }

    /// Forgets what has been: a warm-up is over.
    pub fn restart(&mut self, now: Time) {
        *self = Level { level: self.level, greatest: self.level, start: now, changed: now, area: 0 };
    }

    /// The average until `now`; what it is, if no time has passed.
    pub fn mean(&self, now: Time) -> f64 {
        let span = now.0 - self.start.0;
        if span == 0 {
            return self.level as f64;
        }
        let area = self.area + u128::from(self.level) * u128::from(now.0 - self.changed.0);
        area as f64 / span as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_area_over_the_time() {
        let mut level = Level::default();
        assert_eq!(level.mean(Time(0)), 0.0);
        level.rise(Time(10));
        level.rise(Time(20));
        level.fall(Time(30));
        assert_eq!((level.mean(Time(40)), level.max(), level.now()), (1.0, 2, 1));
        level.restart(Time(40));
        assert_eq!((level.mean(Time(40)), level.max()), (1.0, 1));
        level.set(Time(50), 3);
        assert_eq!(level.mean(Time(60)), 2.0);
    }
}
