//! Processes that share processors, file buffers and disks: the simulation of Miller and Katz (1991, section 6).
//!
//! Each process computes for its think time, then reads or writes a piece of a file, and so on. Buffers of main memory or
//! of a solid-state disk stand between it and the disks; it waits only for what they cannot give or take at once. A
//! processor is idle when every process waits. `docs/design/buffers.md` tells the model and what it leaves out.

mod disk;
mod outcome;
mod program;
mod rates;
mod run;
mod storage;

pub use disk::DiskModel;
pub use outcome::{Outcome, ProcessOutcome};
pub use program::{Program, TimedAccess};
pub use rates::Rates;
pub use run::{Instance, Options, run};
pub use storage::Flow;
