//! The holes that layouts leave, extent by extent: exact, whatever there is.

use std::iter::Peekable;
use std::ops::Range;

use super::block;
use super::marks::{Marks, are_marked};
use crate::layout::Layout;
use crate::runs::{Extent, Extents};

/// Where extents are sorted, about so many at a time: what fits a processor's cache.
const FEW_EXTENTS: usize = 1 << 12;
const MANY_EXTENTS: usize = 1 << 14;

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
    let mut holes = Holes::of(window);
    if are_marked(window, pieces) {
        mark(window, lists, &mut holes);
    } else {
        sort(window, lists, &mut holes);
    }
    found.extend(holes.all(window).into_iter().map(block));
}

/// Goes through what is touched, in order, and finds the holes between.
struct Holes {
    /// Up to where all is known.
    end: i64,
    found: Vec<Extent>,
}

impl Holes {
    fn of(window: &Range<i64>) -> Holes {
        Holes { end: window.start, found: Vec::new() }
    }

    fn touch(&mut self, touched: Range<i64>) {
        if touched.start > self.end {
            self.found.push(Extent { offset: self.end, len: (touched.start - self.end) as u64 });
        }
        self.end = self.end.max(touched.end);
    }

    /// What is marked of a stretch that begins at `start`.
    fn touch_marked(&mut self, start: i64, marks: &Marks) {
        let mut from = 0;
        while let Some(touched) = marks.next(from) {
            from = touched.end;
            self.touch(start + touched.start as i64..start + touched.end as i64);
        }
    }

    /// All of the window.
    fn all(mut self, window: &Range<i64>) -> Vec<Extent> {
        self.touch(window.end..window.end);
        self.found
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
        holes.touch_marked(stretch.start, &marks);
        start = stretch.end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holes_of(
        window: &Range<i64>,
        find: impl Fn(&Range<i64>, Vec<Peekable<Extents>>, &mut Holes),
        layouts: &[Layout],
    ) -> Vec<Extent> {
        let mut holes = Holes::of(window);
        let inside = layouts.iter().map(|layout| layout.clip(window.start, window.end));
        find(window, inside.map(|layout| layout.extents(0..u64::MAX).peekable()).collect(), &mut holes);
        holes.all(window)
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
            let marked = holes_of(&window, mark, &layouts);
            let sorted = holes_of(&window, sort, &layouts);
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
        let marked = holes_of(&window, mark, &layouts);
        let bounds: Vec<_> = marked.iter().map(|hole| hole.offset..hole.end()).collect();
        assert_eq!(bounds, [5..9, 9 + 2 * STRETCH_BYTES + 70..window.end - 3]);
    }
}
