//! Networks of one's own: any switches, any links.
//!
//! Routes are free of deadlock in one class of channels by the rule of up*/down* (Schroeder et al., Autonet, 1991): switches
//! are put in an order; a route goes up any number of times, then down any number of times, and never up again. The
//! order is that of an indirect network first: the farther from any node, the higher, so that every spine of a
//! leaf-spine network is on top. If that leaves nodes without a way to each other, the order is the distance from a root,
//! which never does: the switch whose farthest node is nearest. Ties go by the description's order.
//!
//! A switch sends a packet down as soon as there is a way down to the destination, else up. So whether a packet has gone
//! down already need not be known: a switch that it comes to on the way down has a way down. Among the ways down, and
//! else among the ways up, it takes those over the fewest channels. Ports are the nodes of a switch in its order, then
//! its links in the order in which the description names them.

use std::collections::{BTreeMap, VecDeque};

use pio_machine::GraphSwitch;

use super::error::TopologyError;
use super::picture::{Place, rise};
use super::wiring::Wiring;
use super::{Device, Routing};

#[derive(Debug)]
pub(super) struct Graph {
    names: Vec<String>,
    /// Of each node: its switch, and its port there.
    homes: Vec<(u32, u16)>,
    /// Of each switch: how many nodes it has.
    own_nodes: Vec<u16>,
    /// Of each switch: the switch behind every port after those of its nodes.
    neighbours: Vec<Vec<u32>>,
    /// Of each switch: its place in the order, 0 on top.
    rank: Vec<u32>,
    /// Of each switch: its row in a picture, 0 on top.
    row: Vec<u32>,
    /// For each destination switch, for each switch: the way that is left.
    ways: Vec<Way>,
}

/// What is left to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    channels: u16,
    /// Whether all of it leads down.
    is_down: bool,
}

const NO_WAY: Way = Way { channels: u16::MAX, is_down: false };

/// Ways are stored for all pairs of switches: for so many, 64 MiB.
const MOST_SWITCHES: usize = 4096;

impl Graph {
    pub(super) fn wire(switches: &[GraphSwitch]) -> Result<(Wiring, Graph), TopologyError> {
        if !(1..=MOST_SWITCHES).contains(&switches.len()) {
            let (found, expected) = (switches.len() as u64, format!("1 to {MOST_SWITCHES}"));
            return Err(TopologyError::Size { topology: "graph", what: "switches", found, expected });
        }
        let homes = homes(switches)?;
        let neighbours = neighbours(switches)?;
        check_connected(switches, &neighbours)?;
        let mut wiring = Wiring::new(homes.len() as u32, switches.len() as u32);
        for (number, switch) in switches.iter().enumerate() {
            for node in &switch.nodes {
                wiring.link(Device::Node(*node), Device::Switch(number as u32));
            }
        }
        for (one, other) in links(switches)? {
            wiring.link(Device::Switch(one), Device::Switch(other));
        }
        let own_nodes = switches.iter().map(|switch| switch.nodes.len() as u16).collect();
        let names = switches.iter().map(|switch| switch.name.clone()).collect();
        let mut graph = Graph {
            names,
            homes,
            own_nodes,
            neighbours,
            rank: Vec::new(),
            row: Vec::new(),
            ways: Vec::new(),
        };
        graph.put_in_order(graph.rows_by_height());
        if !graph.joins_all_nodes() {
            graph.put_in_order(graph.rows_by_depth());
            assert!(graph.joins_all_nodes(), "a connected graph has an up*/down* way for all pairs");
        }
        Ok((wiring, graph))
    }

    /// The switches farthest from any node on top.
    fn rows_by_height(&self) -> Vec<u32> {
        let leaves = (0..self.own_nodes.len()).filter(|switch| self.own_nodes[*switch] > 0);
        let height = distances(&self.neighbours, leaves.map(|switch| switch as u32));
        let top = height.iter().copied().max().unwrap_or(0);
        height.iter().map(|height| top - height).collect()
    }

    /// The switches nearest to the root on top.
    fn rows_by_depth(&self) -> Vec<u32> {
        let farthest_node = |root: &u32| {
            let distances = distances(&self.neighbours, [*root].into_iter());
            let nodes = distances.iter().zip(&self.own_nodes).filter(|(_, nodes)| **nodes > 0);
            nodes.map(|(distance, _)| *distance).max()
        };
        let root = (0..self.neighbours.len() as u32).min_by_key(farthest_node);
        distances(&self.neighbours, root.into_iter())
    }

    fn put_in_order(&mut self, row: Vec<u32>) {
        let mut order: Vec<u32> = (0..row.len() as u32).collect();
        order.sort_by_key(|switch| (row[*switch as usize], *switch));
        self.rank = vec![0; row.len()];
        for (rank, switch) in order.iter().enumerate() {
            self.rank[*switch as usize] = rank as u32;
        }
        self.row = row;
        self.ways = Vec::with_capacity(order.len() * order.len());
        for destination in 0..order.len() as u32 {
            let ways = self.ways_to(destination, &order);
            self.ways.extend(ways);
        }
    }

    fn ways_to(&self, destination: u32, order: &[u32]) -> Vec<Way> {
        let mut ways = vec![NO_WAY; order.len()];
        ways[destination as usize] = Way { channels: 0, is_down: true };
        let mut queue = VecDeque::from([destination]);
        while let Some(lower) = queue.pop_front() {
            let channels = ways[lower as usize].channels + 1;
            for upper in &self.neighbours[lower as usize] {
                if self.is_up(lower, *upper) && ways[*upper as usize] == NO_WAY {
                    ways[*upper as usize] = Way { channels, is_down: true };
                    queue.push_back(*upper);
                }
            }
        }
        // From the top, so that all that is above a switch is known.
        for switch in order {
            if ways[*switch as usize].is_down {
                continue;
            }
            let above = self.neighbours[*switch as usize].iter().filter(|upper| self.is_up(*switch, **upper));
            let nearest = above.map(|upper| ways[*upper as usize].channels).min().unwrap_or(u16::MAX);
            ways[*switch as usize].channels = nearest.saturating_add(1);
        }
        ways
    }

    fn joins_all_nodes(&self) -> bool {
        let has_nodes = |switch: &usize| self.own_nodes[*switch] > 0;
        let count = self.own_nodes.len();
        (0..count).filter(has_nodes).all(|destination| {
            let ways = &self.ways[destination * count..][..count];
            (0..count).filter(has_nodes).all(|switch| ways[switch].channels < u16::MAX)
        })
    }

    /// Of the widest row, if all switches of a row have as much room as the one with the most nodes: a name needs some, too.
    fn picture_width(&self) -> f64 {
        let widest = f64::from(self.own_nodes.iter().copied().max().unwrap_or(0)).max(3.0) + 1.0;
        let mut rows = self.row.clone();
        rows.sort_unstable();
        rows.chunk_by(|one, other| one == other).map(|row| row.len() as f64 * widest).fold(0.0, f64::max)
    }

    fn is_up(&self, from: u32, to: u32) -> bool {
        self.rank[to as usize] < self.rank[from as usize]
    }

    /// The output ports of a switch on the ways to another.
    fn ports(&self, switch: u32, destination: u32) -> impl Iterator<Item = u16> + Clone {
        let ways = &self.ways[destination as usize * self.own_nodes.len()..][..self.own_nodes.len()];
        let way = ways[switch as usize];
        let first = self.own_nodes[switch as usize];
        let leads_on = move |next: u32| {
            let left = ways[next as usize];
            self.is_up(switch, next) != way.is_down
                && left.is_down >= way.is_down
                && left.channels.checked_add(1) == Some(way.channels)
        };
        let ports = (first..).zip(&self.neighbours[switch as usize]);
        ports.filter(move |(_, next)| leads_on(**next)).map(|(port, _)| port)
    }
}

/// Of each node: its switch, and its port there.
fn homes(switches: &[GraphSwitch]) -> Result<Vec<(u32, u16)>, TopologyError> {
    let mut homes = BTreeMap::new();
    for (number, switch) in switches.iter().enumerate() {
        for (port, node) in switch.nodes.iter().enumerate() {
            if let Some((other, _)) = homes.insert(*node, (number as u32, port as u16)) {
                let (switch, other) = (switch.name.clone(), switches[other as usize].name.clone());
                return Err(TopologyError::NodeTwice { node: *node, switch, other });
            }
        }
    }
    let Some(last) = homes.keys().next_back().copied() else {
        let expected = "at least 1".to_owned();
        return Err(TopologyError::Size { topology: "graph", what: "nodes", found: 0, expected });
    };
    if let Some(node) = (0..=last).find(|node| !homes.contains_key(node)) {
        return Err(TopologyError::NodeNowhere { node, last });
    }
    Ok(homes.into_values().collect())
}

/// Every link, by the numbers of the switches at its ends.
fn links(switches: &[GraphSwitch]) -> Result<Vec<(u32, u32)>, TopologyError> {
    let mut numbers = BTreeMap::new();
    for (number, switch) in switches.iter().enumerate() {
        if numbers.insert(switch.name.as_str(), number as u32).is_some() {
            return Err(TopologyError::SameName { switch: switch.name.clone() });
        }
    }
    let mut links = Vec::new();
    for (number, switch) in switches.iter().enumerate() {
        for link in &switch.links {
            let Some(other) = numbers.get(link.as_str()) else {
                let (switch, missing) = (switch.name.clone(), link.clone());
                return Err(TopologyError::NoSuchSwitch { switch, missing });
            };
            if *other == number as u32 {
                return Err(TopologyError::LinkToItself { switch: switch.name.clone() });
            }
            links.push((number as u32, *other));
        }
    }
    Ok(links)
}

fn neighbours(switches: &[GraphSwitch]) -> Result<Vec<Vec<u32>>, TopologyError> {
    let mut neighbours = vec![Vec::new(); switches.len()];
    for (one, other) in links(switches)? {
        neighbours[one as usize].push(other);
        neighbours[other as usize].push(one);
    }
    for (switch, neighbours) in switches.iter().zip(&neighbours) {
        let ports = (switch.nodes.len() + neighbours.len()) as u64;
        if ports > u64::from(u16::MAX) {
            let expected = format!("at most {}", u16::MAX);
            return Err(TopologyError::Size {
                topology: "graph",
                what: "ports of a switch",
                found: ports,
                expected,
            });
        }
    }
    Ok(neighbours)
}

fn check_connected(switches: &[GraphSwitch], neighbours: &[Vec<u32>]) -> Result<(), TopologyError> {
    let reached = distances(neighbours, std::iter::once(0));
    match reached.iter().position(|distance| *distance == u32::MAX) {
        None => Ok(()),
        Some(missed) => Err(TopologyError::Unconnected {
            from: switches[0].name.clone(),
            to: switches[missed].name.clone(),
        }),
    }
}

/// Links from the nearest of `starts` to every switch.
fn distances(neighbours: &[Vec<u32>], starts: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut distances = vec![u32::MAX; neighbours.len()];
    let mut queue = VecDeque::new();
    for start in starts {
        distances[start as usize] = 0;
        queue.push_back(start);
    }
    while let Some(switch) = queue.pop_front() {
        for next in &neighbours[switch as usize] {
            if distances[*next as usize] == u32::MAX {
                distances[*next as usize] = distances[switch as usize] + 1;
                queue.push_back(*next);
            }
        }
    }
    distances
}

impl Routing for Graph {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        let (end, port) = self.homes[destination as usize];
        if switch == end {
            out.push(port);
        } else {
            out.extend(self.ports(switch, end));
        }
    }

    /// By the destination's number, so that destinations are spread.
    fn port(&self, switch: u32, destination: u32) -> u16 {
        let (end, port) = self.homes[destination as usize];
        if switch == end {
            return port;
        }
        let ports = self.ports(switch, end);
        let count = ports.clone().count();
        assert!(count > 0, "switch {switch} is on no route to node {destination}");
        ports.into_iter().nth(destination as usize % count).unwrap_or(0)
    }

    /// Switches in rows by their order, evenly; nodes below their switch.
    fn place(&self, device: Device) -> Place {
        let switch = match device {
            Device::Node(node) => self.homes[node as usize].0,
            Device::Switch(switch) => switch,
        };
        let row = self.row[switch as usize];
        let count = self.row.iter().filter(|other| **other == row).count() as f64;
        let before = self.row[..switch as usize].iter().filter(|other| **other == row).count() as f64;
        let width = self.picture_width();
        let x = (before + 0.5) / count * width;
        let y = f64::from(row) * rise(width as u32).max(4.0);
        match device {
            Device::Switch(_) => Place::new(x, y),
            Device::Node(node) => {
                let middle = f64::from(self.own_nodes[switch as usize] - 1) / 2.0;
                Place::new(x + f64::from(self.homes[node as usize].1) - middle, y + 2.0)
            }
        }
    }

    fn name(&self, switch: u32) -> Option<&str> {
        Some(&self.names[switch as usize])
    }
}
