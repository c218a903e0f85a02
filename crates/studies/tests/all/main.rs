//! All tests of the crate from outside in one program: that is linked once, and runs on all cores.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod baylor;
mod buffers;
mod circuit_load;
mod thakur_counts;
