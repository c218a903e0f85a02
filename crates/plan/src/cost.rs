//! What an operation costs under each strategy, and which one is cheapest.
//!
//! A closed form for each strategy, in the terms of the analysis of Hong, You and Chung (2006, sections 3 and 4) and of
//! Thakur, Gropp and Lusk (1999, section 4.3): who handles how many pieces, how many messages and requests there are,
//! and which bytes cross which link. It takes no simulation and no list of pieces: an operation is told by a few sums
//! over its ranks ([`Operation`]), where it goes by a [`Setting`], hardware by [`Terms`]: those of the place, if it was calibrated.
//!
//! The time of an operation is that of the rank, link or server that is busy longest in each step, the steps one after
//! the other. What overlaps in fact makes all strategies faster than this says; it is a model to choose by.
//!
//! Everything here is a pure function of its arguments, in additions, multiplications and divisions of doubles: all
//! ranks of an operation, who know the same of it, come to the same choice.

mod choose;
mod estimate;
mod setting;
mod terms;

pub use crate::operation::Operation;
pub use choose::{choose, possible};
pub use estimate::{BLOCK_BYTES, Estimate, Part, estimate};
pub use setting::Setting;
pub use terms::{Behind, FORESEEN_BYTES, Terms};
