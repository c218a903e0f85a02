//! Dragonflies (Kim, Dally, Scott and Abts, ISCA 2008).
//!
//! Groups of switches: all switches of a group are linked to each other, and every group to every other. A switch's ports are
//! its nodes, the others of its group in order, and its links to other groups. These are dealt out in rounds: line `q`
//! of a group leads `q` mod (groups - 1) + 1 groups further, line `q` being link `q` mod `links_per_switch` of switch
//! `q` / `links_per_switch`. With fewer groups than there could be, pairs of groups have several links; lines of a round
//! that would be incomplete are left out.
//!
//! Minimal routes cross at most one link between groups: local, global, local. Valiant's go by a third group. Adaptive
//! routing chooses one of the two for each packet, or flow, by what is before it. Channels
//! have a class for every group on the way (Kim et al., section 4.1, with one class for both links in a group and the one
//! that leaves it), so that classes only grow.

use std::ops::Range;

use pio_machine::{Dragonfly as Shape, DragonflyRouting};

use super::error::{MOST_NODES, TopologyError, within};
use super::picture::Place;
use super::wiring::Wiring;
use super::{Device, Port, Routing};

#[derive(Debug)]
pub(super) struct Dragonfly {
    /// Nodes of a switch.
    nodes: u32,
    /// Switches of a group.
    switches: u32,
    /// Links of a switch to other groups.
    links: u32,
    groups: u32,
    /// Links between any two groups.
    rounds: u32,
    routing: DragonflyRouting,
}

impl Dragonfly {
    pub(super) fn wire(shape: &Shape) -> Result<(Wiring, Dragonfly), TopologyError> {
        const KIND: &str = "dragonfly";
        let nodes = within(KIND, "nodes per switch", shape.nodes_per_switch, 1..=1024)?;
        let switches = within(KIND, "switches per group", shape.switches_per_group, 1..=1024)?;
        let links = within(KIND, "links per switch", shape.links_per_switch, 1..=1024)?;
        let least = if shape.routing == DragonflyRouting::Minimal { 2 } else { 3 };
        let groups = within(KIND, "groups", shape.groups, least..=switches * links + 1)?;
        if shape.nodes() > MOST_NODES {
            let expected = format!("at most {MOST_NODES}");
            return Err(TopologyError::Size {
                topology: KIND,
                what: "nodes",
                found: shape.nodes(),
                expected,
            });
        }
        let rounds = switches * links / (groups - 1);
        let dragonfly = Dragonfly { nodes, switches, links, groups, rounds, routing: shape.routing };
        let mut wiring = Wiring::new(nodes * switches * groups, switches * groups);
        for switch in 0..switches * groups {
            for node in 0..nodes {
                let at = Port { device: Device::Node(switch * nodes + node), number: 0 };
                wiring.link_at(at, port_of(switch, node));
            }
            for other in switch + 1..(switch / switches + 1) * switches {
                let (from, to) = (dragonfly.local_port(switch, other), dragonfly.local_port(other, switch));
                wiring.link_at(port_of(switch, from), port_of(other, to));
            }
        }
        for group in 0..groups {
            for other in group + 1..groups {
                for round in 0..rounds {
                    let [one, two] = [(group, other), (other, group)].map(|(from, to)| {
                        let (switch, port) = dragonfly.global_link(from, to, round);
                        port_of(switch, port)
                    });
                    wiring.link_at(one, two);
                }
            }
        }
        Ok((wiring, dragonfly))
    }

    /// The port of a switch that leads to another of its group.
    fn local_port(&self, switch: u32, other: u32) -> u32 {
        self.nodes + other % self.switches - u32::from(other > switch)
    }

    /// The switch and port by which a group is linked to another, for each round.
    fn global_link(&self, from: u32, to: u32, round: u32) -> (u32, u32) {
        let line = round * (self.groups - 1) + (to + self.groups - from) % self.groups - 1;
        let switch = from * self.switches + line / self.links;
        (switch, self.nodes + self.switches - 1 + line % self.links)
    }

    fn switch_of(&self, node: u32) -> u32 {
        node / self.nodes
    }

    fn group_of(&self, switch: u32) -> u32 {
        switch / self.switches
    }

    /// The port towards a link to the destination's group.
    fn port_to_link(&self, switch: u32, (end, port): (u32, u32)) -> u16 {
        (if switch == end { port } else { self.local_port(switch, end) }) as u16
    }

    /// The port within the destination's group; none outside it.
    fn port_in_group(&self, switch: u32, destination: u32) -> Option<u16> {
        let end = self.switch_of(destination);
        if self.group_of(switch) != self.group_of(end) {
            return None;
        }
        let port = if switch == end { destination % self.nodes } else { self.local_port(switch, end) };
        Some(port as u16)
    }

    /// The rounds whose links lead from the switch's group to the destination's: of the switch's own links, if it has any there.
    fn rounds(&self, switch: u32, destination: u32) -> Range<u32> {
        let (from, to) = (self.group_of(switch), self.group_of(self.switch_of(destination)));
        // Its lines are `first` and the next ones; those to the other group begin with line `further` and are a turn apart.
        let (turn, further) = (self.groups - 1, (to + self.groups - from) % self.groups - 1);
        let first = switch % self.switches * self.links;
        let round_of = |line: u32| line.saturating_sub(further).div_ceil(turn).min(self.rounds);
        let own = round_of(first)..round_of(first + self.links);
        if own.is_empty() { 0..self.rounds } else { own }
    }

    /// The port towards the link of a round to the destination's group.
    fn port_in_round(&self, switch: u32, destination: u32, round: u32) -> u16 {
        let (from, to) = (self.group_of(switch), self.group_of(self.switch_of(destination)));
        self.port_to_link(switch, self.global_link(from, to, round))
    }
}

fn port_of(switch: u32, number: u32) -> Port {
    Port { device: Device::Switch(switch), number: number as u16 }
}

impl Routing for Dragonfly {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        if let Some(port) = self.port_in_group(switch, destination) {
            out.push(port);
            return;
        }
        let rounds = self.rounds(switch, destination);
        out.extend(rounds.map(|round| self.port_in_round(switch, destination, round)));
        out.dedup();
    }

    fn port(&self, switch: u32, destination: u32) -> u16 {
        if let Some(port) = self.port_in_group(switch, destination) {
            return port;
        }
        let rounds = self.rounds(switch, destination);
        let chosen = rounds.start + destination % rounds.len() as u32;
        self.port_in_round(switch, destination, chosen)
    }

    fn classes(&self) -> u8 {
        if self.routing == DragonflyRouting::Minimal { 2 } else { 3 }
    }

    fn class(&self, switch: u32, _port: u16, destination: u32) -> u8 {
        u8::from(self.group_of(switch) == self.group_of(self.switch_of(destination)))
    }

    fn waypoint(&self, from: u32, to: u32, draw: u64) -> Option<u32> {
        let [first, last] = [from, to].map(|node| self.group_of(self.switch_of(node)));
        if self.routing == DragonflyRouting::Minimal || first == last {
            return None;
        }
        // Any group but these two, all equally likely; the node in it does not matter.
        let others = self.groups - 2;
        let mut group = (draw % u64::from(others)) as u32;
        for taken in [first.min(last), first.max(last)] {
            group += u32::from(group >= taken);
        }
        let nodes = self.nodes * self.switches;
        Some(group * nodes + (draw / u64::from(others) % u64::from(nodes)) as u32)
    }

    fn waypoint_kinds(&self) -> u32 {
        if self.routing == DragonflyRouting::Minimal { 0 } else { self.groups - 2 }
    }

    fn may_leave_out_waypoint(&self) -> bool {
        self.routing == DragonflyRouting::Adaptive
    }

    fn is_past(&self, switch: u32, waypoint: u32) -> bool {
        self.group_of(switch) == self.group_of(self.switch_of(waypoint))
    }

    /// Groups on a circle, the switches of a group on a smaller one, their nodes further out.
    fn place(&self, device: Device) -> Place {
        let turn = |part: u32, whole: u32| std::f64::consts::TAU * f64::from(part) / f64::from(whole);
        let switch = match device {
            Device::Node(node) => self.switch_of(node),
            Device::Switch(switch) => switch,
        };
        let spread = f64::from(self.nodes * self.switches) / 4.0 + 2.0;
        let radius = spread * f64::from(self.groups) / 2.2 + 1.0;
        let outer = turn(self.group_of(switch), self.groups) - std::f64::consts::FRAC_PI_2;
        let inner = outer + turn(switch % self.switches, self.switches);
        let own = spread * 0.55;
        let mut place =
            Place::new(radius * outer.cos() + own * inner.cos(), radius * outer.sin() + own * inner.sin());
        if let Device::Node(node) = device {
            let middle = f64::from(self.nodes - 1) / 2.0;
            let beside = (f64::from(node % self.nodes) - middle) * 0.9;
            place.x += 1.4 * inner.cos() - beside * inner.sin();
            place.y += 1.4 * inner.sin() + beside * inner.cos();
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_those_of_the_links_looked_at_one_by_one() {
        for (nodes, switches, links, groups) in
            [(2, 4, 2, 9), (1, 4, 3, 4), (3, 5, 2, 3), (1, 3, 7, 5), (1, 2, 1, 2)]
        {
            let shape = Shape {
                nodes_per_switch: nodes,
                switches_per_group: switches,
                links_per_switch: links,
                groups,
                routing: DragonflyRouting::Minimal,
            };
            let (_, dragonfly) = Dragonfly::wire(&shape).unwrap();
            for switch in 0..switches * groups {
                for destination in 0..nodes * switches * groups {
                    let (from, to) = (dragonfly.group_of(switch), dragonfly.group_of(destination / nodes));
                    if from == to {
                        continue;
                    }
                    let own = |round: &u32| dragonfly.global_link(from, to, *round).0 == switch;
                    let mut expected: Vec<u32> = (0..dragonfly.rounds).filter(own).collect();
                    if expected.is_empty() {
                        expected = (0..dragonfly.rounds).collect();
                    }
                    assert_eq!(
                        dragonfly.rounds(switch, destination).collect::<Vec<_>>(),
                        expected,
                        "{dragonfly:?}"
                    );
                }
            }
        }
    }
}
