//! From one recorded run to what a machine's reads or writes take.
//!
//! A machine is not always as fast as when it was measured: its processor's clock changes, and so does what others leave of its
//! caches. What reads and writes took in a run of minutes ago says what they take now, whatever the strategy. With r =
//! ln(measured / predicted), that a calibrated cost may be off by P, and that runs scatter by S, the most probable logarithm is
//! P² / (P² + S²) r, as in [`fit()`](crate::fit()). A run that something disturbed says little of the next: it counts the less, the
//! larger r is, half at a factor of two. Nothing disturbs a run so that it is faster, unless its ranks take turns on processors:
//! then a call is short or long by whose turn it is.

use crate::fit::{PRIOR, SCATTER};
use crate::interval::FAR;

/// The factor on what a machine's description says of reads, or of writes, by what those of a recorded run took: predicted from
/// the description, and measured, seconds. `crowded` is whether ranks of the run shared processors. 1 if either took no time.
pub fn file_call_factor(predicted_s: f64, measured_s: f64, crowded: bool) -> f64 {
    if predicted_s <= 0.0 || measured_s <= 0.0 {
        return 1.0;
    }
    let ratio = (measured_s / predicted_s).ln();
    let disturbed = if crowded { ratio } else { ratio.max(0.0) };
    let believed = PRIOR.powi(2) / (PRIOR.powi(2) + SCATTER.powi(2)) / (1.0 + (disturbed / FAR).powi(2));
    (believed * ratio).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_mostly_believed_and_a_disturbed_one_little() {
        let factor = |ratio: f64, crowded| file_call_factor(1.0, ratio, crowded);
        assert_eq!(factor(1.0, false), 1.0);
        assert_eq!([factor(0.0, false), file_call_factor(0.0, 1.0, false)], [1.0, 1.0]);
        // Four fifths of the logarithm, by the closed form, and of a run twice as slow, half of that.
        let of_faster = 0.5_f64.powf(0.8);
        assert!((factor(0.5, false) - of_faster).abs() < 1e-12);
        assert!((factor(2.0, false) - 2.0_f64.powf(0.4)).abs() < 1e-12);
        // Where ranks take turns, faster is chance as well.
        assert!((factor(0.5, true) - 0.5_f64.powf(0.4)).abs() < 1e-12);
        assert!(factor(20.0, false) < 1.2);
    }
}
