//! The network that a machine description describes.

use pio_machine::{Network as Description, Switching};

use super::central_queue::CentralQueue;
use super::circuit::Circuit;
use super::flow::FlowNetwork;
use super::topology::Topology;
use super::{Links, Network};
use crate::error::SimError;

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
        Switching::Circuit(circuit) => Box::new(Circuit::new(&topology()?, link, circuit)?),
    })
}
