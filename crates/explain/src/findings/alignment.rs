//! Writes that begin or end within a page.
//!
//! If such a page is in the file but not in memory, the system must fetch it before it can write a part of it: a hundred
//! times as long as the write itself. Neither a page in memory nor one beyond the end of the file, nor a hole, is fetched.
//! The trace says nothing of these, but the time of the write does: it waited as long as a fetch takes, while whole pages
//! wait for nothing. Both are known from the recorder ([`Rates::part_ns`]); where writes of parts take no longer than those
//! of whole pages, as on file systems without a cache, nothing is told.
//!
//! [`Rates::part_ns`]: super::rates::Rates::part_ns

use pio_trace::ProcessId;

use super::class::Class;
use super::files::Pages;
use super::finding::{Detail, Draft};
use super::limits::{CALLS, PAGE};
use super::rates::Regime;
use super::{Context, Finding, Kind};

/// A write waited for a fetch if it took this part of one more than its bytes would by themselves …
const OF_A_FETCH: f64 = 0.5;
/// … and writes of a file do so by their edges if this part of those that may does: pages are fetched one by one, so that
/// nearly all wait if none was in memory. Of writes to a new file some wait as well: for memory, or until what was written
/// before is on the device.
const OF_WRITES: f64 = 0.4;
/// Fetches compete with what the job itself writes behind: they may take so many times what they take on an idle device.
const BUSY: f64 = 4.0;

/// What is known of one process's writes that begin or end within a page of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    touched: Pages,
    /// Writes of parts of pages of which none other is known yet, and those of them that waited.
    fresh: u64,
    waited: u64,
    /// Pages that were fetched for the writes charged.
    fetched: u64,
}

impl Edges {
    /// Takes note of a write, of which `waited_ns` are more than its bytes take, where a fetch takes `part_ns`: whether it
    /// waited for a fetch.
    pub(crate) fn add(&mut self, start: u64, end: u64, waited_ns: f64, part_ns: f64) -> bool {
        let pages = self.fresh_pages(start, end);
        if pages == 0 {
            return false;
        }
        let waits = waited_ns >= part_ns * OF_A_FETCH;
        self.fresh += 1;
        self.waited += u64::from(waits);
        let fetches = waits && self.waited as f64 >= self.fresh as f64 * OF_WRITES;
        self.fetched += if fetches { pages } else { 0 };
        fetches
    }

    /// Of how many pages it writes a part that the process has not written a part of before, as far as that is still known.
    fn fresh_pages(&mut self, start: u64, end: u64) -> u64 {
        // Who writes does not matter: it is one process.
        let mut is_fresh =
            |at: u64| !at.is_multiple_of(PAGE) && self.touched.replace(at / PAGE, ProcessId(0)).is_none();
        u64::from(is_fresh(start)) + u64::from(is_fresh(end))
    }
}

/// Aligned to pages, the same writes would wait for no fetch.
pub(super) fn finding(context: &Context<'_>) -> Option<Finding> {
    let rates = &context.evidence.rates;
    let parts: Vec<_> = context.uncontended(Class::PartialPage).collect();
    let mut draft = Draft::of(Kind::UnalignedRequests, parts.iter().copied());
    let (mut pages, mut most_ns) = (0, 0);
    for (slot, cost) in &parts {
        let (time_ns, fetched) = (cost.time_ns as f64, slot.edges.as_ref().map_or(0, |edges| edges.fetched));
        let fetches_ns = rates.part_ns(slot.file).map_or(0.0, |part_ns| BUSY * part_ns * fetched as f64);
        let (aligned_ns, references) = rates.time_ns(slot.file, cost, Regime::Cached).unwrap_or_default();
        draft.expected_ns += time_ns - (time_ns - aligned_ns).clamp(0.0, fetches_ns);
        pages += fetched;
        if cost.time_ns >= most_ns {
            (most_ns, draft.references) = (cost.time_ns, references);
        }
    }
    draft.detail = Detail::Fetched { pages };
    context.told(draft, CALLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each of some writes waited for a fetch of 100 us.
    fn charged(writes: impl Iterator<Item = (u64, u64, f64)>) -> usize {
        let mut edges = Edges::default();
        writes.filter(|&(start, end, waited_ns)| edges.add(start, end, waited_ns, 100_000.0)).count()
    }

    #[test]
    fn the_page_where_the_write_before_ended_is_in_memory() {
        let mut edges = Edges::default();
        for i in 0..10_000_u64 {
            let (start, end) = (i * 100, (i + 1) * 100);
            let enters = i == 0 || (start % PAGE > end % PAGE && end % PAGE != 0) || start % PAGE == 0;
            assert_eq!(edges.add(start, end, 1e6, 1e5), enters, "write {i}");
        }
        assert_eq!(edges.fetched, (10_000_u64 * 100).div_ceil(PAGE));
    }

    #[test]
    fn a_few_waits_are_no_fetches() {
        let waiting_each = |n: u64| {
            (0..1000_u64).map(move |i| (i * 10_000, (i + 1) * 10_000, if i % n == n - 1 { 1e8 } else { 1e3 }))
        };
        assert!(charged(waiting_each(1)) > 900);
        assert!(charged(waiting_each(2)) > 400);
        assert_eq!(charged(waiting_each(3)), 0);
        assert_eq!(charged(waiting_each(10)), 0);
    }
}
