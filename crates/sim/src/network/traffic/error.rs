//! Traffic that cannot be.

use pio_machine::Duration;
use thiserror::Error;

/// Traffic that makes no sense, and why.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TrafficError {
    /// No such rate.
    #[error("{found} messages a second from each node: expected more than 0, and at most 10^12")]
    Rate {
        /// What was asked for.
        found: f64,
    },
    /// More than one message a slot.
    #[error("{found} messages a second in slots of {slot}: expected at most one a slot")]
    Slot {
        /// The slot.
        slot: Duration,
        /// Messages a second.
        found: f64,
    },
    /// A share that is none.
    #[error("a share of {found} of the messages to hot spots: expected 0 to 1")]
    Share {
        /// What was asked for.
        found: f64,
    },
    /// A node that does not exist.
    #[error("hot spot at node {node}: expected one of the nodes 0 to {last}")]
    NoSuchNode {
        /// The node that does not exist.
        node: u32,
        /// The last one.
        last: u32,
    },
    /// No hot spot, or only one node.
    #[error("{pattern} traffic: expected {expected}")]
    Pattern {
        /// Its name.
        pattern: &'static str,
        /// What it needs.
        expected: &'static str,
    },
    /// A permutation of bits on a number of nodes that it does not fit.
    #[error("{pattern} traffic between {nodes} nodes: expected {expected}")]
    Permutation {
        /// Its name.
        pattern: &'static str,
        /// How many nodes there are.
        nodes: u32,
        /// How many it needs.
        expected: &'static str,
    },
    /// No nodes, or no time.
    #[error("nothing to measure: expected at least one node and a measured time above 0")]
    Nothing,
}
