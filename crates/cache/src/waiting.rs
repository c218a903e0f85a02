//! Requests that wait for room or for the dirty limit.
//!
//! Nobody overtakes one that waits for the same: so of those only the first is worth a try, however many there are.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::Wait;

/// Those who wait, by what they wait for, and in the order in which they began to.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Slots by turn.
    queues: BTreeMap<Wait, BTreeMap<u64, u32>>,
    next_turn: u64,
}

/// What somebody cannot have, as others wait for it who come first.
#[derive(Clone, Copy)]
pub(crate) enum HeldUp<'w> {
    /// All that anybody waits for.
    AllOf(&'w Waiting),
    /// These.
    These(&'w BTreeSet<Wait>),
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// A request waits behind all others.
    pub(crate) fn add(&mut self, slot: u32, wait: Wait) {
        self.queues.entry(wait).or_default().insert(self.next_turn, slot);
        self.next_turn += 1;
    }

    /// A request waits where it was in the order.
    pub(crate) fn put_back(&mut self, slot: u32, wait: Wait, turn: u64) {
        self.queues.entry(wait).or_default().insert(turn, slot);
    }

    /// Who is first for each thing: turn, and what for.
    pub(crate) fn firsts(&self) -> BTreeSet<(u64, Wait)> {
        self.queues.keys().filter_map(|wait| Some((self.first(*wait)?, *wait))).collect()
    }

    /// The turn of who is first for a thing.
    pub(crate) fn first(&self, wait: Wait) -> Option<u64> {
        self.queues.get(&wait)?.first_key_value().map(|(turn, _)| *turn)
    }

    /// Takes out who is first for a thing.
    pub(crate) fn take_first(&mut self, wait: Wait) -> Option<u32> {
        let queue = self.queues.get_mut(&wait)?;
        let slot = queue.pop_first().map(|(_, slot)| slot);
        if queue.is_empty() {
            self.queues.remove(&wait);
        }
        slot
    }
}

impl HeldUp<'_> {
    pub(crate) fn contains(&self, wait: Wait) -> bool {
        match self {
            HeldUp::AllOf(waiting) => waiting.queues.contains_key(&wait),
            HeldUp::These(waits) => waits.contains(&wait),
        }
    }
}
