//! I/O nodes: what is between the network and the surface of the disks.
//!
//! An [`IoNode`] is a network of queues that a request passes: adapter, processor, bus, then the channel to a disk's cache or
//! the disk itself (Baylor et al. 1995, section III). It is a [`Model`](crate::kernel::Model) that gives out requests that are
//! done. `docs/design/io-nodes.md` explains it.

mod node;
mod open_load;
mod request;

pub use node::{IoNode, Use};
pub use open_load::{OpenLoad, Processing};
pub use request::{Adapter, Between, IoDone, IoNodeError, IoRequest};
