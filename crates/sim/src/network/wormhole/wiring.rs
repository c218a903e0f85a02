//! The topology as the engine wants it: channels in the order in which they lead into switches, so that what one switch
//! looks at lies together.

use crate::network::topology::{Channel, Device, Topology};
use crate::network::wormhole::error::WormholeError;

/// Ports of a switch on one side, at most: one word of bits.
const MOST_PORTS: usize = 64;

/// No output port: a channel that a node sends into.
pub(super) const FROM_NODE: u32 = u32::MAX;

/// Channels by switch and port. A channel's number here is its place among the inputs of all switches; those that lead
/// to nodes come last, in order of the nodes.
#[derive(Debug)]
pub(super) struct Wiring {
    /// Where each switch's input channels begin; one more at the end.
    pub(super) inputs: Vec<u32>,
    /// Where each switch's output ports begin among those of all switches; one more at the end.
    pub(super) outputs: Vec<u32>,
    /// The channel that leaves by each output port of all switches.
    pub(super) output_channel: Vec<u32>,
    /// Who sends into each channel.
    pub(super) sender: Vec<Sender>,
    /// Where each channel leads.
    pub(super) receiver: Vec<Receiver>,
    /// The channel that each node sends into.
    pub(super) injection: Vec<u32>,
}

/// Who sends into a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    /// The switch, or the node.
    pub(super) device: u32,
    /// The output port among those of all switches, or [`FROM_NODE`].
    pub(super) output: u32,
}

/// Where a channel leads: nowhere that flits are held if it is a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    /// The switch.
    pub(super) switch: u32,
    /// Its input port.
    pub(super) port: u32,
}

impl Wiring {
    pub(super) fn of(topology: &Topology) -> Result<Wiring, WormholeError> {
        let (nodes, switches) = (topology.nodes(), topology.switches());
        let mut number_of = vec![u32::MAX; topology.channels().len()];
        let mut order = Vec::with_capacity(number_of.len());
        let mut inputs = vec![0];
        for device in (0..switches).map(Device::Switch).chain((0..nodes).map(Device::Node)) {
            for id in topology.incoming(device) {
                number_of[id.0 as usize] = order.len() as u32;
                order.push(topology.channel(*id));
            }
            if let Device::Switch(_) = device {
                inputs.push(order.len() as u32);
            }
        }
        let mut outputs = vec![0];
        let mut output_channel = Vec::new();
        for switch in 0..switches {
            let outgoing = topology.outgoing(Device::Switch(switch));
            let ports = outgoing.len().max(topology.incoming(Device::Switch(switch)).len());
            if ports > MOST_PORTS {
                let topology = topology.to_string();
                return Err(WormholeError::Ports { topology, switch, ports, most: MOST_PORTS });
            }
            output_channel.extend(outgoing.iter().map(|id| number_of[id.0 as usize]));
            outputs.push(output_channel.len() as u32);
        }
        let injection = (0..nodes)
            .map(|node| {
                let first = topology.outgoing(Device::Node(node)).first().copied();
                let into_switch = |channel: Channel| matches!(channel.to.device, Device::Switch(_));
                first
                    .filter(|id| into_switch(topology.channel(*id)))
                    .map(|id| number_of[id.0 as usize])
                    .ok_or_else(|| WormholeError::Unlinked { topology: topology.to_string(), node })
            })
            .collect::<Result<_, _>>()?;
        let sender = order.iter().map(|channel| match channel.from.device {
            Device::Node(node) => Sender { device: node, output: FROM_NODE },
            Device::Switch(switch) => {
                Sender { device: switch, output: outputs[switch as usize] + u32::from(channel.from.number) }
            }
        });
        let receiver = order.iter().map(|channel| match channel.to.device {
            Device::Node(node) => Receiver { switch: u32::MAX, port: node },
            Device::Switch(switch) => Receiver { switch, port: u32::from(channel.to.number) },
        });
        let (sender, receiver) = (sender.collect(), receiver.collect());
        Ok(Wiring { inputs, outputs, output_channel, sender, receiver, injection })
    }

    pub(super) fn switches(&self) -> usize {
        self.inputs.len() - 1
    }

    pub(super) fn channels(&self) -> usize {
        self.sender.len()
    }

    /// How many channels lead into switches: those of a lower number.
    pub(super) fn switch_channels(&self) -> usize {
        self.inputs[self.switches()] as usize
    }
}
