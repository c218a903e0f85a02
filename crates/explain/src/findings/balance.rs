//! Who does how much, and how fast: only ranks are compared, as they work on one thing together.

use pio_trace::ProcessId;

use super::finding::{Detail, Draft};
use super::limits::{BYTES, ONE_WRITER, SHARE, SLOWER, UNEVEN, WAITING_SHARE};
use super::processes::ProcessState;
use super::{Context, Cost, Finding, Kind};

/// Requests of a rank whose median says how it usually is served.
const HABIT: u64 = 10;
/// Stalls may be longer than all else together; then one is enough. Part of the job's time.
const STALL_SHARE: f64 = 0.25;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let ranks: Vec<(ProcessId, &ProcessState)> = context
        .evidence
        .processes
        .iter()
        .enumerate()
        .filter(|(_, process)| process.ranked)
        .map(|(index, process)| (ProcessId(index as u32), process))
        .collect();
    if ranks.len() < 2 {
        return Vec::new();
    }
    let one_writer = one_writer(context, &ranks);
    let uneven = if one_writer.is_none() { uneven(context, &ranks) } else { None };
    one_writer.into_iter().chain(uneven).chain(straggler(context, &ranks)).collect()
}

/// If all wrote their part at the same speed, it would take the time of one part.
fn one_writer(context: &Context<'_>, ranks: &[(ProcessId, &ProcessState)]) -> Option<Finding> {
    let written = ranks.iter().map(|(_, rank)| rank.writes().write_bytes).fold(0, u64::saturating_add);
    let (id, writer) = ranks.iter().max_by_key(|(_, rank)| rank.writes().write_bytes)?;
    let part = writer.writes().write_bytes as f64 / written.max(1) as f64;
    if written < BYTES || part < ONE_WRITER {
        return None;
    }
    let lost_ns = writer.writes().own_ns as f64 * (part - 1.0 / ranks.len() as f64);
    let mut draft = Draft::of_processes(Kind::OneWriter, [(*id, writer.writes())]);
    draft.expected_ns = writer.writes().own_ns as f64 - lost_ns;
    draft.detail = Detail::Part(part);
    (lost_ns >= context.least_ns(SHARE)).then(|| draft.finish(lost_ns, 1.0))
}

/// If all moved the same, the one with most to do would be done when the mean is.
fn uneven(context: &Context<'_>, ranks: &[(ProcessId, &ProcessState)]) -> Option<Finding> {
    let count = ranks.len() as u64;
    let bytes: u64 = ranks.iter().map(|(_, rank)| rank.alone().bytes()).fold(0, u64::saturating_add);
    let (id, most) = ranks.iter().max_by_key(|(_, rank)| rank.alone().bytes())?;
    let mean = bytes / count;
    if bytes < BYTES || (most.alone().bytes() as f64) < UNEVEN * mean as f64 {
        return None;
    }
    let mean_ns = ranks.iter().map(|(_, rank)| rank.alone().own_ns).fold(0, u64::saturating_add) / count;
    let lost_ns = most.alone().own_ns.saturating_sub(mean_ns) as f64;
    let mut draft = Draft::of_processes(Kind::UnevenRanks, [(*id, most.alone())]);
    draft.expected_ns = mean_ns as f64;
    draft.detail = Detail::Against { largest: most.alone().bytes(), others: mean };
    (lost_ns >= context.least_ns(SHARE)).then(|| draft.finish(lost_ns, 1.0))
}

/// If the slowest were as fast as the median of the others, all would be done then.
fn straggler(context: &Context<'_>, ranks: &[(ProcessId, &ProcessState)]) -> Option<Finding> {
    let mut active: Vec<_> = ranks.iter().filter(|(_, rank)| rank.at_files.calls > 0).collect();
    active.sort_by_key(|(id, rank)| (rank.at_files.own_ns, *id));
    let ((id, slowest), others) = active.split_last()?;
    let (_, median) = others.get(others.len() / 2)?;
    let lost_ns = slowest.at_files.own_ns.saturating_sub(median.at_files.own_ns) as f64;
    let as_much = slowest.at_files.bytes() as f64 <= UNEVEN * median.at_files.bytes() as f64;
    let slower = slowest.at_files.own_ns as f64 >= SLOWER * median.at_files.own_ns as f64;
    // One call in which the system did something else makes no straggler, unless it is long.
    let always = slowest.at_files.calls >= HABIT && slowest.median_power() > median.median_power();
    let share = if always { WAITING_SHARE } else { STALL_SHARE };
    if !as_much || !slower || lost_ns < context.least_ns(share) {
        return None;
    }
    // A rank is in I/O once, however many of its threads are: what is told is what was compared.
    let cost = Cost { time_ns: slowest.at_files.own_ns, ..slowest.at_files };
    let mut draft = Draft::of_processes(Kind::Straggler, [(*id, cost)]);
    draft.expected_ns = median.at_files.own_ns as f64;
    draft.detail = Detail::Against { largest: slowest.at_files.own_ns, others: median.at_files.own_ns };
    Some(draft.finish(lost_ns, 1.0))
}
