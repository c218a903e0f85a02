//! Why there is no prediction.

use pio_layout::LayoutError;
use pio_machine::MachineError;
use pio_trace::TraceError;
use thiserror::Error;

use crate::network::DescribedError;

/// Why a workload could not be built or simulated.
#[derive(Debug, Error)]
pub enum SimError {
    /// A trace could not be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The workload has no process.
    #[error("workload {workload}: has no process (expected a trace of at least one)")]
    NoProcess {
        /// Its name.
        workload: String,
    },
    /// The workload's numbers do not go together.
    #[error("workload {workload}: {what} = {found}: expected {expected}")]
    Workload {
        /// Its name.
        workload: String,
        /// Which number.
        what: &'static str,
        /// What it is.
        found: String,
        /// What it could be.
        expected: String,
    },
    /// No generator has this name.
    #[error("no workload {name}: expected one of {known}")]
    UnknownWorkload {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// A generator has no such parameter.
    #[error("workload {workload}: no parameter {name}: expected one of {known}")]
    UnknownParameter {
        /// The generator.
        workload: String,
        /// The name.
        name: String,
        /// Those it has.
        known: String,
    },
    /// The numbers of a queueing network cannot be, or do not go together.
    #[error("queueing network {network}: {what} = {found}: expected {expected}")]
    Queueing {
        /// Its name.
        network: String,
        /// Which number.
        what: String,
        /// What it is.
        found: String,
        /// What it could be.
        expected: String,
    },
    /// Jobs of a queueing network wait for each other.
    #[error(
        "queueing network {network}: {jobs} jobs block each other for ever at {seconds} s (a cycle of full stations)"
    )]
    Blocked {
        /// Its name.
        network: String,
        /// How many jobs are in it.
        jobs: u64,
        /// When nothing could move any more.
        seconds: f64,
    },
    /// A layout of the workload cannot be.
    #[error("workload {workload}: {source}")]
    Layout {
        /// Its name.
        workload: String,
        /// What is wrong.
        source: LayoutError,
    },
    /// Ranks wait for others that never come: a collective call that not all of them made.
    #[error(
        "rank {rank} waits forever in step {step} of {steps} (a collective call that not all ranks make?)"
    )]
    Stuck {
        /// The first rank that waits.
        rank: u32,
        /// The step of its program, from 1.
        step: usize,
        /// How many it has.
        steps: usize,
    },
    /// More than 213 days of simulated time.
    #[error("the simulated job takes longer than 213 days: is a bandwidth of machine {machine} far too low?")]
    TooLong {
        /// The machine.
        machine: String,
    },
    /// A machine description is wrong or unknown.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The machine's network cannot be.
    #[error("machine {machine}: {source}")]
    Network {
        /// Its name.
        machine: String,
        /// What is wrong.
        source: DescribedError,
    },
    /// More threads of I/O servers than can be simulated, where each has one for every rank.
    #[error(
        "machine {machine}: storage.io.count = {servers}: each of these I/O servers shares cores with {ranks} ranks, \
         and has a thread for each (expected at most {most} threads)"
    )]
    Threads {
        /// Its name.
        machine: String,
        /// I/O servers.
        servers: u32,
        /// Ranks.
        ranks: u32,
        /// Threads at most.
        most: u64,
    },
    /// Buffers cannot be as they are described.
    #[error("file buffers: {0}")]
    Buffers(#[from] pio_cache::SettingsError),
    /// An I/O node refuses a request.
    #[error("an I/O node: {0}")]
    IoNode(#[from] crate::io_node::IoNodeError),
}
