//! Which pages of files the caches of a node's processors hold: those that its processes read or wrote last.

use std::collections::BTreeMap;

use super::pages::PAGE;

/// Of so many times the pages that there is room for, those that are no longer held are forgotten.
const FORGOTTEN_FROM: u64 = 4;

/// The caches of a node, as one that is least-recently-used.
#[derive(Debug, Default)]
pub(super) struct ProcessorCache {
    /// Bytes that processes of the node have read and written so far.
    moved: u64,
    /// Of each file's pages: how many they were when it was touched last.
    pages: BTreeMap<(u32, u64), u64>,
}

impl ProcessorCache {
    /// An interval of a file is read or written: how many of its bytes a cache of this size had.
    pub(super) fn touch(&mut self, size: u64, file: u32, offset: u64, bytes: u64) -> u64 {
        let end = offset.saturating_add(bytes);
        let mut found = 0;
        let mut at = offset;
        while at < end {
            let page = at / PAGE;
            let next = ((page + 1) * PAGE).min(end);
            let now = self.moved + (next - offset);
            let before = self.pages.insert((file, page), now);
            if before.is_some_and(|before| now - before <= size) {
                found += next - at;
            }
            at = next;
        }
        self.moved += bytes;
        if self.pages.len() as u64 > FORGOTTEN_FROM * size.div_ceil(PAGE).max(1) {
            let moved = self.moved;
            self.pages.retain(|_, touched| moved - *touched <= size);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_touched_a_cache_ago_is_still_there() {
        let mut cache = ProcessorCache::default();
        let size = 64 * PAGE;
        assert_eq!(cache.touch(size, 0, 0, size), 0, "nothing is there at first");
        assert_eq!(cache.touch(size, 0, 0, size), size);
        assert_eq!(cache.touch(size, 1, 0, PAGE), 0, "another file");
        // Its first page made room for that.
        assert_eq!(cache.touch(size, 0, 0, PAGE), 0);
        assert_eq!(cache.touch(size, 0, 2 * PAGE, PAGE), PAGE);
    }

    #[test]
    fn more_than_a_cache_in_turn_is_never_there() {
        let mut cache = ProcessorCache::default();
        for _ in 0..10 {
            for index in 0..130 {
                assert_eq!(cache.touch(64 * PAGE, 0, index * PAGE, PAGE), 0);
            }
        }
        assert!(cache.pages.len() as u64 <= FORGOTTEN_FROM * 64 + 1);
    }

    #[test]
    fn small_pieces_find_the_page_that_one_before_them_brought() {
        let mut cache = ProcessorCache::default();
        let found: u64 = (0..2 * PAGE / 256).map(|index| cache.touch(64 * PAGE, 0, index * 256, 256)).sum();
        assert_eq!(found, 2 * PAGE - 2 * 256);
    }
}
