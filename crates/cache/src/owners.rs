//! How much of the cache each process owns, where that is limited.

use std::collections::HashMap;

/// Blocks that each process owns.
pub(crate) struct Owners {
    limit: Option<u64>,
    blocks: HashMap<u32, u64>,
}

impl Owners {
    /// Nobody owns anything yet, and nobody may own more than `limit` blocks.
    pub(crate) fn new(limit: Option<u64>) -> Owners {
        Owners { limit, blocks: HashMap::new() }
    }

    /// How many blocks more a process may own.
    pub(crate) fn allowance(&self, process: u32) -> u64 {
        let Some(limit) = self.limit else { return u64::MAX };
        limit - self.blocks.get(&process).copied().unwrap_or(0)
    }

    pub(crate) fn got(&mut self, process: u32, blocks: u64) {
        if self.limit.is_some() {
            *self.blocks.entry(process).or_default() += blocks;
        }
    }

    pub(crate) fn lost(&mut self, process: u32, blocks: u64) {
        if self.limit.is_some() {
            *self.blocks.entry(process).or_default() -= blocks;
        }
    }
}
