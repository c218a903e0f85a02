//! When a simulation of a steady state has run long enough.

use super::estimate::Estimate;
use super::time::Time;

/// An interval of fewer measurements is too uncertain itself to stop a run.
const LEAST_COUNT: u64 = 2_000;

/// Conditions, the first of which to come true ends a run. Without any, a run ends when nothing is left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stop {
    /// At this simulated time.
    pub time: Option<Time>,
    /// After so many of what is counted: requests, packets.
    pub count: Option<u64>,
    /// When the 95 % confidence interval is at most this share of the mean to either side. 0.01 is ±1 %.
    pub relative_half_width: Option<f64>,
}

impl Stop {
    /// How much of a run is done, from 0 to 1, which ends it: for a bar of progress, and to know the end.
    pub fn progress(&self, now: Time, count: u64, estimate: Option<Estimate>) -> f64 {
        let share = |done: f64, of: f64| if done >= of { 1.0 } else { done / of };
        let time = self.time.map_or(0.0, |end| share(now.0 as f64, end.0 as f64));
        let counted = self.count.map_or(0.0, |end| share(count as f64, end as f64));
        let sure = match (self.relative_half_width, estimate) {
            (Some(target), Some(estimate)) => {
                // The width shrinks with the square root of the number of measurements.
                let width = share(target.powi(2), estimate.relative_half_width().powi(2));
                let enough = share(estimate.counted as f64, LEAST_COUNT as f64);
                if estimate.is_settled { width.min(enough) } else { width.min(enough).min(0.5) }
            }
            _ => 0.0,
        };
        time.max(counted).max(sure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(half_width: f64, counted: u64, is_settled: bool) -> Option<Estimate> {
        Some(Estimate { mean: 10.0, half_width, counted, cut: 0, is_settled })
    }

    #[test]
    fn the_first_condition_ends_a_run() {
        let stop = Stop { time: Some(Time(1_000)), count: Some(10), relative_half_width: None };
        assert_eq!(stop.progress(Time(100), 2, None), 0.2);
        assert_eq!(stop.progress(Time(100), 10, None), 1.0);
        assert_eq!(stop.progress(Time(1_000), 0, None), 1.0);
        assert_eq!(Stop::default().progress(Time(1_000), 1_000, estimate(0.0, 9_999, true)), 0.0);
    }

    #[test]
    fn an_interval_ends_a_run_if_it_can_be_trusted() {
        let stop = Stop { relative_half_width: Some(0.01), ..Stop::default() };
        assert_eq!(stop.progress(Time(0), 0, None), 0.0);
        assert!((stop.progress(Time(0), 0, estimate(0.2, 9_999, true)) - 0.25).abs() < 1e-12);
        assert_eq!(stop.progress(Time(0), 0, estimate(0.1, 9_999, true)), 1.0);
        assert_eq!(stop.progress(Time(0), 0, estimate(0.1, 500, true)), 0.25);
        assert_eq!(stop.progress(Time(0), 0, estimate(0.1, 9_999, false)), 0.5);
    }
}
