//! The network that a machine description describes.

use pio_machine::Switching;
use thiserror::Error;

use crate::kernel::Time;
use crate::network::flow::FlowNetwork;
use crate::network::topology::{Topology, TopologyError};
use crate::network::wormhole::{Wormhole, WormholeError};
use crate::network::{Delivery, MessageId, Network};

/// A description of which no network can be made.
#[derive(Debug, Error)]
pub enum DescribedError {
    /// The shape cannot be.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The switches cannot be.
    #[error(transparent)]
    Wormhole(#[from] WormholeError),
    /// It does not say how messages get through.
    #[error(
        "network.switching = \"links\": messages do not meet within the network (expected another switching)"
    )]
    Links,
}

/// Makes the network of a description, with room for at least `nodes`; what is random in it is drawn from the run's
/// `seed`.
///
/// # Errors
/// If the description says nothing of what is within the network, or no such network can be.
pub fn described(
    network: &pio_machine::Network,
    nodes: u32,
    seed: u64,
) -> Result<Box<dyn Network>, DescribedError> {
    let topology = || Topology::described(&network.topology, nodes);
    Ok(match &network.switching {
        Switching::Links => return Err(DescribedError::Links),
        Switching::Flow(flow) => {
            let (bandwidth, latency) = (network.link.bandwidth, network.link.latency);
            Box::new(FlowNetwork::new(topology()?, bandwidth, latency, flow.routes))
        }
        Switching::Wormhole(description) => {
            Box::new(Wormhole::new(&topology()?, &network.link, description, seed)?)
        }
    })
}

impl<N: Network + ?Sized> Network for Box<N> {
    fn nodes(&self) -> u32 {
        (**self).nodes()
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        (**self).send(now, message, from, to, bytes);
    }

    fn next_time(&self) -> Option<Time> {
        (**self).next_time()
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        (**self).advance(until, delivered);
    }
}
