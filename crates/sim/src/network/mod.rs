//! Networks: what carries messages between nodes. Many models, one interface.
//!
//! A [`Network`] is a [`Model`](crate::kernel::Model) that takes in messages.

mod bits;
mod carrier;
pub mod central_queue;
pub mod circuit;
mod described;
pub mod flow;
mod links;
mod pairs;
mod rails;
pub mod topology;
pub mod traffic;
pub mod wormhole;

pub use carrier::{Delivery, MessageId, Network};
pub use described::{DescribedError, described, of_machine};
pub use links::Links;
pub use rails::Rails;
