//! Networks: what carries messages between nodes. Many models, one interface.
//!
//! A [`Network`] is a simulation of its own, with its own events. Whoever uses it asks when it next has something to do
//! ([`Network::next_time`]), and lets it carry on before anything of their own that is later ([`Network::advance`]).

mod carrier;
pub mod central_queue;
pub mod circuit;
mod described;
pub mod flow;
mod links;
pub mod topology;
pub mod traffic;
pub mod wormhole;

pub use carrier::{Delivery, MessageId, Network};
pub use described::{DescribedError, described};
pub use links::Links;
