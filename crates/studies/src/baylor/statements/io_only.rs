//! Figures 7 to 10: I/O traffic only.

use super::{BELOW_SATURATION, IO_NODES, Quantity, Reader, SAME, SLIGHTLY, ms, percent, point, spread, us};
use crate::baylor::Outcomes;
use crate::baylor::points::{EQUAL_DATA, FLOPS_PER_BYTE, LARGE, SMALL, SYSTEMS};
use crate::{Basis, Published, Statement, Verdict};

impl Reader<'_> {
    pub(super) fn of_io_only(&self) -> [Option<Statement>; 15] {
        [
            self.request_and_io_nodes(),
            self.response_and_io_nodes(),
            self.network_and_label(),
            self.network_and_label_twice(),
            self.network_order(),
            self.processing_of_low_labels(),
            self.processing_of_high_labels(),
            self.processing_order(),
            self.small_requests(),
            self.small_at_eight(),
            self.large_to_sixteen(),
            self.large_from_sixteen(),
            self.system_size(),
            self.ratio_all(),
            self.ratio_growing(),
        ]
    }

    /// Means along the numbers of I/O nodes of 64 nodes; those that are not saturated.
    fn along(&self, label: f64, size: u64, of: Quantity) -> Vec<f64> {
        let mean = |io_nodes: &u32| Some(of(self.outcomes, point(64, *io_nodes, label, size, 0.0))?.mean);
        IO_NODES.iter().filter_map(mean).collect()
    }

    fn request_and_io_nodes(&self) -> Option<Statement> {
        let worst = self.worst_spread(&FLOPS_PER_BYTE, Outcomes::read_request)?;
        Some(Statement {
            place: "Figure 7",
            what: "read request time over 8 to 32 I/O nodes".into(),
            published: Published::Words("relatively independent"),
            computed: format!("varies by up to {}", percent(worst)).into(),
            verdict: Verdict::of(worst <= SAME),
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
            what: "read response time from 8 (or 16) to 32 I/O nodes".into(),
            published: Published::Words("small decreases"),
            computed: format!("decreases by {} to {}", percent(least), percent(most)).into(),
            verdict: Verdict::of(least > 0.0 && most <= SLIGHTLY),
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
            what: "read request and response times as F/B falls, 32 I/O nodes".into(),
            published: Published::Words("increase"),
            computed: format!("increase by {} and {}", percent(by(&requests)), percent(by(&responses)))
                .into(),
            verdict: Verdict::of(grows(&requests) && grows(&responses)),
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
            what: "what each halving of F/B adds to them".into(),
            published: Published::Words("increases, too"),
            computed: format!("from {} (request), {} (response)", ends(&requests), ends(&responses)).into(),
            verdict: Verdict::of(grows(&requests) && grows(&responses)),
            basis: Basis::Predicted,
        })
    }

    fn network_order(&self) -> Option<Statement> {
        let (requests, responses) =
            (self.by_label(Outcomes::read_request)?, self.by_label(Outcomes::read_response)?);
        let most = responses.iter().copied().fold(0.0, f64::max);
        Some(Statement {
            place: "Figures 7, 8",
            what: "read request and response times, 32 I/O nodes".into(),
            published: Published::Words("order of microseconds"),
            computed: format!("{} and {} at least, {} at most", us(requests[0]), us(responses[0]), us(most))
                .into(),
            verdict: Verdict::of(most < 1e-3),
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
            what: "read processing time over I/O nodes, F/B 28.63, 14.32, 7.16".into(),
            published: Published::Words("decreases"),
            computed: computed.into(),
            verdict: Verdict::Holds,
            basis: Basis::Predicted,
        }
    }

    fn processing_of_high_labels(&self) -> Option<Statement> {
        let worst = self.worst_spread(&[114.5, 57.25], Outcomes::read_processing)?;
        Some(Statement {
            place: "Figure 8",
            what: "read processing time over I/O nodes, F/B 57.25, 114.5".into(),
            published: Published::Words("relatively independent"),
            computed: format!("varies by up to {}", percent(worst)).into(),
            verdict: Verdict::of(worst <= SAME),
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
            what: "read processing time, and the I/O node's share in it".into(),
            published: Published::Words("milliseconds, dominated by the I/O node"),
            computed: format!("at least {}, {}", ms(least.0), percent(least.1)).into(),
            verdict: Verdict::of(least.0 > 1e-3 && least.1 > 0.5),
            basis: Basis::Predicted,
        })
    }

    fn small_requests(&self) -> Option<Statement> {
        let line = self.along(EQUAL_DATA, SMALL, Outcomes::read_processing);
        let falls = line.windows(2).all(|pair| pair[1] < pair[0]);
        Some(Statement {
            place: "Figure 9",
            what: "read processing time of 4 KB from 8 to 32 I/O nodes".into(),
            published: Published::Words("decreases"),
            computed: format!("from {} to {}", ms(*line.first()?), ms(*line.last()?)).into(),
            verdict: Verdict::of(falls),
            basis: Basis::Predicted,
        })
    }

    fn small_at_eight(&self) -> Option<Statement> {
        let line = self.along(EQUAL_DATA, SMALL, Outcomes::read_processing);
        let over = line.first()? / line.last()? - 1.0;
        Some(Statement {
            place: "Figure 9",
            what: "8 I/O nodes with 4 KB requests (640 requests/s each)".into(),
            published: Published::Words("begin to saturate"),
            computed: format!("{} above 32 I/O nodes", percent(over)).into(),
            verdict: Verdict::of(over > SLIGHTLY),
            basis: Basis::Predicted,
        })
    }

    fn large_to_sixteen(&self) -> Option<Statement> {
        let line = self.along(FLOPS_PER_BYTE[0], LARGE, Outcomes::read_processing);
        let by = 1.0 - line.get(1)? / line.first()?;
        Some(Statement {
            place: "Figure 9",
            what: "read processing time of 32 KB from 8 to 16 I/O nodes".into(),
            published: Published::Words("decreases slightly"),
            computed: format!("decreases by {}", percent(by)).into(),
            verdict: Verdict::of(by > 0.0 && by <= SLIGHTLY),
            basis: Basis::Predicted,
        })
    }

    fn large_from_sixteen(&self) -> Option<Statement> {
        let line = self.along(FLOPS_PER_BYTE[0], LARGE, Outcomes::read_processing);
        let varies = spread(line.get(1..)?);
        Some(Statement {
            place: "Figure 9",
            what: "read processing time of 32 KB from 16 to 32 I/O nodes".into(),
            published: Published::Words("independent"),
            computed: format!("varies by {}", percent(varies)).into(),
            verdict: Verdict::of(varies <= SAME),
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
            what: "read and write processing times over 16 to 128 nodes".into(),
            published: Published::Words("relatively independent"),
            computed: format!("vary by up to {}", percent(worst)).into(),
            verdict: Verdict::of(worst <= SAME),
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
            what: "all processing times at a ratio of 4 over those at 1".into(),
            published: Published::Words("larger"),
            computed: String::from(if longer { "larger" } else { "not all larger" }).into(),
            verdict: Verdict::of(longer),
            basis: Basis::Predicted,
        })
    }

    fn ratio_growing(&self) -> Option<Statement> {
        let over = [self.over_ratio(57.25)?, self.over_ratio(28.63)?, self.over_ratio(14.32)?];
        Some(Statement {
            place: "Figure 10",
            what: "by how much: reads, 64 nodes, F/B 57.25, 28.63, 14.32".into(),
            published: Published::Words("visibly for small F/B"),
            computed: over.map(percent).join(", ").into(),
            verdict: Verdict::of(over.windows(2).all(|pair| pair[1] > pair[0]) && over[2] > SAME),
            basis: Basis::Predicted,
        })
    }
}
