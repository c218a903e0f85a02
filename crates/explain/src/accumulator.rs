//! The one pass over a trace.

use std::collections::BTreeSet;

use pio_trace::{BlockEvents, Event, FileId, Layer, Tables};

use crate::classes;
use crate::explanation::Explanation;
use crate::findings::{self, Evidence, Shared, striping};
use crate::marked::Marks;
use crate::rhythm::Activity;
use crate::tally::Seen;
use crate::totals::Totals;

/// Takes a job's events one by one, in order of their start, and keeps what the explanation is made from.
///
/// Events may refer to anything: what the tables do not have is counted for the job, but for no file or process.
pub struct Accumulator<'a> {
    pub(crate) totals: Totals<'a>,
    pub(crate) evidence: Evidence<'a>,
    pub(crate) activity: Activity,
    pub(crate) marks: Marks<'a>,
}

impl<'a> Accumulator<'a> {
    /// Nothing seen yet.
    pub fn new(tables: &'a Tables) -> Accumulator<'a> {
        Accumulator {
            totals: Totals::new(tables),
            evidence: Evidence::new(tables),
            activity: Activity::new(),
            marks: Marks::new(tables),
        }
    }

    /// Notes that a part of the trace could not be read.
    pub fn add_damage(&mut self, what: impl Into<String>) {
        self.totals.add_damage(what);
    }

    /// Takes one event.
    pub fn add(&mut self, event: &Event) {
        let event = Seen::of(event);
        self.marks.add(&event);
        if event.layer() != Layer::Mark {
            self.totals.add(&event);
            self.evidence.add(&event);
            self.activity.add(&event);
        }
    }

    /// Takes the next events: what processes share in order of start, then what each has for itself process by process. In order
    /// of start processes have their turns one after the other, and what is known of each of thousands would come from memory for
    /// each event. The result is the same.
    pub(crate) fn add_block(&mut self, block: &BlockEvents) {
        let Some(events) = block.by_process() else {
            return block.each_in_order(|_, event| self.add(event));
        };
        // The evidence takes all in order where more depends on it.
        let plain = if self.evidence.are_plain(events) { events } else { &[] };
        let mut shared = vec![Shared::default(); plain.len()];
        block.each_in_order(|index, event| {
            let event = Seen::of(event);
            self.marks.add(&event);
            if event.layer() == Layer::Mark {
                return;
            }
            self.totals.add_shared(&event);
            self.activity.add(&event);
            match shared.get_mut(index) {
                Some(shared) => *shared = self.evidence.share(&event),
                None => self.evidence.add(&event),
            }
        });
        for (index, event) in events.iter().enumerate().filter(|(_, event)| event.layer() != Layer::Mark) {
            let event = Seen::of(event);
            self.totals.add_own(&event);
            if let Some(&shared) = shared.get(index) {
                self.evidence.add_own(&event, shared);
            }
        }
    }

    /// What they amount to.
    pub fn finish(mut self) -> Explanation {
        self.evidence.end();
        let tables = self.totals.tables;
        let mut explanation = self.totals.finish();
        explanation.findings = self.evidence.finish(explanation.duration_ns, &explanation.io_time);
        explanation.findings.extend(striping::findings(&explanation.files, explanation.duration_ns));
        findings::sort(&mut explanation.findings);
        explanation.other_files = other_files(&explanation, tables);
        explanation.mpi_io = self.evidence.collectives.time();
        explanation.rhythm = self.activity.finish(explanation.duration_ns);
        (explanation.marked, explanation.call_sites) = self.marks.finish();
        explanation.purposes = classes::classify(&mut explanation.files);
        explanation
    }
}

/// Paths of the files that findings name and that were never opened.
fn other_files(explanation: &Explanation, tables: &Tables) -> Vec<(FileId, String)> {
    let named: BTreeSet<FileId> =
        explanation.findings.iter().flat_map(|finding| &finding.files).map(|file| file.id).collect();
    named
        .into_iter()
        .filter(|&id| explanation.path(id).is_none())
        .filter_map(|id| Some((id, tables.files.get(id.index())?.path.clone())))
        .collect()
}
