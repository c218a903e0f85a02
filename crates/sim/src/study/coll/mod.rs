//! The study of Coll, Petrini, Frachtenberg and Hoisie (2003): I/O traffic and the placement of I/O nodes on QsNET.
//!
//! The pings of sections 4.1 and 4.2 calibrate the adapters of `machines/qsnet-64.toml`; hot spots, multiple hot spots and
//! combined jobs are predicted. `papers/coll-2003/README.md` says what rests on what.

mod placement;
mod traffic;

use thiserror::Error;

pub use placement::{ApplicationMapping, FirstHalf, IoMapping, Placement};
pub use traffic::{Destinations, Distribution, Outcome, Process, Window, run};

/// Why a study cannot be run.
#[derive(Debug, Error)]
pub enum CollError {
    /// More I/O nodes than leave nodes for applications, or none.
    #[error("io-nodes = {found}: expected 1 to {most}")]
    IoNodes {
        /// How many were asked for.
        found: u32,
        /// How many there can be.
        most: u32,
    },
}
