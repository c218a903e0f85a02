//! Bytes over time, in bins of equal width.

use pio_machine::Duration;

use pio_sim::kernel::Time;

/// Bytes that moved in each bin. What takes time is spread evenly over it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Width of a bin.
    pub bin: Duration,
    /// Bytes of each.
    pub bytes: Vec<f64>,
}

impl Rates {
    /// Nothing yet. A bin has at least a picosecond.
    pub fn new(bin: Duration) -> Rates {
        Rates { bin: bin.max(Duration::from_picoseconds(1)), bytes: Vec::new() }
    }

    /// Adds bytes that move between `start` and `end`.
    pub fn add(&mut self, start: Time, end: Time, bytes: u64) {
        let width = self.bin.picoseconds();
        let (first, last) = (start.0 / width, end.0.saturating_sub(1).max(start.0) / width);
        if self.bytes.len() as u64 <= last {
            self.bytes.resize(last as usize + 1, 0.0);
        }
        if first == last {
            self.bytes[first as usize] += bytes as f64;
            return;
        }
        let per_picosecond = bytes as f64 / (end.0 - start.0) as f64;
        for bin in first..=last {
            let from = start.0.max(bin * width);
            let until = end.0.min((bin + 1) * width);
            self.bytes[bin as usize] += per_picosecond * (until - from) as f64;
        }
    }

    /// Time in the middle of each bin, seconds, and its rate, bytes a second.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let width = self.bin.seconds();
        self.bytes.iter().enumerate().map(move |(bin, bytes)| ((bin as f64 + 0.5) * width, bytes / width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spread_over_their_time() {
        let mut rates = Rates::new(Duration::from_picoseconds(10));
        rates.add(Time(5), Time(25), 200);
        rates.add(Time(30), Time(30), 7);
        assert_eq!(rates.bytes, [50.0, 100.0, 50.0, 7.0]);
    }
}
