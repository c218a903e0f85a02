//! Figure 6: the I/O node by itself.

use super::{Reader, SATURATES, SLIGHTLY, ms, percent, spread, us};
use crate::baylor::IoNodeTimes;
use crate::baylor::points::{IO_NODE_RATES, LARGE, SMALL};
use crate::{Basis, Published, Statement, Verdict};

impl Reader<'_> {
    pub(super) fn of_the_io_node(&self) -> [Option<Statement>; 8] {
        [
            self.small_hits(),
            self.large_hits(),
            self.misses(),
            self.hits_and_rate(),
            self.misses_and_rate(),
            self.miss_over_hit(),
            self.read_over_write(),
            self.saturation(),
        ]
    }

    /// The I/O node's times of a size up to a rate.
    fn io_node_to(&self, size: u64, most_per_s: f64) -> Option<Vec<IoNodeTimes>> {
        IO_NODE_RATES
            .iter()
            .filter(|rate| **rate <= most_per_s)
            .map(|rate| self.io_node(size, *rate))
            .collect()
    }

    fn small_hits(&self) -> Option<Statement> {
        let times = self.io_node_to(SMALL, 650.0)?;
        let hits: Vec<f64> =
            times.iter().flat_map(|time| [time.read_hit.mean, time.write_hit.mean]).collect();
        let (least, most) =
            (hits.iter().copied().fold(f64::MAX, f64::min), hits.iter().copied().fold(0.0, f64::max));
        Some(Statement {
            place: "Figure 6",
            what: "hits of 4 KB, up to 650 requests/s".into(),
            published: Published::Words("hundreds of us"),
            computed: format!("{} to {}", us(least), us(most)).into(),
            verdict: Verdict::of(least >= 100e-6 && most < 1e-3),
            basis: Basis::Calibrated,
        })
    }

    fn large_hits(&self) -> Option<Statement> {
        let times = self.io_node_to(LARGE, 650.0)?;
        let hits: Vec<f64> =
            times.iter().flat_map(|time| [time.read_hit.mean, time.write_hit.mean]).collect();
        let mean = hits.iter().sum::<f64>() / hits.len() as f64;
        Some(Statement {
            place: "Figure 6",
            what: "hits of 32 KB, up to 650 requests/s, mean of all".into(),
            published: Published::Words("3 ms"),
            computed: ms(mean).into(),
            verdict: Verdict::Error(mean / 3e-3 - 1.0),
            basis: Basis::Calibrated,
        })
    }

    fn misses(&self) -> Option<Statement> {
        let mut misses = Vec::new();
        for size in [SMALL, LARGE] {
            let times = self.io_node_to(size, 650.0)?;
            misses.extend(times.iter().flat_map(|time| [time.read_miss.mean, time.write_miss.mean]));
        }
        let (least, most) =
            (misses.iter().copied().fold(f64::MAX, f64::min), misses.iter().copied().fold(0.0, f64::max));
        let worst = (least / 14e-3 - 1.0, most / 25e-3 - 1.0);
        Some(Statement {
            place: "Figure 6",
            what: "misses of 4 and 32 KB, up to 650 requests/s".into(),
            published: Published::Words("14 to 25 ms"),
            computed: format!("{} to {}", ms(least), ms(most)).into(),
            verdict: Verdict::Error(if worst.0.abs() > worst.1.abs() { worst.0 } else { worst.1 }),
            basis: Basis::Calibrated,
        })
    }

    fn hits_and_rate(&self) -> Option<Statement> {
        let mut worst = 0.0_f64;
        for size in [SMALL, LARGE] {
            let times = self.io_node_to(size, 650.0)?;
            for is_read in [true, false] {
                let hits: Vec<f64> = times.iter().map(|time| time.of(is_read, true).mean).collect();
                worst = worst.max(spread(&hits));
            }
        }
        Some(Statement {
            place: "Figure 6",
            what: "hits from 5 to 650 requests/s".into(),
            published: Published::Words("independent of the rate"),
            computed: format!("vary by up to {}", percent(worst)).into(),
            verdict: Verdict::of(worst <= SLIGHTLY),
            basis: Basis::Calibrated,
        })
    }

    fn misses_and_rate(&self) -> Option<Statement> {
        let times = self.io_node_to(LARGE, 650.0)?;
        let grows = times.windows(2).all(|pair| pair[1].read_miss.mean > pair[0].read_miss.mean * 0.99);
        let by = times.last()?.read_miss.mean / times.first()?.read_miss.mean - 1.0;
        Some(Statement {
            place: "Figure 6",
            what: "misses as the rate grows, 32 KB, 5 to 650 requests/s".into(),
            published: Published::Words("increase, at a small rate"),
            computed: format!("increase by {}", percent(by)).into(),
            verdict: Verdict::of(grows && by > 0.0 && by < 1.0),
            basis: Basis::Calibrated,
        })
    }

    fn miss_over_hit(&self) -> Option<Statement> {
        let ratio = |size| {
            let times = self.io_node(size, 100.0)?;
            Some(times.read_miss.mean / times.read_hit.mean)
        };
        let (small, large): (f64, f64) = (ratio(SMALL)?, ratio(LARGE)?);
        Some(Statement {
            place: "Figure 6",
            what: "read misses over hits, at 100 requests/s".into(),
            published: Published::Words("an order of magnitude"),
            computed: format!("{small:.1} times (4 KB), {large:.1} times (32 KB)").into(),
            verdict: Verdict::of(small > 5.0 && large > 5.0),
            basis: Basis::Calibrated,
        })
    }

    fn read_over_write(&self) -> Option<Statement> {
        let times = self.io_node_to(LARGE, 650.0)?;
        let over: Vec<f64> =
            times.iter().map(|time| time.read_miss.mean / time.write_miss.mean - 1.0).collect();
        let mean = over.iter().sum::<f64>() / over.len() as f64;
        Some(Statement {
            place: "Figure 6",
            what: "read misses over write misses, 32 KB".into(),
            published: Published::Words("slightly larger"),
            computed: format!("larger by {} in the mean", percent(mean)).into(),
            verdict: Verdict::of(mean > 0.0 && mean <= SLIGHTLY),
            basis: Basis::Calibrated,
        })
    }

    fn saturation(&self) -> Option<Statement> {
        let at_rest = self.io_node(LARGE, IO_NODE_RATES[0])?.read_miss.mean;
        let mut before = (IO_NODE_RATES[0], 1.0);
        for rate in IO_NODE_RATES {
            let Some(times) = self.io_node(LARGE, rate) else { break };
            let now = (rate, times.read_miss.mean / at_rest);
            if now.1 >= SATURATES {
                let knee = before.0 + (now.0 - before.0) * (SATURATES - before.1) / (now.1 - before.1);
                return Some(Statement {
                    place: "Figure 6",
                    what: "begins to saturate, 32 KB (misses wait as long as they are served)".into(),
                    published: Published::Words("850 requests/s"),
                    computed: format!("{knee:.0} requests/s").into(),
                    verdict: Verdict::Error(knee / 850.0 - 1.0),
                    basis: Basis::Calibrated,
                });
            }
            before = now;
        }
        None
    }
}
