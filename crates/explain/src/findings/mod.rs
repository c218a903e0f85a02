//! Findings: what costs time for nothing, costliest first.
//!
//! In the pass ([`Evidence`]) every call of the program is charged to at most one [`class`]: the most specific that
//! fits it, so that no second is counted twice. At the end, a module for each kind of evidence turns classes into
//! findings, when it is known what all processes did with a file: [`requests`] (sizes and order), [`reuse`] (bytes
//! moved again), [`sharing`] (several processes and one file), [`names`] (opens, names, syncs), [`balance`] (who does
//! how much), [`waiting`] (I/O that could go on meanwhile), [`collectives`] (late ranks, the MPI library).
//!
//! *What a finding costs* is an estimate that can be followed: the time that its calls took, less what the same bytes
//! would take at the rate that the trace itself reaches in large requests ([`References`]). Calls of several threads and
//! processes go on at the same time: time in which threads of one process are in calls together counts once, and the sum
//! is divided by the number of processes that were in I/O together on average, so that costs are seconds of the job. No
//! more is lost in all than the time with any process in I/O.

mod balance;
mod class;
mod collectives;
mod cost;
mod evidence;
mod files;
mod finding;
mod limits;
mod names;
mod processes;
mod ranges;
mod rates;
mod requests;
mod reuse;
mod sharing;
mod slots;
mod streams;
mod waiting;

pub use cost::Cost;
pub use finding::{Detail, Finding, Gain, Involved, Kind};
pub use rates::{Reference, References};

pub(crate) use class::Charge;
pub(crate) use evidence::Evidence;

use std::collections::BTreeSet;

use class::Class;
use finding::Draft;
use limits::{CALLS, LOST_NS, SHARE};
use pio_trace::FileId;

use crate::explanation::IoTime;
use slots::Slot;

/// What the findings are made from, once all events were seen.
pub(crate) struct Context<'a> {
    evidence: &'a Evidence<'a>,
    references: References,
    duration_ns: u64,
    /// Processes in I/O at a time, on average.
    concurrency: f64,
    /// Files whose pages several processes write parts of: all that is wrong with their writes follows from that.
    contended: BTreeSet<FileId>,
}

impl<'a> Evidence<'a> {
    /// The rates that calls are measured by.
    pub(crate) fn references(&self) -> References {
        self.rates.finish()
    }

    /// The findings, those that cost most first.
    pub(crate) fn finish(&self, duration_ns: u64, io_time: &IoTime) -> Vec<Finding> {
        let context = Context {
            evidence: self,
            references: self.references(),
            duration_ns,
            concurrency: io_time.concurrency().unwrap_or(1.0).max(1.0),
            contended: sharing::contended(&self.slots.slots),
        };
        let mut findings = Vec::new();
        findings.extend(requests::findings(&context));
        findings.extend(reuse::findings(&context));
        findings.extend(sharing::findings(&context));
        findings.extend(names::findings(&context));
        findings.extend(collectives::findings(&context));
        let balance = balance::findings(&context);
        // One writer waits because it does the work of all: that it also computes meanwhile is not what is wrong.
        if balance.iter().all(|finding| finding.kind != Kind::OneWriter) {
            findings.extend(waiting::findings(&context));
        }
        findings.extend(balance);
        share_time(&mut findings, io_time.any_ns);
        findings.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns).then(a.kind.cmp(&b.kind)));
        findings
    }
}

/// Some findings look at the same time from different sides, others at processes that go on side by side: where all
/// together cost more than all I/O took, each is taken to cost its part of that.
fn share_time(findings: &mut [Finding], any_ns: u64) {
    let lost_ns: f64 = findings.iter().map(|finding| finding.lost_ns).sum();
    if lost_ns > any_ns as f64 {
        for finding in findings {
            finding.lost_ns *= any_ns as f64 / lost_ns;
        }
    }
}

impl<'a> Context<'a> {
    /// The slots that were charged to a class, and what for.
    fn charged(&self, class: Class) -> impl Iterator<Item = (&'a Slot, Cost)> {
        self.evidence
            .slots
            .slots
            .iter()
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
        let mut draft = Draft::of(kind, parts);
        draft.expected_ns = self.references.time_ns(&draft.cost);
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

    /// The finding, if it has enough calls and costs enough.
    fn told(&self, draft: Draft, calls: u64) -> Option<Finding> {
        if draft.cost.calls < calls {
            return None;
        }
        let processes = self.concurrency.min(draft.processes() as f64).max(1.0);
        let together = processes * draft.cost.threads();
        let lost_ns = (draft.cost.time_ns as f64 - draft.expected_ns) / together;
        (lost_ns >= self.least_ns(SHARE)).then(|| draft.finish(lost_ns, together))
    }

    /// The least time that a finding must cost, nanoseconds.
    fn least_ns(&self, share: f64) -> f64 {
        (self.duration_ns as f64 * share).max(LOST_NS)
    }
}
