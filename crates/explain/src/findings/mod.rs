//! Findings: what costs time for nothing, costliest first.
//!
//! In the pass ([`Evidence`]) every call of the program is charged to at most one [`class`]: the most specific that
//! fits it, so that no second is counted twice. At the end, a module for each kind of evidence turns classes into
//! findings, when it is known what all processes did with a file: [`requests`] (sizes and order), [`alignment`], [`reuse`] (bytes
//! moved again), [`sharing`] (several processes and one file), [`names`] (opens, names, syncs), [`balance`] (who does
//! how much), [`waiting`] (I/O that could go on meanwhile), [`collectives`] (late ranks, the MPI library), [`mappings`]
//! (page faults), [`striping`] (how files lie on targets), [`imports`] (modules of Python). Where there are no events, [`counters`] makes what can be made from sums.
//!
//! *What a finding costs* is an estimate that can be followed: the time that its calls took, less what the same bytes
//! would take in large requests, at the rate that the trace itself or the recorder's measurement says ([`rates`]). Where
//! neither says one, a finding has no cost. Calls of several threads and processes go on at the same time: time in which
//! threads of one process are in calls together counts once, and the sum is divided by the number of processes that were
//! in I/O together on average, so that costs are seconds of the job. No more is lost in all than the time with any
//! process in I/O.

mod alignment;
mod balance;
mod class;
mod collectives;
mod cost;
pub(crate) mod counters;
mod evidence;
mod files;
mod finding;
mod imports;
mod limits;
mod locks;
mod mappings;
mod names;
mod processes;
mod ranges;
mod rates;
mod requests;
mod reuse;
mod sharing;
mod slots;
mod streams;
pub(crate) mod striping;
mod waiting;

pub use collectives::EXCHANGE_COPIES;
pub use cost::Cost;
pub use finding::{ByCounters, Detail, Finding, Gain, Involved, Kind};
pub use rates::{Reference, References, Source};

pub(crate) use class::Charge;
pub(crate) use evidence::{Evidence, Shared};

use std::collections::BTreeSet;

use class::Class;
use finding::Draft;
use imports::Modules;
pub(crate) use limits::SLOWER;
use limits::{CALLS, LOST_NS, SHARE};
use pio_trace::FileId;
use rates::Regime;
use slots::Slot;

use crate::explanation::IoTime;

/// What the findings are made from, once all events were seen.
pub(crate) struct Context<'a> {
    evidence: &'a Evidence<'a>,
    duration_ns: u64,
    /// Processes in I/O at a time, on average.
    concurrency: f64,
    /// Files whose pages several processes write parts of: all that is wrong with their writes follows from that.
    contended: BTreeSet<FileId>,
    /// Files that have a finding of their own.
    modules: Modules,
}

impl<'a> Evidence<'a> {
    /// The findings, those that cost most first.
    pub(crate) fn finish(&self, duration_ns: u64, io_time: &IoTime) -> Vec<Finding> {
        let context = Context {
            evidence: self,
            duration_ns,
            concurrency: io_time.concurrency().unwrap_or(1.0).max(1.0),
            contended: sharing::contended(&self.slots.slots),
            modules: Modules::of(self.tables, &self.slots.slots),
        };
        let mut findings = Vec::new();
        findings.extend(requests::findings(&context));
        findings.extend(alignment::finding(&context));
        findings.extend(reuse::findings(&context));
        findings.extend(sharing::findings(&context));
        findings.extend(names::findings(&context));
        findings.extend(collectives::findings(&context));
        findings.extend(locks::findings(&context));
        findings.extend(imports::finding(&context));
        let balance = balance::findings(&context);
        // One writer waits because it does the work of all: that it also computes meanwhile is not what is wrong.
        if balance.iter().all(|finding| finding.kind != Kind::OneWriter) {
            findings.extend(waiting::findings(&context));
        }
        findings.extend(balance);
        share_time(&mut findings, io_time.any_ns);
        // What page faults take is in no call: it is not part of the time in I/O.
        findings.extend(mappings::findings(&context));
        sort(&mut findings);
        findings
    }
}

/// Those that cost most first; last what the program can hardly change.
pub(crate) fn sort(findings: &mut [Finding]) {
    let is_last = |finding: &Finding| finding.kind == Kind::Imports && finding.lost_ns.is_none();
    findings.sort_by(|a, b| {
        let by_weight = b.weight_ns().total_cmp(&a.weight_ns());
        is_last(a).cmp(&is_last(b)).then(by_weight).then(a.kind.cmp(&b.kind))
    });
}

/// Some findings look at the same time from different sides, others at processes that go on side by side: where all
/// together cost more than all I/O took, each is taken to cost its part of that.
fn share_time(findings: &mut [Finding], any_ns: u64) {
    let lost_ns: f64 = findings.iter().filter_map(|finding| finding.lost_ns).sum();
    if lost_ns > any_ns as f64 {
        for lost in findings.iter_mut().filter_map(|finding| finding.lost_ns.as_mut()) {
            *lost *= any_ns as f64 / lost_ns;
        }
    }
}

impl<'a> Context<'a> {
    /// The slots that were charged to a class, and what for; without modules of Python.
    fn charged(&self, class: Class) -> impl Iterator<Item = (&'a Slot, Cost)> {
        self.evidence
            .slots
            .slots
            .iter()
            .filter(|slot| !self.modules.has(slot))
            .filter_map(move |slot| slot.costs.get(class).map(|cost| (slot, *cost)))
    }

    /// The same of files that processes do not contend for.
    fn uncontended(&self, class: Class) -> impl Iterator<Item = (&'a Slot, Cost)> {
        self.charged(class).filter(|(slot, _)| !self.contends(slot))
    }

    fn contends(&self, slot: &Slot) -> bool {
        slot.written && slot.file.is_some_and(|file| self.contended.contains(&file))
    }

    /// A finding of calls that should have been made in large requests, if it is worth telling.
    fn slow(&self, kind: Kind, parts: impl IntoIterator<Item = (&'a Slot, Cost)>) -> Option<Finding> {
        self.slow_but(kind, parts, |_, cost| (*cost, 0))
    }

    /// The same of calls one behind the other. The system reads ahead and writes behind, so that some of them wait for
    /// what others have caused: larger ones would wait as long. Not so where threads wait for each other.
    fn slow_in_order(
        &self,
        kind: Kind,
        parts: impl IntoIterator<Item = (&'a Slot, Cost)>,
    ) -> Option<Finding> {
        self.slow_but(kind, parts, |_, cost| {
            let waited_ns = if cost.regime() == Regime::Cached { cost.idle_waits_ns() } else { 0 };
            (*cost, waited_ns)
        })
    }

    /// The same where `otherwise` says what would be moved instead, and how long it would wait besides, nanoseconds.
    fn slow_but(
        &self,
        kind: Kind,
        parts: impl IntoIterator<Item = (&'a Slot, Cost)>,
        otherwise: impl Fn(&Slot, &Cost) -> (Cost, u64),
    ) -> Option<Finding> {
        let parts: Vec<_> = parts.into_iter().collect();
        let mut draft = Draft::of(kind, parts.iter().copied());
        let (mut unknown_ns, mut most_ns) = (0_u64, 0);
        for (slot, cost) in &parts {
            let (moved, besides_ns) = otherwise(slot, cost);
            let Some((time_ns, references)) = self.evidence.rates.time_ns(slot.file, &moved, cost.regime())
            else {
                unknown_ns = unknown_ns.saturating_add(cost.time_ns);
                continue;
            };
            let time_ns = time_ns.min(cost.time_ns as f64);
            let waits_ns = (besides_ns as f64).min(cost.time_ns as f64 - time_ns);
            draft.expected_ns += time_ns + waits_ns;
            draft.waits_ns += waits_ns;
            if cost.time_ns >= most_ns {
                (most_ns, draft.references) = (cost.time_ns, references);
            }
        }
        if unknown_ns.saturating_mul(2) > draft.cost.time_ns {
            return self.told_unknown(draft);
        }
        draft.expected_ns += unknown_ns as f64;
        self.told(draft, CALLS)
    }

    /// A finding of calls that need not have been made, but for the part `needed` of their time.
    fn vain(
        &self,
        kind: Kind,
        parts: impl IntoIterator<Item = (&'a Slot, Cost)>,
        needed: f64,
        calls: u64,
    ) -> Option<Finding> {
        let mut draft = Draft::of(kind, parts);
        draft.expected_ns = draft.cost.time_ns as f64 * needed;
        self.told(draft, calls)
    }

    /// The finding without a cost, if its calls are enough and took enough.
    fn told_unknown(&self, mut draft: Draft) -> Option<Finding> {
        if draft.cost.calls < CALLS {
            return None;
        }
        (draft.expected_ns, draft.waits_ns) = (0.0, 0.0);
        draft.references = References::default();
        let together = self.together(&draft);
        let finding = draft.finish_unknown(together);
        (finding.time_ns() >= self.least_ns(SHARE)).then_some(finding)
    }

    /// How many of its calls were under way at a time: processes in I/O, times threads in calls.
    fn together(&self, draft: &Draft) -> f64 {
        // The one that must go on reading for all is under way with them.
        let reader = usize::from(draft.kind == Kind::SameReadByAll);
        let processes = (draft.processes() + reader) as f64;
        self.concurrency.min(processes).max(1.0) * draft.cost.threads()
    }

    /// The finding, if it has enough calls and costs enough.
    fn told(&self, draft: Draft, calls: u64) -> Option<Finding> {
        if draft.cost.calls < calls {
            return None;
        }
        let together = self.together(&draft);
        let lost_ns = (draft.cost.time_ns as f64 - draft.expected_ns) / together;
        (lost_ns >= self.least_ns(SHARE)).then(|| draft.finish(lost_ns, together))
    }

    /// The least time that a finding must cost, nanoseconds.
    fn least_ns(&self, share: f64) -> f64 {
        (self.duration_ns as f64 * share).max(LOST_NS)
    }
}
