//! The lines of a program that opened files, in the object of `pioscope explain --json`.

use pio_explain::{CallSiteId, CallSiteStatistics, Explanation, MarkedTime};
use serde::Serialize;

use super::moved::Moved;
use super::seconds;

/// A line of the program, and what was done through what it opened.
#[derive(Serialize)]
pub(super) struct CallSite<'e> {
    #[serde(flatten)]
    place: Place<'e>,
    open_calls: u64,
    open_time_s: f64,
    #[serde(flatten)]
    moved: Moved,
    time_s: f64,
    within: Vec<Within<'e>>,
}

/// A line, and its part in a finding or a phase.
#[derive(Serialize)]
pub(super) struct Line<'e> {
    #[serde(flatten)]
    place: Place<'e>,
    calls: u64,
    time_s: f64,
}

/// Where in the program.
#[derive(Serialize)]
struct Place<'e> {
    path: &'e str,
    line: u64,
    function: &'e str,
    library: Option<&'e str>,
}

/// Time of its calls within phases of a name.
#[derive(Serialize)]
struct Within<'e> {
    name: &'e str,
    time_s: f64,
}

impl<'e> Place<'e> {
    fn of(site: pio_trace::CallSite<'e>) -> Place<'e> {
        Place { path: site.path, line: site.line, function: site.function, library: site.library }
    }
}

impl<'e> Line<'e> {
    /// The part of a line; none of one that the explanation does not have.
    pub(super) fn of(found: &'e Explanation, id: CallSiteId, calls: u64, time_ns: u64) -> Option<Line<'e>> {
        Some(Line { place: Place::of(found.call_site(id)?), calls, time_s: seconds(time_ns) })
    }
}

/// Those of phases, those that took the most time first.
pub(super) fn of_phase<'e>(found: &'e Explanation, of: &MarkedTime) -> Vec<Line<'e>> {
    let mut sites: Vec<_> = of.by_site.iter().collect();
    sites.sort_by_key(|(id, tally)| (std::cmp::Reverse(tally.time_ns), **id));
    sites.into_iter().filter_map(|(id, tally)| Line::of(found, *id, tally.count, tally.time_ns)).collect()
}

/// All, those that took the most time first.
pub(super) fn all(found: &Explanation) -> Vec<CallSite<'_>> {
    found.call_sites.iter().map(|one| call_site(found, one)).collect()
}

fn call_site<'e>(found: &'e Explanation, one: &'e CallSiteStatistics) -> CallSite<'e> {
    let within = one.within_ns.iter().filter_map(|(name, time_ns)| {
        Some(Within { name: &found.marked.names.get(*name)?.name, time_s: seconds(*time_ns) })
    });
    CallSite {
        place: Place::of(one.call_site()),
        open_calls: one.opens.count,
        open_time_s: one.opens.time_s(),
        moved: Moved::of(&one.moved),
        time_s: one.all().time_s(),
        within: within.collect(),
    }
}
