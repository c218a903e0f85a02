//! Random numbers: one named stream for each thing that is random.
//!
//! A stream is found by the run's seed and its name ("arrivals of node 7"), not by who asked first. So a model draws the
//! same numbers whatever else is simulated beside it, two strategies are compared on the same arrivals, and a run can
//! be repeated. The generator is PCG64-MCG (O'Neill 2014); seeding and distributions are our own, made of operations
//! that give the same bits on every system, and pinned by tests: a seed means the same numbers for ever.

use pio_machine::Duration;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::elementary::{exp, ln};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Pcg64Mcg,
}

/// Basis and prime of the 128-bit FNV-1a hash.
const FNV_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Stream {
    /// The stream of this name in the run of this seed.
    ///
    /// The generator starts from the 128-bit FNV-1a hash of the seed's eight bytes, lowest first, and the bytes of the
    /// name, each half of it mixed by the finaliser of SplitMix64.
    pub fn named(seed: u64, name: &str) -> Stream {
        let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
        let hash = bytes.fold(FNV_BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(FNV_PRIME));
        let low = mix(hash as u64);
        let high = mix((hash >> 64) as u64 ^ low);
        let state = u128::from(high) << 64 | u128::from(low);
        Stream { generator: Pcg64Mcg::from_seed(state.to_le_bytes()) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in [0, 1): a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A whole number below `n`, each as likely.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no number is below 0");
        // Lemire (2019): the upper half of a product, but for the few lower halves that would favour some numbers.
        let mut product = u128::from(self.bits()) * u128::from(n);
        if (product as u64) < n {
            let least = n.wrapping_neg() % n;
            while (product as u64) < least {
                product = u128::from(self.bits()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(1.0 - self.uniform())
    }

    /// A span of time, exponentially distributed with this mean, to the nearest picosecond.
    pub fn duration_exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_picoseconds((self.exponential(mean.picoseconds() as f64) + 0.5) as u64)
    }

    /// Normally distributed with mean 0 and standard deviation 1 (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.uniform() - 1.0;
            let y = 2.0 * self.uniform() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }

    /// Lognormally distributed; `mean`, above 0, and `standard_deviation` are those of the numbers themselves, not of
    /// their logarithms.
    pub fn lognormal(&mut self, mean: f64, standard_deviation: f64) -> f64 {
        let variation = standard_deviation / mean;
        let variance = ln(1.0 + variation * variation);
        exp(ln(mean) - 0.5 * variance + variance.sqrt() * self.normal())
    }

    /// A whole number from 0 to `n` - 1, number k with a probability proportional to (k + 1)^-`exponent`.
    ///
    /// Rejection from an inverted hat (Hörmann and Derflinger 1996): the cost does not depend on `n`.
    ///
    /// # Panics
    /// If `n` is 0, or `exponent` is negative or not finite.
    pub fn zipf(&mut self, n: u64, exponent: f64) -> u64 {
        assert!(n > 0, "no number is below 0");
        assert!(exponent.is_finite() && exponent >= 0.0, "an exponent of Zipf's law is not {exponent}");
        let hat = ZipfHat { exponent };
        // The hat's integral over the steps of 1, which is exact, and of 2 to n.
        let first = hat.integral(1.5) - 1.0;
        let last = hat.integral(n as f64 + 0.5);
        loop {
            let height = last + self.uniform() * (first - last);
            let x = hat.inverse(height);
            let k = x.round().clamp(1.0, n as f64);
            if height >= hat.integral(k + 0.5) - hat.density(k) {
                return k as u64 - 1;
            }
        }
    }
}

/// The density x^-exponent, which lies over the probabilities of Zipf's law.
struct ZipfHat {
    exponent: f64,
}

impl ZipfHat {
    fn density(&self, x: f64) -> f64 {
        exp(-self.exponent * ln(x))
    }

    /// Integral of the density from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let log = ln(x);
        log * grow((1.0 - self.exponent) * log)
    }

    /// Where the integral is `height`.
    fn inverse(&self, height: f64) -> f64 {
        let slope = 1.0 - self.exponent;
        // Rounding may take it a little beyond -1, where the integral of an exponent above 1 ends.
        let t = (height * slope).max(-1.0 + f64::EPSILON);
        exp(height * shrink(t))
    }
}

/// (e^t - 1) / t.
fn grow(t: f64) -> f64 {
    if t.abs() > 1e-5 { (exp(t) - 1.0) / t } else { 1.0 + t / 2.0 * (1.0 + t / 3.0) }
}

/// ln(1 + t) / t.
fn shrink(t: f64) -> f64 {
    if t.abs() > 1e-5 { ln(1.0 + t) / t } else { 1.0 - t * (0.5 - t / 3.0) }
}

/// The finaliser of SplitMix64: every bit of the input moves half of those of the output.
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    fn stream() -> Stream {
        Stream::named(1, "test")
    }

    /// Mean and standard deviation of many draws.
    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let value = draw();
            sum += value;
            squares += value * value;
        }
        let mean = sum / f64::from(DRAWS);
        (mean, (squares / f64::from(DRAWS) - mean * mean).sqrt())
    }

    fn assert_near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected} ± {tolerance}");
    }

    #[test]
    fn a_seed_means_the_same_numbers_for_ever() {
        let mut stream = Stream::named(42, "arrivals");
        assert_eq!([stream.bits(), stream.bits()], [8_106_159_881_568_826_437, 1_185_648_794_468_870_081]);
        assert_eq!(stream.uniform(), 0.08451207930878346);
        let below = [stream.below(10), stream.below(1_000_000), stream.below(u64::MAX)];
        assert_eq!(below, [1, 555_068, 8_724_003_503_470_385_832]);
        assert_eq!(stream.exponential(3.0), 2.3411484465653793);
        let second = Duration::from_seconds(1.0);
        assert_eq!(stream.duration_exponential(second).picoseconds(), 2_414_145_294_844);
        assert_eq!(stream.normal(), -0.10554168532350393);
        assert_eq!(stream.lognormal(4096.0, 1000.0), 4003.744472630165);
        assert_eq!([stream.zipf(1000, 0.9), stream.zipf(1000, 1.0), stream.zipf(1000, 1.2)], [0, 26, 46]);
    }

    #[test]
    fn seeds_and_names_give_other_streams() {
        let firsts =
            [(1, "a"), (2, "a"), (1, "b"), (1, "")].map(|(seed, name)| Stream::named(seed, name).bits());
        for (index, first) in firsts.iter().enumerate() {
            assert!(!firsts[..index].contains(first));
        }
        let streams: Vec<u64> =
            (0..1000).map(|node| Stream::named(7, &format!("node {node}")).bits()).collect();
        let ones: u32 = streams.iter().map(|bits| bits.count_ones()).sum();
        // 64 000 fair bits have a standard deviation of 126.
        assert_near(f64::from(ones), 32_000.0, 500.0);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        // Five standard errors of each.
        let error = |deviation: f64| 5.0 * deviation / f64::from(DRAWS).sqrt();
        let mut it = stream();
        let (mean, deviation) = moments(|| it.uniform());
        assert_near(mean, 0.5, error(0.29));
        assert_near(deviation, (1.0_f64 / 12.0).sqrt(), 0.002);
        let (mean, deviation) = moments(|| it.exponential(3.0));
        assert_near(mean, 3.0, error(3.0));
        assert_near(deviation, 3.0, 0.07);
        let (mean, deviation) = moments(|| it.normal());
        assert_near(mean, 0.0, error(1.0));
        assert_near(deviation, 1.0, 0.01);
        let (mean, deviation) = moments(|| it.lognormal(10.0, 5.0));
        assert_near(mean, 10.0, error(5.0));
        assert_near(deviation, 5.0, 0.15);
        let (mean, _) = moments(|| it.below(7) as f64);
        assert_near(mean, 3.0, error(2.0));
        let (mean, _) = moments(|| f64::from(u8::from(it.chance(0.3))));
        assert_near(mean, 0.3, error(0.46));
    }

    #[test]
    fn zipf_draws_each_number_as_often_as_it_should() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.5, 3.0] {
            let mut it = stream();
            let n = 20;
            let weights: Vec<f64> = (1..=n).map(|k| f64::from(k).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            let mut drawn = vec![0_u32; n as usize];
            for _ in 0..DRAWS {
                drawn[it.zipf(n as u64, exponent) as usize] += 1;
            }
            let chi_square: f64 = drawn
                .iter()
                .zip(&weights)
                .map(|(drawn, weight)| {
                    let expected = weight / sum * f64::from(DRAWS);
                    (f64::from(*drawn) - expected).powi(2) / expected
                })
                .sum();
            // 19 degrees of freedom: 43.8 is exceeded once in 1000.
            assert!(chi_square < 43.8, "exponent {exponent}: {chi_square}");
        }
        let mut it = stream();
        assert_eq!(it.zipf(1, 2.0), 0);
        assert!((0..1000).all(|_| it.zipf(u64::MAX, 0.7) < u64::MAX));
    }
}
