//! I/O nodes: what is between the network and the surface of the disks.
//!
//! An [`IoNode`] is a network of queues that a request passes: adapter, processor, bus, then the channel to a disk's cache or
//! the disk itself (Baylor et al. 1995, section III). It is a simulation of its own, as a
//! [`Network`](crate::network::Network) is: whoever uses it asks when it next has something to do, and lets it carry on
//! before anything of their own that is later. `docs/design/io-nodes.md` explains the model.

mod node;
mod open_load;
mod request;
mod station;

pub use node::IoNode;
pub use open_load::{OpenLoad, Processing};
pub use request::{Adapter, Between, IoDone, IoNodeError, IoRequest};
pub use station::Use;
