//! The holes that layouts leave, extent by extent: exact, whatever there is.

use std::iter::Peekable;
use std::ops::Range;

use super::block;
use crate::layout::Layout;
use crate::runs::{Extent, Extents};

/// Where extents are sorted, about so many at a time: what fits a processor's cache.
const FEW_EXTENTS: usize = 1 << 12;
const MANY_EXTENTS: usize = 1 << 14;

/// Where there is a piece to so many bytes or fewer in the mean, bytes are marked. A piece is marked in the time of one step of a
/// sort, and sorting takes a dozen; but 64 bytes take a word to be cleared and looked at, which 2 KiB do in that of all steps.
const MARKED_BYTES: u64 = 2 << 10;

/// So many bytes of the window are marked at a time: 128 KiB of marks, which a processor's cache holds.
const STRETCH_BYTES: i64 = 1 << 20;

/// Appends the bytes of `window` that none of the layouts touches, in order.
pub(super) fn merge(window: &Range<i64>, layouts: Vec<Layout>, found: &mut Vec<Layout>) {
    let inside = layouts.iter().map(|layout| layout.clip(window.start, window.end));
    let mut pieces = 0_u64;
    let lists = inside
        .inspect(|layout| pieces = pieces.saturating_add(layout.shape.pieces))
        .map(|layout| layout.extents(0..u64::MAX).peekable())
        .collect();
    let mut holes = Holes { end: window.start, found };
    if (window.end - window.start) as u64 / MARKED_BYTES < pieces {
        mark(window, lists, &mut holes);
    } else {
        sort(window, lists, &mut holes);
    }
    holes.touch(window.end..window.end);
}

/// Goes through what is touched, in order, and finds the holes between.
struct Holes<'a> {
    /// Up to where all is known.
    end: i64,
    found: &'a mut Vec<Layout>,
}

impl Holes<'_> {
    fn touch(&mut self, touched: Range<i64>) {
        if touched.start > self.end {
            let len = (touched.start - self.end) as u64;
            self.found.push(block(Extent { offset: self.end, len }));
        }
        self.end = self.end.max(touched.end);
    }
}

/// Stretch by stretch of the window, the extents of all layouts there are sorted: a sort that goes by what is in order already
/// takes a quarter of the time of a heap.
fn sort(window: &Range<i64>, mut lists: Vec<Peekable<Extents>>, holes: &mut Holes) {
    let mut stretch = ((window.end - window.start) / 64).max(1);
    let mut start = window.start;
    let mut inside = Vec::new();
    while !lists.is_empty() {
        start = start.saturating_add(stretch).min(window.end);
        lists.retain_mut(|list| {
            while let Some(extent) = list.next_if(|extent| extent.offset < start) {
                inside.push(extent);
            }
            list.peek().is_some()
        });
        stretch = match inside.len() {
            0..FEW_EXTENTS => stretch.saturating_mul(2),
            FEW_EXTENTS..MANY_EXTENTS => stretch,
            MANY_EXTENTS.. => (stretch / 2).max(1),
        };
        inside.sort_by_key(|extent| extent.offset);
        for extent in inside.drain(..) {
            holes.touch(extent.offset..extent.end());
        }
    }
}

/// Stretch by stretch of the window, every byte that is touched is marked.
fn mark(window: &Range<i64>, mut lists: Vec<Peekable<Extents>>, holes: &mut Holes) {
    let mut marks = Marks::none();
    let mut cut: Vec<Extent> = Vec::new();
    let mut start = window.start;
    while start < window.end {
        let stretch = start..start.saturating_add(STRETCH_BYTES).min(window.end);
        marks.clear((stretch.end - stretch.start) as usize);
        // What is longer than this stretch goes on in the next.
        let mut set = |extent: &Extent| {
            let from = extent.offset.max(stretch.start) - stretch.start;
            marks.set(from as usize..(extent.end().min(stretch.end) - stretch.start) as usize);
            extent.end() > stretch.end
        };
        cut.retain(&mut set);
        lists.retain_mut(|list| {
            while let Some(extent) = list.next_if(|extent| extent.offset < stretch.end) {
                if set(&extent) {
                    cut.push(extent);
                }
            }
            list.peek().is_some()
        });
        let mut from = 0;
        while let Some(touched) = marks.next(from) {
            from = touched.end;
            holes.touch(stretch.start + touched.start as i64..stretch.start + touched.end as i64);
        }
        start = stretch.end;
    }
}

/// A mark for each byte of a stretch.
struct Marks {
    words: Vec<u64>,
    len: usize,
}

impl Marks {
    fn none() -> Marks {
        Marks { words: Vec::new(), len: 0 }
    }

    /// For so many bytes from now on, of which none is marked.
    fn clear(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
    }

    /// Marks bytes; `bytes` is not empty.
    fn set(&mut self, bytes: Range<usize>) {
        let (first, last) = (bytes.start / 64, (bytes.end - 1) / 64);
        let (from, to) = (!0 << (bytes.start % 64), !0 >> (63 - (bytes.end - 1) % 64));
        if first == last {
            self.words[first] |= from & to;
            return;
        }
        self.words[first] |= from;
        self.words[first + 1..last].fill(!0);
        self.words[last] |= to;
    }

    /// The first marked bytes in a row from one on.
    fn next(&self, from: usize) -> Option<Range<usize>> {
        let start = self.find(from, 0);
        (start < self.len).then(|| start..self.find(start, !0))
    }

    /// The first byte from one on that is marked; or, if `flipped` is all ones, that is not.
    fn find(&self, from: usize, flipped: u64) -> usize {
        let mut index = from / 64;
        let Some(word) = self.words.get(index) else { return self.len };
        let mut word = (word ^ flipped) & (!0 << (from % 64));
        while word == 0 {
            index += 1;
            let Some(next) = self.words.get(index) else { return self.len };
            word = next ^ flipped;
        }
        (64 * index + word.trailing_zeros() as usize).min(self.len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holes_of(
        window: &Range<i64>,
        found: impl Fn(Vec<Peekable<Extents>>, &mut Holes),
        layouts: &[Layout],
    ) -> Vec<Layout> {
        let mut list = Vec::new();
        let mut holes = Holes { end: window.start, found: &mut list };
        let lists = layouts
            .iter()
            .map(|layout| layout.clip(window.start, window.end).extents(0..u64::MAX).peekable());
        found(lists.collect(), &mut holes);
        holes.touch(window.end..window.end);
        list
    }

    proptest! {
        #[test]
        fn marked_or_sorted_the_holes_are_the_same(
            window in (0i64..300, 0i64..400).prop_map(|(start, len)| start..start + len),
            rows in proptest::collection::vec((0i64..500, 1u64..80, 0i64..90, 1u64..8), 0..6),
        ) {
            let layout = |&(offset, len, gap, count): &(i64, u64, i64, u64)| {
                Layout::strided(count, len as i64 + gap, Layout::bytes(len)).unwrap().shifted(offset).unwrap()
            };
            let layouts: Vec<Layout> = rows.iter().map(layout).collect();
            let marked = holes_of(&window, |lists, holes| mark(&window, lists, holes), &layouts);
            let sorted = holes_of(&window, |lists, holes| sort(&window, lists, holes), &layouts);
            prop_assert_eq!(marked, sorted);
        }
    }

    /// One extent over several stretches, and a hole over the border of two.
    #[test]
    fn stretches_are_one_window() {
        let window = 5..5 + 4 * STRETCH_BYTES;
        let long = Layout::bytes(2 * STRETCH_BYTES as u64 + 70).shifted(9).unwrap();
        let last = Layout::bytes(3).shifted(window.end - 3).unwrap();
        let layouts = [long, last];
        let marked = holes_of(&window, |lists, holes| mark(&window, lists, holes), &layouts);
        let bounds: Vec<_> = marked.iter().map(|hole| hole.lower_bound()..hole.upper_bound()).collect();
        assert_eq!(bounds, [5..9, 9 + 2 * STRETCH_BYTES + 70..window.end - 3]);
    }
}
