//! What the paper's text says of its figures, beside what is computed.
//!
//! Where the text says how much, the error is given. Where it says how (grows, is independent, ...), it is said by a number
//! here, and holds or does not: `independent` is to vary by no more than [`SAME`], what `slightly` differs by no more than
//! [`SLIGHTLY`]. Results that were predicted before they were looked up have no published side.

mod io_node;
mod io_only;
mod with_messages;

use pio_sim::kernel::Estimate;

use super::{IoNodeTimes, Outcomes, Point};
use crate::{Basis, Computed, Published, Statement, Verdict};

/// What varies by no more is independent.
pub(super) const SAME: f64 = 0.10;

/// What differs by no more differs slightly.
pub(super) const SLIGHTLY: f64 = 0.25;

/// A mean this many times that without load: waiting takes as long as service. So an I/O node "begins to saturate".
const SATURATES: f64 = 2.0;

/// All statements whose simulations were made, with the paper's parameters.
pub fn statements(outcomes: &Outcomes) -> Vec<Statement> {
    let reader = Reader { outcomes };
    let (io_node, io_only, messages) =
        (reader.of_the_io_node(), reader.of_io_only(), reader.of_io_with_messages());
    io_node.into_iter().chain(io_only).chain(messages).flatten().collect()
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
    fn mean(&self, point: Point, of: Quantity) -> Option<f64> {
        Some(of(self.outcomes, point)?.mean)
    }

    fn io_node(&self, size: u64, per_s: f64) -> Option<IoNodeTimes> {
        self.outcomes.io_node(size, per_s)
    }

    fn open(place: &'static str, what: &'static str, computed: String) -> Statement {
        Statement {
            place,
            what: what.to_owned(),
            published: Published::Nothing,
            computed: Computed::Words(computed),
            verdict: Verdict::Open,
            basis: Basis::Predicted,
        }
    }
}
