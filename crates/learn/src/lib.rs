//! *How far predictions have been off*, and how far the next may be.
//!
//! A [`History`] is the file of the runs that were both predicted and measured at one place, a [`Pair`] each. From the
//! pairs that are like it, a predicted time gets an [`Interval`] in which the measured one is expected in 80 % of runs.
//!
//! Runs also say what a machine's costs are: [`fit()`] finds factors on them, and [`file_call_factor`] that on reads or writes by
//! one run.

mod file_calls;
mod fit;
mod history;
mod interval;

pub use file_calls::file_call_factor;
pub use fit::{Fit, Observed, Trial, fit};
pub use history::{History, HistoryError, Pair};
pub use interval::{Case, Interval};
