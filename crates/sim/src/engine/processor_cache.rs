//! Which pages of files the caches of a node's processors hold: those that were read or written there last, and that no other
//! processor has written since.

use std::collections::BTreeMap;

use super::pages::PAGE;

/// Of so many times the pages that there is room for, those that are no longer held are forgotten.
const FORGOTTEN_FROM: u64 = 4;

/// What is done to an interval of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// On which processor of the node.
    pub processor: u32,
    pub file: u32,
    pub offset: u64,
    pub bytes: u64,
    pub writes: bool,
}

/// The caches of a node: of each processor one that is least-recently-used.
#[derive(Debug, Default)]
pub(super) struct ProcessorCaches {
    /// Bytes that were read and written on each processor so far.
    moved: BTreeMap<u32, u64>,
    /// Of each file's pages: the processors whose caches have it, each with how many bytes it had moved when it touched it last.
    pages: BTreeMap<(u32, u64), Vec<(u32, u64)>>,
}

impl ProcessorCaches {
    /// How many bytes of an interval its processor's cache has, if each has room for so many bytes, also for the memory to or from
    /// which they are copied. Then it has them all; one that writes is the only one that does.
    pub(super) fn touch(&mut self, size: u64, touch: &Touch) -> u64 {
        let &Touch { processor, file, offset, bytes, writes } = touch;
        let room = size.saturating_sub(bytes);
        let moved = self.moved.entry(processor).or_default();
        let end = offset.saturating_add(bytes);
        let mut found = 0;
        let mut at = offset;
        while at < end {
            let page = at / PAGE;
            let next = ((page + 1) * PAGE).min(end);
            let now = *moved + (next - offset);
            let holders = self.pages.entry((file, page)).or_default();
            let own = holders.iter().position(|(holder, _)| *holder == processor);
            if own.is_some_and(|own| now - holders[own].1 <= room) {
                found += next - at;
            }
            match own {
                _ if writes => {
                    holders.clear();
                    holders.push((processor, now));
                }
                Some(own) => holders[own].1 = now,
                None => holders.push((processor, now)),
            }
            at = next;
        }
        *moved += bytes;
        self.forget(size);
        found
    }

    /// Other bytes take room in a processor's cache.
    pub(super) fn displace(&mut self, processor: u32, bytes: u64) {
        *self.moved.entry(processor).or_default() += bytes;
    }

    /// Keeps memory in bounds: pages that no cache holds any more are left out, once they are many.
    fn forget(&mut self, size: u64) {
        let room = size.div_ceil(PAGE).max(1) * self.moved.len() as u64;
        if self.pages.len() as u64 <= FORGOTTEN_FROM * room {
            return;
        }
        let moved = &self.moved;
        self.pages.retain(|_, holders| {
            holders.retain(|(holder, touched)| moved[holder] - *touched <= size);
            !holders.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(processor: u32, writes: bool, file: u32, offset: u64, bytes: u64) -> Touch {
        Touch { processor, file, offset, bytes, writes }
    }

    fn read(file: u32, offset: u64, bytes: u64) -> Touch {
        on(0, false, file, offset, bytes)
    }

    #[test]
    fn what_was_touched_a_cache_ago_is_still_there() {
        let mut caches = ProcessorCaches::default();
        let size = 64 * PAGE;
        assert_eq!(caches.touch(size, &read(0, 0, size / 2)), 0, "nothing is there at first");
        assert_eq!(caches.touch(size, &read(0, 0, size / 2)), size / 2);
        // Its memory has the other half.
        assert_eq!(caches.touch(size, &read(1, 0, size / 2)), 0, "another file");
        assert_eq!(caches.touch(size, &read(0, 0, size / 2)), 0);
        assert_eq!(caches.touch(size, &read(0, PAGE, PAGE)), PAGE);
    }

    #[test]
    fn more_than_a_cache_in_turn_is_never_there() {
        let mut caches = ProcessorCaches::default();
        for _ in 0..10 {
            for index in 0..130 {
                assert_eq!(caches.touch(64 * PAGE, &read(0, index * PAGE, PAGE)), 0);
            }
        }
        assert!(caches.pages.len() as u64 <= FORGOTTEN_FROM * 64 + 1);
    }

    #[test]
    fn other_bytes_take_room() {
        let size = 64 * PAGE;
        let left = |other| {
            let mut caches = ProcessorCaches::default();
            caches.touch(size, &read(0, 0, PAGE));
            caches.displace(0, other);
            caches.displace(1, size);
            caches.touch(size, &read(0, 0, PAGE))
        };
        // The page itself, and the memory that it is read to.
        assert_eq!([left(0), left(62 * PAGE), left(63 * PAGE)], [PAGE, PAGE, 0]);
    }

    #[test]
    fn small_pieces_find_the_page_that_one_before_them_brought() {
        let mut caches = ProcessorCaches::default();
        let found: u64 =
            (0..2 * PAGE / 256).map(|index| caches.touch(64 * PAGE, &read(0, index * 256, 256))).sum();
        assert_eq!(found, 2 * PAGE - 2 * 256, "memory of 256 bytes takes no room to speak of");
    }

    #[test]
    fn what_one_processor_writes_leaves_the_caches_of_the_others() {
        let mut caches = ProcessorCaches::default();
        let size = 64 * PAGE;
        let mut held = |processor, writes| caches.touch(size, &on(processor, writes, 0, 0, PAGE));
        assert_eq!(held(0, true), 0);
        assert_eq!(held(1, false), 0, "it is in the cache of processor 0");
        assert_eq!(held(0, false), PAGE, "both have it now");
        assert_eq!(held(1, true), PAGE);
        assert_eq!(held(0, false), 0);
        assert_eq!(held(1, true), PAGE, "who wrote it last has it still");
    }
}
