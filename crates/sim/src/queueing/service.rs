//! How long things take: distributions of times.

use pio_machine::Duration;

use crate::kernel::Stream;

/// A distribution of times: of service, or from one arrival to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Always the same.
    Constant(Duration),
    /// Exponential, with this mean.
    Exponential(Duration),
    /// Anything between two times, each as likely.
    Uniform(Duration, Duration),
    /// The sum of some exponential stages: less variable than one.
    Erlang {
        /// Exponential stages, one after the other.
        stages: u32,
        /// Mean of the sum.
        mean: Duration,
    },
    /// One of two exponentials: more variable than one.
    Hyperexponential {
        /// Probability of the first.
        share: f64,
        /// Mean of the first.
        first: Duration,
        /// Mean of the second.
        second: Duration,
    },
    /// Lognormal: many short ones and few very long ones.
    Lognormal {
        /// Mean.
        mean: Duration,
        /// Standard deviation of the times themselves.
        standard_deviation: Duration,
    },
}

impl Service {
    /// A time.
    pub fn draw(&self, stream: &mut Stream) -> Duration {
        match *self {
            Service::Constant(time) => time,
            Service::Exponential(mean) => stream.duration_exponential(mean),
            Service::Uniform(least, most) => {
                let span = most.picoseconds() - least.picoseconds();
                Duration::from_picoseconds(least.picoseconds() + stream.below(span.saturating_add(1)))
            }
            Service::Erlang { stages, mean } => {
                let stage = mean.picoseconds() as f64 / f64::from(stages);
                let sum: f64 = (0..stages).map(|_| stream.exponential(stage)).sum();
                Duration::from_picoseconds(sum.round() as u64)
            }
            Service::Hyperexponential { share, first, second } => {
                let mean = if stream.chance(share) { first } else { second };
                stream.duration_exponential(mean)
            }
            Service::Lognormal { mean, standard_deviation } => {
                let (mean, deviation) = (mean.picoseconds() as f64, standard_deviation.picoseconds() as f64);
                Duration::from_picoseconds(stream.lognormal(mean, deviation).round() as u64)
            }
        }
    }

    /// The mean, seconds.
    pub fn mean_s(&self) -> f64 {
        match *self {
            Service::Constant(time) => time.seconds(),
            Service::Exponential(mean) | Service::Erlang { mean, .. } | Service::Lognormal { mean, .. } => {
                mean.seconds()
            }
            Service::Uniform(least, most) => (least.seconds() + most.seconds()) / 2.0,
            Service::Hyperexponential { share, first, second } => {
                share * first.seconds() + (1.0 - share) * second.seconds()
            }
        }
    }

    /// The mean of the squares, seconds².
    pub fn mean_square_s2(&self) -> f64 {
        let mean = self.mean_s();
        match *self {
            Service::Constant(_) => mean * mean,
            Service::Exponential(_) => 2.0 * mean * mean,
            Service::Uniform(least, most) => mean * mean + (most.seconds() - least.seconds()).powi(2) / 12.0,
            Service::Erlang { stages, .. } => mean * mean * (1.0 + 1.0 / f64::from(stages)),
            Service::Hyperexponential { share, first, second } => {
                2.0 * (share * first.seconds().powi(2) + (1.0 - share) * second.seconds().powi(2))
            }
            Service::Lognormal { standard_deviation, .. } => {
                mean * mean + standard_deviation.seconds().powi(2)
            }
        }
    }

    /// What is wrong with it, if anything: what was found, and what was expected.
    pub(super) fn trouble(&self) -> Option<(String, &'static str)> {
        match *self {
            Service::Uniform(least, most) if least > most => {
                Some((format!("{least} to {most}"), "a least time that is not above the greatest"))
            }
            Service::Erlang { stages: 0, .. } => Some(("0 stages".to_owned(), "at least one stage")),
            Service::Hyperexponential { share, .. } if !(0.0..=1.0).contains(&share) => {
                Some((share.to_string(), "a share from 0 to 1"))
            }
            Service::Lognormal { mean, .. } if mean == Duration::ZERO => {
                Some((mean.to_string(), "a mean above 0 of a lognormal time"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_has_the_moments_it_says() {
        let us = |count: u64| Duration::from_picoseconds(count * 1_000_000);
        let all = [
            Service::Constant(us(3)),
            Service::Exponential(us(3)),
            Service::Uniform(us(2), us(10)),
            Service::Erlang { stages: 4, mean: us(5) },
            Service::Hyperexponential { share: 0.8, first: us(1), second: us(6) },
            Service::Lognormal { mean: us(4), standard_deviation: us(3) },
        ];
        for service in all {
            let mut stream = Stream::named(1, "service");
            let draws = 100_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..draws {
                let time = service.draw(&mut stream).seconds();
                sum += time;
                squares += time * time;
            }
            // Relative standard errors are at most 0.6 % and 2.5 %.
            let error = sum / f64::from(draws) / service.mean_s() - 1.0;
            assert!(error.abs() < 0.02, "{service:?}: {error}");
            let error = squares / f64::from(draws) / service.mean_square_s2() - 1.0;
            assert!(error.abs() < 0.06, "{service:?}: {error}");
        }
    }
}
