//! The times between the messages of a node.

use crate::kernel::Stream;
use crate::network::traffic::Arrivals;

/// Draws the times between messages, in picoseconds.
#[derive(Debug)]
pub(super) enum Gaps {
    /// Whole slots.
    Bernoulli { slot: u64, empty: Geometric },
    /// With this mean.
    Exponential { mean: f64 },
    /// Up to this.
    Uniform { most: f64 },
}

/// How often in a row something does not happen: geometrically distributed.
#[derive(Debug)]
pub(super) struct Geometric {
    /// The probability that it does not happen 1, 2, 4, 8 ... times in a row, as long as a draw could be below.
    powers: Vec<f64>,
}

impl Gaps {
    pub(super) fn of(arrivals: Arrivals, messages_per_s: f64) -> Gaps {
        let mean = 1e12 / messages_per_s;
        match arrivals {
            Arrivals::Bernoulli { slot } => {
                let slot = slot.picoseconds();
                Gaps::Bernoulli { slot, empty: Geometric::of(slot as f64 / mean) }
            }
            Arrivals::Exponential => Gaps::Exponential { mean },
            Arrivals::Uniform => Gaps::Uniform { most: 2.0 * mean },
        }
    }

    /// The time of the first message; the run begins with a slot.
    pub(super) fn first(&self, stream: &mut Stream) -> u64 {
        match self {
            Gaps::Bernoulli { slot, empty } => empty.draw(stream) * slot,
            _ => self.next(stream),
        }
    }

    /// The time from one message to the next.
    pub(super) fn next(&self, stream: &mut Stream) -> u64 {
        match self {
            Gaps::Bernoulli { slot, empty } => (1 + empty.draw(stream)) * slot,
            Gaps::Exponential { mean } => stream.exponential(*mean).round() as u64,
            Gaps::Uniform { most } => (most * stream.uniform()).round() as u64,
        }
    }
}

impl Geometric {
    fn of(probability: f64) -> Geometric {
        let mut powers = Vec::new();
        let mut power = 1.0 - probability;
        while power > f64::EPSILON && powers.len() < 40 {
            powers.push(power);
            power *= power;
        }
        Geometric { powers }
    }

    /// The greatest number of times in a row whose probability exceeds a uniform draw: found bit by bit with products
    /// alone, which are the same on every system.
    fn draw(&self, stream: &mut Stream) -> u64 {
        let draw = stream.uniform();
        let (mut count, mut probability) = (0, 1.0);
        for (bit, power) in self.powers.iter().enumerate().rev() {
            if probability * power > draw {
                probability *= power;
                count |= 1 << bit;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use pio_machine::Duration;

    use super::*;

    #[test]
    fn every_process_has_its_mean_and_standard_deviation() {
        let slot = Duration::from_picoseconds(1000);
        for messages_per_s in [1e9, 5e8, 1e6] {
            let mean = 1e12 / messages_per_s;
            let probability: f64 = 1000.0 / mean;
            let processes = [
                (Arrivals::Bernoulli { slot }, mean * (1.0 - probability).sqrt()),
                (Arrivals::Exponential, mean),
                (Arrivals::Uniform, mean / 3_f64.sqrt()),
            ];
            for (arrivals, deviation) in processes {
                let gaps = Gaps::of(arrivals, messages_per_s);
                let mut stream = Stream::named(1, "test");
                let draws: Vec<f64> = (0..100_000).map(|_| gaps.next(&mut stream) as f64).collect();
                let found = draws.iter().sum::<f64>() / 1e5;
                let squares = draws.iter().map(|gap| (gap - found).powi(2)).sum::<f64>() / 1e5;
                assert!((found - mean).abs() <= 0.01 * mean, "{arrivals:?}: mean {found} is not {mean}");
                let error = (squares.sqrt() - deviation).abs();
                assert!(error <= 0.02 * mean, "{arrivals:?}: {} is not {deviation}", squares.sqrt());
            }
        }
    }
}
