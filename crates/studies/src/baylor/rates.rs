//! Table 1 and the loads of section III: request rates, as printed and as they follow from their labels.

use super::{messages_per_s, requests_per_s};

/// A line of Table 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRow {
    /// Floating point operations a byte.
    pub flops_per_byte: f64,
    /// Compute nodes to each I/O node, as printed.
    pub printed_ratio: u32,
    /// Requests a second at each I/O node, as printed.
    pub printed_per_s: f64,
}

/// Table 1. Its third column is that of 32 compute nodes over 8, 16, 24 and 32 I/O nodes: ratios of 4, 2, 1.33 and 1, not
/// of 4, 3, 2 and 1 as the second column has it.
pub const RATE_ROWS: [RateRow; 20] = {
    const fn row(flops_per_byte: f64, printed_ratio: u32, printed_per_s: f64) -> RateRow {
        RateRow { flops_per_byte, printed_ratio, printed_per_s }
    }
    [
        row(114.5, 4, 80.00),
        row(114.5, 3, 40.00),
        row(114.5, 2, 26.67),
        row(114.5, 1, 20.00),
        row(57.25, 4, 160.00),
        row(57.25, 3, 80.00),
        row(57.25, 2, 53.33),
        row(57.25, 1, 40.00),
        row(28.63, 4, 320.00),
        row(28.63, 3, 160.00),
        row(28.63, 2, 106.67),
        row(28.63, 1, 80.00),
        row(14.32, 4, 640.00),
        row(14.32, 3, 320.00),
        row(14.32, 2, 213.33),
        row(14.32, 1, 160.00),
        row(7.16, 4, 1280.00),
        row(7.16, 3, 640.00),
        row(7.16, 2, 426.67),
        row(7.16, 1, 320.00),
    ]
};

/// Each line of Table 1, with the ratio that its rate is of and the rate that follows from the label.
pub fn rates() -> impl Iterator<Item = (RateRow, f64, f64)> {
    RATE_ROWS.into_iter().map(|row| {
        let io_nodes = 8.0 * f64::from(5 - row.printed_ratio);
        let ratio = 32.0 / io_nodes;
        (row, ratio, requests_per_s(row.flops_per_byte) * ratio)
    })
}

/// Loads of messages: the load, the printed messages a second, and those that follow from it.
pub fn loads() -> [(f64, f64, f64); 2] {
    [(0.1, 1116.0), (0.4, 4464.0)].map(|(load, printed)| (load, printed, messages_per_s(load)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_labels() {
        for (row, _, computed) in rates() {
            // Labels are rounded, each from the one before: 14.32 stands for 14.3125, 28.63 for 28.625; and 13.33 ns for 13⅓.
            assert!((computed / row.printed_per_s - 1.0).abs() < 2e-3, "{row:?} is {computed}");
        }
        for (load, printed, computed) in loads() {
            assert!((computed - printed).abs() < 0.5, "{load}: {computed}");
        }
    }
}
