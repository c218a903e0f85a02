//! Bytes that are moved more than once.

use super::class::Class;
use super::finding::{Detail, Draft};
use super::limits::{BYTES, CALLS, CYCLE, PASSES};
use super::{Context, Cost, Finding, Kind, Slot};

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let changed = changed_by_others(context);
    let reread = || {
        let changed = &changed;
        context.charged(Class::Reread).filter(move |(slot, _)| !changed(slot))
    };
    let unchanged = context.charged(Class::ReadByOthers).filter(|(slot, _)| !slot.written && !changed(slot));
    [
        vain(context, Kind::RedundantReads, reread().filter(|(slot, cost)| cycle(slot, cost).is_none())),
        cyclic(context, reread()),
        vain(context, Kind::SameReadByAll, unchanged),
        vain(context, Kind::Overwrites, context.charged(Class::Overwrite)),
        vain(context, Kind::ReadAfterWrite, context.charged(Class::ReadBack)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Calls that moved bytes for nothing: many, or of many bytes. What else they moved was needed.
fn vain<'a>(
    context: &Context<'a>,
    kind: Kind,
    parts: impl IntoIterator<Item = (&'a Slot, Cost)>,
) -> Option<Finding> {
    context
        .told(moved_again(kind, parts), 1)
        .filter(|finding| finding.cost.calls >= CALLS || finding.cost.bytes() >= BYTES)
}

fn cyclic<'a>(context: &Context<'a>, parts: impl Iterator<Item = (&'a Slot, Cost)>) -> Option<Finding> {
    let parts: Vec<_> = parts.filter(|(slot, cost)| cycle(slot, cost).is_some()).collect();
    let longest = parts.iter().filter_map(|(slot, cost)| cycle(slot, cost)).max()?;
    let mut draft = moved_again(Kind::CyclicRereads, parts);
    draft.detail = Detail::Cycle { bytes: longest.0, passes: longest.1 };
    context.told(draft, 1)
}

/// A finding in the making, of calls that would have moved the rest of their bytes alone.
fn moved_again<'a>(kind: Kind, parts: impl IntoIterator<Item = (&'a Slot, Cost)>) -> Draft {
    let parts: Vec<_> = parts.into_iter().collect();
    let mut draft = Draft::of(kind, parts.iter().copied());
    draft.expected_ns = parts.iter().map(|(_, cost)| cost.without_again_ns()).sum();
    draft
}

/// Bytes from pass to pass, and passes, if a process re-reads a file in long cycles, and not much faster than at first:
/// then no cache has held it.
fn cycle(slot: &Slot, again: &Cost) -> Option<(u64, u64)> {
    let reuse = slot.reuse.as_ref()?;
    let bytes = reuse.pass_bytes / reuse.passes.max(1);
    let as_slow = (again.time_ns as f64) * reuse.first_bytes as f64 * 2.0
        >= reuse.first_ns as f64 * again.read_bytes as f64;
    (reuse.passes >= PASSES && bytes >= CYCLE && as_slow).then_some((bytes, reuse.passes))
}

/// Tells whether another process wrote to the file of a slot: reading it again then is no waste.
fn changed_by_others(context: &Context<'_>) -> impl Fn(&Slot) -> bool + use<> {
    let mut writers = vec![(0_u32, None); context.evidence.files.len()];
    for slot in context.evidence.slots.slots.iter().filter(|slot| slot.written) {
        if let Some(writer) = slot.file.and_then(|file| writers.get_mut(file.index())) {
            *writer = (writer.0 + 1, Some(slot.process));
        }
    }
    move |slot| {
        let writer = slot.file.and_then(|file| writers.get(file.index()));
        writer.is_some_and(|(count, last)| *count > 1 || (*count == 1 && *last != Some(slot.process)))
    }
}
