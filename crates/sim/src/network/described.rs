//! The network that a machine description describes.

use pio_machine::{Machine, Switching};
use thiserror::Error;

use super::carrier::{Delivery, MessageId, Network};
use super::central_queue::{CentralQueue, CentralQueueError};
use super::circuit::{Circuit, CircuitError};
use super::flow::FlowNetwork;
use super::links::Links;
use super::rails::{self, Rails};
use super::topology::{Topology, TopologyError};
use super::wormhole::{Wormhole, WormholeError};
use crate::error::SimError;
use crate::hardware::Hardware;
use crate::kernel::{Model, Time};

/// A description of which no network can be made.
#[derive(Debug, Error)]
pub enum DescribedError {
    /// The shape cannot be.
    #[error("{key}: {0}", key = shape_key(.0))]
    Topology(#[from] TopologyError),
    /// Switches with central queues cannot make it.
    #[error("{key}: {0}", key = central_queue_key(.0))]
    CentralQueue(#[from] CentralQueueError),
    /// Circuits cannot be switched on it.
    #[error("network.switching: {0}")]
    Circuit(#[from] CircuitError),
    /// Routers with virtual channels cannot make it.
    #[error("{key}: {0}", key = wormhole_key(.0))]
    Wormhole(#[from] WormholeError),
}

/// The key of a description that a shape which cannot be comes from.
fn shape_key(error: &TopologyError) -> &'static str {
    match error {
        TopologyError::Size { .. } => "network",
        _ => "network.switches",
    }
}

fn central_queue_key(error: &CentralQueueError) -> &'static str {
    match error {
        CentralQueueError::Classes { .. } => "network.switching",
        CentralQueueError::Packet { .. } => "network.central-queue.packet",
        CentralQueueError::Chunks { .. } => "network.central-queue.chunks",
    }
}

fn wormhole_key(error: &WormholeError) -> &'static str {
    match error {
        WormholeError::VirtualChannels { .. } => "network.router.virtual-channels",
        WormholeError::Ports { .. } => "network.switching",
        WormholeError::Unlinked { .. } => "network",
        WormholeError::TooLarge { .. } => "network.router.virtual-channels",
    }
}

/// The network of a machine with nothing on its way, and with what is random in it drawn from this seed.
///
/// # Errors
/// As [`described`].
pub fn of_machine(machine: &Machine, seed: u64) -> Result<Box<dyn Network>, SimError> {
    let hardware = Hardware::new(machine)?;
    described(&machine.network, hardware.nodes(), &hardware.dedicated(), seed)
        .map_err(|source| SimError::Network { machine: machine.name.clone(), source })
}

/// Makes the network of a description, with room for at least `nodes`, of which `servers` (ascending) are dedicated I/O
/// nodes; what is random in it is drawn from the run's `seed`.
///
/// # Errors
/// If the topology has no room for them, or cannot be used with this switching.
pub fn described(
    network: &pio_machine::Network,
    nodes: u32,
    servers: &[u32],
    seed: u64,
) -> Result<Box<dyn Network>, DescribedError> {
    if network.rails.is_single() {
        return with_ends(network, nodes, seed);
    }
    let links = |node: u32| match servers.binary_search(&node) {
        Ok(_) => network.rails.servers,
        Err(_) => network.rails.nodes,
    };
    let links: Vec<u32> = (0..nodes).map(links).collect();
    let inner = with_ends(network, rails::ends(&links), seed)?;
    Ok(Box::new(Rails::new(inner, &links, network.rails.piece)))
}

/// The network of a description, with room for at least so many ends, each with one link.
fn with_ends(
    network: &pio_machine::Network,
    nodes: u32,
    seed: u64,
) -> Result<Box<dyn Network>, DescribedError> {
    let link = &network.link;
    let topology = || Topology::described(&network.topology, nodes);
    Ok(match &network.switching {
        Switching::Links => Box::new(Links::new(network, nodes)?),
        Switching::Flow(flow) => {
            let made = FlowNetwork::new(topology()?, link.bandwidth, link.latency, flow.routes);
            Box::new(made.with_congestion(flow.congestion))
        }
        Switching::CentralQueue(queue) => Box::new(CentralQueue::new(topology()?, link, queue)?),
        Switching::Wormhole(router) => Box::new(Wormhole::new(&topology()?, link, router, seed)?),
        Switching::Circuit(circuit) => Box::new(Circuit::new(&topology()?, link, circuit)?),
    })
}

impl Network for Box<dyn Network> {
    fn nodes(&self) -> u32 {
        (**self).nodes()
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        (**self).send(now, message, from, to, bytes);
    }
}

impl Model for Box<dyn Network> {
    type Out = Delivery;

    fn next_time(&self) -> Option<Time> {
        (**self).next_time()
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        (**self).advance(until, delivered);
    }
}
