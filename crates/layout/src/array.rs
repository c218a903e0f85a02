//! Sub-arrays and distributed arrays (MPI 4.1, sections 5.1.3 and 5.1.4).
//!
//! Both are built from the fastest dimension outwards, and both end up with the bounds of the *whole* array, so that
//! as a filetype they tile array after array.

use crate::datatype::Datatype;
use crate::error::LayoutError;

/// Which dimension of an array varies fastest in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last one (`MPI_ORDER_C`).
    C,
    /// The first one (`MPI_ORDER_FORTRAN`).
    Fortran,
}

/// How one dimension of an array is dealt out to the processes of one dimension of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// One block each (`MPI_DISTRIBUTE_BLOCK`). Argument: the block's length; by default as even as can be.
    Block,
    /// Blocks in turn (`MPI_DISTRIBUTE_CYCLIC`). Argument: the block's length; by default 1.
    Cyclic,
    /// Not dealt out (`MPI_DISTRIBUTE_NONE`): one process has it all.
    None,
}

impl Datatype {
    /// The part of an array of `sizes` that begins at `starts` and has `subsizes` (`MPI_Type_create_subarray`).
    ///
    /// # Errors
    /// If the lists differ in length or are empty, or the part is not inside the array.
    pub fn subarray(
        sizes: &[u64],
        subsizes: &[u64],
        starts: &[u64],
        order: Order,
        old: &Datatype,
    ) -> Result<Datatype, LayoutError> {
        for (what, list) in [("the number of subsizes", subsizes), ("the number of starts", starts)] {
            same_len(sizes, what, list.len())?;
        }
        let mut part = old.clone();
        let mut stride = old.extent();
        for dimension in fastest_first(sizes.len(), order) {
            let (size, subsize, start) = (sizes[dimension], subsizes[dimension], starts[dimension]);
            if subsize > size {
                return wrong(dimension, "the subsize", subsize, format!("at most {size}"));
            }
            if start > size - subsize {
                return wrong(dimension, "the start", start, format!("at most {}", size - subsize));
            }
            part = part.tiled(subsize, stride)?.moved(start, stride)?;
            stride = times(size, stride)?;
        }
        part.resized(0, stride)
    }

    /// The part of an array of `sizes` that process `rank` of `process_count` has (`MPI_Type_create_darray`).
    ///
    /// `process_grid` counts the processes along each dimension, ranks in row-major order whatever the `order` of
    /// the array; an argument of `None` is MPI's default.
    ///
    /// # Errors
    /// If the lists differ in length or are empty, the grid does not hold `process_count` processes, the rank is not
    /// among them, or an argument is 0 or, for [`Distribution::Block`], too small to deal out the whole dimension.
    #[allow(clippy::too_many_arguments)] // They are MPI's.
    pub fn darray(
        process_count: u64,
        rank: u64,
        sizes: &[u64],
        distributions: &[Distribution],
        arguments: &[Option<u64>],
        process_grid: &[u64],
        order: Order,
        old: &Datatype,
    ) -> Result<Datatype, LayoutError> {
        same_len(sizes, "the number of distributions", distributions.len())?;
        same_len(sizes, "the number of arguments", arguments.len())?;
        same_len(sizes, "the number of grid dimensions", process_grid.len())?;
        let coordinates = coordinates(process_count, rank, process_grid)?;
        let mut part = old.clone();
        let mut stride = old.extent();
        for dimension in fastest_first(sizes.len(), order) {
            let size = sizes[dimension];
            let grid = process_grid[dimension];
            let argument = arguments[dimension];
            let block = match distributions[dimension] {
                Distribution::None if grid != 1 => {
                    return wrong(
                        dimension,
                        "the number of processes",
                        grid,
                        "1, as it is not distributed".into(),
                    );
                }
                Distribution::None => size.max(1),
                Distribution::Block => {
                    let least = size.div_ceil(grid).max(1);
                    let block = argument.unwrap_or(least);
                    if block < least {
                        return wrong(dimension, "the block length", block, format!("at least {least}"));
                    }
                    block
                }
                Distribution::Cyclic => argument.unwrap_or(1),
            };
            if block == 0 {
                return wrong(dimension, "the block length", block, "at least 1".into());
            }
            part = dealt(&part, size, block, grid, coordinates[dimension], stride)?;
            stride = times(size, stride)?;
        }
        part.resized(0, stride)
    }

    fn moved(self, count: u64, stride: i64) -> Result<Datatype, LayoutError> {
        let by = times(count, stride)?;
        let layout = self.layout().shifted(by)?;
        // Bounds are set at the end; those between do not matter.
        Datatype::from_parts(layout, 0, 0, true)
    }
}

/// Every `grid`-th block of `block` copies out of `size`, from the one with number `coordinate` on.
fn dealt(
    old: &Datatype,
    size: u64,
    block: u64,
    grid: u64,
    coordinate: u64,
    stride: i64,
) -> Result<Datatype, LayoutError> {
    let first = coordinate as u128 * block as u128;
    if first >= size as u128 {
        return Ok(Datatype::bytes(0));
    }
    let first = first as u64;
    let left = size - first;
    // No farther than the array: with a longer round there is only one block.
    let round = block.saturating_mul(grid);
    let (whole, rest) = match left / round {
        rounds if left % round >= block => (rounds + 1, 0),
        rounds => (rounds, left % round),
    };
    let mut parts = Vec::with_capacity(2);
    if whole > 0 {
        let far = if whole > 1 { times(round, stride)? } else { 0 };
        parts.push((1, 0, old.tiled(block, stride)?.tiled(whole, far)?));
    }
    if rest > 0 {
        parts.push((1, if whole > 0 { times(whole * round, stride)? } else { 0 }, old.tiled(rest, stride)?));
    }
    Datatype::structure(&parts)?.moved(first, stride)
}

/// Coordinates of `rank` in a row-major grid.
fn coordinates(process_count: u64, rank: u64, grid: &[u64]) -> Result<Vec<u64>, LayoutError> {
    let held = grid.iter().try_fold(1u64, |product, &count| product.checked_mul(count));
    if held != Some(process_count) || process_count == 0 {
        let expected = format!("{process_count}, the number of processes (at least 1)");
        return wrong(0, "the product of the process grid", held.unwrap_or(u64::MAX), expected);
    }
    if rank >= process_count {
        return wrong(0, "the rank", rank, format!("less than {process_count}"));
    }
    let (mut rest, mut below) = (rank, process_count);
    let coordinate = |&count: &u64| {
        below /= count;
        let coordinate = rest / below;
        rest %= below;
        coordinate
    };
    Ok(grid.iter().map(coordinate).collect())
}

fn fastest_first(dimensions: usize, order: Order) -> impl Iterator<Item = usize> {
    (0..dimensions).map(move |index| match order {
        Order::C => dimensions - 1 - index,
        Order::Fortran => index,
    })
}

fn times(count: u64, stride: i64) -> Result<i64, LayoutError> {
    i64::try_from(count as i128 * stride as i128)
        .map_err(|_| LayoutError::Overflow { what: "the extent of the array" })
}

fn same_len(sizes: &[u64], what: &'static str, found: usize) -> Result<(), LayoutError> {
    if sizes.is_empty() {
        return wrong(0, "the number of dimensions", 0, "at least 1".into());
    }
    if sizes.len() != found {
        return wrong(0, what, found as u64, format!("{}, as there are sizes", sizes.len()));
    }
    Ok(())
}

fn wrong<T>(dimension: usize, what: &'static str, found: u64, expected: String) -> Result<T, LayoutError> {
    Err(LayoutError::Array { dimension, what, found, expected })
}
