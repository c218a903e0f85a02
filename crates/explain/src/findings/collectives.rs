//! Calls that all ranks make together: who is waited for, and what the MPI library makes of them.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::{Op, Tables};

use super::class::Class;
use super::finding::{Detail, Draft};
use super::limits::{SMALL, TURNS, WAITING_SHARE};
use super::rates::Regime;
use super::{Context, Cost, Finding, Kind};
use crate::collectives::Settled;
use crate::tally::Amount;

/// What ranks wait for each other at the start of a program, or once by chance, is no habit: but a second is worth telling,
/// nanoseconds.
const LONG_NS: f64 = 1e9;
/// Exchanging data before they go to the files costs a copy, a message and another copy: at this rate for each process if all
/// goes well, bytes per second. The slower of the memory of a node under load and its share of a network.
const EXCHANGE_BYTES_PER_S: f64 = 1e9;
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
/// on average.
fn late(context: &Context<'_>) -> Option<Finding> {
    let collectives = &context.evidence.collectives;
    let late: Vec<_> = collectives.late().collect();
    let (process, last) = *late.iter().max_by_key(|(_, late)| late.waited_ns)?;
    let mut draft = Draft::of(Kind::LateRanks, context.charged(Class::Late));
    let ranks = ranks(context);
    let lost_ns = draft.cost.time_ns as f64 / ranks;
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
    Some(draft.finish(lost_ns, ranks))
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
    let exchange_ns = draft.cost.bytes() as f64 / EXCHANGE_BYTES_PER_S * 1e9;
    // Where nothing tells what large requests reach, those that were made are taken to be as good as any.
    let file = context.charged(Class::Library).find_map(|(slot, _)| slot.file);
    let moved = context.evidence.rates.time_ns(file, &data.in_small_requests, Regime::Device);
    draft.expected_ns = exchange_ns + moved.map_or(data.files_ns as f64, |(time_ns, _)| time_ns);
    let together = context.concurrency.min(draft.processes() as f64).max(1.0);
    let lost_ns = (draft.cost.time_ns as f64 - draft.expected_ns) / together;
    let too_long = draft.cost.time_ns as f64 >= TOO_LONG * draft.expected_ns;
    draft.detail = Detail::AtFiles { time_ns: data.files_ns, mean_request_bytes: data.mean_request_bytes() };
    (too_long && lost_ns >= context.least_ns(WAITING_SHARE)).then(|| draft.finish(lost_ns, together))
}

/// While ranks wait for each other, most MPIs keep their processors busy asking for messages: of a host with more ranks than
/// processors that time goes to the others' work, and the part of it that there are processors too few is lost.
fn crowded(context: &Context<'_>) -> Option<Finding> {
    let (ranks_there, processors) = fullest_host(context.evidence.tables)?;
    let split = context.evidence.collectives.time().total();
    let waiting_ns = split.late_ns.saturating_add(split.library_ns);
    let too_few = 1.0 - processors as f64 / ranks_there as f64;
    let ranks = ranks(context);
    let lost_ns = waiting_ns as f64 / ranks * too_few;
    if lost_ns < context.least_ns(WAITING_SHARE) {
        return None;
    }
    let mut draft = Draft::of_processes(Kind::TooManyRanks, []);
    draft.cost = Cost {
        calls: split.calls,
        time_ns: waiting_ns,
        own_ns: waiting_ns,
        from_ns: 0,
        until_ns: context.duration_ns,
        ..Cost::default()
    };
    draft.expected_ns = waiting_ns as f64 * (1.0 - too_few);
    draft.detail = Detail::Crowded { ranks: ranks_there, processors };
    Some(draft.finish(lost_ns, ranks))
}

/// Ranks of the job.
fn ranks(context: &Context<'_>) -> f64 {
    context.evidence.processes.iter().filter(|process| process.ranked).count().max(1) as f64
}

/// Ranks and processors of the host with most ranks a processor, if there are more ranks than processors; by the recorder's
/// note: `node1 16, node2 16`.
fn fullest_host(tables: &Tables) -> Option<(u64, u64)> {
    let (_, note) = tables.notes.iter().find(|(key, _)| key == "processors")?;
    let mut ranks: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for process in &tables.processes {
        if let Some(rank) = process.rank {
            ranks.entry(&process.host).or_default().insert(rank);
        }
    }
    note.split(", ")
        .filter_map(|host| {
            let (host, processors) = host.rsplit_once(' ')?;
            let processors: u64 = processors.parse().ok().filter(|processors| *processors > 0)?;
            let ranks = ranks.get(host)?.len() as u64;
            (ranks > processors).then_some((ranks, processors))
        })
        .max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)))
}
