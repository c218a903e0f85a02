//! Networks that these switches cannot make.

use thiserror::Error;

/// Why there is no such network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CentralQueueError {
    /// Its routes could wait for each other in a circle.
    #[error(
        "{topology}: its routes need {needed} classes of virtual channels to be free of deadlock, and central-queue \
         switches have one"
    )]
    Classes {
        /// The topology.
        topology: String,
        /// Classes that it needs.
        needed: u8,
    },
    /// A packet is cut too fine.
    #[error("a packet of {bytes} bytes takes {chunks} chunks of a central queue: expected at most 65535")]
    Packet {
        /// Chunks that it takes.
        chunks: u32,
        /// Its bytes.
        bytes: u32,
    },
    /// The queue of a switch is too small for its ports.
    #[error(
        "switch {switch} has {ports} output ports: its central queue needs {chunks} chunks, one packet beside what is \
         reserved for each output, and has {found}"
    )]
    Chunks {
        /// The switch.
        switch: u32,
        /// Its output ports.
        ports: u32,
        /// Chunks needed at least.
        chunks: u32,
        /// Chunks described.
        found: u32,
    },
}
