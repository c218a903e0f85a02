//! *What hardware*: typed machine descriptions, read from TOML.
//!
//! A [`Machine`] says what I/O costs on one computer: nodes, messages, network, storage, calls. Every number in the
//! text carries its unit; an unknown key, a missing or an absurd value is an error that names file, line and what is
//! allowed. `docs/machines.md` explains every key.
//!
//! Some descriptions are built in ([`Machine::built_in`]); [`calibrate`] measures the machine it runs on.

mod built_in;
mod calibrate;
mod describe;
pub mod disk;
mod error;
mod io_node;
mod keys;
mod machine;
mod network;
mod quantity;
mod section;

pub use calibrate::{CalibrateError, calibrate};
pub use error::MachineError;
pub use io_node::{IoNode, RequestCpu};
pub use machine::{Access, Calls, Copy, IoNodes, Machine, Messages, Nodes, Placement, Service, Storage};
pub use network::{
    Adapter, CentralQueue, Dragonfly, DragonflyRouting, Flow, FlowRoutes, GraphSwitch, Link, Network,
    Switching, Topology, circuit,
};
pub use quantity::{Bandwidth, Duration, parse_size};
