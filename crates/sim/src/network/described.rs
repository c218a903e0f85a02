//! The network that a machine description describes.

use pio_machine::{Network as Description, Switching};

use super::central_queue::CentralQueue;
use super::circuit::Circuit;
use super::flow::FlowNetwork;
use super::topology::Topology;
use super::wormhole::Wormhole;
use super::{Links, Network};
use crate::error::SimError;

/// Of what routers choose by chance: a trace is predicted alike every time.
const SEED: u64 = 1;

/// The network of this description between so many nodes.
///
/// # Errors
/// If the topology has no room for them, or cannot be used with this switching.
pub fn described(description: &Description, nodes: u32) -> Result<Box<dyn Network>, SimError> {
    let link = &description.link;
    let topology = || Topology::described(&description.topology, nodes);
    Ok(match &description.switching {
        Switching::Links => Box::new(Links::new(description, nodes)?),
        Switching::Flow(flow) => {
            Box::new(FlowNetwork::new(topology()?, link.bandwidth, link.latency, flow.routes))
        }
        Switching::CentralQueue(queue) => Box::new(CentralQueue::new(topology()?, link, queue)?),
        Switching::Wormhole(router) => Box::new(Wormhole::new(&topology()?, link, router, SEED)?),
        Switching::Circuit(circuit) => Box::new(Circuit::new(&topology()?, link, circuit)?),
    })
}
