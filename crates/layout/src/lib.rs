//! Which bytes: datatypes, file views, distributed arrays and striping, kept symbolic.
//!
//! A [`Layout`] is an ordered, finite set of bytes: a million strided 4-byte pieces are *one* node of a small
//! tree, not a million (offset, length) pairs. A [`Datatype`] adds MPI's lower bound and extent, so that repeats
//! tile; a [`View`] tiles a datatype over a file without end; a [`Striping`] deals a file out to servers.
//!
//! Two coordinates run through the whole crate. An *offset* says where a byte lies (in a file, or in memory);
//! a *position* says the how-many-th data byte it is, in traversal order. Ranges of positions are how a part of an
//! access is named: they stay small and exact however many pieces the access has.
//!
//! All values are immutable and cheap to clone. All arithmetic is checked when a value is built: every offset a
//! layout touches fits an `i64`, and so do its span and its size. What has been built can then be walked without
//! any further check.
//!
//! ```
//! use pio_layout::{Datatype, Order, Run, Striping, View, coverage};
//!
//! // Two processes share a table of 1000 rows of 8 integers: one has the left half, the other the right.
//! let int = Datatype::bytes(4);
//! let half = |start| Datatype::subarray(&[1000, 8], &[1000, 4], &[0, start], Order::C, &int);
//! let left = View::new(0, 4, half(0)?)?;
//! let right = View::new(0, 4, half(4)?)?;
//!
//! // A thousand pieces are one run.
//! let runs: Vec<Run> = left.runs(0..16000).collect();
//! assert_eq!(runs, [Run { offset: 0, len: 16, stride: 32, count: 1000 }]);
//!
//! // Together they leave nothing out; the left one alone leaves as much as the right one has.
//! assert!(coverage::covers(0..32000, &[(&left, 0..16000), (&right, 0..16000)]));
//! assert_eq!(coverage::holes(0..32000, &[(&left, 0..16000)]), right.layout_of(0..16000)?);
//!
//! // Of 4 servers with strips of 64 bytes, each has a quarter.
//! let striping = Striping::new(64, 4, 0)?;
//! assert_eq!(striping.bytes_per_server(&left, 0..16000), [4000; 4]);
//! # Ok::<(), pio_layout::LayoutError>(())
//! ```

mod array;
pub mod coverage;
mod datatype;
mod encoding;
mod error;
mod layout;
mod mpi;
mod normalise;
pub mod number;
pub mod pack;
mod pieces;
mod positions;
mod runs;
mod shares;
mod slice;
mod striping;
mod view;

pub use array::{Distribution, Order};
pub use datatype::Datatype;
pub use encoding::DecodeError;
pub use error::LayoutError;
pub use layout::{Layout, MAX_DEPTH};
pub use mpi::{DATATYPE_HEADER, OTHER_MPI_HEADER};
pub use runs::{Extent, Extents, Run, Runs};
pub use shares::Share;
pub use striping::{Strip, Striping, Strips};
pub use view::View;
