//! What a network of this kind cannot be.

use thiserror::Error;

/// A network with virtual channels that cannot be simulated, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WormholeError {
    /// Routes of this topology may deadlock with so few virtual channels.
    #[error(
        "{topology}: {found} virtual channels: expected at least {needed}, one for each class that its routes keep apart"
    )]
    VirtualChannels {
        /// Its name.
        topology: String,
        /// How many there are.
        found: u32,
        /// How many there must be.
        needed: u32,
    },
    /// A switch is too large.
    #[error(
        "{topology}: switch {switch} has {ports} ports on one side: expected at most {most} where flits are simulated"
    )]
    Ports {
        /// Its name.
        topology: String,
        /// Which switch.
        switch: u32,
        /// How many ports it has.
        ports: usize,
        /// How many it may have.
        most: usize,
    },
    /// A node is linked to no switch, or to another node.
    #[error("{topology}: node {node} must send into a switch and receive from one")]
    Unlinked {
        /// Its name.
        topology: String,
        /// Which node.
        node: u32,
    },
    /// More virtual channels, or places for flits in them, than can be numbered.
    #[error(
        "{topology}: {channels} channels of {each} virtual channels with buffers of {buffer} flits: expected at most 2^30 virtual channels, and 2^32 flits in all buffers"
    )]
    TooLarge {
        /// Its name.
        topology: String,
        /// Channels.
        channels: usize,
        /// Virtual channels of each.
        each: u32,
        /// Flits in the buffer of each.
        buffer: u32,
    },
}
