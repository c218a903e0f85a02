//! The five studies: what each paper states, what our models compute, and how far apart the two are.
//!
//! A study runs what its authors ran on the models of [`pio_sim`], with the machine that the paper describes. The folder of
//! a paper in `papers/` says what rests on what.

pub mod baylor;
pub mod buffers;
pub mod coll;
pub mod hong;
pub mod miller_katz;
pub mod pios;
pub mod scoreboard;
mod statement;
pub mod thakur;

pub use statement::{Basis, Computed, LOOKED_UP, Published, Statement, Verdict};
