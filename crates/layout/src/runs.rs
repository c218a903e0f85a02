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
        let position = positions.start.min(end);
        let mut runs = Runs { layout: self.clone(), position, end, path: Vec::new(), skipped: 0 };
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
    /// From the root down: which child the way takes, and how many there are. May end early: then it takes the
    /// first child all the way down.
    path: Vec<(u64, u64)>,
    /// Bytes of the next piece that lie before `position`.
    skipped: u64,
}

impl Runs {
    /// The position of the first data byte not yet returned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Finds the way down to `position`, which must be within the layout.
    fn seek(&mut self) {
        let (mut position, mut shape) = (self.position, &self.layout.shape);
        loop {
            let (index, start, inner) = match &shape.kind {
                Kind::Block => break,
                Kind::Strided { inner, .. } | Kind::Indexed { inner, .. } => {
                    let index = position / inner.size;
                    (index, index * inner.size, Some(inner))
                }
                Kind::Blocks { starts, .. } => {
                    let index = part_at(starts, position);
                    (index as u64, starts[index], None)
                }
                Kind::Sequence { parts, starts } => {
                    let index = part_at(starts, position);
                    (index as u64, starts[index], Some(&parts[index].shape))
                }
            };
            self.path.push((index, children(&shape.kind)));
            position -= start;
            match inner {
                Some(inner) => shape = inner,
                None => break,
            }
        }
        self.skipped = position;
    }

    /// The longest run from here, and how many children of the lowest node on the way it takes up.
    #[inline]
    fn run(&mut self) -> (Run, u64) {
        let (skipped, left) = (self.skipped, self.end - self.position);
        let single = |offset: i64, len: u64| {
            let offset = offset + skipped as i64;
            (Run { offset, len: (len - skipped).min(left), stride: 0, count: 1 }, 1)
        };
        let (mut offset, mut shape) = (self.layout.offset, &self.layout.shape);
        for level in 0.. {
            if matches!(shape.kind, Kind::Block) {
                break;
            }
            if level == self.path.len() {
                self.path.push((0, children(&shape.kind)));
            }
            let (index, count) = self.path[level];
            match &shape.kind {
                Kind::Block => break,
                Kind::Strided { stride, inner, .. } => {
                    offset += index as i64 * stride;
                    if skipped == 0 && matches!(inner.kind, Kind::Block) {
                        let all = count - index;
                        let whole = if all * inner.size <= left { all } else { left / inner.size };
                        if whole >= 2 {
                            return (Run { offset, len: inner.size, stride: *stride, count: whole }, whole);
                        }
                    }
                    shape = inner;
                }
                Kind::Indexed { displacements, inner } => {
                    offset += displacements[index as usize];
                    shape = inner;
                }
                Kind::Blocks { blocks, .. } => {
                    let (start, len) = blocks[index as usize];
                    return single(offset + start, len);
                }
                Kind::Sequence { parts, .. } => {
                    let part = &parts[index as usize];
                    offset += part.offset;
                    shape = &part.shape;
                }
            }
        }
        single(offset, shape.size)
    }

    /// Takes the way past `taken` children of the lowest node.
    #[inline]
    fn advance(&mut self, taken: u64) {
        self.skipped = 0;
        let mut taken = taken;
        while let Some((index, count)) = self.path.last_mut() {
            *index += taken;
            if *index < *count {
                return;
            }
            self.path.pop();
            taken = 1;
        }
    }
}

/// How many children a node has.
fn children(kind: &Kind) -> u64 {
    match kind {
        Kind::Block => 0,
        Kind::Strided { count, .. } => *count,
        Kind::Indexed { displacements, .. } => displacements.len() as u64,
        Kind::Blocks { blocks, .. } => blocks.len() as u64,
        Kind::Sequence { parts, .. } => parts.len() as u64,
    }
}

impl Iterator for Runs {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        if self.position >= self.end {
            return None;
        }
        let (run, taken) = self.run();
        self.position += run.size();
        self.advance(taken);
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
