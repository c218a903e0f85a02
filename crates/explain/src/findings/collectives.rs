//! Calls that all ranks make together: who is waited for, and what the MPI library makes of them.

use pio_trace::{CrowdedHost, Op, ProcessId, ProcessorWait};

use super::class::Class;
use super::finding::{Detail, Draft};
use super::limits::{SMALL, TURNS, WAITING_SHARE};
use super::rates::Regime;
use super::{Context, Cost, Finding, Kind};
use crate::collectives::{Lateness, Settled};
use crate::tally::Amount;

/// What ranks wait for each other at the start of a program, or once by chance, is no habit. But this long, nanoseconds, is
/// no chance: an MPI that lets ranks write without waiting for each other has all the waiting in one call, the close.
const LONG_NS: f64 = 1e8;
/// To exchange data before they go to the files costs so many copies of them: they are packed, put into the memory that two
/// processes share, or on a network, taken from there, and unpacked. What a copy takes, reads from the system's memory tell.
pub const EXCHANGE_COPIES: u32 = 4;
/// How many times that the library's time is before something is wrong.
const TOO_LONG: f64 = 3.0;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [late(context), library(context), crowded(context)].into_iter().flatten().collect()
}

/// What became of collective reads and writes with which nothing else is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CollectiveData {
    /// Their time at the files, the sum of all ranks, nanoseconds.
    files_ns: u64,
    /// What was moved by calls that the library carried out in small requests.
    in_small_requests: Cost,
    /// Requests that the calls made, those of a call as often as it has ranks.
    requests: Amount,
}

impl CollectiveData {
    /// Takes a rank's call. What of it the library is charged with goes to `library`: its own time; and that at the files, if
    /// the library went there with small requests though it has the data of all ranks.
    pub(crate) fn add(&mut self, call: &Settled, library: &mut Cost) {
        let small = call.requests.count > 0 && call.requests.bytes / call.requests.count < SMALL;
        let files_ns = if small { call.split.files_ns } else { 0 };
        let before = *library;
        library.add_part(call, call.split.library_ns.saturating_add(files_ns));
        let bytes = match call.op {
            Op::Read => &mut library.read_bytes,
            _ => &mut library.write_bytes,
        };
        *bytes = bytes.saturating_add(call.bytes);
        self.files_ns = self.files_ns.saturating_add(call.split.files_ns);
        self.requests.merge(call.requests);
        if small {
            self.in_small_requests.read_bytes += library.read_bytes - before.read_bytes;
            self.in_small_requests.write_bytes += library.write_bytes - before.write_bytes;
        }
    }

    fn mean_request_bytes(&self) -> u64 {
        self.requests.bytes / self.requests.count.max(1)
    }
}

/// If the work before the calls was the same for all ranks, they would come at their mean: what is saved is what they wait
/// on average (the ranks of a call, and of calls that go on side by side), less what the rank that waits least does wait.
/// That rank is the last on average, and waits where others come late by chance: so would all. Not what they wait because a
/// rank had no processor: that is another matter ([`crowded`]).
fn late(context: &Context<'_>) -> Option<Finding> {
    let collectives = &context.evidence.collectives;
    let late: Vec<_> = collectives.late().collect();
    let (process, last) = *late.iter().max_by_key(|(_, late)| late.waited_ns)?;
    let mut draft = Draft::of(Kind::LateRanks, context.charged(Class::Late));
    let (ranks, waiting) = (ranks(context), collectives.together.ranks().min(ranks(context)));
    let waits = draft.by_process.values().map(|(_, waited_ns)| *waited_ns);
    let least_ns = if (draft.processes() as f64) < ranks { 0 } else { waits.min().unwrap_or(0) };
    let by_chance_ns = least_ns as f64 * ranks;
    draft.expected_ns = (starved_ns(context) + by_chance_ns).min(draft.cost.time_ns as f64);
    let lost_ns = (draft.cost.time_ns as f64 - draft.expected_ns) / waiting;
    let calls: u64 = late.iter().map(|(_, late)| late.calls).sum();
    if lost_ns < context.least_ns(WAITING_SHARE) || (calls < TURNS && lost_ns < LONG_NS) {
        return None;
    }
    draft.by_process = late.iter().map(|(process, late)| (*process, (late.calls, late.waited_ns))).collect();
    draft.detail = Detail::Last {
        process,
        calls: last.calls,
        of: collectives.instances,
        waited_ns: last.waited_ns,
        think_ns: last.think_ns,
        io_ns: last.io_ns,
    };
    Some(draft.finish(lost_ns, waiting))
}

/// What the library needs beyond the files, less a good exchange of the same bytes.
fn library(context: &Context<'_>) -> Option<Finding> {
    // Where the files' time is not known, it looks like the library's. And who uses Pioscope's strategies already is not
    // told to.
    let collectives = &context.evidence.collectives;
    if !collectives.time().files_seen || collectives.by_pioscope {
        return None;
    }
    let data = &context.evidence.collective_data;
    let mut draft = Draft::of(Kind::InsideLibrary, context.charged(Class::Library));
    // Where nothing tells what large requests reach, those that were made are taken to be as good as any.
    let file = context.charged(Class::Library).find_map(|(slot, _)| slot.file);
    let moved = context.evidence.rates.time_ns(file, &data.in_small_requests, Regime::Device);
    let at_files_ns = moved.map_or(data.files_ns as f64, |(time_ns, _)| time_ns);
    let copy = context.evidence.rates.copy(file);
    let exchange_ns =
        copy.map(|rate| f64::from(EXCHANGE_COPIES) * draft.cost.bytes() as f64 / rate.bytes_per_s * 1e9);
    let expected_ns = at_files_ns + exchange_ns.unwrap_or(0.0);
    let together = context.concurrency.min(draft.processes() as f64).max(1.0);
    let lost_ns = (draft.cost.time_ns as f64 - expected_ns) / together;
    let too_long = draft.cost.time_ns as f64 >= TOO_LONG * expected_ns;
    draft.references.read = copy;
    draft.detail = Detail::AtFiles { time_ns: data.files_ns, mean_request_bytes: data.mean_request_bytes() };
    if !too_long || lost_ns < context.least_ns(WAITING_SHARE) {
        return None;
    }
    if exchange_ns.is_none() {
        return Some(draft.finish_unknown(together));
    }
    draft.expected_ns = expected_ns;
    Some(draft.finish(lost_ns, together))
}

/// What ranks waited for others that came late because they had no processor, the sum of all ranks, nanoseconds: of a host
/// with more ranks than processors. What a late rank was idle for longer than those who waited for it is taken for that, up
/// to what the kernel says that it waited for a processor, where that is known.
fn starved_ns(context: &Context<'_>) -> f64 {
    let tables = context.evidence.tables;
    let crowded = CrowdedHost::of(tables);
    let waits = ProcessorWait::of(tables);
    let of_late_rank = |(process, late): (ProcessId, Lateness)| {
        let host = &tables.processes.get(process.index())?.host;
        crowded.iter().find(|crowded| crowded.name == *host)?;
        let waited = waits.iter().find(|wait| wait.process == process);
        let part = waited.map_or(1.0, |wait| wait.waited_ns as f64 / late.idle_ns.max(1) as f64);
        Some(late.waited_idle_ns as f64 * part.min(1.0))
    };
    context.evidence.collectives.late().filter_map(of_late_rank).sum()
}

/// While ranks wait for each other, most MPIs keep their processors busy asking for messages: of a host with more ranks than
/// processors that time goes to the others' work, and the part of it that there are processors too few is lost. So is what
/// others wait for a rank that has no processor.
fn crowded(context: &Context<'_>) -> Option<Finding> {
    let hosts = CrowdedHost::of(context.evidence.tables);
    let by_crowd =
        |a: &&CrowdedHost, b: &&CrowdedHost| (a.ranks * b.processors).cmp(&(b.ranks * a.processors));
    let &CrowdedHost { ranks: ranks_there, processors, .. } = hosts.iter().max_by(by_crowd)?;
    let split = context.evidence.collectives.time().total();
    let too_few = 1.0 - processors as f64 / ranks_there as f64;
    let starved_ns = starved_ns(context).min(split.late_ns as f64);
    let ranks = ranks(context);
    let too_many_ns = starved_ns + split.library_ns as f64 * too_few;
    let lost_ns = too_many_ns / ranks;
    if lost_ns < context.least_ns(WAITING_SHARE) {
        return None;
    }
    let mut draft = Draft::of_processes(Kind::TooManyRanks, []);
    draft.cost = Cost {
        calls: split.calls,
        time_ns: split.total_ns(),
        own_ns: split.total_ns(),
        from_ns: 0,
        until_ns: context.duration_ns,
        ..Cost::default()
    };
    draft.expected_ns = (draft.cost.time_ns as f64 - too_many_ns).max(0.0);
    draft.detail = Detail::Crowded {
        ranks: ranks_there,
        processors,
        library_ns: split.library_ns,
        starved_ns: starved_ns as u64,
    };
    Some(draft.finish(lost_ns, ranks))
}

/// Ranks of the job.
fn ranks(context: &Context<'_>) -> f64 {
    context.evidence.processes.iter().filter(|process| process.ranked).count().max(1) as f64
}
