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

mod array;
pub mod coverage;
mod datatype;
mod encoding;
mod error;
mod layout;
mod mpi;
mod normalise;
pub mod pack;
mod runs;
mod slice;
mod striping;
mod view;

pub use array::{Distribution, Order};
pub use datatype::Datatype;
pub use encoding::DecodeError;
pub use error::LayoutError;
pub use layout::{Layout, MAX_DEPTH};
pub use mpi::DATATYPE_HEADER;
pub use runs::{Extent, Extents, Run, Runs};
pub use striping::{Strip, Striping, Strips};
pub use view::View;
