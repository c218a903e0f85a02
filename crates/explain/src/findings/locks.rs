//! Processes that wait for each other's locks.

use std::collections::BTreeMap;

use super::class::Class;
use super::finding::Draft;
use super::limits::SHARE;
use super::{Context, Finding, Kind};

/// What is waited for a lock would not be waited without it. Whoever waits does so while another works: the job is held
/// up for as long as the process that waited longest, whoever waited beside it.
pub(super) fn findings(context: &Context<'_>) -> Option<Finding> {
    let parts: Vec<_> = context.charged(Class::Lock).filter(|(_, cost)| cost.waits > 0).collect();
    let mut waited: BTreeMap<_, u64> = BTreeMap::new();
    for (slot, cost) in &parts {
        let waited_ns = waited.entry(slot.process).or_default();
        *waited_ns = waited_ns.saturating_add(cost.waited_ns);
    }
    let lost_ns = waited.values().copied().max()? as f64;
    let sum_ns: f64 = waited.values().map(|waited_ns| *waited_ns as f64).sum();
    let mut draft = Draft::of(Kind::LockWaits, parts);
    draft.expected_ns = draft.cost.time_ns as f64 - sum_ns;
    (lost_ns >= context.least_ns(SHARE)).then(|| draft.finish(lost_ns, sum_ns / lost_ns))
}
