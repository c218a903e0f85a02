//! Sizes of requests, and their order.

use super::class::Class;
use super::limits::{CALLS, PAGE};
use super::{Context, Cost, Finding, Kind, Slot, sharing};

/// A stream that gathers in memory takes tens of nanoseconds a call; one that passes every call on to the kernel takes
/// longer than this, nanoseconds.
const PASSED_ON_NS: u64 = 300;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let streams =
        context.charged(Class::Stream).filter(|(_, cost)| cost.time_ns / cost.calls >= PASSED_ON_NS);
    let seeks = context.charged(Class::Seek).filter(|(slot, cost)| is_before_requests(slot, cost));
    let (alone_writes, alone_reads): (Vec<_>, Vec<_>) =
        sharing::alone(context).into_iter().partition(|(_, cost)| cost.write_bytes >= cost.read_bytes);
    let writes = context.uncontended(Class::SmallWrite).chain(lone_appends(context)).chain(alone_writes);
    [
        context.slow_in_order(Kind::SmallWrites, writes),
        context.slow_in_order(Kind::SmallReads, context.charged(Class::SmallRead).chain(alone_reads)),
        context.slow_in_order(Kind::UnbufferedStream, streams),
        scattered(context, Kind::RandomAccess, Class::RandomRead, Class::RandomWrite),
        scattered(context, Kind::StridedAccess, Class::StepsRead, Class::StepsWrite),
        context.vain(Kind::Seeks, seeks, 0.0, CALLS),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What is read here and there would be read in a piece: all from the first to the last byte, or, if that is more, the
/// pages that hold it.
fn scattered(context: &Context<'_>, kind: Kind, reads: Class, writes: Class) -> Option<Finding> {
    let parts = both(context, reads, writes).filter(|(slot, cost)| !is_most(slot, cost));
    context.slow_but(kind, parts, |slot, cost| {
        let calls = cost.calls.max(1);
        let pages = calls.saturating_mul((cost.read_bytes / calls).div_ceil(PAGE)).saturating_mul(PAGE);
        let reach = slot.reach.map_or(u64::MAX, |(start, end)| end - start);
        let read_bytes = if cost.read_bytes > 0 { pages.min(reach).max(cost.read_bytes) } else { 0 };
        (Cost { read_bytes, ..*cost }, 0)
    })
}

/// Reads of half or more of all that is read so of the file, as of one that a library reads in a piece behind its head: there
/// are none to join them with.
fn is_most(slot: &Slot, cost: &Cost) -> bool {
    let each = cost.read_bytes / cost.calls.max(1);
    cost.write_bytes == 0 && slot.reach.is_some_and(|(start, end)| 2 * each >= end - start)
}

/// Reads, and writes that do not stand for what processes contend for.
fn both<'a>(context: &Context<'a>, reads: Class, writes: Class) -> impl Iterator<Item = (&'a Slot, Cost)> {
    context.charged(reads).chain(context.uncontended(writes))
}

/// Appends to files that no other process appends to.
fn lone_appends<'a>(context: &Context<'a>) -> impl Iterator<Item = (&'a Slot, Cost)> {
    let appended = sharing::appenders(context);
    context
        .charged(Class::Append)
        .filter(move |(slot, _)| appended.get(&slot.file).is_some_and(|count| *count < 2))
}

/// Whether seeks come before requests: there are some, and one seek for two remarkable ones at least.
fn is_before_requests(slot: &Slot, seeks: &Cost) -> bool {
    (slot.read || slot.written) && seeks.calls * 2 >= remarkable(slot)
}

/// Remarkable requests of a slot: those that a seek may have come before.
fn remarkable(slot: &Slot) -> u64 {
    [
        Class::RandomRead,
        Class::RandomWrite,
        Class::StepsRead,
        Class::StepsWrite,
        Class::PartialPage,
        Class::SmallRead,
        Class::SmallWrite,
        Class::Reread,
        Class::Overwrite,
    ]
    .into_iter()
    .filter_map(|class| slot.costs.get(class))
    .map(|cost| cost.calls)
    .sum()
}
