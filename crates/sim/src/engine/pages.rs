//! Pages of a file that kernels keep in memory.

use std::collections::BTreeMap;

/// Bytes of a page of memory.
pub(super) const PAGE: u64 = 4096;
/// Bytes of the largest folio.
pub(super) const LARGEST_FOLIO: u64 = PAGE << 9;

/// Some of a file's pages: begin and end of each run of them.
#[derive(Debug, Default)]
pub(super) struct Pages(BTreeMap<u64, u64>);

impl Pages {
    /// Adds the pages of an interval: bytes of those that were not among them.
    pub(super) fn add(&mut self, offset: u64, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let (mut first, mut end) = (offset / PAGE, offset.saturating_add(bytes).div_ceil(PAGE));
        let mut new = end - first;
        // Runs that overlap, or lie next to it, become one with it.
        while let Some((&begin, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= first)
        {
            self.0.remove(&begin);
            new -= last.min(end).saturating_sub(begin.max(first)).min(new);
            (first, end) = (first.min(begin), end.max(last));
        }
        self.0.insert(first, end);
        new * PAGE
    }

    /// Drops the pages that begin at `size` or beyond: how many bytes these are.
    pub(super) fn end_at(&mut self, size: u64) -> u64 {
        let end = size.div_ceil(PAGE);
        let dropped: u64 =
            self.0.range(..).rev().map_while(|(begin, last)| last.checked_sub(end.max(*begin))).sum();
        self.0.retain(|begin, _| *begin < end);
        if let Some(mut last) = self.0.last_entry() {
            *last.get_mut() = end.min(*last.get());
        }
        dropped * PAGE
    }
}

/// The folios that a write of so many new bytes from `offset` on makes in a file system with large ones: each begins at a
/// multiple of its size, and is no larger than what is left to write (`__filemap_get_folio` in Linux' mm/filemap.c).
pub(super) fn folios(offset: u64, bytes: u64) -> u64 {
    let (mut at, end) = (offset, offset.saturating_add(bytes));
    let mut count = 0;
    while at < end {
        let begin = at / PAGE * PAGE;
        let aligned = if begin == 0 { LARGEST_FOLIO } else { 1 << begin.trailing_zeros() };
        let left = (end - at).max(PAGE);
        at = begin + aligned.min(1 << left.ilog2()).min(LARGEST_FOLIO);
        count += 1;
        // The rest is a row of the largest.
        if at.is_multiple_of(LARGEST_FOLIO) && end.saturating_sub(at) >= LARGEST_FOLIO {
            count += (end - at) / LARGEST_FOLIO;
            at += (end - at) / LARGEST_FOLIO * LARGEST_FOLIO;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_makes_folios_as_the_kernel_does() {
        for (offset, bytes, expected) in [
            (0, 0, 0),
            (0, 100, 1),
            (4000, 200, 2),
            (0, 64 << 10, 1),
            (4096, 64 << 10, 5),
            (0, 47_024, 4),
            (65_536, 47_024, 4),
            (0, LARGEST_FOLIO, 1),
            (0, 8 * LARGEST_FOLIO, 8),
            (LARGEST_FOLIO / 2, 2 * LARGEST_FOLIO, 3),
        ] {
            assert_eq!(folios(offset, bytes), expected, "{bytes} from {offset}");
        }
    }

    #[test]
    fn each_page_is_new_once() {
        let mut pages = Pages::default();
        assert_eq!(pages.add(100, 0), 0);
        assert_eq!(pages.add(PAGE - 1, 2), 2 * PAGE);
        assert_eq!(pages.add(0, PAGE), 0);
        assert_eq!(pages.add(10 * PAGE, PAGE), PAGE);
        assert_eq!(pages.add(PAGE, 10 * PAGE), 8 * PAGE);
        assert_eq!(pages.add(0, 11 * PAGE), 0);
        assert_eq!(pages.end_at(4 * PAGE + 1), 6 * PAGE);
        assert_eq!(pages.end_at(4 * PAGE + 1), 0);
        assert_eq!(pages.add(0, 11 * PAGE), 6 * PAGE);
        assert_eq!(pages.add(20 * PAGE, 2 * PAGE), 2 * PAGE);
        assert_eq!(pages.end_at(10 * PAGE), 3 * PAGE);
        assert_eq!(pages.end_at(0), 10 * PAGE);
        assert_eq!(pages.add(0, PAGE), PAGE);
    }
}
