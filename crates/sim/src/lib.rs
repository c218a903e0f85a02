//! *Predict*: how long a workload's I/O would take on a described machine, with which strategy.
//!
//! A discrete-event simulator in which every rank is a process that runs the very state machines of `pio-plan` that the
//! real MPI-IO library runs: only what a message, a copy, a request cost is modelled. What it did comes back as a
//! [`Prediction`] and, if asked for, as a trace like a recorded one, to be explained by the same means.
//!
//! Time is whole picoseconds, events at the same time happen in the order in which they were made, and nothing is
//! random: same machine, workload, strategy and hints, same bytes out.

mod advice;
pub mod buffers;
pub mod cpu;
pub mod disk;
mod engine;
mod error;
mod from_trace;
mod hardware;
pub mod io_node;
pub mod kernel;
pub mod network;
pub mod open_loop;
mod output;
mod parallel;
mod prediction;
mod process;
mod processors;
pub mod queueing;
mod server;
mod shared_files;
mod terms;
pub mod workload;

pub use advice::Change;
pub use engine::{Options, Progress, Replace, simulate, simulate_with};
pub use error::SimError;
pub use from_trace::SimulatedCalls;
pub use prediction::{OperationTotal, Prediction, ServerTotal};
pub use terms::terms;
pub use workload::Workload;
