//! The clustered multistage network of Baylor et al. 1995, section II: 4 x 4 bidirectional switches.
//!
//! The paper's drawings (its Figures 3 to 5) are lost. This wiring fits what the text and the captions say, and how the
//! machines of that family (Vulcan, SP1) were built:
//!
//! - A cluster is 16 nodes, 4 node switches with 4 nodes each, and 4 link switches; every node switch has a link to every
//!   link switch. Each link switch has 4 more ports, so that 16 links can leave a cluster.
//! - 16 nodes: one cluster. 32: two, joined by 16 links, from each link switch of one to each of the other.
//! - 64: four clusters and 8 more switches, 128: eight clusters and 16 more switches. All 8 ports of these lead to clusters:
//!   two to each of four, or one to each of eight (the caption of Figure 5: clusters Cx, switches Sy).
//!
//! Ports 0 to 3 of a switch in a cluster are on the side of the nodes, 4 to 7 on the other. The static route climbs no
//! higher than it must, and chooses its way by the destination's number, mixed so that routes between all pairs use every
//! link of a stage about equally often, and routes to nodes at equal distances (I/O nodes) are spread over the switches.

use super::error::TopologyError;
use super::picture::{Place, rise};
use super::wiring::Wiring;
use super::{Device, Routing};

#[derive(Debug)]
pub(super) struct Omega {
    clusters: u32,
}

/// What a switch is, with its cluster and its number in it.
enum Role {
    Node { cluster: u32, number: u32 },
    Link { cluster: u32 },
    Upper { number: u32 },
}

const NODES_OF_CLUSTER: u32 = 16;
const SWITCHES_OF_CLUSTER: u32 = 8;
const PORTS: u32 = 4;

impl Omega {
    pub(super) fn wire(nodes: u32) -> Result<(Wiring, Omega), TopologyError> {
        if ![16, 32, 64, 128].contains(&nodes) {
            let expected = "16, 32, 64 or 128".to_owned();
            return Err(TopologyError::Size {
                topology: "omega",
                what: "nodes",
                found: nodes.into(),
                expected,
            });
        }
        let omega = Omega { clusters: nodes / NODES_OF_CLUSTER };
        let mut wiring = Wiring::new(nodes, omega.clusters * SWITCHES_OF_CLUSTER + omega.upper());
        for node in 0..nodes {
            let (cluster, number) = (node / NODES_OF_CLUSTER, node % NODES_OF_CLUSTER / PORTS);
            wiring.link(Device::Node(node), node_switch(cluster, number));
        }
        for cluster in 0..omega.clusters {
            for number in 0..PORTS {
                for link in 0..PORTS {
                    wiring.link(node_switch(cluster, number), link_switch(cluster, link));
                }
            }
        }
        match omega.clusters {
            1 => {}
            2 => {
                for link in 0..PORTS {
                    for other in 0..PORTS {
                        wiring.link(link_switch(0, link), link_switch(1, other));
                    }
                }
            }
            _ => {
                for cluster in 0..omega.clusters {
                    for line in 0..PORTS * PORTS {
                        let upper = omega.clusters * SWITCHES_OF_CLUSTER + line % omega.upper();
                        wiring.link(link_switch(cluster, line / PORTS), Device::Switch(upper));
                    }
                }
            }
        }
        Ok((wiring, omega))
    }

    /// Switches above the clusters.
    fn upper(&self) -> u32 {
        if self.clusters > 2 { self.clusters * 2 } else { 0 }
    }

    fn role(&self, switch: u32) -> Role {
        let (cluster, number) = (switch / SWITCHES_OF_CLUSTER, switch % SWITCHES_OF_CLUSTER);
        if cluster >= self.clusters {
            Role::Upper { number: switch - self.clusters * SWITCHES_OF_CLUSTER }
        } else if number < PORTS {
            Role::Node { cluster, number }
        } else {
            Role::Link { cluster }
        }
    }
}

fn node_switch(cluster: u32, number: u32) -> Device {
    Device::Switch(cluster * SWITCHES_OF_CLUSTER + number)
}

fn link_switch(cluster: u32, number: u32) -> Device {
    Device::Switch(cluster * SWITCHES_OF_CLUSTER + PORTS + number)
}

impl Routing for Omega {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        out.push(self.port(switch, destination));
    }

    /// Also the node's port at its switch chooses the way up.
    fn is_by_switch(&self) -> bool {
        false
    }

    fn port(&self, switch: u32, destination: u32) -> u16 {
        // The destination's digits of base 4: its port, its switch, its cluster.
        let (low, middle, high) =
            (destination % PORTS, destination / PORTS % PORTS, destination / NODES_OF_CLUSTER);
        let port = match self.role(switch) {
            Role::Node { cluster, number } if (cluster, number) == (high, middle) => low,
            Role::Node { .. } => PORTS + (low + middle + high) % PORTS,
            Role::Link { cluster } if cluster == high => middle,
            Role::Link { .. } if self.clusters == 2 => PORTS + (low + 2 * middle) % PORTS,
            Role::Link { .. } => PORTS + (middle + high / PORTS) % PORTS,
            // Lines `number` and `number` + 8 of each of four clusters, or line `number` of each of eight.
            Role::Upper { .. } if self.clusters == 4 => 2 * high + (low / 2 + middle) % 2,
            Role::Upper { .. } => high,
        };
        port as u16
    }

    fn place(&self, device: Device) -> Place {
        let rise = rise(self.clusters * NODES_OF_CLUSTER);
        // Of a switch above so many nodes from the first, in this row.
        let above = |first: u32, count: u32, row: f64| {
            Place::new(f64::from(first) + f64::from(count - 1) / 2.0, row * rise)
        };
        let place = match device {
            Device::Node(node) => Place::new(f64::from(node), 2.0 * rise + rise.min(5.0)),
            Device::Switch(switch) => match self.role(switch) {
                Role::Upper { number } => {
                    let count = self.clusters * NODES_OF_CLUSTER / self.upper();
                    above(number * count, count, 0.0)
                }
                Role::Node { cluster, number } => {
                    above(cluster * NODES_OF_CLUSTER + number * PORTS, PORTS, 2.0)
                }
                Role::Link { cluster } => {
                    let number = switch % SWITCHES_OF_CLUSTER - PORTS;
                    above(cluster * NODES_OF_CLUSTER + number * PORTS, PORTS, 1.0)
                }
            },
        };
        // The second of two clusters hangs above the first, upside down.
        let is_above = self.clusters == 2 && place.x >= f64::from(NODES_OF_CLUSTER);
        if is_above { Place::new(place.x - f64::from(NODES_OF_CLUSTER), rise - place.y) } else { place }
    }
}
