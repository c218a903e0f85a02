//! What the paper's text says of its figures, beside what is computed.
//!
//! Where the text says how much, the error is given. Where it says how (grows, is independent, ...), it is said by a number
//! here, and holds or does not: `independent` is to vary by no more than [`SAME`], what `slightly` differs by no more than
//! [`SLIGHTLY`]. Results that are kept aside to test the model have no published side; what is computed for them is a
//! prediction.

use super::plots::{EQUAL_DATA, FLOPS_PER_BYTE, IO_NODE_RATES, LARGE, SMALL, SYSTEMS};
use super::{IoNodeTimes, Outcomes, Point};
use crate::kernel::Estimate;

/// A stated result.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Where the paper shows it.
    pub place: &'static str,
    /// What it is of.
    pub what: &'static str,
    /// What the text says; empty if that is kept aside.
    pub published: &'static str,
    /// What is computed.
    pub computed: String,
    /// How the two compare.
    pub verdict: Verdict,
    /// What the comparison is worth.
    pub basis: Basis,
}

/// How published and computed compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The computed number is off by this part of the published one.
    Error(f64),
    /// It is as the text says.
    Holds,
    /// It is not.
    Fails,
    /// Nothing is published to compare with.
    Open,
}

/// How a computed result came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Parameters of the I/O node were chosen so that it comes out.
    Calibrated,
    /// Nothing was chosen for it.
    Predicted,
}

/// What varies by no more is independent.
pub const SAME: f64 = 0.10;

/// What differs by no more differs slightly.
pub const SLIGHTLY: f64 = 0.25;

/// A mean this many times that without load: waiting takes as long as service. So an I/O node "begins to saturate".
const SATURATES: f64 = 2.0;

/// All statements whose simulations were made, with the paper's parameters.
pub fn statements<'a>(outcomes: &'a Outcomes) -> Vec<Statement> {
    let reader = Reader { outcomes };
    let of_figures: [&[fn(&Reader<'a>) -> Option<Statement>]; 8] = [
        &[
            Reader::small_hits,
            Reader::large_hits,
            Reader::misses,
            Reader::hits_and_rate,
            Reader::misses_and_rate,
            Reader::miss_over_hit,
            Reader::read_over_write,
            Reader::saturation,
        ],
        &[
            Reader::request_and_io_nodes,
            Reader::response_and_io_nodes,
            Reader::network_and_label,
            Reader::network_and_label_twice,
            Reader::network_order,
        ],
        &[Reader::processing_of_low_labels, Reader::processing_of_high_labels, Reader::processing_order],
        &[
            Reader::small_requests,
            Reader::small_at_eight,
            Reader::large_to_sixteen,
            Reader::large_from_sixteen,
        ],
        &[Reader::system_size, Reader::ratio_all, Reader::ratio_growing],
        &[Reader::request_under_messages, Reader::request_factor, Reader::response_factor],
        &[Reader::processing_under_messages],
        &[Reader::messages_under_io],
    ];
    of_figures.iter().flat_map(|of| of.iter()).filter_map(|statement| statement(&reader)).collect()
}

struct Reader<'a> {
    outcomes: &'a Outcomes,
}

type Quantity = fn(&Outcomes, Point) -> Option<Estimate>;

const IO_NODES: [u32; 4] = [8, 16, 24, 32];
/// Labels whose points exist for every number of I/O nodes.
const BELOW_SATURATION: [f64; 4] = [114.5, 57.25, 28.63, 14.32];

fn point(nodes: u32, io_nodes: u32, label: f64, request_bytes: u64, load: f64) -> Point {
    Point { nodes, io_nodes, flops_per_byte: Some(label), request_bytes, load }
}

fn holds(it_does: bool) -> Verdict {
    if it_does { Verdict::Holds } else { Verdict::Fails }
}

/// The greatest over the least, less one.
fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    if values.is_empty() { 0.0 } else { most / least - 1.0 }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Seconds as milliseconds.
fn ms(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}

fn us(seconds: f64) -> String {
    format!("{:.1} us", seconds * 1e6)
}

impl Reader<'_> {
    /// Means along the numbers of I/O nodes of 64 nodes; those that are not saturated.
    fn along(&self, label: f64, size: u64, of: Quantity) -> Vec<f64> {
        let mean = |io_nodes: &u32| Some(of(self.outcomes, point(64, *io_nodes, label, size, 0.0))?.mean);
        IO_NODES.iter().filter_map(mean).collect()
    }

    fn mean(&self, point: Point, of: Quantity) -> Option<f64> {
        Some(of(self.outcomes, point)?.mean)
    }

    fn io_node(&self, size: u64, per_s: f64) -> Option<IoNodeTimes> {
        self.outcomes.io_node(size, per_s)
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
            what: "hits of 4 KB, up to 650 requests/s",
            published: "hundreds of us",
            computed: format!("{} to {}", us(least), us(most)),
            verdict: holds(least >= 100e-6 && most < 1e-3),
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
            what: "hits of 32 KB, up to 650 requests/s, mean of all",
            published: "3 ms",
            computed: ms(mean),
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
            what: "misses of 4 and 32 KB, up to 650 requests/s",
            published: "14 to 25 ms",
            computed: format!("{} to {}", ms(least), ms(most)),
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
            what: "hits from 5 to 650 requests/s",
            published: "independent of the rate",
            computed: format!("vary by up to {}", percent(worst)),
            verdict: holds(worst <= SLIGHTLY),
            basis: Basis::Calibrated,
        })
    }

    fn misses_and_rate(&self) -> Option<Statement> {
        let times = self.io_node_to(LARGE, 650.0)?;
        let grows = times.windows(2).all(|pair| pair[1].read_miss.mean > pair[0].read_miss.mean * 0.99);
        let by = times.last()?.read_miss.mean / times.first()?.read_miss.mean - 1.0;
        Some(Statement {
            place: "Figure 6",
            what: "misses as the rate grows, 32 KB, 5 to 650 requests/s",
            published: "increase, at a small rate",
            computed: format!("increase by {}", percent(by)),
            verdict: holds(grows && by > 0.0 && by < 1.0),
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
            what: "read misses over hits, at 100 requests/s",
            published: "an order of magnitude",
            computed: format!("{small:.1} times (4 KB), {large:.1} times (32 KB)"),
            verdict: holds(small > 5.0 && large > 5.0),
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
            what: "read misses over write misses, 32 KB",
            published: "slightly larger",
            computed: format!("larger by {} in the mean", percent(mean)),
            verdict: holds(mean > 0.0 && mean <= SLIGHTLY),
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
                    what: "begins to saturate, 32 KB (misses wait as long as they are served)",
                    published: "850 requests/s",
                    computed: format!("{knee:.0} requests/s"),
                    verdict: Verdict::Error(knee / 850.0 - 1.0),
                    basis: Basis::Calibrated,
                });
            }
            before = now;
        }
        None
    }

    fn request_and_io_nodes(&self) -> Option<Statement> {
        let worst = self.worst_spread(&FLOPS_PER_BYTE, Outcomes::read_request)?;
        Some(Statement {
            place: "Figure 7",
            what: "read request time over 8 to 32 I/O nodes",
            published: "relatively independent",
            computed: format!("varies by up to {}", percent(worst)),
            verdict: holds(worst <= SAME),
            basis: Basis::Predicted,
        })
    }

    fn worst_spread(&self, labels: &[f64], of: Quantity) -> Option<f64> {
        let spreads: Vec<f64> = labels
            .iter()
            .map(|label| self.along(*label, LARGE, of))
            .filter(|line| line.len() > 1)
            .map(|line| spread(&line))
            .collect();
        (spreads.len() == labels.len()).then(|| spreads.into_iter().fold(0.0, f64::max))
    }

    fn response_and_io_nodes(&self) -> Option<Statement> {
        let mut falls = Vec::new();
        for label in FLOPS_PER_BYTE {
            let line = self.along(label, LARGE, Outcomes::read_response);
            falls.push(1.0 - line.last()? / line.first()?);
        }
        let (least, most) =
            (falls.iter().copied().fold(f64::MAX, f64::min), falls.iter().copied().fold(f64::MIN, f64::max));
        Some(Statement {
            place: "Figure 7",
            what: "read response time from 8 (or 16) to 32 I/O nodes",
            published: "small decreases",
            computed: format!("decreases by {} to {}", percent(least), percent(most)),
            verdict: holds(least > 0.0 && most <= SLIGHTLY),
            basis: Basis::Predicted,
        })
    }

    /// Request and response times at 32 I/O nodes, from the highest label to the lowest.
    fn by_label(&self, of: Quantity) -> Option<Vec<f64>> {
        FLOPS_PER_BYTE.iter().map(|label| self.mean(point(64, 32, *label, LARGE, 0.0), of)).collect()
    }

    fn network_and_label(&self) -> Option<Statement> {
        let (requests, responses) =
            (self.by_label(Outcomes::read_request)?, self.by_label(Outcomes::read_response)?);
        let grows = |line: &[f64]| line.windows(2).all(|pair| pair[1] > pair[0]);
        let by = |line: &[f64]| line[line.len() - 1] / line[0] - 1.0;
        Some(Statement {
            place: "Figure 7",
            what: "read request and response times as F/B falls, 32 I/O nodes",
            published: "increase",
            computed: format!("increase by {} and {}", percent(by(&requests)), percent(by(&responses))),
            verdict: holds(grows(&requests) && grows(&responses)),
            basis: Basis::Predicted,
        })
    }

    fn network_and_label_twice(&self) -> Option<Statement> {
        let steps = |line: Vec<f64>| -> Vec<f64> { line.windows(2).map(|pair| pair[1] - pair[0]).collect() };
        let requests = steps(self.by_label(Outcomes::read_request)?);
        let responses = steps(self.by_label(Outcomes::read_response)?);
        let grows = |steps: &[f64]| steps.windows(2).all(|pair| pair[1] > pair[0]);
        let ends = |steps: &[f64]| format!("{} to {}", us(steps[0]), us(steps[steps.len() - 1]));
        Some(Statement {
            place: "Figure 7",
            what: "what each halving of F/B adds to them",
            published: "increases, too",
            computed: format!("from {} (request), {} (response)", ends(&requests), ends(&responses)),
            verdict: holds(grows(&requests) && grows(&responses)),
            basis: Basis::Predicted,
        })
    }

    fn network_order(&self) -> Option<Statement> {
        let (requests, responses) =
            (self.by_label(Outcomes::read_request)?, self.by_label(Outcomes::read_response)?);
        let most = responses.iter().copied().fold(0.0, f64::max);
        Some(Statement {
            place: "Figures 7, 8",
            what: "read request and response times, 32 I/O nodes",
            published: "order of microseconds",
            computed: format!("{} and {} at least, {} at most", us(requests[0]), us(responses[0]), us(most)),
            verdict: holds(most < 1e-3),
            basis: Basis::Predicted,
        })
    }

    fn processing_of_low_labels(&self) -> Option<Statement> {
        let mut falls = Vec::new();
        for label in [28.63, 14.32, 7.16] {
            let line = self.along(label, LARGE, Outcomes::read_processing);
            if !line.windows(2).all(|pair| pair[1] < pair[0] * 1.005) {
                return Some(Statement {
                    verdict: Verdict::Fails,
                    ..self.low_labels(String::from("not always"))
                });
            }
            falls.push(percent(1.0 - line.last()? / line.first()?));
        }
        Some(self.low_labels(format!("decreases by {}", falls.join(", "))))
    }

    fn low_labels(&self, computed: String) -> Statement {
        Statement {
            place: "Figure 8",
            what: "read processing time over I/O nodes, F/B 28.63, 14.32, 7.16",
            published: "decreases",
            computed,
            verdict: Verdict::Holds,
            basis: Basis::Predicted,
        }
    }

    fn processing_of_high_labels(&self) -> Option<Statement> {
        let worst = self.worst_spread(&[114.5, 57.25], Outcomes::read_processing)?;
        Some(Statement {
            place: "Figure 8",
            what: "read processing time over I/O nodes, F/B 57.25, 114.5",
            published: "relatively independent",
            computed: format!("varies by up to {}", percent(worst)),
            verdict: holds(worst <= SAME),
            basis: Basis::Predicted,
        })
    }

    fn processing_order(&self) -> Option<Statement> {
        let mut least = (f64::MAX, f64::MAX);
        for label in BELOW_SATURATION {
            for io_nodes in IO_NODES {
                let at = point(64, io_nodes, label, LARGE, 0.0);
                least.0 = least.0.min(self.mean(at, Outcomes::read_processing)?);
                least.1 = least.1.min(self.outcomes.io_node_share(at)?);
            }
        }
        Some(Statement {
            place: "Figure 8",
            what: "read processing time, and the I/O node's share in it",
            published: "milliseconds, dominated by the I/O node",
            computed: format!("at least {}, {}", ms(least.0), percent(least.1)),
            verdict: holds(least.0 > 1e-3 && least.1 > 0.5),
            basis: Basis::Predicted,
        })
    }

    fn small_requests(&self) -> Option<Statement> {
        let line = self.along(EQUAL_DATA, SMALL, Outcomes::read_processing);
        let falls = line.windows(2).all(|pair| pair[1] < pair[0]);
        Some(Statement {
            place: "Figure 9",
            what: "read processing time of 4 KB from 8 to 32 I/O nodes",
            published: "decreases",
            computed: format!("from {} to {}", ms(*line.first()?), ms(*line.last()?)),
            verdict: holds(falls),
            basis: Basis::Predicted,
        })
    }

    fn small_at_eight(&self) -> Option<Statement> {
        let line = self.along(EQUAL_DATA, SMALL, Outcomes::read_processing);
        let over = line.first()? / line.last()? - 1.0;
        Some(Statement {
            place: "Figure 9",
            what: "8 I/O nodes with 4 KB requests (640 requests/s each)",
            published: "begin to saturate",
            computed: format!("{} above 32 I/O nodes", percent(over)),
            verdict: holds(over > SLIGHTLY),
            basis: Basis::Predicted,
        })
    }

    fn large_to_sixteen(&self) -> Option<Statement> {
        let line = self.along(FLOPS_PER_BYTE[0], LARGE, Outcomes::read_processing);
        let by = 1.0 - line.get(1)? / line.first()?;
        Some(Statement {
            place: "Figure 9",
            what: "read processing time of 32 KB from 8 to 16 I/O nodes",
            published: "decreases slightly",
            computed: format!("decreases by {}", percent(by)),
            verdict: holds(by > 0.0 && by <= SLIGHTLY),
            basis: Basis::Predicted,
        })
    }

    fn large_from_sixteen(&self) -> Option<Statement> {
        let line = self.along(FLOPS_PER_BYTE[0], LARGE, Outcomes::read_processing);
        let varies = spread(line.get(1..)?);
        Some(Statement {
            place: "Figure 9",
            what: "read processing time of 32 KB from 16 to 32 I/O nodes",
            published: "independent",
            computed: format!("varies by {}", percent(varies)),
            verdict: holds(varies <= SAME),
            basis: Basis::Predicted,
        })
    }

    /// A quantity over the sizes of systems.
    fn over_systems(&self, ratio: u32, label: f64, of: Quantity) -> Option<Vec<f64>> {
        SYSTEMS
            .iter()
            .map(|nodes| self.mean(point(*nodes, nodes / 2 / ratio, label, LARGE, 0.0), of))
            .collect()
    }

    fn system_size(&self) -> Option<Statement> {
        let mut worst = 0.0_f64;
        for of in [Outcomes::read_processing as Quantity, Outcomes::write_processing] {
            for ratio in [1, 4] {
                for label in [57.25, 28.63, 14.32] {
                    worst = worst.max(spread(&self.over_systems(ratio, label, of)?));
                }
            }
        }
        Some(Statement {
            place: "Figure 10",
            what: "read and write processing times over 16 to 128 nodes",
            published: "relatively independent",
            computed: format!("vary by up to {}", percent(worst)),
            verdict: holds(worst <= SAME),
            basis: Basis::Predicted,
        })
    }

    /// How much longer reads take at a ratio of 4 than at 1: of 64 nodes.
    fn over_ratio(&self, label: f64) -> Option<f64> {
        let mean = |io_nodes| self.mean(point(64, io_nodes, label, LARGE, 0.0), Outcomes::read_processing);
        Some(mean(8)? / mean(32)? - 1.0)
    }

    fn ratio_all(&self) -> Option<Statement> {
        let mut longer = true;
        for of in [Outcomes::read_processing as Quantity, Outcomes::write_processing] {
            for label in [57.25, 28.63, 14.32] {
                let (one, four) = (self.over_systems(1, label, of)?, self.over_systems(4, label, of)?);
                longer &= one.iter().zip(&four).all(|(one, four)| four > one);
            }
        }
        Some(Statement {
            place: "Figure 10",
            what: "all processing times at a ratio of 4 over those at 1",
            published: "larger",
            computed: String::from(if longer { "larger" } else { "not all larger" }),
            verdict: holds(longer),
            basis: Basis::Predicted,
        })
    }

    fn ratio_growing(&self) -> Option<Statement> {
        let over = [self.over_ratio(57.25)?, self.over_ratio(28.63)?, self.over_ratio(14.32)?];
        Some(Statement {
            place: "Figure 10",
            what: "by how much: reads, 64 nodes, F/B 57.25, 28.63, 14.32",
            published: "visibly for small F/B",
            computed: over.map(percent).join(", "),
            verdict: holds(over.windows(2).all(|pair| pair[1] > pair[0]) && over[2] > SAME),
            basis: Basis::Predicted,
        })
    }

    /// A quantity at a load over that without messages, on 32 nodes: least and most over I/O nodes and labels.
    fn over_load(&self, load: f64, of: Quantity) -> Option<(f64, f64)> {
        let mut ends = (f64::MAX, f64::MIN);
        for label in FLOPS_PER_BYTE {
            for io_nodes in [4, 8, 12, 16] {
                let mean = |load| self.mean(point(32, io_nodes, label, LARGE, load), of);
                // Saturated with or without messages.
                let (Some(with), Some(without)) = (mean(load), mean(0.0)) else { continue };
                ends = (ends.0.min(with / without), ends.1.max(with / without));
            }
        }
        (ends.0 <= ends.1).then_some(ends)
    }

    fn request_under_messages(&self) -> Option<Statement> {
        let mut worst = 0.0_f64;
        for label in FLOPS_PER_BYTE {
            for load in [0.0, 0.1] {
                let mean = |io_nodes: &u32| {
                    self.mean(point(32, *io_nodes, label, LARGE, load), Outcomes::read_request)
                };
                let line: Vec<f64> = [4, 8, 12, 16].iter().filter_map(mean).collect();
                if line.len() < 3 {
                    return None;
                }
                worst = worst.max(spread(&line));
            }
        }
        Some(Statement {
            place: "Figure 11",
            what: "read request time over 4 to 16 I/O nodes, loads 0 and 0.1",
            published: "independent",
            computed: format!("varies by up to {}", percent(worst)),
            verdict: holds(worst <= SAME),
            basis: Basis::Predicted,
        })
    }

    fn open(place: &'static str, what: &'static str, computed: String) -> Statement {
        Statement { place, what, published: "", computed, verdict: Verdict::Open, basis: Basis::Predicted }
    }

    fn factors(&self, of: Quantity) -> Option<String> {
        let (light, heavy) = (self.over_load(0.1, of)?, self.over_load(0.4, of)?);
        Some(format!("x {:.2} to {:.2} at 0.1, x {:.2} to {:.2} at 0.4", light.0, light.1, heavy.0, heavy.1))
    }

    fn request_factor(&self) -> Option<Statement> {
        let what = "read request time with messages over that without";
        Some(Reader::open("Figure 11", what, self.factors(Outcomes::read_request)?))
    }

    fn response_factor(&self) -> Option<Statement> {
        let what = "read response time with messages over that without";
        Some(Reader::open("Figure 11", what, self.factors(Outcomes::read_response)?))
    }

    fn processing_under_messages(&self) -> Option<Statement> {
        let what = "read processing time with messages over that without";
        Some(Reader::open("Figure 12", what, self.factors(Outcomes::read_processing)?))
    }

    fn messages_under_io(&self) -> Option<Statement> {
        let ends = |load| {
            let mut ends = (f64::MAX, f64::MIN);
            for label in FLOPS_PER_BYTE {
                for io_nodes in [4, 8, 12, 16] {
                    let at = point(32, io_nodes, label, LARGE, load);
                    let Some(found) = self.outcomes.normalised_message(at) else { continue };
                    ends = (ends.0.min(found.mean), ends.1.max(found.mean));
                }
            }
            (ends.0 <= ends.1).then_some(ends)
        };
        let (light, heavy): ((f64, f64), (f64, f64)) = (ends(0.1)?, ends(0.4)?);
        let computed =
            format!("{:.3} to {:.3} at 0.1, {:.3} to {:.3} at 0.4", light.0, light.1, heavy.0, heavy.1);
        Some(Reader::open("Figure 13", "message time with I/O over that without", computed))
    }
}
