//! MPI's datatype: a layout with a lower bound and an extent, so that repeats tile.
//!
//! Bounds follow MPI 4.1, sections 5.1.6 to 5.1.8. A type map without explicit bounds spans from its least to its
//! greatest displacement; explicit bounds ([`Datatype::resized`], sub- and distributed arrays) win over all others in
//! the same type map, whatever they are. The alignment padding that MPI adds to a structure depends on the C
//! compiler: whoever describes a structure adds it with [`Datatype::resized`].

use crate::error::{LayoutError, overflow};
use crate::layout::Layout;

/// A layout, a lower bound and an extent: the k-th of a row of such data lies k × extent further.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Datatype {
    layout: Layout,
    bounds: Bounds,
}

/// Lower and upper bound, and whether they were set explicitly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Bounds {
    lower: i64,
    extent: i64,
    explicit: bool,
}

impl Datatype {
    /// `len` contiguous bytes: any basic type, and rows of them.
    pub fn bytes(len: u64) -> Datatype {
        let layout = Layout::bytes(len);
        let extent = layout.size() as i64;
        Datatype { layout, bounds: Bounds { lower: 0, extent, explicit: false } }
    }

    /// These bytes, in the bounds that they have themselves.
    pub fn of(layout: Layout) -> Datatype {
        let (lower, upper) = (layout.lower_bound(), layout.upper_bound());
        Datatype { layout, bounds: Bounds { lower, extent: upper - lower, explicit: false } }
    }

    /// `count` copies of `old`, an extent apart (`MPI_Type_contiguous`).
    pub fn contiguous(count: u64, old: &Datatype) -> Result<Datatype, LayoutError> {
        old.tiled(count, old.bounds.extent)
    }

    /// `count` blocks of `block_len` copies, `stride` extents apart (`MPI_Type_vector`).
    pub fn vector(count: u64, block_len: u64, stride: i64, old: &Datatype) -> Result<Datatype, LayoutError> {
        match stride.checked_mul(old.bounds.extent) {
            Some(stride) => Datatype::hvector(count, block_len, stride, old),
            None => overflow("the stride"),
        }
    }

    /// `count` blocks of `block_len` copies, `stride` bytes apart (`MPI_Type_create_hvector`).
    pub fn hvector(count: u64, block_len: u64, stride: i64, old: &Datatype) -> Result<Datatype, LayoutError> {
        old.tiled(block_len, old.bounds.extent)?.tiled(count, stride)
    }

    /// Blocks of (copies, displacement in extents) (`MPI_Type_indexed`).
    pub fn indexed(blocks: &[(u64, i64)], old: &Datatype) -> Result<Datatype, LayoutError> {
        let scaled = blocks.iter().map(|&(len, displacement)| Some((len, old.in_extents(displacement)?)));
        match scaled.collect::<Option<Vec<_>>>() {
            Some(blocks) => Datatype::hindexed(&blocks, old),
            None => overflow("a displacement"),
        }
    }

    /// Blocks of (copies, displacement in bytes) (`MPI_Type_create_hindexed`).
    pub fn hindexed(blocks: &[(u64, i64)], old: &Datatype) -> Result<Datatype, LayoutError> {
        let mut bounds = None;
        let mut inner: Option<(u64, Datatype)> = None;
        let mut parts = Vec::with_capacity(blocks.len());
        for &(len, displacement) in blocks {
            if len == 0 {
                continue;
            }
            // Most lists repeat one block length: share the block.
            if inner.as_ref().is_none_or(|(inner_len, _)| *inner_len != len) {
                inner = Some((len, old.tiled(len, old.bounds.extent)?));
            }
            let Some((_, block)) = &inner else { continue };
            bounds = block.add_bounds_at(displacement, bounds)?;
            parts.push((displacement, block.layout.clone()));
        }
        Ok(Datatype { layout: Layout::sequence(parts)?, bounds: bounds.unwrap_or(Bounds::EMPTY) })
    }

    /// Blocks of `block_len` copies at displacements in extents (`MPI_Type_create_indexed_block`).
    pub fn indexed_block(
        block_len: u64,
        displacements: &[i64],
        old: &Datatype,
    ) -> Result<Datatype, LayoutError> {
        let scaled = displacements.iter().map(|&displacement| old.in_extents(displacement));
        match scaled.collect::<Option<Vec<_>>>() {
            Some(displacements) => Datatype::hindexed_block(block_len, &displacements, old),
            None => overflow("a displacement"),
        }
    }

    /// Blocks of `block_len` copies at displacements in bytes (`MPI_Type_create_hindexed_block`).
    pub fn hindexed_block(
        block_len: u64,
        displacements: &[i64],
        old: &Datatype,
    ) -> Result<Datatype, LayoutError> {
        if block_len == 0 {
            return Ok(Datatype::bytes(0));
        }
        let block = old.tiled(block_len, old.bounds.extent)?;
        let mut bounds = None;
        for &displacement in displacements {
            bounds = block.add_bounds_at(displacement, bounds)?;
        }
        let layout = Layout::indexed(displacements.to_vec(), block.layout)?;
        Ok(Datatype { layout, bounds: bounds.unwrap_or(Bounds::EMPTY) })
    }

    /// Blocks of (copies, displacement in bytes, type), without alignment padding (`MPI_Type_create_struct`).
    pub fn structure(blocks: &[(u64, i64, Datatype)]) -> Result<Datatype, LayoutError> {
        let mut bounds = None;
        let mut parts = Vec::with_capacity(blocks.len());
        for (len, displacement, old) in blocks {
            if *len == 0 {
                continue;
            }
            let block = old.tiled(*len, old.bounds.extent)?;
            bounds = block.add_bounds_at(*displacement, bounds)?;
            parts.push((*displacement, block.layout));
        }
        Ok(Datatype { layout: Layout::sequence(parts)?, bounds: bounds.unwrap_or(Bounds::EMPTY) })
    }

    /// The same data with explicit bounds (`MPI_Type_create_resized`).
    pub fn resized(&self, lower_bound: i64, extent: i64) -> Result<Datatype, LayoutError> {
        if lower_bound.checked_add(extent).is_none() {
            return overflow("the upper bound");
        }
        let bounds = Bounds { lower: lower_bound, extent, explicit: true };
        Ok(Datatype { layout: self.layout.clone(), bounds })
    }

    /// The data bytes of one copy.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of data bytes in one copy.
    pub fn size(&self) -> u64 {
        self.layout.size()
    }

    /// MPI's lower bound.
    pub fn lower_bound(&self) -> i64 {
        self.bounds.lower
    }

    /// MPI's upper bound: lower bound plus extent.
    pub fn upper_bound(&self) -> i64 {
        self.bounds.lower + self.bounds.extent
    }

    /// Distance from one copy to the next in bytes.
    pub fn extent(&self) -> i64 {
        self.bounds.extent
    }

    /// True if the bounds were set explicitly, so that they win over those of other parts of a structure.
    pub fn has_explicit_bounds(&self) -> bool {
        self.bounds.explicit
    }

    /// The data bytes of `count` copies in a row: a buffer of so many.
    pub fn repeated(&self, count: u64) -> Result<Layout, LayoutError> {
        Layout::strided(count, self.bounds.extent, self.layout.clone())
    }

    pub(crate) fn from_parts(
        layout: Layout,
        lower: i64,
        extent: i64,
        explicit: bool,
    ) -> Result<Datatype, LayoutError> {
        let resized = Datatype { layout, bounds: Bounds::EMPTY }.resized(lower, extent)?;
        Ok(Datatype { bounds: Bounds { explicit, ..resized.bounds }, ..resized })
    }

    /// `count` copies, `stride` bytes apart.
    pub(crate) fn tiled(&self, count: u64, stride: i64) -> Result<Datatype, LayoutError> {
        if count == 0 || self.is_void() {
            return Ok(Datatype::bytes(0));
        }
        let layout = Layout::strided(count, stride, self.layout.clone())?;
        let far = (count as i128 - 1) * stride as i128;
        let lower = self.bounds.lower as i128 + far.min(0);
        let upper = self.upper_bound_wide().max(self.upper_bound_wide() + far);
        let bounds = Bounds::new(lower, upper, self.bounds.explicit)?;
        Ok(Datatype { layout, bounds })
    }

    fn upper_bound_wide(&self) -> i128 {
        self.bounds.lower as i128 + self.bounds.extent as i128
    }

    /// `others`, widened by this datatype's bounds at `displacement`.
    fn add_bounds_at(
        &self,
        displacement: i64,
        others: Option<Bounds>,
    ) -> Result<Option<Bounds>, LayoutError> {
        if self.is_void() { Ok(others) } else { Bounds::united(others, self.bounds.shifted(displacement)?) }
    }

    /// True if there is no entry at all in the type map, hence nothing that has bounds.
    fn is_void(&self) -> bool {
        self.layout.is_empty() && self.bounds == Bounds::EMPTY
    }

    fn in_extents(&self, displacement: i64) -> Option<i64> {
        displacement.checked_mul(self.bounds.extent)
    }
}

impl Bounds {
    const EMPTY: Bounds = Bounds { lower: 0, extent: 0, explicit: false };

    fn new(lower: i128, upper: i128, explicit: bool) -> Result<Bounds, LayoutError> {
        match (i64::try_from(lower), i64::try_from(upper), i64::try_from(upper - lower)) {
            (Ok(lower), Ok(_), Ok(extent)) => Ok(Bounds { lower, extent, explicit }),
            _ => overflow("the extent of a datatype"),
        }
    }

    fn shifted(self, by: i64) -> Result<Bounds, LayoutError> {
        let lower = self.lower as i128 + by as i128;
        Bounds::new(lower, lower + self.extent as i128, self.explicit)
    }

    /// Bounds of a type map that holds both: explicit ones win over others.
    fn united(one: Option<Bounds>, other: Bounds) -> Result<Option<Bounds>, LayoutError> {
        let Some(one) = one else { return Ok(Some(other)) };
        match (one.explicit, other.explicit) {
            (true, false) => Ok(Some(one)),
            (false, true) => Ok(Some(other)),
            (explicit, _) => {
                let upper = |bounds: Bounds| bounds.lower as i128 + bounds.extent as i128;
                let lower = one.lower.min(other.lower) as i128;
                Bounds::new(lower, upper(one).max(upper(other)), explicit).map(Some)
            }
        }
    }
}
