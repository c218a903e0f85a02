//! How times and sizes are distributed around their mean.

use crate::kernel::Stream;

/// How times or sizes are distributed around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All alike.
    Fixed,
    /// Evenly between nothing and twice the mean.
    Uniform,
    /// Exponentially.
    Exponential,
}

impl Distribution {
    /// Draws a time or size, in the unit of the mean.
    pub fn draw(self, stream: &mut Stream, mean: f64) -> f64 {
        match self {
            Distribution::Fixed => mean,
            Distribution::Uniform => 2.0 * mean * stream.uniform(),
            Distribution::Exponential => stream.exponential(mean),
        }
    }

    /// Draws what is left of the interval in which one happens to begin: long ones are met more often than short ones, in
    /// proportion to their length. So the first request comes no sooner than others.
    pub fn draw_rest(self, stream: &mut Stream, mean: f64) -> f64 {
        match self {
            Distribution::Fixed => mean * stream.uniform(),
            // The square root of a uniform number has a density in proportion to itself.
            Distribution::Uniform => 2.0 * mean * stream.uniform().sqrt() * stream.uniform(),
            Distribution::Exponential => stream.exponential(mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_an_interval_has_the_mean_of_renewal_theory() {
        // E[X^2] / 2 E[X]: half the mean, two thirds of it, all of it.
        let mut stream = Stream::named(1, "intervals");
        for (distribution, expected) in
            [(Distribution::Fixed, 0.5), (Distribution::Uniform, 2.0 / 3.0), (Distribution::Exponential, 1.0)]
        {
            let count = 100_000;
            let sum: f64 = (0..count).map(|_| distribution.draw_rest(&mut stream, 3.0)).sum();
            let mean = sum / f64::from(count) / 3.0;
            assert!((mean - expected).abs() < 0.01, "{distribution:?}: {mean}");
        }
    }
}
