//! Opens, names and syncs: calls that move nothing.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::FileId;

use super::class::Class;
use super::limits::{CALLS, NAMES, OWN_FILES, SMALL, SYNCS};
use super::{Context, Cost, Finding, Kind, Slot};

/// What asks for a name: a file that is opened over and over by one process is another matter.
const NAMING: [Class; 2] = [Class::Open, Class::Name];

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let by_all = ByAll::of(context);
    let named = context.charged(Class::Name).filter(|(slot, _)| !by_all.has(slot));
    [
        syncs(context),
        syncs_of_files(context),
        by_all.finding(context),
        context.vain(Kind::OpenStorm, context.charged(Class::Reopen), 0.0, CALLS),
        many_files(context),
        context.vain(Kind::MetadataStorm, named, 0.0, NAMES),
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

/// Of files that are synced a few times, one sync a process is needed, for all of them.
fn syncs_of_files(context: &Context<'_>) -> Option<Finding> {
    let parts: Vec<_> = context.charged(Class::Sync).filter(|(_, cost)| cost.calls < SYNCS).collect();
    let processes: BTreeSet<_> = parts.iter().map(|(slot, _)| slot.process).collect();
    let calls: u64 = parts.iter().map(|(_, cost)| cost.calls).sum();
    let needed = processes.len() as f64 / calls.max(1) as f64;
    context.vain(Kind::SyncPerFile, parts, needed, CALLS)
}

/// Files that every rank opens or asks for, and none writes.
struct ByAll {
    ranks: usize,
    files: BTreeSet<FileId>,
}

impl ByAll {
    fn of(context: &Context<'_>) -> ByAll {
        let evidence = context.evidence;
        let ranks = evidence.processes.iter().filter(|process| process.ranked).count();
        let mut users: BTreeMap<FileId, (usize, bool)> = BTreeMap::new();
        let is_rank =
            |slot: &&Slot| evidence.processes.get(slot.process.index()).is_some_and(|one| one.ranked);
        for slot in evidence.slots.slots.iter().filter(is_rank) {
            let asks = NAMING.into_iter().any(|class| slot.costs.get(class).is_some());
            if let Some(file) = slot.file.filter(|_| asks || slot.written) {
                let user = users.entry(file).or_default();
                *user = (user.0 + 1, user.1 || slot.written);
            }
        }
        let by_all =
            users.into_iter().filter(|(_, (users, written))| ranks > 1 && *users == ranks && !written);
        ByAll { ranks, files: by_all.map(|(file, _)| file).collect() }
    }

    fn has(&self, slot: &Slot) -> bool {
        slot.file.is_some_and(|file| self.files.contains(&file))
    }

    /// One rank could ask, and tell the others.
    fn finding(&self, context: &Context<'_>) -> Option<Finding> {
        let calls = NAMING.into_iter().flat_map(|class| context.charged(class));
        let parts = calls.filter(|(slot, _)| self.has(slot));
        context.vain(Kind::SameNamesByAll, parts, 1.0 / self.ranks.max(1) as f64, CALLS)
    }
}

/// Files that one process uses for little: of ranks, or of any processes.
fn many_files(context: &Context<'_>) -> Option<Finding> {
    let mut users: BTreeMap<_, u64> = BTreeMap::new();
    for slot in context.evidence.slots.slots.iter().filter(|slot| slot.opens > 0) {
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
