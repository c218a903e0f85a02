//! The pieces of a part of a layout: how many there are, without walking it; and which, without taking memory.

use std::ops::Range;

use crate::layout::{Kind, Layout, Shape, part_at};
use crate::runs::Extent;

impl Layout {
    /// How many pieces the data bytes `positions` are in: as many as [`Layout::runs`] goes through, where a piece of which only a
    /// part is asked for counts as one. Positions past the end are left out. O(depth), and where different layouts follow one
    /// another, of the number that is asked for.
    pub fn pieces(&self, positions: Range<u64>) -> u64 {
        self.shape.pieces_of(positions.start..positions.end.min(self.size()))
    }
}

impl Kind {
    /// How many pieces all of it has; the shape is not empty.
    pub(crate) fn pieces(&self) -> u64 {
        match self {
            Kind::Block => 1,
            Kind::Strided { count, inner, .. } => count.saturating_mul(inner.pieces),
            Kind::Indexed { displacements, inner } => {
                (displacements.len() as u64).saturating_mul(inner.pieces)
            }
            Kind::Blocks { blocks, .. } => blocks.len() as u64,
            Kind::Sequence { parts, .. } => sum(parts),
        }
    }
}

impl Shape {
    /// How many pieces a part has that lies within the shape.
    pub(crate) fn pieces_of(&self, part: Range<u64>) -> u64 {
        if part.is_empty() {
            return 0;
        }
        if part == (0..self.size) {
            return self.pieces;
        }
        match &self.kind {
            Kind::Block => 1,
            Kind::Strided { inner, .. } | Kind::Indexed { inner, .. } => inner.pieces_of_copies(part),
            Kind::Blocks { starts, .. } => {
                (part_at(starts, part.end - 1) - part_at(starts, part.start)) as u64 + 1
            }
            Kind::Sequence { parts, starts } => {
                let (first, last) = (part_at(starts, part.start), part_at(starts, part.end - 1));
                let inside = |index: usize, from: u64, to: u64| {
                    let (start, shape) = (starts[index], &parts[index].shape);
                    shape.pieces_of(from.max(start) - start..to.min(start + shape.size) - start)
                };
                let head = inside(first, part.start, part.end);
                if first == last {
                    return head;
                }
                let tail = inside(last, part.start, part.end);
                sum(&parts[first + 1..last]).saturating_add(head).saturating_add(tail)
            }
        }
    }

    /// How many pieces a part has of copies of the shape, one after the other without end. It is not empty.
    pub(crate) fn pieces_of_copies(&self, part: Range<u64>) -> u64 {
        let (first, last) = (part.start / self.size, (part.end - 1) / self.size);
        let (from, to) = (part.start - first * self.size, part.end - last * self.size);
        if first == last {
            return self.pieces_of(from..to);
        }
        let between = (last - first - 1).saturating_mul(self.pieces);
        between.saturating_add(self.pieces_of(from..self.size)).saturating_add(self.pieces_of(0..to))
    }
}

impl Shape {
    /// Visits the pieces of a part that lies within the shape, which is put at `offset`, in order.
    fn visit(&self, offset: i64, part: Range<u64>, visit: &mut impl FnMut(Extent)) {
        match &self.kind {
            Kind::Block => {
                let len = part.end.saturating_sub(part.start);
                if len > 0 {
                    visit(Extent { offset: offset + part.start as i64, len });
                }
            }
            Kind::Strided { stride, inner, .. } => {
                inner.visit_copies(|index| offset + index as i64 * stride, part, visit);
            }
            Kind::Indexed { displacements, inner } => {
                inner.visit_copies(|index| offset + displacements[index as usize], part, visit);
            }
            Kind::Blocks { blocks, starts } => {
                for index in part_at(starts, part.start)..blocks.len() {
                    let (start, (displacement, len)) = (starts[index], blocks[index]);
                    if start >= part.end {
                        break;
                    }
                    let (from, to) = (part.start.max(start) - start, (part.end - start).min(len));
                    visit(Extent { offset: offset + displacement + from as i64, len: to - from });
                }
            }
            Kind::Sequence { parts, starts } => {
                for index in part_at(starts, part.start)..parts.len() {
                    let (start, Layout { offset: displacement, shape }) = (starts[index], &parts[index]);
                    if start >= part.end {
                        break;
                    }
                    let (from, to) = (part.start.max(start) - start, (part.end - start).min(shape.size));
                    shape.visit(offset + displacement, from..to, visit);
                }
            }
        }
    }

    /// Visits the pieces of a part of copies of the shape, one after the other without end; `offset_of` says where each copy is.
    /// The shape is not empty.
    pub(crate) fn visit_copies(
        &self,
        offset_of: impl Fn(u64) -> i64,
        part: Range<u64>,
        visit: &mut impl FnMut(Extent),
    ) {
        let mut index = part.start / self.size;
        let mut start = index * self.size;
        while start < part.end {
            let (from, to) = (part.start.max(start) - start, (part.end - start).min(self.size));
            self.visit(offset_of(index), from..to, visit);
            index += 1;
            start += self.size;
        }
    }
}

fn sum(parts: &[Layout]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.shape.pieces))
}
