//! Opens, names and syncs: calls that move nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::class::Class;
use super::limits::{CALLS, NAMES, OWN_FILES, SMALL, SYNCS};
use super::{Context, Cost, Finding, Kind, Slot};

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [
        syncs(context),
        context.vain(Kind::OpenStorm, context.charged(Class::Reopen), 0.0, CALLS),
        many_files(context),
        context.vain(Kind::MetadataStorm, context.charged(Class::Name), 0.0, NAMES),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One sync a file, of all that were made, is needed.
fn syncs(context: &Context<'_>) -> Option<Finding> {
    let parts: Vec<_> = context.charged(Class::Sync).filter(|(_, cost)| cost.calls >= SYNCS).collect();
    let calls: u64 = parts.iter().map(|(_, cost)| cost.calls).sum();
    let needed = parts.len() as f64 / calls.max(1) as f64;
    context.vain(Kind::SyncPerWrite, parts, needed, SYNCS)
}

/// Files that one process uses for little: of ranks, or of any processes.
fn many_files(context: &Context<'_>) -> Option<Finding> {
    let mut users: BTreeMap<_, u64> = BTreeMap::new();
    for slot in &context.evidence.slots.slots {
        *users.entry(slot.file).or_default() += 1;
    }
    let own: Vec<(&Slot, Cost)> =
        context.charged(Class::Open).filter(|(slot, _)| users.get(&slot.file) == Some(&1)).collect();
    let ranked =
        |slot: &Slot| context.evidence.processes.get(slot.process.index()).is_some_and(|one| one.ranked);
    let of_ranks: Vec<_> = own.iter().copied().filter(|(slot, _)| slot.written && ranked(slot)).collect();
    let ranks: BTreeSet<_> = of_ranks.iter().map(|(slot, _)| slot.process).collect();
    if ranks.len() > 1 && of_ranks.len() as u64 >= OWN_FILES {
        return context.vain(Kind::FilePerProcess, of_ranks, 0.0, OWN_FILES);
    }
    let users: BTreeSet<_> = own.iter().map(|(slot, _)| slot.process).collect();
    let moved = users
        .iter()
        .filter_map(|process| context.evidence.processes.get(process.index()))
        .fold(0, |sum: u64, one| sum.saturating_add(one.clock));
    (own.len() as u64 >= NAMES && moved / own.len() as u64 <= SMALL)
        .then(|| context.vain(Kind::ManySmallFiles, own, 0.0, NAMES))
        .flatten()
}
