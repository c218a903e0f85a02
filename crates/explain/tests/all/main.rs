//! All tests of this crate in one program: that is linked once, and runs on all cores. `findings` is
//! beside it: its programs measure themselves, and must run alone.

mod accumulate;
mod alignment;
mod call_sites;
mod collectives;
mod comparison;
mod costs;
mod loaders;
mod marked;
mod rhythm;
