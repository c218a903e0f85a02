//! Figures 11 to 13: I/O traffic and messages between compute nodes.

use super::{Quantity, Reader, SAME, percent, point, spread};
use crate::baylor::Outcomes;
use crate::baylor::points::{FLOPS_PER_BYTE, LARGE};
use crate::{Basis, Published, Statement, Verdict};

impl Reader<'_> {
    pub(super) fn of_io_with_messages(&self) -> [Option<Statement>; 5] {
        [
            self.request_under_messages(),
            self.request_factor(),
            self.response_factor(),
            self.processing_under_messages(),
            self.messages_under_io(),
        ]
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
            what: "read request time over 4 to 16 I/O nodes, loads 0 and 0.1".into(),
            published: Published::Words("independent"),
            computed: format!("varies by up to {}", percent(worst)).into(),
            verdict: Verdict::of(worst <= SAME),
            basis: Basis::Predicted,
        })
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
