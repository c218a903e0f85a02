//! The one error type of building and moving; decoding has its own, [`DecodeError`](crate::DecodeError).

use thiserror::Error;

/// Why a layout, datatype, view or striping could not be built, or bytes not be moved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// An offset, span or size does not fit 63 bits.
    #[error("{what} does not fit a signed 64-bit integer")]
    Overflow {
        /// The quantity that does not fit.
        what: &'static str,
    },
    /// Constructors are nested too deeply.
    #[error("nested {depth} levels deep, expected at most {limit}")]
    TooDeep {
        /// The depth asked for.
        depth: usize,
        /// The depth allowed.
        limit: usize,
    },
    /// A file view needs offsets that strictly increase, also from one tile to the next.
    #[error(
        "the filetype is no valid file view: {what}, expected offsets that strictly increase in data order"
    )]
    NotMonotone {
        /// What breaks the order.
        what: &'static str,
    },
    /// A view would touch bytes before the start of the file.
    #[error("the view starts at file offset {offset}, expected 0 or more")]
    BeforeFile {
        /// The absolute offset of the first byte.
        offset: i128,
    },
    /// The filetype does not hold a whole number of etypes.
    #[error("the filetype holds {filetype} bytes, expected a multiple of the etype's {etype} (at least 1)")]
    Etype {
        /// Size of the filetype in bytes.
        filetype: u64,
        /// Size of the etype in bytes.
        etype: u64,
    },
    /// A distributed or sub-array whose numbers contradict each other.
    #[error("dimension {dimension} of the array: {what} is {found}, expected {expected}")]
    Array {
        /// Which dimension, from 0.
        dimension: usize,
        /// The quantity that is wrong.
        what: &'static str,
        /// Its value.
        found: u64,
        /// What it should have been.
        expected: String,
    },
    /// A striping with no unit, no server, or a first server that is not there.
    #[error("striping: {what} is {found}, expected {expected}")]
    Striping {
        /// The quantity that is wrong.
        what: &'static str,
        /// Its value.
        found: u64,
        /// What it should have been.
        expected: String,
    },
    /// A run reaches outside the memory it was to be copied from or to.
    #[error(
        "a run from offset {offset} to {end} (origin {origin}) lies outside the {available} bytes of memory"
    )]
    OutOfBounds {
        /// Lowest offset of the run.
        offset: i128,
        /// One past its highest offset.
        end: i128,
        /// Index in memory of offset 0.
        origin: i64,
        /// Bytes of memory there are.
        available: usize,
    },
    /// The runs hold more or fewer bytes than the stream.
    #[error("the runs hold {runs} the {stream} bytes expected")]
    Length {
        /// "more than" or "fewer than".
        runs: &'static str,
        /// Bytes there should have been.
        stream: u64,
    },
}

pub(crate) fn overflow<T>(what: &'static str) -> Result<T, LayoutError> {
    Err(LayoutError::Overflow { what })
}
