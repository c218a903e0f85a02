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
mod error;
mod keys;
mod machine;
mod quantity;
mod section;
#[path = "network/wormhole.rs"]
mod wormhole;

pub use calibrate::{CalibrateError, calibrate};
pub use error::MachineError;
pub use machine::{
    Access, Calls, Copy, IoNodes, Link, Machine, Messages, Network, Nodes, Placement, Service, Storage,
    Topology,
};
pub use quantity::{Bandwidth, Duration};
pub use wormhole::{Allocator, Arbitration, Choice, Pipeline, Reuse, Wormhole};
