//! One axis: from a number to its place, and the numbers that are written beside it.

use crate::units::significant;

/// Maps numbers onto a stretch of the drawing.
pub(super) struct Axis {
    log: bool,
    /// Numbers at both ends; their logarithms if it is logarithmic.
    from: f64,
    to: f64,
    /// Where these are drawn.
    ends: (f64, f64),
    /// The numbers that occur, if they are few enough to be written themselves.
    occurring: Vec<f64>,
}

/// If no more numbers than this occur, as with counts of nodes, they are what is written.
const FEW: usize = 8;

impl Axis {
    /// An axis for `values` between two places. One that `spans` begins at 0, if it is linear and nothing is below, and
    /// ends at round numbers; another one is as long as its values are apart.
    pub(super) fn new(log: bool, values: impl Iterator<Item = f64>, ends: (f64, f64), spans: bool) -> Axis {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (mut low, mut high) =
            (values.first().copied().unwrap_or(1.0), values.last().copied().unwrap_or(2.0));
        let occurring = if spans || values.len() > FEW { Vec::new() } else { values };
        if log {
            let (mut from, mut to) = (low.log10(), high.log10());
            if spans {
                // Half a decade is no axis yet: whole ones would waste half of the picture.
                (from, to) = (below(low).log10(), above(high).log10());
            }
            if to - from < 1e-9 {
                (from, to) = (from - 0.5, to + 0.5);
            }
            return Axis { log, from, to, ends, occurring };
        }
        if spans {
            low = low.min(0.0);
            high = high.max(0.0);
            let step = step((high - low) / 5.0);
            (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        } else if occurring.is_empty() && low > 0.0 && low < high / 10.0 {
            // So near to 0 that leaving it out would puzzle.
            low = 0.0;
        }
        if high - low < 1e-12 * high.abs().max(1e-300) {
            (low, high) = (low - 0.5, high + 0.5);
        }
        Axis { log, from: low, to: high, ends, occurring }
    }

    /// Where a number is drawn.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        self.ends.0 + (self.ends.1 - self.ends.0) * (value - self.from) / (self.to - self.from)
    }

    /// The numbers to write, and how.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = if !self.occurring.is_empty() && self.far_enough(&self.occurring) {
            self.occurring.clone()
        } else if self.log {
            self.decades()
        } else {
            let step = step((self.to - self.from) / 5.0);
            let (first, last) = ((self.from / step - 1e-9).ceil(), (self.to / step + 1e-9).floor());
            (0..=(last - first) as u32).map(|n| (first + f64::from(n)) * step).collect()
        };
        values.into_iter().map(|value| (value, significant(value))).collect()
    }

    /// Whether their labels do not touch.
    fn far_enough(&self, values: &[f64]) -> bool {
        values.windows(2).all(|pair| (self.place(pair[1]) - self.place(pair[0])).abs() > 34.0)
    }

    /// 1, 10, 100, and 2 and 5 between them if there are few decades.
    fn decades(&self) -> Vec<f64> {
        let within: &[f64] = if self.to - self.from > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (self.from.floor() as i32, self.to.ceil() as i32);
        (first..=last)
            .flat_map(|power| within.iter().map(move |factor| factor * 10_f64.powi(power)))
            .filter(|value| (self.from - 1e-9..=self.to + 1e-9).contains(&value.log10()))
            .collect()
    }
}

/// The next of 1, 2, 5, 10, … not below `least`.
fn step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() { 1.0 } else { above(least) }
}

fn above(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

fn below(most: f64) -> f64 {
    let power = 10_f64.powf(most.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step <= most * (1.0 + 1e-9)).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn counts_are_written_themselves() {
        let axis = Axis::new(false, [8.0, 16.0, 24.0, 32.0, 8.0].into_iter(), (0.0, 600.0), false);
        assert_eq!(labels(&axis), ["8", "16", "24", "32"]);
        assert_eq!((axis.place(8.0), axis.place(32.0)), (0.0, 600.0));
    }

    #[test]
    fn a_linear_axis_spans_from_zero_to_a_round_number() {
        let axis = Axis::new(false, [3.0, 17.2].into_iter(), (300.0, 0.0), true);
        assert_eq!(labels(&axis), ["0", "5", "10", "15", "20"]);
        assert_eq!((axis.place(0.0), axis.place(20.0)), (300.0, 0.0));
    }

    #[test]
    fn a_logarithmic_axis_has_decades() {
        let axis = Axis::new(true, [0.3, 18.0].into_iter(), (300.0, 0.0), true);
        assert_eq!(labels(&axis), ["0.2", "0.5", "1", "2", "5", "10", "20"]);
    }

    #[test]
    fn one_value_is_in_the_middle() {
        for log in [false, true] {
            let axis = Axis::new(log, [7.0].into_iter(), (0.0, 100.0), false);
            assert!((axis.place(7.0) - 50.0).abs() < 1e-6);
            assert!(Axis::new(log, [].into_iter(), (0.0, 100.0), true).place(1.5).is_finite());
        }
        assert!(Axis::new(false, [0.0].into_iter(), (0.0, 100.0), true).place(0.0).is_finite());
    }
}
