//! *How far predictions have been off*, and how far the next may be.
//!
//! A [`History`] is the file of the runs that were both predicted and measured at one place, a [`Pair`] each. From the
//! pairs that are like it, a predicted time gets an [`Interval`] in which the measured one is expected in 80 % of runs.
//!
//! Runs also say what a machine's costs are: [`fit()`] finds factors on them.

mod fit;
mod history;
mod interval;

pub use fit::{Fit, Observed, Trial, fit};
pub use history::{History, HistoryError, Pair};
pub use interval::{Case, Interval};
