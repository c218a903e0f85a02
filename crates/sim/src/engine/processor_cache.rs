//! Which bytes of files the caches of a node's processors hold: those that were read or written there last, and that no other
//! processor has written since.

use std::collections::BTreeMap;
use std::ops::Range;

use pio_plan::cost::FORESEEN_BYTES;

use super::pages::PAGE;

/// Bytes of a cache's line.
const LINE: u64 = PAGE / u64::BITS as u64;
/// So many lines ahead of what is touched a processor sends for what may follow, at most.
pub(super) const FORESEEN: u64 = FORESEEN_BYTES / LINE;
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
    /// Whether the file had some of its pages not yet.
    pub makes_pages: bool,
}

/// What of an interval a processor's cache has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub bytes: u64,
    /// Lines between its first one, if that is not there, and the last before it that is; no more than [`FORESEEN`].
    pub unforeseen: u64,
}

/// The caches of a node: of each processor one that is least-recently-used.
#[derive(Debug, Default)]
pub(super) struct ProcessorCaches {
    /// Bytes that were read and written on each processor so far.
    moved: BTreeMap<u32, u64>,
    /// Of each file's pages: the processors whose caches have some of it.
    pages: BTreeMap<(u32, u64), Vec<Held>>,
}

/// What a processor's cache has of a page.
#[derive(Debug)]
struct Held {
    processor: u32,
    /// How many bytes the processor had moved when it touched the page last.
    moved: u64,
    /// A bit for each of its lines.
    lines: u64,
}

impl ProcessorCaches {
    /// What of an interval its processor's cache has, if each has room for so many bytes, also for the memory to or from
    /// which they are copied. Then it has all of it; one that writes is the only one that does.
    pub(super) fn touch(&mut self, size: u64, touch: &Touch) -> Found {
        let &Touch { processor, file, offset, bytes, writes, makes_pages } = touch;
        let room = size.saturating_sub(bytes);
        let end = offset.saturating_add(bytes);
        let unforeseen = if bytes > 0 { self.lines_since(room, touch) } else { 0 };
        let mut found = Found { bytes: 0, unforeseen };
        let moved = self.moved.entry(processor).or_default();
        let mut at = offset;
        while at < end {
            let page = at / PAGE;
            let next = ((page + 1) * PAGE).min(end);
            let now = *moved + (next - offset);
            let wanted = lines(at % PAGE..next - page * PAGE);
            let holders = self.pages.entry((file, page)).or_default();
            let own = holders.iter().position(|held| held.processor == processor);
            let held = own.map(|own| holders.swap_remove(own));
            let mut has = held.filter(|held| now - held.moved <= room).map_or(0, |held| held.lines);
            found.bytes += if has & wanted == wanted {
                next - at
            } else {
                (u64::from((has & wanted).count_ones()) * LINE).min(next - at)
            };
            // The rest of a page that it makes the kernel fills with zeros.
            let is_new = makes_pages && holders.is_empty() && has == 0;
            if at == offset && (is_new || has & first_of(wanted) != 0) {
                found.unforeseen = 0;
            }
            if writes {
                if is_new {
                    has = u64::MAX;
                }
                holders.iter_mut().for_each(|held| held.lines &= !wanted);
                holders.retain(|held| held.lines != 0);
            }
            holders.push(Held { processor, moved: now, lines: has | wanted });
            at = next;
        }
        *moved += bytes;
        self.forget(size);
        found
    }

    /// Lines between an interval and the last before it that its processor's cache has.
    fn lines_since(&self, room: u64, touch: &Touch) -> u64 {
        let now = self.moved.get(&touch.processor).copied().unwrap_or(0);
        let has = |page: u64| {
            let holders = self.pages.get(&(touch.file, page)).into_iter().flatten();
            holders
                .filter(|held| held.processor == touch.processor && now - held.moved <= room)
                .fold(0, |lines, held| lines | held.lines)
        };
        let (page, first) = (touch.offset / PAGE, touch.offset % PAGE / LINE);
        let before = if first > 0 { has(page) << (u64::from(u64::BITS) - first) } else { 0 };
        let since = match page.checked_sub(1).filter(|_| before == 0 && first < FORESEEN) {
            Some(page_before) => first + u64::from(has(page_before).leading_zeros()),
            None => u64::from(before.leading_zeros()),
        };
        since.min(FORESEEN)
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
            holders.retain(|held| moved[&held.processor] - held.moved <= size);
            !holders.is_empty()
        });
    }
}

/// The lines in which an interval of a page lies, which is not empty.
fn lines(within: Range<u64>) -> u64 {
    let (first, end) = (within.start / LINE, within.end.div_ceil(LINE));
    u64::MAX >> (u64::from(u64::BITS) - (end - first)) << first
}

fn first_of(lines: u64) -> u64 {
    lines & lines.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(processor: u32, writes: bool, file: u32, offset: u64, bytes: u64) -> Touch {
        Touch { processor, file, offset, bytes, writes, makes_pages: false }
    }

    fn read(file: u32, offset: u64, bytes: u64) -> Touch {
        on(0, false, file, offset, bytes)
    }

    #[test]
    fn what_was_touched_a_cache_ago_is_still_there() {
        let mut caches = ProcessorCaches::default();
        let size = 64 * PAGE;
        let mut held = |touch| caches.touch(size, &touch).bytes;
        assert_eq!(held(read(0, 0, size / 2)), 0, "nothing is there at first");
        assert_eq!(held(read(0, 0, size / 2)), size / 2);
        // Its memory has the other half.
        assert_eq!(held(read(1, 0, size / 2)), 0, "another file");
        assert_eq!(held(read(0, 0, size / 2)), 0);
        assert_eq!(held(read(0, PAGE, PAGE)), PAGE);
    }

    #[test]
    fn more_than_a_cache_in_turn_is_never_there() {
        let mut caches = ProcessorCaches::default();
        for _ in 0..10 {
            for index in 0..130 {
                assert_eq!(caches.touch(64 * PAGE, &read(0, index * PAGE, PAGE)).bytes, 0);
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
            caches.touch(size, &read(0, 0, PAGE)).bytes
        };
        // The page itself, and the memory that it is read to.
        assert_eq!([left(0), left(62 * PAGE), left(63 * PAGE)], [PAGE, PAGE, 0]);
    }

    #[test]
    fn small_pieces_miss_as_far_as_they_are_apart() {
        let misses = |apart: u64| {
            let mut caches = ProcessorCaches::default();
            let mut read = |index: u64| caches.touch(64 * PAGE, &read(0, index * apart, 200));
            let found: Vec<Found> = (0..100).map(&mut read).collect();
            let held: u64 = found.iter().map(|found| found.bytes).sum();
            let again = read(50);
            assert_eq!(again, Found { bytes: 200, unforeseen: 0 });
            (found.iter().map(|found| found.unforeseen).sum::<u64>(), held)
        };
        // Three lines of four; the fourth is that in which the next begins, and one of 16 begins with a line.
        assert_eq!(misses(200), (FORESEEN, (100 - 13) * LINE));
        // Four lines of eight, also from a page to the next.
        assert_eq!(misses(512), (FORESEEN + 99 * 4, 0));
        assert_eq!(misses(PAGE + 64), (100 * FORESEEN, 0));
    }

    #[test]
    fn who_makes_a_page_has_the_zeros_around_it() {
        let mut caches = ProcessorCaches::default();
        let mut write = |processor, offset, makes_pages| {
            let touch = Touch { makes_pages, ..on(processor, true, 0, offset, 128) };
            caches.touch(64 * PAGE, &touch)
        };
        assert_eq!(write(0, 0, true), Found { bytes: 0, unforeseen: 0 });
        assert_eq!(write(0, 1024, false), Found { bytes: 128, unforeseen: 0 });
        assert_eq!(write(1, 2048, false), Found { bytes: 0, unforeseen: FORESEEN });
        assert_eq!(write(0, 2048, false), Found { bytes: 0, unforeseen: 0 }, "what is before it is there");
        assert_eq!(write(0, 2176, false), Found { bytes: 128, unforeseen: 0 });
        assert_eq!(
            write(1, 2304, false),
            Found { bytes: 0, unforeseen: FORESEEN },
            "the other has what is before it"
        );
    }

    #[test]
    fn what_one_processor_writes_leaves_the_caches_of_the_others() {
        let mut caches = ProcessorCaches::default();
        let size = 64 * PAGE;
        let mut held = |processor, writes| caches.touch(size, &on(processor, writes, 0, 0, PAGE)).bytes;
        assert_eq!(held(0, true), 0);
        assert_eq!(held(1, false), 0, "it is in the cache of processor 0");
        assert_eq!(held(0, false), PAGE, "both have it now");
        assert_eq!(held(1, true), PAGE);
        assert_eq!(held(0, false), 0);
        assert_eq!(held(1, true), PAGE, "who wrote it last has it still");
    }
}
