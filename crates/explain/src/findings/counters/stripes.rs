//! Whether requests fit the blocks and stripes of the file system, and stripes the files.

use super::super::limits::{CALLS, SMALL, STRIPED};
use super::draft::{Draft, Part};
use super::{Judge, Kind, Seen};
use crate::counted::Counts;

/// The part of a file's requests that must not fit.
const UNALIGNED: f64 = 0.5;
/// Stripes that are many for a file that fills one.
const MANY: u64 = 4;

pub(super) fn drafts(judge: &Judge<'_>) -> Vec<Draft> {
    let mut unaligned = Draft::new(Kind::UnalignedRequests, CALLS);
    let mut few = Draft::new(Kind::FewStripes, 1);
    let mut many = Draft::new(Kind::ManyStripes, CALLS);
    let views = judge.views.values();
    for seen in views.filter_map(|view| view.posix).filter(|(_, file)| judge.is_shared(file)) {
        add_unaligned(judge, seen, &mut unaligned);
        add_few(judge, seen, &mut few);
    }
    for seen in judge.views.values().filter_map(|view| view.posix) {
        add_many(judge, seen, &mut many);
    }
    vec![unaligned, few, many]
}

/// Of files that several ranks write: who writes part of a block or stripe waits for whoever holds the lock on it. Small
/// requests have another trouble.
fn add_unaligned(judge: &Judge<'_>, (index, file): Seen<'_>, draft: &mut Draft) {
    let (profile, counts) = (&file.profile, &file.counts);
    let (of, calls) = (counts.accesses(), profile.unaligned.min(counts.accesses()));
    let part = calls as f64 / of.max(1) as f64;
    if counts.writes == 0 || part < UNALIGNED || profile.alignment < 2 || counts.bytes() / of < SMALL {
        return;
    }
    draft.counters.measure = draft.counters.measure.max(profile.alignment);
    let in_memory = profile.unaligned_in_memory.min(of);
    draft.counters.in_memory = draft.counters.in_memory.saturating_add(in_memory);
    let (read_bytes, write_bytes) = (counts.read_bytes, counts.written_bytes);
    let time_s = move |counts: &Counts| (counts.read_s + counts.write_s) * part;
    draft.add(judge, Part { index, file, calls, of, read_bytes, write_bytes, time_s, saved: None });
}

/// A large file that several ranks use, on one target.
fn add_few(judge: &Judge<'_>, (index, file): Seen<'_>, draft: &mut Draft) {
    let counts = &file.counts;
    let reach = file.profile.reads.reach.max(file.profile.writes.reach);
    let one = file.striping.is_some_and(|(_, stripes)| stripes == 1) && !file.is_composite;
    if !one || reach < STRIPED {
        return;
    }
    draft.counters.measure = draft.counters.measure.max(reach);
    let (calls, read_bytes, write_bytes) = (counts.accesses(), counts.read_bytes, counts.written_bytes);
    let time_s = |counts: &Counts| counts.read_s + counts.write_s;
    draft.add(judge, Part { index, file, calls, of: calls, read_bytes, write_bytes, time_s, saved: None });
}

/// Files that fill no more than the first of their stripes: opens and stats ask every target for nothing.
fn add_many(judge: &Judge<'_>, (index, file): Seen<'_>, draft: &mut Draft) {
    let reach = file.profile.reads.reach.max(file.profile.writes.reach);
    let fits = |&(size, stripes): &(u64, u64)| stripes >= MANY && reach > 0 && reach <= size;
    let Some((_, stripes)) = file.striping.filter(|striping| fits(striping) && !file.is_composite) else {
        return;
    };
    draft.counters.measure = draft.counters.measure.max(stripes);
    let calls = file.counts.opens.saturating_add(file.profile.stats);
    let time_s = |counts: &Counts| counts.metadata_s;
    draft.add(
        judge,
        Part { index, file, calls, of: calls, read_bytes: 0, write_bytes: 0, time_s, saved: None },
    );
}
