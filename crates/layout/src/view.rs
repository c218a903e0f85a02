//! A file view: which bytes of a file a process sees (MPI 4.1, section 14.3).
//!
//! The filetype tiles the file without end, so a view is kept as an endless strided: a *unit* and a *period*. Where
//! the filetype itself is strided with a count that fills its extent, its inside is the unit: a 4-byte column of a
//! table is 4 bytes with the period of a row, however many rows the filetype had.

use std::ops::Range;
use std::sync::Arc;

use crate::datatype::Datatype;
use crate::error::{LayoutError, overflow};
use crate::layout::{Kind, Layout, MAX_DEPTH};
use crate::runs::{Extent, Extents, Runs};
use crate::slice::cut_tiles;

/// Displacement, etype and filetype: MPI's view of a file.
///
/// Ranks tell each other views, and each keeps those of many: a copy is the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View(Arc<Tiling>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Tiling {
    displacement: u64,
    etype_size: u64,
    filetype: Datatype,
    /// One tile, or less, at its absolute offset.
    unit: Layout,
    /// Distance from one unit to the next.
    period: i64,
    /// Positions from here on lie (partly) beyond the last offset there is.
    limit: u64,
}

impl View {
    /// `filetype` tiled over the file from byte `displacement` on, accessed in units of `etype_size` bytes.
    ///
    /// # Errors
    /// If the filetype's offsets do not strictly increase, within a tile and from tile to tile; if its first byte
    /// would lie before the file; if its size is not a multiple of the etype's, or the etype is empty.
    pub fn new(displacement: u64, etype_size: u64, filetype: Datatype) -> Result<View, LayoutError> {
        let size = filetype.size();
        if etype_size == 0 || !size.is_multiple_of(etype_size) {
            return Err(LayoutError::Etype { filetype: size, etype: etype_size });
        }
        let layout = filetype.layout();
        if !layout.is_monotone() {
            return Err(LayoutError::NotMonotone { what: "its own bytes are out of order or overlap" });
        }
        if size > 0 && filetype.extent() < layout.shape.upper {
            return Err(LayoutError::NotMonotone { what: "its extent is less than the span of its bytes" });
        }
        let Ok(signed) = i64::try_from(displacement) else { return overflow("the displacement") };
        if size > 0 && signed as i128 + (layout.offset as i128) < 0 {
            return Err(LayoutError::BeforeFile { offset: signed as i128 + layout.offset as i128 });
        }
        let (unit, period) = endless(layout.shifted(signed)?, filetype.extent());
        // So that any part of the view can be written down as a layout.
        if unit.depth() >= MAX_DEPTH {
            return Err(LayoutError::TooDeep { depth: unit.depth(), limit: MAX_DEPTH - 1 });
        }
        let mut tiling = Tiling { displacement, etype_size, filetype, unit, period, limit: u64::MAX };
        tiling.limit = tiling.position_at_or_after(i64::MAX as u64);
        if tiling.offset_of(0) == Some(displacement) && tiling.finite(0..u64::MAX).is_dense() {
            // How long a tile is makes no difference: such views are all written the same.
            tiling.filetype = Datatype::bytes(etype_size);
        }
        Ok(View(Arc::new(tiling)))
    }

    /// The same for a filetype that may be longer than its extent. The bounds of a subarray inside a structure are the
    /// structure's, whatever is before it (MPI 4.1, section 5.1.6). Programs use it once, not as tiles: that is what the view
    /// shows.
    ///
    /// # Errors
    /// As [`View::new`].
    pub fn of_filetype(displacement: u64, etype_size: u64, filetype: Datatype) -> Result<View, LayoutError> {
        let layout = filetype.layout();
        let span = layout.upper_bound() - layout.lower_bound();
        let is_too_short = layout.is_monotone() && filetype.extent() < span;
        let filetype = if is_too_short { once(displacement, &filetype)? } else { filetype };
        View::new(displacement, etype_size, filetype)
    }

    /// All bytes of the file from `displacement` on.
    ///
    /// A displacement above `i64::MAX`, which no file has, is cut to it.
    pub fn contiguous(displacement: u64) -> View {
        let displacement = displacement.min(i64::MAX as u64 - 1);
        let unit = Layout { offset: displacement as i64, shape: Layout::bytes(1).shape };
        let limit = i64::MAX as u64 - displacement;
        let filetype = Datatype::bytes(1);
        View(Arc::new(Tiling { displacement, etype_size: 1, filetype, unit, period: 1, limit }))
    }

    /// File offset where the first tile is put, in bytes.
    pub fn displacement(&self) -> u64 {
        self.0.displacement
    }

    /// Size of the unit of access in bytes.
    pub fn etype_size(&self) -> u64 {
        self.0.etype_size
    }

    /// What is tiled over the file.
    pub fn filetype(&self) -> &Datatype {
        &self.0.filetype
    }

    /// Number of positions that have an offset below `i64::MAX`: all functions leave out what lies past it.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Absolute file offset of the data byte at `position`; `None` if the filetype is empty or past
    /// [`View::limit`].
    pub fn offset_of(&self, position: u64) -> Option<u64> {
        self.0.offset_of(position)
    }

    /// Number of data bytes that lie before file offset `offset`. O(depth).
    pub fn position_at_or_after(&self, offset: u64) -> u64 {
        self.0.position_at_or_after(offset)
    }

    /// How far further on in the file what begins at position `to` lies than what begins at `from`, if it lies alike there: if whole
    /// tiles are between them.
    pub fn shift(&self, from: u64, to: u64) -> Option<i64> {
        let Tiling { unit, period, .. } = &*self.0;
        let tiles = (to as i128 - from as i128) / i128::from(unit.size().max(1));
        let is_whole = tiles * i128::from(unit.size()) == to as i128 - from as i128;
        i64::try_from(tiles * i128::from(*period)).ok().filter(|_| is_whole)
    }

    /// Those of `positions` whose bytes lie in the interval `file` of file offsets: the intersection, symbolically.
    pub fn positions_within(&self, positions: Range<u64>, file: Range<u64>) -> Range<u64> {
        let start = positions.start.max(self.position_at_or_after(file.start));
        let end = positions.end.min(self.position_at_or_after(file.end));
        start..end.max(start)
    }

    /// The strided runs of the data bytes `positions`, at absolute file offsets; O(depth) each.
    ///
    /// A filetype that is one piece, or continues from tile to tile, gives one long run.
    pub fn runs(&self, positions: Range<u64>) -> Runs {
        self.0.finite(positions).runs(0..u64::MAX)
    }

    /// The extents of the data bytes `positions`, at absolute file offsets, adjacent ones merged.
    pub fn extents(&self, positions: Range<u64>) -> Extents {
        self.0.finite(positions).extents(0..u64::MAX)
    }

    /// How many pieces the data bytes `positions` are in, as [`Layout::pieces`].
    pub fn pieces(&self, positions: Range<u64>) -> u64 {
        let part = positions.start..positions.end.min(self.limit());
        if part.is_empty() {
            return 0;
        }
        if self.shows_all() {
            return 1;
        }
        self.0.unit.shape.pieces_of_copies(part)
    }

    /// Visits the pieces of the data bytes `positions`, in order, those of the tiles: what touches is not merged.
    pub(crate) fn visit(&self, positions: Range<u64>, visit: &mut impl FnMut(Extent)) {
        let part = positions.start..positions.end.min(self.limit());
        let Tiling { unit: Layout { offset, shape }, period, .. } = &*self.0;
        if part.is_empty() {
            return;
        }
        if self.shows_all() {
            return visit(Extent { offset: offset + part.start as i64, len: part.end - part.start });
        }
        shape.visit_copies(|tile| offset + tile as i64 * period, part, visit);
    }

    /// True if there is nothing between the bytes that it shows.
    fn shows_all(&self) -> bool {
        let Tiling { unit, period, .. } = &*self.0;
        unit.is_dense() && unit.size() as i64 == *period
    }

    /// True if `positions` are one contiguous block of the file (or none).
    pub fn is_contiguous_over(&self, positions: Range<u64>) -> bool {
        // The most usual view needs nothing built, whose calls may take less than building it.
        self.shows_all() || self.0.finite(positions).is_dense()
    }

    /// The data bytes `positions` as a layout, at absolute file offsets.
    ///
    /// # Errors
    /// If some of them lie past [`View::limit`].
    pub fn layout_of(&self, positions: Range<u64>) -> Result<Layout, LayoutError> {
        self.0.layout_of(positions)
    }
}

impl Tiling {
    fn offset_of(&self, position: u64) -> Option<u64> {
        if position >= self.limit {
            return None;
        }
        let (tile, inside) = (position / self.unit.size(), position % self.unit.size());
        Some((self.unit.offset_of(inside)? + tile as i64 * self.period) as u64)
    }

    fn position_at_or_after(&self, offset: u64) -> u64 {
        let offset = offset.min(i64::MAX as u64) as i64;
        if self.unit.is_empty() || offset <= self.unit.offset {
            return 0;
        }
        let tile = (offset - self.unit.offset) / self.period;
        tile as u64 * self.unit.size() + self.unit.position_at_or_after(offset - tile * self.period)
    }

    fn layout_of(&self, positions: Range<u64>) -> Result<Layout, LayoutError> {
        if positions.is_empty() {
            return Ok(Layout::empty());
        }
        if positions.end > self.limit {
            return overflow("a file offset");
        }
        cut_tiles(self.unit.offset, self.period, &self.unit.shape, positions)
    }

    fn finite(&self, positions: Range<u64>) -> Layout {
        let end = positions.end.min(self.limit);
        self.layout_of(positions.start..end).unwrap_or_else(|_| Layout::empty())
    }
}

/// The filetype with an extent that puts a second tile beyond any file.
fn once(displacement: u64, filetype: &Datatype) -> Result<Datatype, LayoutError> {
    let Ok(displacement) = i64::try_from(displacement) else { return overflow("the displacement") };
    // Where tiles begin depends on their extent alone; the lower bound may be anywhere.
    let lower = filetype.layout().lower_bound();
    let rest = i64::MAX.checked_sub(displacement).and_then(|rest| rest.checked_sub(lower));
    let Some(rest) = rest else { return overflow("the end of the view") };
    filetype.resized(lower, rest)
}

/// The smallest unit and period that tile as `tile` does with `extent`.
fn endless(tile: Layout, extent: i64) -> (Layout, i64) {
    match &tile.shape.kind {
        Kind::Strided { count, stride, inner } if *count as i128 * *stride as i128 == extent as i128 => {
            endless(Layout { offset: tile.offset, shape: inner.clone() }, *stride)
        }
        Kind::Block if tile.size() as i64 == extent && extent > 1 => {
            (Layout { offset: tile.offset, shape: Layout::bytes(1).shape }, 1)
        }
        _ => (tile, extent),
    }
}
