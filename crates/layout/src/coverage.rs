//! Which bytes of a window nobody touches, and which somebody does.
//!
//! A two-phase aggregator must know whether the pieces of all ranks cover its window: if not, it has to read before
//! it writes. The pieces of P ranks usually interleave with one period, so the answer for one period, which costs
//! O(P log P), is the answer for all. Only what has no period in common, at most a quarter of the window, is merged
//! extent by extent: so keep windows to the size of a buffer where layouts come from anywhere.
//!
//! Of many ranks, each has few pieces in a window, and to make layouts of them takes longer than the answer: their bytes are
//! marked, and if no mark is missing there are no holes.

mod marks;
mod merge;

use std::ops::Range;

use crate::layout::{Kind, Layout, Shape};
use crate::runs::Extent;
use crate::striping::gcd;
use crate::view::View;
use marks::show_no_hole;
use merge::merge;

/// How often a window is cut in parts to find periods in them; then they are merged. Halving would need 64 at most, but cuts
/// are made where layouts change.
const MOST_CUTS: u32 = 64;

/// Layouts of up to so many pieces each are merged at once: to look for periods takes longer.
const FEW_PIECES: u64 = 64;

/// The bytes of `window` (file offsets) that none of `parts` (positions of views) touches, as a monotone layout.
///
/// Parts may overlap. A window beyond `i64::MAX` is cut to it.
pub fn holes(window: Range<u64>, parts: &[(&View, Range<u64>)]) -> Layout {
    let window = clamp(window.start)..clamp(window.end);
    if show_no_hole(&window, parts) {
        return Layout::empty();
    }
    holes_of_layouts(window.clone(), within(&window, parts))
}

/// True if every byte of `window` is touched by one of `parts`.
pub fn covers(window: Range<u64>, parts: &[(&View, Range<u64>)]) -> bool {
    let window = clamp(window.start)..clamp(window.end);
    let layouts = within(&window, parts);
    let touched: u128 = layouts.iter().map(|layout| layout.size() as u128).sum();
    let len = (window.end - window.start).max(0) as u128;
    len == 0
        || touched >= len
            && (layouts.iter().any(|layout| layout.is_dense() && layout.size() as u128 == len)
                || holes_of_layouts(window, layouts).is_empty())
}

/// The bytes that at least one of `parts` touches, as a monotone layout.
///
/// Parts may overlap. What lies beyond `i64::MAX` is left out.
pub fn union(parts: &[(&View, Range<u64>)]) -> Layout {
    let layouts = within(&(0..i64::MAX), parts);
    let start = layouts.iter().map(Layout::lower_bound).min().unwrap_or(0);
    let end = layouts.iter().map(Layout::upper_bound).max().unwrap_or(start);
    holes_of_layouts(start..end, vec![holes_of_layouts(start..end, layouts)])
}

/// The bytes of `window` that none of the monotone `layouts` touches, as a monotone layout.
pub fn holes_of_layouts(window: Range<i64>, layouts: Vec<Layout>) -> Layout {
    let mut found = Vec::new();
    search(&window, layouts.clone(), MOST_CUTS, &mut found);
    let found = found.into_iter().map(|layout| (0, layout)).collect();
    // What lies inside the window fits; only nesting may be too deep, and a list never is.
    Layout::sequence(found).unwrap_or_else(|_| {
        let mut merged = Vec::new();
        merge(&window, layouts, &mut merged);
        let blocks = merged.iter().map(|hole| (hole.lower_bound(), hole.size())).collect();
        Layout::blocks(blocks).unwrap_or_else(|_| Layout::empty())
    })
}

fn within(window: &Range<i64>, parts: &[(&View, Range<u64>)]) -> Vec<Layout> {
    let inside = |(view, positions): &(&View, Range<u64>)| {
        let end = positions.end.min(view.limit());
        let file = window.start as u64..window.end as u64;
        view.layout_of(view.positions_within(positions.start..end, file)).ok()
    };
    parts.iter().filter_map(inside).filter(|layout| !layout.is_empty()).collect()
}

/// Appends the holes in `window`, in order, after at most so many cuts one inside the other.
fn search(window: &Range<i64>, layouts: Vec<Layout>, cuts: u32, found: &mut Vec<Layout>) {
    if window.start >= window.end {
        return;
    }
    let (mut blocks, mut strided) = (Vec::new(), Vec::new());
    for layout in layouts {
        sort_out(window, layout, &mut blocks, &mut strided);
    }
    let gaps = gaps(window, blocks.into_iter());
    if strided.is_empty() || gaps.is_empty() {
        return found.extend(gaps.into_iter().map(block));
    }
    let mut left = Vec::new();
    search_strided(window, strided, cuts, &mut left);
    if gaps.len() == 1 && gaps[0].offset == window.start && gaps[0].end() == window.end {
        return found.append(&mut left);
    }
    // Both lists are in order: each gap meets a stretch of the other.
    let mut start = 0;
    for gap in gaps {
        while left.get(start).is_some_and(|hole| hole.upper_bound() <= gap.offset) {
            start += 1;
        }
        for hole in left[start..].iter().take_while(|hole| hole.lower_bound() < gap.end()) {
            let part = hole.clip(gap.offset, gap.end());
            if !part.is_empty() {
                found.push(part);
            }
        }
    }
}

/// Takes `layout` apart, cut to the window, into blocks and what is strided with at least a few periods in it.
fn sort_out(window: &Range<i64>, layout: Layout, blocks: &mut Vec<Extent>, strided: &mut Vec<Layout>) {
    let layout = layout.clip(window.start, window.end);
    let Layout { offset, shape } = &layout;
    let mut child = |offset: i64, shape: &std::sync::Arc<_>| {
        sort_out(window, Layout { offset, shape: std::sync::Arc::clone(shape) }, blocks, strided);
    };
    match &shape.kind {
        Kind::Block if shape.size == 0 => {}
        Kind::Block => blocks.push(Extent { offset: *offset, len: shape.size }),
        Kind::Strided { count, stride, inner } => {
            if *count <= 4 && *stride > (window.end - window.start) / 8 {
                (0..*count as i64).for_each(|index| child(offset + index * stride, inner));
            } else {
                strided.push(layout);
            }
        }
        Kind::Indexed { displacements, inner } => {
            displacements.iter().for_each(|displacement| child(offset + displacement, inner));
        }
        Kind::Blocks { blocks: list, .. } => {
            blocks.extend(list.iter().map(|&(start, len)| Extent { offset: offset + start, len }));
        }
        Kind::Sequence { parts, .. } => {
            parts.iter().for_each(|part| child(offset + part.offset, &part.shape));
        }
    }
}

/// Appends the holes that strided layouts leave in `window`.
fn search_strided(window: &Range<i64>, layouts: Vec<Layout>, cuts: u32, found: &mut Vec<Layout>) {
    let len = window.end - window.start;
    if layouts.iter().all(|layout| layout.shape.pieces <= FEW_PIECES) {
        return merge(window, layouts, found);
    }
    let (Some(period), Some(cuts)) = (common_period(&layouts, len / 4), cuts.checked_sub(1)) else {
        return merge(window, layouts, found);
    };
    // Between these ends each layout looks as if it went on for ever.
    let start = layouts.iter().map(|layout| steady(layout).start).fold(window.start as i128, i128::max);
    let end = layouts.iter().map(|layout| steady(layout).end).fold(window.end as i128, i128::min);
    let count = (end - start).max(0) as u64 / period as u64;
    if count >= 2 {
        let start = start as i64;
        let end = start + count as i64 * period;
        search(&(window.start..start), layouts.clone(), cuts, found);
        let mut one = Vec::new();
        search(&(start..start + period), layouts.clone(), cuts, &mut one);
        let all = Layout::sequence(one.into_iter().map(|layout| (0, layout)).collect())
            .and_then(|one| Layout::strided(count, period, one));
        match all {
            Ok(all) if all.is_empty() => {}
            Ok(all) => found.push(all),
            Err(_) => merge(&(start..end), layouts.clone(), found),
        }
        return search(&(end..window.end), layouts, cuts, found);
    }
    // They do not all go on together: split where most change.
    let ends = layouts.iter().flat_map(|layout| [steady(layout).start, steady(layout).end]);
    let inside = |end: &i128| *end > window.start as i128 && *end < window.end as i128;
    let mut ends: Vec<i64> = ends.filter(inside).map(|end| end as i64).collect();
    ends.sort_unstable();
    // Of two, the first: where a period begins after the rest of one that was cut. Behind it, the next would be cut, too.
    match ends.get(ends.len().saturating_sub(1) / 2) {
        Some(&middle) if len / 8 > period => {
            search(&(window.start..middle), layouts.clone(), cuts, found);
            search(&(middle..window.end), layouts, cuts, found);
        }
        _ => merge(window, layouts, found),
    }
}

/// The least common multiple of all strides, if at most `most`.
fn common_period(layouts: &[Layout], most: i64) -> Option<i64> {
    let mut period = 1i128;
    for layout in layouts {
        let Kind::Strided { stride, .. } = &layout.shape.kind else { return None };
        period = period / gcd(period, *stride as i128) * *stride as i128;
        if period > most as i128 {
            return None;
        }
    }
    Some(period as i64)
}

/// Where a strided layout looks like an endless one: from the gap before it to the gap after it.
fn steady(layout: &Layout) -> Range<i128> {
    let offset = layout.offset as i128;
    match &layout.shape.kind {
        Kind::Strided { count, stride, inner } => {
            offset + inner.upper as i128 - *stride as i128..offset + *count as i128 * *stride as i128
        }
        _ => offset..offset + layout.shape.upper as i128,
    }
}

/// The parts of `window` outside all `blocks`, which may overlap, in any order.
fn gaps(window: &Range<i64>, blocks: impl Iterator<Item = Extent>) -> Vec<Extent> {
    let mut blocks: Vec<Extent> = blocks.collect();
    blocks.sort_unstable();
    let mut gaps = Vec::new();
    let mut end = window.start;
    for block in blocks {
        if block.offset > end {
            gaps.push(Extent { offset: end, len: (block.offset - end) as u64 });
        }
        end = end.max(block.end());
    }
    if end < window.end {
        gaps.push(Extent { offset: end, len: (window.end - end) as u64 });
    }
    gaps
}

fn block(extent: Extent) -> Layout {
    Layout { offset: extent.offset, shape: Shape::block(extent.len) }
}

fn clamp(offset: u64) -> i64 {
    offset.min(i64::MAX as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each cut once went through the middle of a period, so that the next piece began with the rest of one: cuts were as
    /// deep as there are periods, and the stack ran over.
    #[test]
    fn rests_of_periods_do_not_come_back_with_every_cut() {
        let count = 200_000_i64;
        let rest = Layout::strided(2, 8, Layout::bytes(4)).unwrap();
        let period = Layout::blocks(vec![(0, 8), (12, 4)]).unwrap();
        let all = Layout::strided(count as u64, 16, period).unwrap();
        let both = Layout::sequence(vec![(0, rest), (12, all)]).unwrap();
        let window = 0..12 + 16 * count;
        let found = holes_of_layouts(window.clone(), vec![both.clone()]);
        assert_eq!(found.size() + both.size(), (window.end - window.start) as u64);
        assert!(holes_of_layouts(window, vec![both, found]).is_empty());
    }
}
