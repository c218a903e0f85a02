//! All tests of this crate in one program: that is linked once, and runs on all cores.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod faults;
mod no_io;
mod pair;
