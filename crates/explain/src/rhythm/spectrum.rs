//! Periods of the data rate: its spectrum and its autocorrelation.

use std::f64::consts::PI;

/// Points from which on a series has a spectrum worth looking at.
const LEAST: usize = 16;

/// A period that stands out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Its length, seconds.
    pub period_s: f64,
    /// Of the spectrum: its part of the variance. Of the autocorrelation: the correlation. 0 to 1.
    pub strength: f64,
    /// Of the spectrum: how likely so strong a peak is in white noise (Fisher's test), 0 to 1. Of the autocorrelation:
    /// not known, 1.
    pub chance: f64,
}

/// The strongest period of the spectrum, and the first strong one of the autocorrelation. Moments that are no further apart
/// than `reach` bins are the same to the autocorrelation: bursts shorter than their jitter meet each other after a period only
/// by chance, and after some multiple of it more of them may.
pub(super) fn of(series: &[f64], bin_s: f64, reach: usize) -> (Option<Peak>, Option<Peak>) {
    if series.len() < LEAST {
        return (None, None);
    }
    let exact = power(series);
    let blurred = (reach > 0).then(|| power(&averaged(&averaged(series, reach), reach)));
    // The power is a real, even series: its transform forward and backward are the same but for the scale.
    let mut back: Vec<Complex> =
        blurred.as_ref().unwrap_or(&exact).iter().map(|power| Complex(*power, 0.0)).collect();
    transform(&mut back);
    let correlation: Vec<f64> = back[..series.len()].iter().map(|value| value.0).collect();
    (spectrum_peak(&exact, series.len(), bin_s), correlation_peak(&correlation, bin_s))
}

/// Power at each frequency of a series without its mean, padded to twice its length: its autocorrelation then does not go
/// round.
fn power(series: &[f64]) -> Vec<f64> {
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    let size = (series.len() * 2).next_power_of_two();
    let mut values: Vec<Complex> = series
        .iter()
        .map(|value| Complex(value - mean, 0.0))
        .chain(std::iter::repeat_n(Complex(0.0, 0.0), size))
        .take(size)
        .collect();
    transform(&mut values);
    values.iter().map(|value| value.0 * value.0 + value.1 * value.1).collect()
}

/// The mean of each value and those up to `reach` before and behind it; beyond the ends there is nothing.
fn averaged(series: &[f64], reach: usize) -> Vec<f64> {
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(series.iter().scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        }))
        .collect();
    let width = (2 * reach + 1) as f64;
    (0..series.len())
        .map(|at| (sums[(at + reach + 1).min(series.len())] - sums[at.saturating_sub(reach)]) / width)
        .collect()
}

/// A peak of the spectrum with at least this part of the highest one's power is as high: between two frequencies of the
/// transform, a tone loses up to a fifth of it.
const AS_HIGH: f64 = 0.7;

/// The lowest of the strongest frequencies of at least two periods in the series: of a train of short bursts, the
/// multiples of its frequency are as strong as itself.
fn spectrum_peak(power: &[f64], length: usize, bin_s: f64) -> Option<Peak> {
    let size = power.len();
    let lowest = (2 * size).div_ceil(length);
    let half = &power[..size / 2];
    let highest = half.get(lowest..)?.iter().copied().fold(0.0, f64::max);
    let is_peak = |&index: &usize| {
        half[index] >= AS_HIGH * highest
            && half[index] >= half[index - 1]
            && half.get(index + 1).is_none_or(|next| half[index] >= *next)
    };
    let best = (lowest.max(1)..half.len()).find(is_peak)?;
    // The series was padded: every frequency of its own stands for `size / length` of the transform.
    let own = size as f64 / length as f64;
    let total: f64 = half[1..].iter().sum::<f64>() / own;
    if total <= 0.0 {
        return None;
    }
    let part = (half[best] / total).min(1.0);
    let count = length as f64 / 2.0;
    let chance = (count * (1.0 - part).powf(count - 1.0)).min(1.0);
    let frequency = best as f64 + refined(half, best);
    Some(Peak { period_s: size as f64 / frequency * bin_s, strength: part, chance })
}

/// The highest peak behind the first negative value, of at least two periods in the series.
fn correlation_peak(correlation: &[f64], bin_s: f64) -> Option<Peak> {
    let zero = *correlation.first().filter(|zero| **zero > 0.0)?;
    let length = correlation.len();
    // With lag, fewer products are summed: corrected for, else later peaks look weaker.
    let at = |lag: usize| correlation[lag] / zero * length as f64 / (length - lag) as f64;
    let crossing = (1..length / 2).find(|&lag| correlation[lag] <= 0.0)?;
    let peaks = (crossing + 1..length / 2).filter(|&lag| at(lag) >= at(lag - 1) && at(lag) > at(lag + 1));
    let highest = peaks.clone().map(at).fold(f64::NEG_INFINITY, f64::max);
    // Multiples of a period are as high as itself: the first that is nearly so.
    let best = peaks.clone().find(|&lag| at(lag) >= 0.8 * highest).filter(|_| highest > 0.0)?;
    let near: Vec<f64> = (best - 1..=best + 1).map(at).collect();
    let period = best as f64 + refined(&near, 1);
    Some(Peak { period_s: period * bin_s, strength: at(best).min(1.0), chance: 1.0 })
}

/// How far the top of the parabola through a peak and its neighbours is from it, -0.5 to 0.5.
fn refined(values: &[f64], peak: usize) -> f64 {
    let (Some(before), Some(after)) = (peak.checked_sub(1).and_then(|i| values.get(i)), values.get(peak + 1))
    else {
        return 0.0;
    };
    let bend = before - 2.0 * values[peak] + after;
    if bend < 0.0 { (0.5 * (before - after) / bend).clamp(-0.5, 0.5) } else { 0.0 }
}

/// Real and imaginary part.
#[derive(Clone, Copy, Debug)]
struct Complex(f64, f64);

/// Fourier's transform of a power of two of values, in place (Cooley and Tukey 1965).
fn transform(values: &mut [Complex]) {
    let size = values.len();
    let bits = size.trailing_zeros();
    for index in 0..size {
        let other = index.reverse_bits() >> (usize::BITS - bits);
        if index < other {
            values.swap(index, other);
        }
    }
    let mut half = 1;
    while half < size {
        let turn: Vec<Complex> = (0..half)
            .map(|k| {
                let angle = -PI * k as f64 / half as f64;
                Complex(angle.cos(), angle.sin())
            })
            .collect();
        for start in (0..size).step_by(2 * half) {
            for (k, w) in turn.iter().enumerate() {
                let (a, b) = (values[start + k], values[start + k + half]);
                let b = Complex(b.0 * w.0 - b.1 * w.1, b.0 * w.1 + b.1 * w.0);
                values[start + k] = Complex(a.0 + b.0, a.1 + b.1);
                values[start + k + half] = Complex(a.0 - b.0, a.1 - b.1);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_fouriers() {
        let input: Vec<f64> = (0..16).map(|i| ((i * i + 3) % 7) as f64).collect();
        let mut values: Vec<Complex> = input.iter().map(|value| Complex(*value, 0.0)).collect();
        transform(&mut values);
        for (k, value) in values.iter().enumerate() {
            let sum = |part: fn(f64) -> f64| -> f64 {
                input.iter().enumerate().map(|(n, x)| x * part(-2.0 * PI * (k * n) as f64 / 16.0)).sum()
            };
            assert!((value.0 - sum(f64::cos)).abs() < 1e-9 && (value.1 - sum(f64::sin)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_square_wave_has_its_period() {
        let series: Vec<f64> = (0..1000).map(|bin| if bin % 37 < 9 { 5.0 } else { 0.0 }).collect();
        let (spectrum, correlation) = of(&series, 0.5, 0);
        for peak in [spectrum.expect("a peak"), correlation.expect("a peak")] {
            assert!((peak.period_s / 18.5 - 1.0).abs() < 0.01, "{peak:?}");
        }
    }

    #[test]
    fn averages_are_of_the_neighbours() {
        assert_eq!(averaged(&[3.0, 0.0, 6.0, 0.0], 1), [1.0, 3.0, 2.0, 2.0]);
    }

    #[test]
    fn a_constant_has_none() {
        assert_eq!(of(&[3.0; 64], 1.0, 0), (None, None));
    }
}
