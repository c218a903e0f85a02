//! Datatypes as an MPI library describes them.
//!
//! The C side is [`DATATYPE_HEADER`]: it takes an `MPI_Datatype` apart into a row of 64-bit little-endian integers
//! that no longer depends on the MPI library. In prefix order, each constructor is
//!
//! | number | constructor | integers, then types |
//! |---|---|---|
//! | 1 | named | size, extent (extent > size: a value and a C `int`, each aligned, as `MPI_DOUBLE_INT`) |
//! | 2 | contiguous | count; type |
//! | 3 | hvector | count, block length, stride in bytes; type |
//! | 4 | hindexed | n, n × block length, n × displacement in bytes; type |
//! | 5 | hindexed block | n, block length, n × displacement in bytes; type |
//! | 6 | struct | n, n × block length, n × displacement in bytes; n types |
//! | 7 | resized | lower bound, extent; type |
//! | 8 | subarray | n, n × size, n × subsize, n × start, order (0 C, 1 Fortran); type |
//! | 9 | darray | processes, rank, n, n × size, n × distribution (0 none, 1 block, 2 cyclic), n × argument (−1 default), n × grid size, order; type |
//! | 10 | vector | count, block length, stride in extents; type |
//! | 11 | indexed | n, n × block length, n × displacement in extents; type |
//! | 12 | indexed block | n, block length, n × displacement in extents; type |
//!
//! A structure comes inside a resized: its bounds contain the C compiler's padding, which only MPI knows.

use crate::array::{Distribution, Order};
use crate::datatype::Datatype;
use crate::encoding::{DecodeError, invalid};
use crate::error::LayoutError;
use crate::layout::MAX_DEPTH;

/// The C header that describes MPI datatypes, to be compiled by the user's own `mpicc`.
///
/// It defines `static int pio_datatype_describe(MPI_Datatype, unsigned char **buffer, size_t *length)`.
pub const DATATYPE_HEADER: &str = include_str!("../c/pio_datatype.h");

/// The C header with which a library that was compiled for one MPI leaves a process of another, before the program begins.
///
/// It defines `static void pio_leave_other_mpi(char **arguments, const char *what)`, for a constructor of the library.
pub const OTHER_MPI_HEADER: &str = include_str!("../c/pio_other_mpi.h");

const INTEGER_BYTES: usize = 8;
/// The index of MPI's pairs of a value and an index.
const C_INT_BYTES: u64 = 4;

impl Datatype {
    /// The datatype that [`DATATYPE_HEADER`]'s `pio_datatype_describe` wrote down.
    ///
    /// # Errors
    /// If `description` is not one whole description, or describes what is out of range.
    pub fn from_description(description: &[u8]) -> Result<Datatype, DecodeError> {
        let mut input = Input { bytes: description, at: 0 };
        let datatype = input.datatype(0)?;
        match input.at == description.len() {
            true => Ok(datatype),
            false => Err(DecodeError { at: input.at, expected: "the end of the description".into() }),
        }
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn datatype(&mut self, depth: usize) -> Result<Datatype, DecodeError> {
        let at = self.at;
        if depth > MAX_DEPTH {
            return Err(DecodeError { at, expected: format!("at most {MAX_DEPTH} levels of nesting") });
        }
        let below = depth + 1;
        let built = match self.integer()? {
            1 => named(self.unsigned()?, self.unsigned()?),
            2 => {
                let count = self.unsigned()?;
                Datatype::contiguous(count, &self.datatype(below)?)
            }
            combiner @ (3 | 10) => {
                let (count, block_len, stride) = (self.unsigned()?, self.unsigned()?, self.integer()?);
                let build = if combiner == 3 { Datatype::hvector } else { Datatype::vector };
                build(count, block_len, stride, &self.datatype(below)?)
            }
            combiner @ (4 | 11) => {
                let count = self.count(2)?;
                let lens = self.many(count, Input::unsigned)?;
                let displacements = self.many(count, Input::integer)?;
                let blocks: Vec<_> = lens.into_iter().zip(displacements).collect();
                let build = if combiner == 4 { Datatype::hindexed } else { Datatype::indexed };
                build(&blocks, &self.datatype(below)?)
            }
            combiner @ (5 | 12) => {
                let (count, block_len) = (self.count(1)?, self.unsigned()?);
                let displacements = self.many(count, Input::integer)?;
                let build = if combiner == 5 { Datatype::hindexed_block } else { Datatype::indexed_block };
                build(block_len, &displacements, &self.datatype(below)?)
            }
            6 => self.structure(below)?,
            7 => {
                let (lower_bound, extent) = (self.integer()?, self.integer()?);
                self.datatype(below)?.resized(lower_bound, extent)
            }
            8 => {
                let count = self.count(3)?;
                let sizes = self.many(count, Input::unsigned)?;
                let subsizes = self.many(count, Input::unsigned)?;
                let starts = self.many(count, Input::unsigned)?;
                let order = self.order()?;
                Datatype::subarray(&sizes, &subsizes, &starts, order, &self.datatype(below)?)
            }
            9 => self.darray(below)?,
            _ => return Err(DecodeError { at, expected: "a type constructor (1 to 12)".into() }),
        };
        built.map_err(|error| invalid(at, &error))
    }

    fn structure(&mut self, depth: usize) -> Result<Result<Datatype, LayoutError>, DecodeError> {
        let count = self.count(2)?;
        let lens = self.many(count, Input::unsigned)?;
        let displacements = self.many(count, Input::integer)?;
        let mut blocks = Vec::with_capacity(count);
        for (len, displacement) in lens.into_iter().zip(displacements) {
            blocks.push((len, displacement, self.datatype(depth)?));
        }
        Ok(Datatype::structure(&blocks))
    }

    fn darray(&mut self, depth: usize) -> Result<Result<Datatype, LayoutError>, DecodeError> {
        let (process_count, rank) = (self.unsigned()?, self.unsigned()?);
        let count = self.count(4)?;
        let sizes = self.many(count, Input::unsigned)?;
        let distributions = self.many(count, Input::distribution)?;
        let arguments = self.many(count, Input::argument)?;
        let grid = self.many(count, Input::unsigned)?;
        let order = self.order()?;
        let old = self.datatype(depth)?;
        Ok(Datatype::darray(process_count, rank, &sizes, &distributions, &arguments, &grid, order, &old))
    }

    fn order(&mut self) -> Result<Order, DecodeError> {
        match self.integer()? {
            0 => Ok(Order::C),
            1 => Ok(Order::Fortran),
            _ => self.wrong("an order (0 or 1)"),
        }
    }

    fn distribution(&mut self) -> Result<Distribution, DecodeError> {
        match self.integer()? {
            0 => Ok(Distribution::None),
            1 => Ok(Distribution::Block),
            2 => Ok(Distribution::Cyclic),
            _ => self.wrong("a distribution (0, 1 or 2)"),
        }
    }

    fn argument(&mut self) -> Result<Option<u64>, DecodeError> {
        match self.integer()? {
            -1 => Ok(None),
            value => u64::try_from(value).map(Some).or_else(|_| self.wrong("an argument of -1 or more")),
        }
    }

    fn many<T>(
        &mut self,
        count: usize,
        read: fn(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        (0..count).map(|_| read(self)).collect()
    }

    /// A number of things of `integers` integers each: no more than there can be.
    fn count(&mut self, integers: usize) -> Result<usize, DecodeError> {
        let count = self.unsigned()?;
        let most = (self.bytes.len() - self.at) / (integers * INTEGER_BYTES);
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => self.wrong(&format!("a number of at most {most}, as many as fit what is left")),
        }
    }

    fn unsigned(&mut self) -> Result<u64, DecodeError> {
        let value = self.integer()?;
        u64::try_from(value).or_else(|_| self.wrong("a number of 0 or more"))
    }

    fn integer(&mut self) -> Result<i64, DecodeError> {
        match self.bytes[self.at..].first_chunk::<INTEGER_BYTES>() {
            Some(bytes) => {
                self.at += INTEGER_BYTES;
                Ok(i64::from_le_bytes(*bytes))
            }
            None => Err(DecodeError { at: self.at, expected: "an integer of 8 bytes".into() }),
        }
    }

    /// The integer just read is not what it should be.
    fn wrong<T>(&self, expected: &str) -> Result<T, DecodeError> {
        Err(DecodeError { at: self.at - INTEGER_BYTES, expected: expected.into() })
    }
}

/// A predefined type. Those with a hole are MPI's pairs (section 6.9.4): a value and an `int`, as C aligns them.
fn named(size: u64, extent: u64) -> Result<Datatype, LayoutError> {
    if extent <= size || size <= C_INT_BYTES {
        return Ok(Datatype::bytes(size));
    }
    let value = size - C_INT_BYTES;
    let index_at = value.next_multiple_of(C_INT_BYTES);
    let Ok(extent) = i64::try_from(extent) else { return Err(LayoutError::Overflow { what: "the extent" }) };
    let parts = [(1, 0, Datatype::bytes(value)), (1, index_at as i64, Datatype::bytes(C_INT_BYTES))];
    Datatype::structure(&parts)?.resized(0, extent)
}
