//! Cutting a layout, symbolically: a range of positions, or an interval of offsets.

use std::ops::Range;
use std::sync::Arc;

use crate::error::LayoutError;
use crate::layout::{Kind, Layout, Shape, part_at};

impl Layout {
    /// The data bytes `positions` as a layout of their own, offsets unchanged.
    ///
    /// A strided layout becomes a cut first piece, the strided middle and a cut last piece. Positions past the end
    /// are left out.
    pub fn slice(&self, positions: Range<u64>) -> Layout {
        let end = positions.end.min(self.size());
        if positions.start >= end {
            return Layout::empty();
        }
        if positions.start == 0 && end == self.size() {
            return self.clone();
        }
        // A part of what fits always fits, and is at most one sequence deeper.
        cut(self.offset, &self.shape, positions.start..end).unwrap_or_else(|_| self.listed(positions))
    }

    /// The bytes that lie in the interval from `from` up to, not including, `to`, as a layout.
    ///
    /// Only for [monotone](Layout::is_monotone) layouts; for others the answer is some slice.
    pub fn clip(&self, from: i64, to: i64) -> Layout {
        self.slice(self.position_at_or_after(from)..self.position_at_or_after(to))
    }

    /// The same bytes as an explicit list, for what is nested too deeply to be cut.
    fn listed(&self, positions: Range<u64>) -> Layout {
        let blocks = self.extents(positions).map(|extent| (extent.offset, extent.len)).collect();
        Layout::blocks(blocks).unwrap_or_else(|_| Layout::empty())
    }
}

/// The bytes `range` of `shape` at `offset`; not empty, within the shape.
fn cut(offset: i64, shape: &Arc<Shape>, range: Range<u64>) -> Result<Layout, LayoutError> {
    if range == (0..shape.size) {
        return Layout::placed(offset, shape.clone());
    }
    match &shape.kind {
        Kind::Block => Layout::placed(offset + range.start as i64, Shape::block(range.end - range.start)),
        Kind::Strided { stride, inner, .. } => cut_tiles(offset, *stride, inner, range),
        Kind::Indexed { displacements, inner } => {
            let (first, last) = (range.start / inner.size, (range.end - 1) / inner.size);
            let start_of = |index: u64| index * inner.size;
            let piece = |index: u64| {
                let from = range.start.max(start_of(index)) - start_of(index);
                let to = range.end.min(start_of(index + 1)) - start_of(index);
                cut(offset + displacements[index as usize], inner, from..to)
            };
            if first == last {
                return piece(first);
            }
            // The first and last may be cut; those between are whole.
            let middle = &displacements[first as usize + 1..last as usize];
            let middle = Layout::indexed(middle.to_vec(), Layout::placed(0, inner.clone())?)?;
            Layout::sequence(vec![(0, piece(first)?), (offset, middle), (0, piece(last)?)])
        }
        Kind::Blocks { blocks, starts } => {
            let (first, last) = (part_at(starts, range.start), part_at(starts, range.end - 1));
            let mut kept = blocks[first..=last].to_vec();
            for block in &mut kept {
                block.0 += offset;
            }
            // The end first: the first and the last block may be the same.
            kept[last - first].1 = range.end - starts[last];
            let skipped = range.start - starts[first];
            kept[0].0 += skipped as i64;
            kept[0].1 -= skipped;
            Layout::blocks(kept)
        }
        Kind::Sequence { parts, starts } => {
            let (first, last) = (part_at(starts, range.start), part_at(starts, range.end - 1));
            let mut kept = Vec::with_capacity(last - first + 1);
            for index in first..=last {
                let (part, start) = (&parts[index], starts[index]);
                let from = range.start.max(start) - start;
                let to = range.end.min(start + part.size()) - start;
                kept.push((0, cut(offset + part.offset, &part.shape, from..to)?));
            }
            Layout::sequence(kept)
        }
    }
}

/// The bytes `range` of copies of `inner` at `offset`, `offset + stride`, … without end. Not empty; the caller vouches
/// that what is asked for fits.
pub(crate) fn cut_tiles(
    offset: i64,
    stride: i64,
    inner: &Arc<Shape>,
    range: Range<u64>,
) -> Result<Layout, LayoutError> {
    let (first, last) = (range.start / inner.size, (range.end - 1) / inner.size);
    let piece = |index: u64| {
        let start = index * inner.size;
        let to = (range.end - start).min(inner.size);
        cut(offset + index as i64 * stride, inner, range.start.max(start) - start..to)
    };
    if first == last {
        return piece(first);
    }
    let (head_is_whole, tail_is_whole) =
        (range.start.is_multiple_of(inner.size), range.end.is_multiple_of(inner.size));
    let (whole_first, whole_end) = (first + u64::from(!head_is_whole), last + u64::from(tail_is_whole));
    let mut parts = Vec::with_capacity(3);
    if !head_is_whole {
        parts.push((0, piece(first)?));
    }
    if whole_first < whole_end {
        let at = offset + whole_first as i64 * stride;
        parts
            .push((at, Layout::strided(whole_end - whole_first, stride, Layout::placed(0, inner.clone())?)?));
    }
    if !tail_is_whole {
        parts.push((0, piece(last)?));
    }
    Layout::sequence(parts)
}
