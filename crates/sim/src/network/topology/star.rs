//! One switch.

use super::error::{TopologyError, within};
use super::picture::{Place, rise};
use super::wiring::Wiring;
use super::{Device, Routing};

#[derive(Debug)]
pub(super) struct Star {
    nodes: u32,
}

impl Star {
    /// Node `n` is on port `n`.
    pub(super) fn wire(nodes: u32) -> Result<(Wiring, Star), TopologyError> {
        let nodes = within("flat", "nodes", nodes, 1..=u32::from(u16::MAX))?;
        let mut wiring = Wiring::new(nodes, 1);
        for node in 0..nodes {
            wiring.link(Device::Node(node), Device::Switch(0));
        }
        Ok((wiring, Star { nodes }))
    }
}

impl Routing for Star {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        out.push(self.port(switch, destination));
    }

    fn port(&self, _switch: u32, destination: u32) -> u16 {
        destination as u16
    }

    fn place(&self, device: Device) -> Place {
        match device {
            Device::Node(node) => Place::new(f64::from(node), rise(self.nodes)),
            Device::Switch(_) => Place::new(f64::from(self.nodes - 1) / 2.0, 0.0),
        }
    }
}
