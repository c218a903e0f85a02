//! What programs of ours measure: a line each, of a name, bytes, the median of its seconds, and their quartiles.

use anyhow::{Context, Result};
use pio_machine::Duration;
use rustix::time::{ClockId, clock_gettime};

/// What a program measured.
#[derive(Debug)]
pub(crate) struct Measured {
    numbers: Vec<(String, Number)>,
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// Of what size it was measured, or another condition.
    pub bytes: u64,
    /// The median.
    pub seconds: f64,
    /// Half of what lies between the quartiles, as a part of it.
    pub spread: f64,
}

impl Number {
    /// Seconds that it may be off.
    pub(crate) fn noise(&self) -> f64 {
        self.seconds * self.spread
    }
}

impl Measured {
    /// From its text; lines of other forms are left out.
    pub(crate) fn read(text: &str) -> Measured {
        let number = |line: &str| {
            let mut words = line.split(' ');
            let (name, bytes) = (words.next()?, words.next()?.parse().ok()?);
            let seconds: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
            let &[seconds, low, high] = &seconds[..] else { return None };
            let spread = if seconds > 0.0 { (high - low) / 2.0 / seconds } else { 0.0 };
            Some((name.to_owned(), Number { bytes, seconds, spread }))
        };
        Measured { numbers: text.lines().filter_map(number).collect() }
    }

    /// All of this name, in their order.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = Number> {
        self.numbers.iter().filter(move |(of, _)| of == name).map(|(_, number)| *number)
    }

    /// The one of this name and size.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn of(&self, name: &str, bytes: u64) -> Result<Number> {
        let found = self.all(name).find(|number| number.bytes == bytes);
        found.with_context(|| format!("the results: expected a line '{name} {bytes}'"))
    }
}

/// Processor seconds that this thread has had.
pub(crate) fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Three digits: more is noise. Below zero is none.
pub(crate) fn time(seconds: f64) -> Duration {
    if seconds <= 0.0 {
        return Duration::ZERO;
    }
    let scale = 10_f64.powi(2 - seconds.log10().floor() as i32);
    Duration::from_seconds((seconds * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbers_or_left_out() {
        let found =
            Measured::read("nodes 4\nwrite 8 0.002 0.001 0.003\nwrite 64 0.5 0.5 0.5\nwrite x 1 1 1\n");
        assert_eq!(found.of("write", 8).unwrap(), Number { bytes: 8, seconds: 0.002, spread: 0.5 });
        assert_eq!(found.all("write").count(), 2);
        let error = found.of("read", 8).unwrap_err().to_string();
        assert_eq!(error, "the results: expected a line 'read 8'");
    }

    #[test]
    fn times_keep_three_digits() {
        assert_eq!(time(1.234_56e-6).picoseconds(), 1_230_000);
        assert_eq!(time(-1.0), Duration::ZERO);
    }
}
