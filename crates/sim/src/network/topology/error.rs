//! Networks that cannot be.

use thiserror::Error;

/// Why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// A number is out of its range, or does not go with the others.
    #[error("{topology}: {what} = {found}: expected {expected}")]
    Size {
        /// The kind of topology.
        topology: &'static str,
        /// Which number.
        what: &'static str,
        /// What it is.
        found: u64,
        /// What it could be.
        expected: String,
    },
    /// A link leads to a switch that does not exist.
    #[error("graph: switch {switch} has a link to {missing}, which is no switch of this network")]
    NoSuchSwitch {
        /// The switch that has the link.
        switch: String,
        /// What it leads to.
        missing: String,
    },
    /// Two switches have the same name.
    #[error("graph: two switches are called {switch} (expected one name each)")]
    SameName {
        /// The name.
        switch: String,
    },
    /// A switch has a link to itself.
    #[error("graph: switch {switch} has a link to itself (expected a link to another switch)")]
    LinkToItself {
        /// Its name.
        switch: String,
    },
    /// A node is on two switches.
    #[error("graph: node {node} is on switches {switch} and {other} (expected one link a node)")]
    NodeTwice {
        /// The node.
        node: u32,
        /// A switch it is on.
        switch: String,
        /// Another.
        other: String,
    },
    /// A node is on no switch.
    #[error("graph: node {node} is on no switch (nodes are numbered from 0 to {last} without gaps)")]
    NodeNowhere {
        /// The node.
        node: u32,
        /// The highest number there is.
        last: u32,
    },
    /// Part of the network cannot be reached from the rest.
    #[error("graph: no way from switch {from} to switch {to} (expected links that connect all switches)")]
    Unconnected {
        /// A switch.
        from: String,
        /// Another one.
        to: String,
    },
}

/// Checks that a number is in its range.
pub(super) fn within(
    topology: &'static str,
    what: &'static str,
    found: u32,
    range: std::ops::RangeInclusive<u32>,
) -> Result<u32, TopologyError> {
    if range.contains(&found) {
        return Ok(found);
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(TopologyError::Size { topology, what, found: found.into(), expected })
}

/// The most nodes that a network can have.
pub(super) const MOST_NODES: u64 = 1 << 20;

/// `base` to the power of `exponent`, if so many nodes may be.
pub(super) fn nodes_of(
    topology: &'static str,
    base: u32,
    exponent: u32,
    what: &'static str,
) -> Result<u32, TopologyError> {
    match u64::from(base).checked_pow(exponent) {
        Some(nodes) if nodes <= MOST_NODES => Ok(nodes as u32),
        _ => {
            let expected = format!("at most {MOST_NODES} nodes: arity {base} to a smaller power");
            Err(TopologyError::Size { topology, what, found: exponent.into(), expected })
        }
    }
}
