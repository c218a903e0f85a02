//! A finding in the making: parts of files, and the time that they take.

use std::collections::BTreeMap;

use pio_trace::{FileId, Flags, ProcessId};

use super::super::cost::Cost;
use super::super::finding::{ByCounters, Detail, Finding, Involved, Kind};
use super::super::limits::SHARE;
use super::super::rates::References;
use super::Judge;
use crate::counted::{Counted, CountedFile, Counts, RankShare, UsedBy};

/// Ids of what the log names: files and processes of the trace, and files that only counters know.
pub(crate) struct Names<'n, 'c> {
    pub(crate) file: &'n mut dyn FnMut(&'c str) -> FileId,
    pub(crate) process: &'n dyn Fn(i64) -> Option<ProcessId>,
}

/// Processes that are named.
const NAMED: usize = 5;

/// Time, process by process as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Spent {
    /// On files of single processes, seconds.
    own_s: BTreeMap<i64, f64>,
    /// On files that all used, of the process that took longest there.
    shared_s: f64,
    /// Of all processes together.
    pub(super) sum_s: f64,
}

impl Spent {
    /// Adds what `part` takes of the times of a file.
    pub(super) fn add(&mut self, judge: &Judge<'_>, file: &CountedFile, part: impl Fn(&Counts) -> f64) {
        let sum_s = part(&file.counts);
        self.sum_s += sum_s;
        if file.used_by == UsedBy::All {
            self.shared_s += sum_s / judge.together(file);
            return;
        }
        for (rank, counts) in &file.profile.by_rank {
            *self.own_s.entry(*rank).or_default() += part(counts);
        }
    }

    /// Seconds of the job: the run is no shorter.
    pub(super) fn job_s(&self, judge: &Judge<'_>) -> f64 {
        let own_s = self.own_s.values().copied().fold(0.0, f64::max);
        (own_s + self.shared_s).min(judge.counted.run_time_s)
    }
}

/// A part of a file's calls.
pub(super) struct Part<'a, Time: Fn(&Counts) -> f64> {
    /// Index in [`Counted::files`].
    pub(super) index: usize,
    pub(super) file: &'a CountedFile,
    /// The remarkable calls, and all of their sort on this file.
    pub(super) calls: u64,
    pub(super) of: u64,
    /// What all of that sort moved.
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
    /// The remarkable calls' part of a file's or process's times, seconds.
    pub(super) time_s: Time,
    /// The part of that time that would be saved; none if it is not known.
    pub(super) saved: Option<f64>,
}

/// What one rank does alone.
pub(super) struct Alone<'a> {
    pub(super) slowest: RankShare,
    /// What that costs, seconds.
    pub(super) lost_s: f64,
    /// What all ranks do there.
    pub(super) sum: Counts,
    /// The files, and what was done there, of the rank where that is known.
    pub(super) files: &'a [(usize, Counts)],
}

/// A finding to be.
pub(super) struct Draft {
    pub(super) kind: Kind,
    pub(super) counters: ByCounters,
    pub(super) detail: Detail,
    pub(super) references: References,
    /// Calls from which on it is a habit, and the part of the run that it must cost.
    pub(super) least_calls: u64,
    pub(super) share: f64,
    /// Bytes moved in vain, and from how many on that is told of.
    vain: (u64, u64),
    cost: Cost,
    spent: Spent,
    lost: Spent,
    unknown_s: f64,
    files: BTreeMap<usize, (u64, f64)>,
}

impl Draft {
    pub(super) fn new(kind: Kind, least_calls: u64) -> Draft {
        Draft {
            kind,
            counters: ByCounters::default(),
            detail: Detail::None,
            references: References::default(),
            least_calls,
            share: SHARE,
            vain: (0, 0),
            cost: Cost::default(),
            spent: Spent::default(),
            lost: Spent::default(),
            unknown_s: 0.0,
            files: BTreeMap::new(),
        }
    }

    /// A finding told of if its calls, however few, take this part of the run.
    pub(super) fn of_share(kind: Kind, share: f64) -> Draft {
        let mut draft = Draft::new(kind, 1);
        draft.share = share;
        draft
    }

    /// A finding about one rank.
    pub(super) fn of_one(judge: &Judge<'_>, kind: Kind, alone: &Alone<'_>) -> Draft {
        let mut draft = Draft::new(kind, 1);
        let bytes = alone.slowest.bytes;
        let writes = alone.sum.written_bytes >= alone.sum.bytes().div_ceil(2);
        (draft.cost.read_bytes, draft.cost.write_bytes) = if writes { (0, bytes) } else { (bytes, 0) };
        draft.cost.calls = 1;
        draft.counters.of = alone.sum.accesses();
        for (index, counts) in alone.files {
            let profile = &judge.counted.files[*index].profile;
            let (from_s, until_s) = profile.span_s.unwrap_or((0.0, judge.counted.run_time_s));
            draft.cost.from_ns = draft.cost.from_ns.min(nanoseconds(from_s));
            draft.cost.until_ns = draft.cost.until_ns.max(nanoseconds(until_s));
            draft.files.insert(*index, (counts.accesses(), counts.time_s().min(alone.slowest.time_s)));
        }
        let RankShare { rank, time_s, .. } = alone.slowest;
        let one = |time_s: f64| Spent { own_s: [(rank, time_s)].into(), shared_s: 0.0, sum_s: time_s };
        (draft.spent, draft.lost) = (one(time_s), one(alone.lost_s));
        draft
    }

    /// Takes note of bytes that were moved in vain; at least `least` in all are told of.
    pub(super) fn add_vain(&mut self, bytes: u64, least: u64) {
        self.vain = (self.vain.0.saturating_add(bytes), least);
    }

    pub(super) fn add(&mut self, judge: &Judge<'_>, part: Part<'_, impl Fn(&Counts) -> f64>) {
        let cost = &mut self.cost;
        cost.calls = cost.calls.saturating_add(part.calls);
        cost.read_bytes = cost.read_bytes.saturating_add(part.read_bytes);
        cost.write_bytes = cost.write_bytes.saturating_add(part.write_bytes);
        let (from_s, until_s) = part.file.profile.span_s.unwrap_or((0.0, judge.counted.run_time_s));
        cost.from_ns = cost.from_ns.min(nanoseconds(from_s));
        cost.until_ns = cost.until_ns.max(nanoseconds(until_s));
        let counters = &mut self.counters;
        counters.of = counters.of.saturating_add(part.of);
        if judge.is_shared(part.file) {
            counters.on_shared = counters.on_shared.saturating_add(part.calls);
        }
        let time_s = (part.time_s)(&part.file.counts);
        self.spent.add(judge, part.file, &part.time_s);
        match part.saved {
            Some(saved) => {
                let saved = saved.clamp(0.0, 1.0);
                self.lost.add(judge, part.file, |counts| (part.time_s)(counts) * saved);
            }
            None => self.unknown_s += time_s,
        }
        let file = self.files.entry(part.index).or_default();
        *file = (file.0.saturating_add(part.calls), file.1 + time_s);
    }

    /// The finding, if it has enough calls and costs enough, or may.
    pub(super) fn finish<'c>(self, judge: &Judge<'c>, names: &mut Names<'_, 'c>) -> Option<Finding> {
        let job_s = self.spent.job_s(judge);
        let is_known = self.unknown_s * 2.0 <= self.spent.sum_s;
        let lost_s = is_known.then(|| self.lost.job_s(judge));
        let weight_s = lost_s.unwrap_or(job_s);
        let is_habit = self.cost.calls >= self.least_calls && self.vain.0 >= self.vain.1;
        if self.files.is_empty() || !is_habit || weight_s < judge.least_s(self.share) {
            return None;
        }
        let cost = Cost {
            time_ns: nanoseconds(self.spent.sum_s),
            own_ns: nanoseconds(self.spent.sum_s),
            until_ns: self.cost.until_ns.max(self.cost.from_ns),
            ..self.cost
        };
        let expected_s = if is_known { (self.spent.sum_s - self.lost.sum_s).max(0.0) } else { 0.0 };
        let processes = self.processes(judge.counted, names);
        Some(Finding {
            kind: self.kind,
            lost_ns: lost_s.map(|lost_s| lost_s * 1e9),
            cost,
            expected_ns: expected_s * 1e9,
            waits_ns: 0.0,
            references: if is_known { self.references } else { References::default() },
            together: (self.spent.sum_s / job_s).max(1.0),
            files: files(&self.files, judge.counted, names),
            process_count: processes.len() as u64,
            processes: processes.into_iter().take(NAMED).collect(),
            detail: self.detail,
            opened: Flags::NONE,
            call_sites: Vec::new(),
            gains: Vec::new(),
            counters: Some(self.counters),
        })
    }

    /// Those that spent most on files of their own, if all files are such.
    fn processes(&self, counted: &Counted, names: &Names<'_, '_>) -> Vec<Involved<ProcessId>> {
        if self.spent.shared_s > 0.0 || counted.processes < 2 {
            return Vec::new();
        }
        let mut ranks: Vec<(i64, f64)> =
            self.spent.own_s.iter().map(|(rank, time_s)| (*rank, *time_s)).collect();
        ranks.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let named = ranks.into_iter().filter_map(|(rank, time_s)| {
            Some(Involved { id: (names.process)(rank)?, calls: 0, time_ns: nanoseconds(time_s) })
        });
        named.collect()
    }
}

/// Those that took most first.
fn files<'c>(
    parts: &BTreeMap<usize, (u64, f64)>,
    counted: &'c Counted,
    names: &mut Names<'_, 'c>,
) -> Vec<Involved<FileId>> {
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by(|a, b| b.1.1.total_cmp(&a.1.1).then(a.0.cmp(b.0)));
    let mut files: Vec<Involved<FileId>> = Vec::new();
    let mut known: BTreeMap<FileId, usize> = BTreeMap::new();
    for (&index, &(calls, time_s)) in parts {
        let id = (names.file)(&counted.files[index].name);
        let place = *known.entry(id).or_insert(files.len());
        if place == files.len() {
            files.push(Involved { id, calls: 0, time_ns: 0 });
        }
        let file = &mut files[place];
        file.calls = file.calls.saturating_add(calls);
        file.time_ns = file.time_ns.saturating_add(nanoseconds(time_s));
    }
    files
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
