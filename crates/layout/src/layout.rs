//! The layout itself: a small immutable tree.
//!
//! A layout is an *offset* and a *shape*. The first data byte of every shape lies at 0, so that shifting is free and
//! equal shapes at different places compare equal and are shared. Hence, walking down a tree, every partial sum is
//! the offset of a byte that the layout touches: what [`Shape::checked`] found to fit always fits.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::error::{LayoutError, overflow};

/// How deeply constructors may be nested. Slicing may wrap one further sequence around.
pub const MAX_DEPTH: usize = 64;

/// A symbolic, ordered, finite set of bytes. Data order is traversal order.
///
/// Built by the constructors in normal form: equal byte sequences, in the common cases, are equal layouts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Offset of the first data byte; 0 if there is none.
    pub(crate) offset: i64,
    pub(crate) shape: Arc<Shape>,
}

/// A layout whose first data byte lies at offset 0.
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    /// Smallest offset touched, at most 0.
    pub(crate) lower: i64,
    /// One past the largest offset touched.
    pub(crate) upper: i64,
    pub(crate) depth: usize,
    pub(crate) monotone: bool,
    /// Blocks in it, as [`Layout::runs`] counts them; what passes 64 bits is cut to them.
    pub(crate) pieces: u64,
}

#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// `size` bytes in one block. The only kind that may be empty.
    Block,
    /// The k-th copy of `inner` lies at k × stride; count ≥ 2.
    Strided { count: u64, stride: i64, inner: Arc<Shape> },
    /// A copy of `inner` at each displacement; the first is 0; at least 3.
    Indexed { displacements: Vec<i64>, inner: Arc<Shape> },
    /// Blocks (offset, len) of different lengths; the i-th starts at position `starts[i]`.
    Blocks { blocks: Vec<(i64, u64)>, starts: Vec<u64> },
    /// Different layouts one after the other; the i-th starts at position `starts[i]`.
    Sequence { parts: Vec<Layout>, starts: Vec<u64> },
}

impl Layout {
    /// One block of `len` bytes at offset 0. A `len` of 0 is the empty layout.
    ///
    /// A `len` above `i64::MAX`, which no file or memory can hold, is cut to it.
    pub fn bytes(len: u64) -> Layout {
        Layout { offset: 0, shape: Shape::block(len.min(i64::MAX as u64)) }
    }

    /// This layout, moved by `by` bytes.
    pub fn shifted(&self, by: i64) -> Result<Layout, LayoutError> {
        if self.shape.size == 0 {
            return Ok(self.clone());
        }
        match self.offset.checked_add(by) {
            Some(offset) => Layout::placed(offset, self.shape.clone()),
            None => overflow("an offset"),
        }
    }

    /// Number of data bytes.
    pub fn size(&self) -> u64 {
        self.shape.size
    }

    /// True if there is no data byte.
    pub fn is_empty(&self) -> bool {
        self.shape.size == 0
    }

    /// Smallest offset touched; 0 if empty.
    pub fn lower_bound(&self) -> i64 {
        self.offset + self.shape.lower
    }

    /// One past the largest offset touched; 0 if empty.
    pub fn upper_bound(&self) -> i64 {
        self.offset + self.shape.upper
    }

    /// Levels of nesting; 0 for one block.
    pub fn depth(&self) -> usize {
        self.shape.depth
    }

    /// True if this is one contiguous block, in order (or empty).
    pub fn is_dense(&self) -> bool {
        matches!(self.shape.kind, Kind::Block)
    }

    /// True if offsets strictly increase along data order, so that no byte occurs twice: what a file view needs.
    pub fn is_monotone(&self) -> bool {
        self.shape.monotone
    }

    /// Offset of the data byte at `position`; `None` at or past the end. O(depth), O(log n) in a list of n.
    pub fn offset_of(&self, position: u64) -> Option<i64> {
        if position >= self.shape.size {
            return None;
        }
        let (mut offset, mut position, mut shape) = (self.offset, position, &self.shape);
        loop {
            match &shape.kind {
                Kind::Block => return Some(offset + position as i64),
                Kind::Strided { stride, inner, .. } => {
                    offset += (position / inner.size) as i64 * stride;
                    position %= inner.size;
                    shape = inner;
                }
                Kind::Indexed { displacements, inner } => {
                    offset += displacements[(position / inner.size) as usize];
                    position %= inner.size;
                    shape = inner;
                }
                Kind::Blocks { blocks, starts } => {
                    let index = part_at(starts, position);
                    return Some(offset + blocks[index].0 + (position - starts[index]) as i64);
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

    /// Number of data bytes that lie before `offset`, which is the position of the first byte at or after it.
    ///
    /// Only for [monotone](Layout::is_monotone) layouts; for others the answer is some position in `0..=size`.
    /// O(depth), O(log n) in a list of n.
    pub fn position_at_or_after(&self, offset: i64) -> u64 {
        // In 128 bits, as `offset` comes from outside and may be far from ours.
        self.shape.position_at_or_after(offset as i128 - self.offset as i128)
    }

    pub(crate) fn empty() -> Layout {
        Layout::bytes(0)
    }

    /// `shape` with its first byte at `offset`.
    pub(crate) fn placed(offset: i64, shape: Arc<Shape>) -> Result<Layout, LayoutError> {
        if shape.size == 0 {
            return Ok(Layout::empty());
        }
        match (offset.checked_add(shape.lower), offset.checked_add(shape.upper)) {
            (Some(_), Some(_)) => Ok(Layout { offset, shape }),
            _ => overflow("an offset"),
        }
    }
}

/// Index of the part that holds `position`, given where the parts start.
pub(crate) fn part_at(starts: &[u64], position: u64) -> usize {
    starts.partition_point(|&start| start <= position) - 1
}

impl Shape {
    pub(crate) fn block(len: u64) -> Arc<Shape> {
        debug_assert!(len <= i64::MAX as u64);
        Arc::new(Shape {
            kind: Kind::Block,
            size: len,
            lower: 0,
            upper: len as i64,
            depth: 0,
            monotone: true,
            pieces: u64::from(len > 0),
        })
    }

    /// The one place where a nested shape comes into being: checks bounds, size and depth.
    pub(crate) fn checked(
        kind: Kind,
        size: i128,
        lower: i128,
        upper: i128,
        depth: usize,
        monotone: bool,
    ) -> Result<Arc<Shape>, LayoutError> {
        const MAX: i128 = i64::MAX as i128;
        // Slicing a nest of depth d cuts it into a sequence of nests of depth d at most.
        let limit = MAX_DEPTH + usize::from(matches!(kind, Kind::Sequence { .. } | Kind::Blocks { .. }));
        if depth > limit {
            return Err(LayoutError::TooDeep { depth, limit });
        }
        if size > MAX {
            return overflow("the size");
        }
        if upper - lower > MAX {
            return overflow("the span");
        }
        let pieces = kind.pieces();
        Ok(Arc::new(Shape {
            kind,
            size: size as u64,
            lower: lower as i64,
            upper: upper as i64,
            depth,
            monotone,
            pieces,
        }))
    }

    fn position_at_or_after(self: &Arc<Shape>, offset: i128) -> u64 {
        let (mut offset, mut shape, mut before) = (offset, self, 0);
        loop {
            if offset <= 0 {
                return before;
            }
            if offset >= shape.upper as i128 {
                return before + shape.size;
            }
            let at = offset as i64;
            match &shape.kind {
                Kind::Block => return before + at as u64,
                Kind::Strided { count, stride, inner } => {
                    // A stride of 0 or less is not monotone, but must do no harm.
                    let index = ((at / (*stride).max(1)) as u64).min(count - 1);
                    before += index * inner.size;
                    offset -= index as i128 * *stride as i128;
                    shape = inner;
                }
                Kind::Indexed { displacements, inner } => {
                    let index = displacements.partition_point(|&start| start <= at).max(1) - 1;
                    before += index as u64 * inner.size;
                    offset -= displacements[index] as i128;
                    shape = inner;
                }
                Kind::Blocks { blocks, starts } => {
                    let index = blocks.partition_point(|&(start, _)| start <= at).max(1) - 1;
                    let (start, len) = blocks[index];
                    return before + starts[index] + (at.saturating_sub(start).max(0) as u64).min(len);
                }
                Kind::Sequence { parts, starts } => {
                    let index = parts.partition_point(|part| part.offset <= at).max(1) - 1;
                    before += starts[index];
                    offset -= parts[index].offset as i128;
                    shape = &parts[index].shape;
                }
            }
        }
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        std::ptr::eq(self, other)
            || (self.size, self.lower, self.upper, self.depth)
                == (other.size, other.lower, other.upper, other.depth)
                && self.kind == other.kind
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.size.hash(state);
        self.kind.hash(state);
    }
}

impl fmt::Debug for Layout {
    /// Writes the tree on one line, such as `12 + 3 × 16 of [4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => self.shape.fmt(f),
            offset => write!(f, "{offset} + {:?}", self.shape),
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Block => write!(f, "[{}]", self.size),
            Kind::Strided { count, stride, inner } => write!(f, "{count} × {stride} of {inner:?}"),
            Kind::Indexed { displacements, inner } => write!(f, "at {displacements:?} of {inner:?}"),
            Kind::Blocks { blocks, .. } => write!(f, "blocks {blocks:?}"),
            Kind::Sequence { parts, .. } => f.debug_list().entries(parts).finish(),
        }
    }
}
