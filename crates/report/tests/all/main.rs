//! All tests of this crate in one program: that is linked once, and runs on all cores.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod advice;
mod counters;
mod darshan;
mod page;
mod synthetic;
#[allow(dead_code, reason = "its own tests use the rest")]
#[path = "../../../import/tests/support/darshan.rs"]
mod writer;
