//! Pages of a file that kernels keep in memory.

use std::collections::BTreeMap;

/// Bytes of a page of memory.
const PAGE: u64 = 4096;

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_new_once() {
        let mut pages = Pages::default();
        assert_eq!(pages.add(100, 0), 0);
        assert_eq!(pages.add(PAGE - 1, 2), 2 * PAGE);
        assert_eq!(pages.add(0, PAGE), 0);
        assert_eq!(pages.add(10 * PAGE, PAGE), PAGE);
        assert_eq!(pages.add(PAGE, 10 * PAGE), 8 * PAGE);
        assert_eq!(pages.add(0, 11 * PAGE), 0);
    }
}
