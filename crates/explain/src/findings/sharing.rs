//! Several processes and one file.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::FileId;

use super::class::Class;
use super::finding::Detail;
use super::{Context, Cost, Finding, Kind, Slot};

/// What else the writes of a contended file are charged to: only the later of two writers is seen to share a page.
const CONTENDING: [Class; 4] = [Class::SmallWrite, Class::RandomWrite, Class::StepsWrite, Class::PartialPage];

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let appenders = appenders(context);
    let appended = context
        .charged(Class::Append)
        .filter(|(slot, _)| appenders.get(&slot.file).is_some_and(|count| *count > 1));
    let contending = CONTENDING
        .into_iter()
        .flat_map(|class| context.charged(class))
        .chain(context.charged(Class::SharedPage))
        .filter(|(slot, _)| context.contends(slot));
    let interleaved = interleaved(context);
    let by_turns = |slot: &Slot| slot.file.is_some_and(|file| interleaved.contains(&file));
    let independent = || context.charged(Class::Independent).chain(context.charged(Class::IndependentSteps));
    let alone = context.charged(Class::IndependentSteps).filter(|(slot, _)| !by_turns(slot));
    [
        context.slow(Kind::UnalignedSharing, contending).map(|finding| with_unit(context, finding)),
        context.slow(Kind::SharedAppend, appended),
        context.slow(Kind::MissingCollective, independent().filter(|(slot, _)| by_turns(slot))),
        context.slow(Kind::NoView, alone.chain(context.charged(Class::CollectivePieces))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Says the stripe of the file on which most time was spent, if it is known.
fn with_unit(context: &Context<'_>, mut finding: Finding) -> Finding {
    let file = finding.files.first().and_then(|file| context.evidence.files.get(file.id.index()));
    if let Some(bytes) = file.and_then(|file| file.stripe) {
        finding.detail = Detail::Stripes { bytes };
    }
    finding
}

/// Files in which a tenth of the remarkable writes share a page or stripe.
pub(super) fn contended(slots: &[Slot]) -> BTreeSet<FileId> {
    let mut calls: BTreeMap<FileId, (u64, u64)> = BTreeMap::new();
    let of = |slot: &Slot, class| slot.costs.get(class).map_or(0, |cost| cost.calls);
    for slot in slots.iter().filter(|slot| slot.written) {
        let Some(file) = slot.file else { continue };
        let sum = calls.entry(file).or_default();
        sum.0 += of(slot, Class::SharedPage);
        sum.1 += CONTENDING.into_iter().map(|class| of(slot, class)).sum::<u64>();
    }
    calls
        .into_iter()
        .filter(|(_, (sharing, others))| *sharing > 0 && sharing * 9 >= *others)
        .map(|(file, _)| file)
        .collect()
}

/// Independent MPI-IO on files that nobody else goes through by turns with its process: nothing but its size is wrong.
pub(super) fn alone<'a>(context: &Context<'a>) -> Vec<(&'a Slot, Cost)> {
    let interleaved = interleaved(context);
    let by_turns = |slot: &Slot| slot.file.is_some_and(|file| interleaved.contains(&file));
    context.charged(Class::Independent).filter(|(slot, _)| !by_turns(slot)).collect()
}

/// Processes that append to each file.
pub(super) fn appenders(context: &Context<'_>) -> BTreeMap<Option<FileId>, u64> {
    let mut counts = BTreeMap::new();
    for (slot, _) in context.charged(Class::Append) {
        *counts.entry(slot.file).or_default() += 1;
    }
    counts
}

/// Files that several processes go through by turns: what at least half of them access by MPI-IO begins before that of
/// the one before ends.
fn interleaved(context: &Context<'_>) -> BTreeSet<FileId> {
    let mut spans: BTreeMap<FileId, Vec<(u64, u64)>> = BTreeMap::new();
    for slot in &context.evidence.slots.slots {
        if let (Some(file), Some(span)) = (slot.file, slot.span) {
            spans.entry(file).or_default().push(span);
        }
    }
    let is_interleaved = |spans: &mut Vec<(u64, u64)>| {
        spans.sort_unstable();
        let overlapping = spans.windows(2).filter(|pair| pair[1].0 < pair[0].1).count();
        spans.len() > 1 && overlapping * 2 >= spans.len() - 1
    };
    spans.into_iter().filter_map(|(file, mut spans)| is_interleaved(&mut spans).then_some(file)).collect()
}
