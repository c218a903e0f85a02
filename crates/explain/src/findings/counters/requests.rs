//! Sizes and order of reads and writes, bytes moved again, collective calls not used, streams and syncs.

use std::collections::BTreeMap;

use pio_import::darshan::Module;

use super::super::finding::Detail;
use super::super::limits::{BYTES, CALLS, LARGE, PAGE, SYNC, SYNCS, WAITING_SHARE};
use super::draft::{Draft, Part, Spent};
use super::rates::moved;
use super::{Judge, Kind, Seen, View};
use crate::counted::{Counts, Direction};

/// Darshan's classes below 100 KiB: of its borders the one next to what a small request is.
const SMALL_CLASSES: usize = 4;
/// … and below 1 MiB: requests that are not large.
const MEDIUM_CLASSES: usize = 5;
/// The part of a file's requests from which on they make its pattern.
const PATTERN: f64 = 0.5;
/// The part of them that jump from which on a file is accessed at random (Drishti's limit).
const RANDOM: f64 = 0.2;
/// Where Darshan's classes begin, bytes.
const SIZES: [u64; 10] =
    [0, 100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];
/// Syncs a write from which on writing is waiting for the device.
const SYNCS_A_WRITE: f64 = 0.1;
/// The part of the job's bytes from which on streams are how it moves data (Drishti's limit).
const STREAMED: f64 = 0.1;

pub(super) fn drafts(judge: &Judge<'_>) -> Vec<Draft> {
    let mut drafts = Drafts { judge, by_kind: BTreeMap::new() };
    for view in judge.untraced() {
        for seen in view.program() {
            for writes in [false, true] {
                drafts.add_data(view, seen, writes);
            }
        }
        if view.is_collective() {
            drafts.add_below_collective(view);
            drafts.add_beyond_files(view);
        }
    }
    for view in judge.views.values() {
        drafts.add_syncs(view);
        drafts.add_stream(view);
    }
    drafts.by_kind.into_values().map(|(draft, _)| draft).collect()
}

struct Drafts<'j, 'a> {
    judge: &'j Judge<'a>,
    /// And what the largest part of each took, seconds: its file system gives the rates that are shown.
    by_kind: BTreeMap<Kind, (Draft, f64)>,
}

/// What is remarkable about the reads or the writes of a file.
struct Remark {
    kind: Kind,
    calls: u64,
    /// Part of their time that the calls take at most.
    time: f64,
    saved: Option<f64>,
    /// Bytes that were read before.
    again: u64,
}

impl Drafts<'_, '_> {
    fn add_data(&mut self, view: &View<'_>, seen: Seen<'_>, writes: bool) {
        let (calls, ..) = moved(&seen.1.counts, writes);
        if calls == 0 || writes && is_synced(view) {
            return;
        }
        let remark = match writes {
            false => self.reuse(view, seen).or_else(|| self.shape(view, seen, writes)),
            true => self.shape(view, seen, writes),
        };
        if let Some(remark) = remark {
            self.add(remark, seen, writes);
        }
    }

    fn add(&mut self, remark: Remark, (index, file): Seen<'_>, writes: bool) {
        let (of, bytes, all_s) = moved(&file.counts, writes);
        let (read_bytes, write_bytes) = if writes { (0, bytes) } else { (bytes, 0) };
        let judge = self.judge;
        let time = remark.time;
        let time_s = move |counts: &Counts| if writes { counts.write_s } else { counts.read_s } * time;
        let least_calls = if is_about_bytes(remark.kind) { 1 } else { CALLS };
        let (draft, most_s) =
            self.by_kind.entry(remark.kind).or_insert_with(|| (Draft::new(remark.kind, least_calls), -1.0));
        if all_s > *most_s && !is_about_bytes(remark.kind) {
            *most_s = all_s;
            draft.references = judge.rates.references(file);
        }
        let Remark { calls, saved, again, .. } = remark;
        draft.add_vain(again, if is_about_bytes(remark.kind) { BYTES } else { 0 });
        if let Some(classes) = classes_of(remark.kind) {
            let most = most_bytes(direction((index, file), writes), classes, bytes);
            draft.counters.most_bytes = Some(draft.counters.most_bytes.unwrap_or(0).saturating_add(most));
        }
        draft.add(judge, Part { index, file, calls, of, read_bytes, write_bytes, time_s, saved });
    }

    /// Whether the bytes were read before: at least half of what was read, in a file that nobody writes. What reaches the
    /// file tells; Darshan does not know which bytes MPI-IO was asked for.
    fn reuse(&self, view: &View<'_>, (_, file): Seen<'_>) -> Option<Remark> {
        let (_, at_file) = view.posix.filter(|_| !view.is_written() && !view.is_collective())?;
        let reads = &at_file.profile.reads;
        let (bytes, users) = (at_file.counts.read_bytes, self.judge.users(at_file));
        // Of one record for all, the slowest process is known; of others, each.
        let each = reads.reach.saturating_mul(users);
        let slowest = at_file.slowest.map_or(0, |slowest| slowest.bytes);
        let own = if at_file.profile.by_rank.is_empty() && slowest > reads.reach.saturating_mul(2) {
            bytes.saturating_sub(each)
        } else {
            reads.again
        };
        let (kind, again) = if own >= bytes.div_ceil(2) {
            (Kind::RedundantReads, own)
        } else {
            (Kind::SameReadByAll, bytes.saturating_sub(reads.reach))
        };
        let told = kind == Kind::RedundantReads || users > 1;
        if !told || reads.reach == 0 || again < bytes.div_ceil(2) {
            return None;
        }
        let part = again as f64 / bytes as f64;
        let calls = (file.counts.reads as f64 * part) as u64;
        Some(Remark { kind, calls, time: part, saved: Some(1.0), again })
    }

    /// What is remarkable about sizes and order.
    fn shape(&self, view: &View<'_>, seen: Seen<'_>, writes: bool) -> Option<Remark> {
        let (_, file) = seen;
        let direction = direction(seen, writes);
        let (calls, bytes, _) = moved(&file.counts, writes);
        let medium = calls.saturating_sub(file.profile.large(writes)).min(below(direction, MEDIUM_CLASSES));
        // A few large requests may move, and take, more than many small ones.
        if view.is_collective() || (medium as f64) < PATTERN * calls as f64 || bytes / calls >= LARGE {
            return None;
        }
        let order = view.posix.or(Some(seen)).and_then(|at_files| Order::of(at_files, writes));
        let in_order = order.is_some_and(|order| order.consecutive >= 1.0 - PATTERN);
        let part = medium as f64 / calls as f64;
        if file.module == Module::MpiIo && self.judge.is_shared(file) && !in_order {
            let saved = self.saved(seen, writes, part, false);
            return Some(Remark {
                kind: Kind::MissingCollective,
                calls: medium,
                time: part,
                saved,
                again: 0,
            });
        }
        let is_random = order.is_some_and(|order| order.random >= RANDOM);
        let in_steps = order.is_some_and(|order| order.steps >= PATTERN);
        if is_random || in_steps {
            let kind = if is_random { Kind::RandomAccess } else { Kind::StridedAccess };
            // Requests after a jump take longest: they may take all of the time.
            let part_of_calls = order.map_or(0.0, |order| if is_random { order.random } else { order.steps });
            let jumps = (calls as f64 * part_of_calls) as u64;
            return Some(Remark {
                kind,
                calls: jumps,
                time: 1.0,
                saved: self.saved(seen, writes, 1.0, true),
                again: 0,
            });
        }
        let small = below(direction, SMALL_CLASSES);
        let part = small as f64 / calls as f64;
        let kind = if writes { Kind::SmallWrites } else { Kind::SmallReads };
        (part >= PATTERN).then(|| Remark {
            kind,
            calls: small,
            time: part,
            saved: self.saved(seen, writes, part, false),
            again: 0,
        })
    }

    /// The part of `time` (a part of all) that is saved if all bytes are moved in large requests. Bytes here and there are
    /// read with all that lies between, or with the pages that they lie in.
    fn saved(&self, (_, file): Seen<'_>, writes: bool, time: f64, jumps: bool) -> Option<f64> {
        let (calls, bytes, all_s) = moved(&file.counts, writes);
        let rate = self.judge.rates.rate(file, writes)?;
        let reach = file.profile.reads.reach.saturating_mul(self.judge.users(file));
        let pages = bytes.saturating_add(calls.saturating_mul(PAGE));
        let bytes = if jumps && !writes && reach > 0 { pages.min(reach) } else { bytes };
        let lost_s = all_s - bytes as f64 / rate;
        (all_s > 0.0).then(|| (lost_s / (all_s * time)).clamp(0.0, 1.0))
    }

    /// What the MPI library makes of collective calls: small requests show that it does not gather them.
    fn add_below_collective(&mut self, view: &View<'_>) {
        let Some(seen) = view.posix else { return };
        for writes in [false, true] {
            let (calls, ..) = moved(&seen.1.counts, writes);
            let small = below(direction(seen, writes), SMALL_CLASSES);
            let part = small as f64 / calls.max(1) as f64;
            let mean = moved(&seen.1.counts, writes).1 / calls.max(1);
            if part >= PATTERN && mean < LARGE {
                let saved = self.saved(seen, writes, part, false);
                let remark = Remark { kind: Kind::InsideLibrary, calls: small, time: part, saved, again: 0 };
                self.add(remark, seen, writes);
            }
        }
    }

    /// What a rank spends in collective calls beyond what any rank spends on the file.
    fn add_beyond_files(&mut self, view: &View<'_>) {
        let Some((index, file)) = view.mpi_io else { return };
        let judge = self.judge;
        let longest_s = |seen: Option<Seen<'_>>| {
            let mut spent = Spent::default();
            seen.into_iter().for_each(|(_, file)| spent.add(judge, file, Counts::time_s));
            spent.job_s(judge)
        };
        let (in_calls_s, at_file_s) = (longest_s(view.mpi_io), longest_s(view.posix));
        if at_file_s >= in_calls_s {
            return;
        }
        let beyond = 1.0 - at_file_s / in_calls_s;
        let draft = self.by_kind.entry(Kind::BeyondFiles);
        let (draft, most_s) =
            draft.or_insert_with(|| (Draft::of_share(Kind::BeyondFiles, WAITING_SHARE), -1.0));
        if in_calls_s > *most_s {
            *most_s = in_calls_s;
            draft.detail = view.posix.map_or(Detail::None, |(_, file)| Detail::AtFiles {
                time_ns: (file.counts.time_s() * 1e9) as u64,
                mean_request_bytes: file.counts.bytes() / file.counts.accesses().max(1),
            });
        }
        let counts = &file.counts;
        let (calls, of) = (file.profile.collective, counts.accesses());
        let (read_bytes, write_bytes) = (counts.read_bytes, counts.written_bytes);
        let time_s = move |counts: &Counts| counts.time_s() * beyond;
        draft.add(judge, Part { index, file, calls, of, read_bytes, write_bytes, time_s, saved: None });
    }

    /// Time in syncs counts as time in writes.
    fn add_syncs(&mut self, view: &View<'_>) {
        let Some((index, file)) = synced(view) else { return };
        let (calls, of, write_bytes) = (file.profile.syncs, file.counts.writes, file.counts.written_bytes);
        let judge = self.judge;
        let draft = self.by_kind.entry(Kind::SyncPerWrite);
        let (draft, _) = draft.or_insert_with(|| (Draft::new(Kind::SyncPerWrite, SYNCS), 0.0));
        let time_s = |counts: &Counts| counts.write_s;
        draft.add(judge, Part { index, file, calls, of, read_bytes: 0, write_bytes, time_s, saved: None });
    }

    fn add_stream(&mut self, view: &View<'_>) {
        // `<STDOUT>` and its like are no files.
        let Some((index, file)) = view.stdio.filter(|(_, file)| !file.name.starts_with('<')) else { return };
        let (counts, judge) = (&file.counts, self.judge);
        let (calls, bytes) = (counts.accesses(), counts.bytes());
        if calls == 0 {
            return;
        }
        let flushed = file.profile.syncs as f64 >= PATTERN * counts.writes as f64 && counts.writes > 0;
        let kind = if flushed && counts.written_bytes / counts.writes.max(1) < PAGE {
            Kind::UnbufferedStream
        } else {
            let (moved, streamed) = (judge.moved_bytes, judge.streamed_bytes);
            if (streamed as f64) < STREAMED * moved as f64 || streamed < BYTES || bytes / calls >= LARGE {
                return;
            }
            Kind::StreamedData
        };
        let draft = self.by_kind.entry(kind).or_insert_with(|| (Draft::new(kind, CALLS), 0.0));
        let time_s = |counts: &Counts| counts.read_s + counts.write_s;
        let (read_bytes, write_bytes) = (counts.read_bytes, counts.written_bytes);
        draft
            .0
            .add(judge, Part { index, file, calls, of: calls, read_bytes, write_bytes, time_s, saved: None });
    }
}

fn is_about_bytes(kind: Kind) -> bool {
    matches!(kind, Kind::RedundantReads | Kind::SameReadByAll)
}

fn direction<'a>((_, file): Seen<'a>, writes: bool) -> &'a Direction {
    if writes { &file.profile.writes } else { &file.profile.reads }
}

/// Requests of the first so many classes of sizes.
fn below(direction: &Direction, classes: usize) -> u64 {
    direction.sizes.map_or(0, |sizes| sizes[..classes].iter().fold(0, |sum: u64, &n| sum.saturating_add(n)))
}

/// The classes of sizes that a finding is about.
fn classes_of(kind: Kind) -> Option<usize> {
    match kind {
        Kind::SmallReads | Kind::SmallWrites | Kind::InsideLibrary => Some(SMALL_CLASSES),
        Kind::MissingCollective => Some(MEDIUM_CLASSES),
        _ => None,
    }
}

/// The most of `bytes` that requests of the first so many classes can have moved: those of the others moved no less than
/// where their classes begin.
fn most_bytes(direction: &Direction, classes: usize, bytes: u64) -> u64 {
    let Some(sizes) = direction.sizes else { return bytes };
    let sum = |sizes: &[u64], borders: &[u64]| {
        let products = sizes.iter().zip(borders).map(|(&count, &border)| count.saturating_mul(border));
        products.fold(0, u64::saturating_add)
    };
    let small = sum(&sizes[..classes], &SIZES[1..]);
    small.min(bytes.saturating_sub(sum(&sizes[classes..], &SIZES[classes..])))
}

fn is_synced(view: &View<'_>) -> bool {
    synced(view).is_some()
}

/// The file as the interface knows it by which it was forced to the device every few bytes.
fn synced<'a>(view: &View<'a>) -> Option<Seen<'a>> {
    let often = |seen: &Seen<'_>| {
        let (file, syncs) = (seen.1, seen.1.profile.syncs);
        syncs >= SYNCS
            && file.counts.written_bytes / syncs < SYNC
            && syncs as f64 >= SYNCS_A_WRITE * file.counts.writes as f64
    };
    [view.posix, view.mpi_io].into_iter().flatten().find(often)
}

/// In what order requests come, as parts of all.
#[derive(Clone, Copy)]
struct Order {
    consecutive: f64,
    /// Behind a gap, of lengths that recur.
    steps: f64,
    /// Backwards, or behind any other gap.
    random: f64,
}

impl Order {
    /// None where order is not counted.
    fn of(seen: Seen<'_>, writes: bool) -> Option<Order> {
        let profile = &seen.1.profile;
        let one = direction(seen, writes);
        let (calls, ..) = moved(&seen.1.counts, writes);
        if !one.has_order || calls == 0 {
            return None;
        }
        let gaps = |one: &Direction| one.sequential.saturating_sub(one.consecutive);
        // Steps are counted of reads and writes together.
        let all_gaps = gaps(&profile.reads).saturating_add(gaps(&profile.writes)).max(1);
        let recurring = profile.in_steps as f64 >= PATTERN * all_gaps as f64;
        // The first request after an open has none before it.
        let firsts = seen.1.counts.opens.max(1);
        let back = calls.saturating_sub(one.sequential).saturating_sub(firsts);
        let part = |count: u64| (count as f64 / calls as f64).min(1.0);
        let (steps, others) = if recurring { (gaps(one), 0) } else { (0, gaps(one)) };
        Some(Order {
            consecutive: part(one.consecutive),
            steps: part(steps),
            random: part(back.saturating_add(others)),
        })
    }
}
