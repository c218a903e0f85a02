//! All tests of this crate in one program: that is linked once, and runs on all cores.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod common;
mod datatype;
mod decode;
mod describe;
mod model;
mod pack;
mod view;
