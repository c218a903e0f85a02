//! Why a network cannot keep circuits.

use thiserror::Error;

/// Why a network cannot keep circuits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CircuitError {
    /// Packets could wait for each other in a circle.
    #[error(
        "{topology}: needs {classes} classes of virtual channels to be free of deadlock, and switching = \"circuit\" has \
         but one (expected a network like a fat tree, fly, omega or mesh)"
    )]
    Classes {
        /// Which network.
        topology: String,
        /// How many classes it needs.
        classes: u8,
    },
}
