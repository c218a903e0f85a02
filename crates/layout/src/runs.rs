//! Walking a layout: strided runs, and merged extents.

use std::iter::FusedIterator;
use std::ops::Range;
use std::sync::Arc;

use crate::layout::{Kind, Layout, Shape, part_at};

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
        let position = positions.start.min(end);
        let leaf = self.shape.clone();
        let path = Vec::new();
        let mut runs =
            Runs { layout: self.clone(), position, end, path, leaf, base: 0, index: 0, skipped: 0 };
        if position < end {
            runs.seek();
        }
        runs
    }

    /// The extents of the data bytes `positions`, in data order, adjacent ones merged.
    pub fn extents(&self, positions: Range<u64>) -> Extents {
        Extents { runs: self.runs(positions), run: None, last: None }
    }
}

/// Iterator over the strided runs of a part of a layout: see [`Layout::runs`].
///
/// Keeps the way down to the next piece, so that a step divides and searches nothing.
#[derive(Debug, Clone)]
pub struct Runs {
    layout: Layout,
    position: u64,
    end: u64,
    /// From the root down to the leaf: which child the way takes, and how many there are.
    path: Vec<(u64, u64)>,
    /// The node that holds the next piece itself: a block, or a node whose children are blocks.
    leaf: Arc<Shape>,
    /// Offset of the leaf.
    base: i64,
    /// Which piece of the leaf comes next.
    index: u64,
    /// Bytes of that piece that lie before `position`.
    skipped: u64,
}

impl Runs {
    /// The position of the first data byte not yet returned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Finds the way down to `position`, which must be within the layout.
    fn seek(&mut self) {
        let mut position = self.position;
        let mut shape = &self.layout.shape;
        while !shape.is_leaf() {
            let (index, start, inner) = match &shape.kind {
                Kind::Strided { inner, .. } | Kind::Indexed { inner, .. } => {
                    let index = position / inner.size;
                    (index, index * inner.size, inner)
                }
                Kind::Sequence { parts, starts } => {
                    let index = part_at(starts, position);
                    (index as u64, starts[index], &parts[index].shape)
                }
                Kind::Block | Kind::Blocks { .. } => break,
            };
            self.path.push((index, shape.children()));
            position -= start;
            shape = inner;
        }
        (self.index, self.skipped) = match &shape.kind {
            Kind::Strided { inner, .. } | Kind::Indexed { inner, .. } => {
                (position / inner.size, position % inner.size)
            }
            Kind::Blocks { starts, .. } => {
                let index = part_at(starts, position);
                (index as u64, position - starts[index])
            }
            Kind::Block | Kind::Sequence { .. } => (0, position),
        };
        self.descend();
    }

    /// Follows the path down to its leaf, and where it ends early, the first children.
    fn descend(&mut self) {
        self.base = self.layout.offset;
        let mut shape = &self.layout.shape;
        let mut level = 0;
        while !shape.is_leaf() {
            if level == self.path.len() {
                self.path.push((0, shape.children()));
            }
            let index = self.path[level].0;
            level += 1;
            shape = match &shape.kind {
                Kind::Strided { stride, inner, .. } => {
                    self.base += index as i64 * stride;
                    inner
                }
                Kind::Indexed { displacements, inner } => {
                    self.base += displacements[index as usize];
                    inner
                }
                Kind::Sequence { parts, .. } => {
                    self.base += parts[index as usize].offset;
                    &parts[index as usize].shape
                }
                Kind::Block | Kind::Blocks { .. } => break,
            };
        }
        // The next leaf is often the last one, elsewhere: then spare the reference counts.
        if !Arc::ptr_eq(&self.leaf, shape) {
            self.leaf = shape.clone();
        }
    }

    /// Goes on to the next leaf, if there is one.
    #[inline(never)]
    fn next_leaf(&mut self) {
        self.index = 0;
        while let Some((index, count)) = self.path.last_mut() {
            *index += 1;
            if *index < *count {
                return self.descend();
            }
            self.path.pop();
        }
    }
}

impl Shape {
    /// True for a block, and for nodes whose children all are blocks.
    fn is_leaf(&self) -> bool {
        match &self.kind {
            Kind::Block | Kind::Blocks { .. } => true,
            Kind::Strided { inner, .. } | Kind::Indexed { inner, .. } => matches!(inner.kind, Kind::Block),
            Kind::Sequence { .. } => false,
        }
    }

    /// How many children there are; a block is its own.
    pub(crate) fn children(&self) -> u64 {
        match &self.kind {
            Kind::Block => 1,
            Kind::Strided { count, .. } => *count,
            Kind::Indexed { displacements, .. } => displacements.len() as u64,
            Kind::Blocks { blocks, .. } => blocks.len() as u64,
            Kind::Sequence { parts, .. } => parts.len() as u64,
        }
    }
}

impl Iterator for Runs {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        if self.position >= self.end {
            return None;
        }
        let left = self.end - self.position;
        let (offset, len, children) = match &self.leaf.kind {
            Kind::Block | Kind::Sequence { .. } => (0, self.leaf.size, 1),
            Kind::Indexed { displacements, inner } => {
                (displacements[self.index as usize], inner.size, displacements.len())
            }
            Kind::Blocks { blocks, .. } => {
                let (offset, len) = blocks[self.index as usize];
                (offset, len, blocks.len())
            }
            Kind::Strided { count, stride, inner } => {
                let offset = self.index as i64 * stride;
                let all = count - self.index;
                let whole = if all * inner.size <= left { all } else { left / inner.size };
                if self.skipped == 0 && whole >= 2 {
                    let run =
                        Run { offset: self.base + offset, len: inner.size, stride: *stride, count: whole };
                    self.position += run.size();
                    self.index += whole;
                    if whole == all {
                        self.next_leaf();
                    }
                    return Some(run);
                }
                (offset, inner.size, *count as usize)
            }
        };
        let skipped = self.skipped;
        let len = (len - skipped).min(left);
        let run = Run { offset: self.base + offset + skipped as i64, len, stride: 0, count: 1 };
        self.position += len;
        self.index += 1;
        self.skipped = 0;
        if self.index >= children as u64 {
            self.next_leaf();
        }
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
