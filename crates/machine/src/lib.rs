//! *What hardware*: typed machine descriptions, read from TOML.
//!
//! A [`Machine`] says what I/O costs on one computer: nodes, messages, network, storage, calls. Every number in the
//! text carries its unit; an unknown key, a missing or an absurd value is an error that names file, line and what is
//! allowed. `docs/machines.md` explains every key.
//!
//! Some descriptions are built in ([`Machine::built_in`]); [`calibrate()`] measures the machine it runs on.

mod arm;
mod buffers;
mod built_in;
mod calibrate;
mod call_costs;
mod cold_reads;
mod costs;
mod cpu;
mod describe;
pub mod disk;
mod error;
mod io_node;
mod keys;
mod machine;
mod mpi_io;
mod network;
mod overrides;
mod parallel;
mod processor_cache;
mod quantity;
mod rewrites;
mod section;
mod shared_files;
mod spreads;
mod write_back;

pub use arm::Arm;
pub use buffers::{Buffers, Computer, Disks, Ssd};
pub use calibrate::{CalibrateError, calibrate};
pub use call_costs::CallCosts;
pub use cold_reads::ColdReads;
pub use costs::Cost;
pub use cpu::Cpu;
pub use error::MachineError;
pub use io_node::{IoNode, RequestCpu};
pub use machine::{
    Askew, CallCost, Calls, Copy, IoNodePlacement, IoNodes, Machine, Messages, Nodes, Pieces, Service,
    Storage,
};
pub use mpi_io::{LibraryCosts, MpiIo, Repeated, Together};
pub use network::{
    Adapter, Allocator, Arbitration, CentralQueue, Choice, Congestion, Dragonfly, DragonflyRouting, FatTree,
    Flow, FlowRoutes, GraphSwitch, Link, Network, Pipeline, Rails, Reuse, Switching, Topology, Wormhole,
    circuit,
};
pub use parallel::{
    Client, ClientCache, Component, ExtentLocks, Grant, LocksOn, Metadata, ObjectServers, ParallelFiles,
    Yields,
};
pub use processor_cache::ProcessorCache;
pub use quantity::{Bandwidth, Duration, parse_size};
pub use rewrites::Rewrites;
pub use shared_files::{ClientLocks, Exclusive, SharedFiles};
pub use spreads::Spreads;
pub use write_back::WriteBack;
