//! All tests of this crate in one program: that is linked once, and runs on all cores.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod central_queue;
mod diskspecs;
mod errors;
mod io_node;
