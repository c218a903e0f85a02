//! Walking a layout: strided runs, and merged extents.

use std::iter::FusedIterator;
use std::ops::Range;

use crate::layout::{Kind, Layout, part_at};

/// A run of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Offset of the first byte.
    pub offset: i64,
    /// Number of bytes.
    pub len: u64,
}

impl Extent {
    /// One past the last byte.
    pub fn end(&self) -> i64 {
        self.offset + self.len as i64
    }
}

/// Equal pieces at equal distances: `count` pieces of `len` bytes, the k-th at `offset` + k × `stride`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    /// Offset of the first byte of the first piece.
    pub offset: i64,
    /// Bytes in a piece.
    pub len: u64,
    /// Distance from one piece to the next in bytes; 0 if there is only one.
    pub stride: i64,
    /// Number of pieces, at least 1.
    pub count: u64,
}

impl Run {
    /// Data bytes in all pieces.
    pub fn size(&self) -> u64 {
        self.len * self.count
    }

    /// The pieces, in order.
    pub fn pieces(self) -> impl ExactSizeIterator<Item = Extent> {
        // More than usize::MAX pieces exist on no 64-bit machine.
        (0..self.count as usize)
            .map(move |index| Extent { offset: self.offset + index as i64 * self.stride, len: self.len })
    }
}

impl From<Extent> for Run {
    fn from(extent: Extent) -> Run {
        Run { offset: extent.offset, len: extent.len, stride: 0, count: 1 }
    }
}

impl Layout {
    /// The strided runs of the data bytes `positions`, in data order; O(depth) each, and to start.
    ///
    /// A piece of which only a part is asked for is its own run. Positions past the end are left out.
    pub fn runs(&self, positions: Range<u64>) -> Runs {
        let end = positions.end.min(self.size());
        Runs { layout: self.clone(), position: positions.start.min(end), end }
    }

    /// The extents of the data bytes `positions`, in data order, adjacent ones merged.
    pub fn extents(&self, positions: Range<u64>) -> Extents {
        Extents { runs: self.runs(positions), run: None, last: None }
    }

    /// The longest run that starts at `position` and ends at `end` at the latest; `position < end <= size`.
    fn run_at(&self, position: u64, end: u64) -> Run {
        let left = end - position;
        let (mut offset, mut position, mut shape) = (self.offset, position, &self.shape);
        let single = |offset: i64, len: u64| Run { offset, len: len.min(left), stride: 0, count: 1 };
        loop {
            match &shape.kind {
                Kind::Block => return single(offset + position as i64, shape.size - position),
                Kind::Strided { count, stride, inner } => {
                    let index = position / inner.size;
                    offset += index as i64 * stride;
                    position -= index * inner.size;
                    let whole = (count - index).min(left / inner.size);
                    if position == 0 && whole >= 2 && matches!(inner.kind, Kind::Block) {
                        return Run { offset, len: inner.size, stride: *stride, count: whole };
                    }
                    shape = inner;
                }
                Kind::Indexed { displacements, inner } => {
                    let index = position / inner.size;
                    offset += displacements[index as usize];
                    position -= index * inner.size;
                    shape = inner;
                }
                Kind::Blocks { blocks, starts } => {
                    let index = part_at(starts, position);
                    let (start, len) = blocks[index];
                    position -= starts[index];
                    return single(offset + start + position as i64, len - position);
                }
                Kind::Sequence { parts, starts } => {
                    let index = part_at(starts, position);
                    offset += parts[index].offset;
                    position -= starts[index];
                    shape = &parts[index].shape;
                }
            }
        }
    }
}

/// Iterator over the strided runs of a part of a layout: see [`Layout::runs`].
#[derive(Debug, Clone)]
pub struct Runs {
    layout: Layout,
    position: u64,
    end: u64,
}

impl Runs {
    /// The position of the first data byte not yet returned.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.position >= self.end {
            return None;
        }
        let run = self.layout.run_at(self.position, self.end);
        self.position += run.size();
        Some(run)
    }
}

impl FusedIterator for Runs {}

/// Iterator over the merged extents of a part of a layout: see [`Layout::extents`].
#[derive(Debug, Clone)]
pub struct Extents {
    runs: Runs,
    run: Option<Run>,
    last: Option<Extent>,
}

impl Extents {
    fn next_piece(&mut self) -> Option<Extent> {
        let mut run = match self.run.take() {
            Some(run) => run,
            None => self.runs.next()?,
        };
        let piece = Extent { offset: run.offset, len: run.len };
        run.count -= 1;
        if run.count > 0 {
            run.offset += run.stride;
            self.run = Some(run);
        }
        Some(piece)
    }
}

impl Iterator for Extents {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        loop {
            let Some(piece) = self.next_piece() else { return self.last.take() };
            match &mut self.last {
                Some(last) if last.end() == piece.offset => last.len += piece.len,
                _ => match self.last.replace(piece) {
                    Some(done) => return Some(done),
                    None => continue,
                },
            }
        }
    }
}

impl FusedIterator for Extents {}
