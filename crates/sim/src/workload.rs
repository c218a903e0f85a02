//! What is simulated: for each rank the calls that a program makes, one after the other.

mod bt_io;
mod catalogue;
mod checkpoint;
mod collapse;
mod entry;
mod flash_io;
mod hacc_io;
mod ior;
pub mod miller_katz;
mod names;
mod parameter;
mod program;
mod s3d_io;
mod steps;
#[cfg(test)]
mod tests_support;
mod trace_file;

pub use catalogue::{catalogue, find};
pub use checkpoint::{daly_interval, young_interval};
pub use collapse::{Collapse, collapse};
pub use entry::Entry;
pub use names::{Named, Naming};
pub use parameter::{Kind, Parameter, Values};
pub use steps::{Moves, Open, Step, What, Workload};
pub use trace_file::write_trace;
