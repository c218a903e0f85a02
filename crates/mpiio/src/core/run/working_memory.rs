//! The memory that a rank carries an operation out in.

use pio_plan::{IoError, Slot};

use crate::core::run::buffers::Buffers;

/// Collective buffers, an outbox, and scratch memory; of this rank alone unless a channel shares them.
#[derive(Debug)]
pub struct WorkingMemory {
    /// What others of the node may reach.
    pub own: Buffers,
    /// For requests to the file that do not go straight to or from memory.
    pub block: Vec<u8>,
}

impl WorkingMemory {
    /// With these buffers.
    pub fn of(own: Buffers) -> WorkingMemory {
        WorkingMemory { own, block: Vec::new() }
    }

    /// For operations without other ranks.
    pub fn private() -> WorkingMemory {
        WorkingMemory::of(Buffers::private())
    }

    /// The first bytes of one of the collective buffers.
    pub fn own(&mut self, slot: Slot, len: u64) -> Result<&mut [u8], IoError> {
        self.own.collective(slot, len)
    }
}
