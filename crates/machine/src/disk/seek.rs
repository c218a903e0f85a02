//! How long the arm needs for a distance.

use crate::quantity::Duration;

/// Seek time by distance in cylinders; none for distance 0. The forms are those of DiskSim's `dm_mech_g1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeekCurve {
    /// The same for every distance, 0 included.
    Constant(Duration),
    /// Straight from one cylinder to a third of all (the average distance of random requests), and from there to all.
    Linear {
        /// One cylinder.
        single: Duration,
        /// The mean over random requests.
        average: Duration,
        /// All cylinders.
        full: Duration,
        /// How many cylinders the drive has.
        cylinders: u32,
    },
    /// a √(d − 1) + b (d − 1) + c through the same three points (Lee and Katz 1993); may fall if they are odd.
    Curve {
        /// One cylinder.
        single: Duration,
        /// The mean over random requests.
        average: Duration,
        /// All cylinders.
        full: Duration,
        /// How many cylinders the drive has.
        cylinders: u32,
    },
    /// a + b √d below a distance, and a + b d from there on (Ruemmler and Wilkes 1994), with the first distances given by
    /// themselves.
    RootThenLine {
        /// Seek times of 1, 2, … cylinders; may be empty.
        first: Vec<Duration>,
        /// The distance from which it is a line.
        division: u32,
        /// Constant and factor of the square root.
        root: (Duration, Duration),
        /// Constant and factor of the line.
        line: (Duration, Duration),
    },
    /// Measured distances, ascending, straight between them and beyond the last two.
    Measured(Vec<(u32, Duration)>),
}

impl SeekCurve {
    /// The time for a distance.
    pub fn time(&self, distance: u32) -> Duration {
        if distance == 0 {
            return if let SeekCurve::Constant(time) = self { *time } else { Duration::ZERO };
        }
        match self {
            SeekCurve::Constant(time) => *time,
            SeekCurve::Linear { single, average, full, cylinders } => {
                three_points(distance, *cylinders, [*single, *average, *full])
            }
            SeekCurve::Curve { single, average, full, cylinders } => {
                let (one, mean, all) = (single.seconds(), average.seconds(), full.seconds());
                let cylinders = f64::from((*cylinders).max(1));
                let root = (15.0 * mean - 10.0 * one - 5.0 * all) / (3.0 * cylinders.sqrt());
                let line = (7.0 * one - 15.0 * mean + 8.0 * all) / (3.0 * cylinders);
                let steps = f64::from(distance - 1);
                Duration::from_seconds(root * steps.sqrt() + line * steps + one)
            }
            SeekCurve::RootThenLine { first, division, root, line } => {
                if let Some(time) = first.get(distance as usize - 1) {
                    return *time;
                }
                let distance = f64::from(distance);
                let ((constant, factor), by) =
                    if distance < f64::from(*division) { (root, distance.sqrt()) } else { (line, distance) };
                Duration::from_seconds(constant.seconds() + factor.seconds() * by)
            }
            SeekCurve::Measured(points) => measured(points, distance),
        }
    }
}

fn three_points(distance: u32, cylinders: u32, [single, average, full]: [Duration; 3]) -> Duration {
    let (distance, cylinders) = (f64::from(distance), f64::from(cylinders.max(1)));
    let (from, to, part) = if distance <= cylinders / 3.0 {
        (single, average, 3.0 * (distance - 1.0) / cylinders)
    } else {
        (average, full, (3.0 * distance - cylinders) / (2.0 * cylinders))
    };
    Duration::from_seconds(from.seconds() + part * (to.seconds() - from.seconds()))
}

fn measured(points: &[(u32, Duration)], distance: u32) -> Duration {
    let after = points.partition_point(|(known, _)| *known < distance);
    if let Some((known, time)) = points.get(after)
        && (*known == distance || after == 0)
    {
        return *time;
    }
    let last = after.min(points.len().saturating_sub(1));
    match (points.get(last.wrapping_sub(1)), points.get(last)) {
        (Some((near, low)), Some((far, high))) => {
            let part = f64::from(distance - near) / f64::from(far - near);
            Duration::from_seconds(low.seconds() + part * (high.seconds() - low.seconds()))
        }
        (_, only) => only.map_or(Duration::ZERO, |(_, time)| *time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Duration {
        Duration::from_seconds(ms / 1e3)
    }

    fn near(found: Duration, expected_ms: f64) {
        assert!((found.seconds() * 1e3 - expected_ms).abs() < 1e-9, "{found} is not {expected_ms} ms");
    }

    #[test]
    fn no_distance_no_time() {
        let curve = SeekCurve::Measured(vec![(1, ms(2.0)), (11, ms(3.0))]);
        assert_eq!(curve.time(0), Duration::ZERO);
        assert_eq!(SeekCurve::Constant(ms(1.0)).time(0), ms(1.0));
    }

    #[test]
    fn a_measured_curve_is_straight_between_and_beyond_its_points() {
        let curve = SeekCurve::Measured(vec![(2, ms(2.0)), (12, ms(3.0)), (22, ms(2.5))]);
        near(curve.time(1), 2.0);
        near(curve.time(2), 2.0);
        near(curve.time(7), 2.5);
        near(curve.time(17), 2.75);
        near(curve.time(22), 2.5);
        near(curve.time(32), 2.0);
        near(SeekCurve::Measured(vec![(5, ms(4.0))]).time(9), 4.0);
    }

    #[test]
    fn three_points_are_met() {
        let points = |curve: SeekCurve| {
            near(curve.time(1), 1.0);
            curve
        };
        let (single, average, full) = (ms(1.0), ms(9.0), ms(18.0));
        let line = points(SeekCurve::Linear { single, average, full, cylinders: 3000 });
        assert!((line.time(1001).seconds() * 1e3 - 9.0).abs() < 0.02);
        near(line.time(3000), 18.0);
        let curve = points(SeekCurve::Curve { single, average, full, cylinders: 3000 });
        assert!((curve.time(3001).seconds() * 1e3 - 18.0).abs() < 1e-6);
    }

    #[test]
    fn the_curve_has_the_mean_it_was_given_over_random_requests() {
        // Random pairs of cylinders are at distance d with probability 2 (n − d) / n².
        let cylinders = 2000_u32;
        let curve = SeekCurve::Curve { single: ms(2.0), average: ms(10.0), full: ms(20.0), cylinders };
        let n = f64::from(cylinders);
        let mean: f64 =
            (1..cylinders).map(|d| 2.0 * (n - f64::from(d)) / (n * n) * curve.time(d).seconds() * 1e3).sum();
        assert!((mean - 10.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn root_then_line_with_the_first_given() {
        let curve = SeekCurve::RootThenLine {
            first: vec![ms(1.5)],
            division: 100,
            root: (ms(3.0), ms(0.4)),
            line: (ms(8.0), ms(0.008)),
        };
        near(curve.time(1), 1.5);
        near(curve.time(4), 3.8);
        near(curve.time(100), 8.8);
    }
}
