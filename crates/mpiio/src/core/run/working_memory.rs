//! The memory that a rank carries an operation out in.

use pio_plan::{IoError, Slot};

use crate::core::run::buffers::Buffers;

/// Collective buffers, an outbox, and scratch memory; of this rank alone unless a channel shares them.
#[derive(Debug)]
pub(crate) struct WorkingMemory {
    /// What others of the node may reach.
    pub(crate) own: Buffers,
    /// For requests to the file that do not go straight to or from memory.
    pub(crate) block: Vec<u8>,
}

impl WorkingMemory {
    /// With these buffers.
    pub(crate) fn of(own: Buffers) -> WorkingMemory {
        WorkingMemory { own, block: Vec::new() }
    }

    /// For operations without other ranks.
    pub(crate) fn private() -> WorkingMemory {
        WorkingMemory::of(Buffers::private())
    }

    /// The first bytes of one of the collective buffers.
    pub(crate) fn own(&mut self, slot: Slot, len: u64) -> Result<&mut [u8], IoError> {
        self.own.collective(slot, len)
    }
}
