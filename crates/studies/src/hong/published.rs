//! The numbers that the paper prints: `papers/hong-2006/published.toml`.

use pio_plan::Direction;
use serde::Deserialize;

use super::HongError;
use super::model::{Experiment, Method};

/// What the paper prints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Printed {
    /// Data pieces of all clients together: the tables' first column.
    pub pieces: Vec<u64>,
    /// Bytes of each.
    pub piece_bytes: u64,
    /// Executions that a printed time is for.
    pub executions: u32,
    /// The tables.
    pub tables: Vec<PrintedTable>,
}

/// One table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrintedTable {
    /// Its number.
    pub table: u32,
    direction: String,
    /// I/O clients.
    pub clients: u32,
    /// Megabytes written or read.
    pub file_mb: Vec<f64>,
    /// Megabytes that two-phase moves between clients.
    pub resent_mb: Vec<f64>,
    /// Seconds of two-phase.
    collective_s: Vec<f64>,
    /// Seconds of ECIO.
    ecio_s: Vec<f64>,
    /// How much less ECIO takes, percent.
    pub improvement_percent: Vec<f64>,
    /// What was predicted of two-phase before the table was looked up, if it was.
    #[serde(default)]
    predicted_collective_s: Vec<f64>,
    /// The same of ECIO.
    #[serde(default)]
    predicted_ecio_s: Vec<f64>,
}

/// A printed time: of so many executions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// What was run.
    pub experiment: Experiment,
    /// Seconds of one execution.
    pub seconds: f64,
}

impl Printed {
    /// The file, which is built in.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn load() -> Result<Printed, HongError> {
        Ok(toml::from_str(include_str!("../../../../papers/hong-2006/published.toml"))?)
    }

    /// Every printed time of one execution.
    pub fn measurements(&self) -> Vec<Measurement> {
        let mut all = Vec::new();
        for table in &self.tables {
            for (row, pieces) in self.pieces.iter().enumerate() {
                for method in Method::ALL {
                    let Some(total) = table.seconds(method, row) else { continue };
                    let experiment = Experiment {
                        method,
                        direction: table.direction(),
                        pieces: *pieces,
                        piece_bytes: self.piece_bytes,
                        clients: table.clients,
                        servers: 1,
                    };
                    all.push(Measurement { experiment, seconds: total / f64::from(self.executions) });
                }
            }
        }
        all
    }
}

impl PrintedTable {
    /// Whether its experiment writes or reads.
    pub fn direction(&self) -> Direction {
        if self.direction == "write" { Direction::Write } else { Direction::Read }
    }

    /// The printed time of a row, for all executions.
    pub fn seconds(&self, method: Method, row: usize) -> Option<f64> {
        let column = match method {
            Method::Collective => &self.collective_s,
            Method::Ecio => &self.ecio_s,
        };
        column.get(row).copied()
    }

    /// What was predicted of a row before it was looked up, for all executions; none for those that were known.
    pub fn predicted(&self, method: Method, row: usize) -> Option<f64> {
        let column = match method {
            Method::Collective => &self.predicted_collective_s,
            Method::Ecio => &self.predicted_ecio_s,
        };
        column.get(row).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_agree_with_their_own_arithmetic() {
        let published = Printed::load().unwrap();
        assert_eq!(published.measurements().len(), 72);
        for table in &published.tables {
            for (row, pieces) in published.pieces.iter().enumerate() {
                let mb = (pieces * published.piece_bytes) as f64 * f64::from(published.executions) / 1e6;
                assert!((table.file_mb[row] - mb).abs() < 1e-9, "table {} row {row}", table.table);
                let clients = f64::from(table.clients);
                assert!((table.resent_mb[row] - mb * (clients - 1.0) / clients).abs() < 1e-9);
                let times = (table.seconds(Method::Collective, row), table.seconds(Method::Ecio, row));
                let (Some(collective), Some(ecio)) = times else { continue };
                let improvement = 100.0 * (1.0 - ecio / collective);
                // Some are rounded, some cut off, and one is a misprint.
                let is_misprint = (table.table, *pieces) == (2, 128_000);
                let off = table.improvement_percent[row] - improvement;
                assert!(is_misprint || off.abs() < 0.1, "{row}: {improvement}");
            }
        }
    }
}
