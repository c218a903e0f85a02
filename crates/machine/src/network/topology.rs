//! The shape of a network.

mod fat_tree;

use std::fmt::{self, Write};

use super::Switching;
use crate::describe::quoted;
use crate::error::MachineError;
use crate::machine::MOST_NODES;
use crate::section::Section;

pub use fat_tree::FatTree;

/// The shape of a network. `docs/design/networks.md` draws each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One switch: every node is one link away from it.
    Flat,
    /// Stages of switches with so many ports on either side, as many stages as the nodes need.
    Omega {
        /// Ports on one side of a switch.
        radix: u32,
    },
    /// Levels of switches over the nodes, each subtree with as many of them as the links of its switches upwards.
    FatTree(FatTree),
    /// The k-ary n-fly: `arity`^`stages` nodes.
    Fly {
        /// Ports of a switch on either side.
        arity: u32,
        /// Stages of switches.
        stages: u32,
    },
    /// A mesh: a node with its switch at every point, numbered with the first coordinate fastest.
    Mesh {
        /// Nodes along each dimension.
        dimensions: Vec<u32>,
    },
    /// A mesh whose ends are joined.
    Torus {
        /// Nodes along each dimension.
        dimensions: Vec<u32>,
    },
    /// Groups of switches, all of a group joined to each other, and every group to every other.
    Dragonfly(Dragonfly),
    /// Switches and links of one's own.
    Graph {
        /// The switches.
        switches: Vec<GraphSwitch>,
    },
}

/// The numbers of a dragonfly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// Nodes on each switch.
    pub nodes_per_switch: u32,
    /// Switches in each group.
    pub switches_per_group: u32,
    /// Links of each switch to other groups.
    pub links_per_switch: u32,
    /// Groups.
    pub groups: u32,
    /// Which way packets go.
    pub routing: DragonflyRouting,
}

/// Which way packets go in a dragonfly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DragonflyRouting {
    /// Straight to the destination's group.
    Minimal,
    /// By way of a third group, chosen at random (Valiant).
    Valiant,
    /// Straight or by way of a third group, whichever has less before it (UGAL, as Kim et al. 2008 have it).
    Adaptive,
}

/// A switch of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSwitch {
    /// Its name.
    pub name: String,
    /// The nodes on it.
    pub nodes: Vec<u32>,
    /// The switches it is linked to, once for each link; each link is named at one of its ends.
    pub links: Vec<String>,
}

#[derive(Clone, Copy)]
enum Kind {
    Flat,
    Omega,
    FatTree,
    Fly,
    Mesh,
    Torus,
    Dragonfly,
    Graph,
}

const KINDS: &[(&str, Kind)] = &[
    ("flat", Kind::Flat),
    ("omega", Kind::Omega),
    ("fat-tree", Kind::FatTree),
    ("fly", Kind::Fly),
    ("mesh", Kind::Mesh),
    ("torus", Kind::Torus),
    ("dragonfly", Kind::Dragonfly),
    ("graph", Kind::Graph),
];

const ROUTINGS: &[(&str, DragonflyRouting)] = &[
    ("minimal", DragonflyRouting::Minimal),
    ("valiant", DragonflyRouting::Valiant),
    ("adaptive", DragonflyRouting::Adaptive),
];

const ARITIES: std::ops::RangeInclusive<u32> = 2..=1024;
const LEVELS: std::ops::RangeInclusive<u32> = 1..=20;

impl Topology {
    pub(super) fn read(section: &mut Section<'_>) -> Result<Topology, MachineError> {
        Ok(match section.word("kind", KINDS)? {
            Kind::Flat => Topology::Flat,
            Kind::Omega => Topology::Omega { radix: section.number("radix", ARITIES)? },
            Kind::FatTree => Topology::FatTree(FatTree::read(section)?),
            Kind::Fly => {
                let (arity, stages) = (section.number("arity", ARITIES)?, section.number("stages", LEVELS)?);
                check_power(section, "stages", arity, stages)?;
                Topology::Fly { arity, stages }
            }
            Kind::Mesh => Topology::Mesh { dimensions: dimensions(section)? },
            Kind::Torus => Topology::Torus { dimensions: dimensions(section)? },
            Kind::Dragonfly => Topology::Dragonfly(dragonfly(section)?),
            Kind::Graph => Topology::Graph { switches: graph(section)? },
        })
    }

    /// Refuses a network that has no room for all nodes, or that `switching` does not know.
    pub(super) fn check_room(
        &self,
        section: &mut Section<'_>,
        switching: &Switching,
        nodes: u64,
    ) -> Result<(), MachineError> {
        let is_counted = matches!(switching, Switching::Links);
        let (key, room) = match self {
            // Such a network grows with its nodes.
            Topology::Flat | Topology::Omega { .. } if is_counted => return Ok(()),
            Topology::Flat => ("kind", u64::from(u16::MAX)),
            Topology::Omega { radix: 4 } => ("kind", 128),
            Topology::Omega { .. } => {
                return Err(
                    section.conflict("radix", "4: its switches have 4 ports on either side".to_owned())
                );
            }
            Topology::FatTree(tree) => (fat_tree::size_key(section), tree.nodes()),
            Topology::Fly { arity, stages } => ("stages", u64::from(*arity).pow(*stages)),
            Topology::Mesh { dimensions } | Topology::Torus { dimensions } => {
                ("dimensions", dimensions.iter().map(|extent| u64::from(*extent)).product())
            }
            Topology::Dragonfly(dragonfly) => ("groups", dragonfly.nodes()),
            Topology::Graph { switches } => {
                ("switches", switches.iter().map(|switch| switch.nodes.len() as u64).sum())
            }
        };
        if nodes <= room {
            return Ok(());
        }
        let expected = format!(
            "a network with room for {nodes} nodes (nodes.count and dedicated I/O nodes, each as often as it has rails), \
             this one has room for {room}"
        );
        Err(section.conflict(key, expected))
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        match self {
            Topology::Flat => writeln!(out, "kind = \"flat\""),
            Topology::Omega { radix } => writeln!(out, "kind = \"omega\"\nradix = {radix}"),
            Topology::FatTree(tree) => tree.write(out),
            Topology::Fly { arity, stages } => {
                writeln!(out, "kind = \"fly\"\narity = {arity}\nstages = {stages}")
            }
            Topology::Mesh { dimensions } => writeln!(out, "kind = \"mesh\"\ndimensions = {dimensions:?}"),
            Topology::Torus { dimensions } => writeln!(out, "kind = \"torus\"\ndimensions = {dimensions:?}"),
            Topology::Dragonfly(dragonfly) => dragonfly.write(out),
            Topology::Graph { switches } => {
                writeln!(out, "kind = \"graph\"\nswitches = [")?;
                for switch in switches {
                    let links: Vec<String> = switch.links.iter().map(|link| quoted(link)).collect();
                    let (name, nodes) = (quoted(&switch.name), quoted(&ranges_text(&switch.nodes)));
                    writeln!(out, "  {{ name = {name}, nodes = {nodes}, links = [{}] }},", links.join(", "))?;
                }
                writeln!(out, "]")
            }
        }
    }
}

impl Dragonfly {
    /// How many nodes there are.
    pub fn nodes(&self) -> u64 {
        u64::from(self.nodes_per_switch) * u64::from(self.switches_per_group) * u64::from(self.groups)
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "kind = \"dragonfly\"")?;
        writeln!(out, "nodes-per-switch = {}", self.nodes_per_switch)?;
        writeln!(out, "switches-per-group = {}", self.switches_per_group)?;
        writeln!(out, "links-per-switch = {}", self.links_per_switch)?;
        writeln!(out, "groups = {}", self.groups)?;
        let routing = match self.routing {
            DragonflyRouting::Minimal => "minimal",
            DragonflyRouting::Valiant => "valiant",
            DragonflyRouting::Adaptive => "adaptive",
        };
        writeln!(out, "routing = \"{routing}\"")
    }
}

fn check_power(section: &Section<'_>, key: &'static str, arity: u32, power: u32) -> Result<(), MachineError> {
    if u64::from(arity).checked_pow(power).is_some_and(|nodes| nodes <= MOST_NODES.into()) {
        return Ok(());
    }
    Err(section.conflict(key, format!("at most {MOST_NODES} nodes: arity {arity} to a smaller power")))
}

fn dimensions(section: &mut Section<'_>) -> Result<Vec<u32>, MachineError> {
    let dimensions = section.numbers("dimensions", 1..=6, 1..=MOST_NODES)?;
    let nodes: u64 = dimensions.iter().fold(1, |product, extent| u64::from(*extent).saturating_mul(product));
    if nodes > MOST_NODES.into() {
        return Err(section.conflict("dimensions", format!("a product of at most {MOST_NODES}")));
    }
    Ok(dimensions)
}

fn dragonfly(section: &mut Section<'_>) -> Result<Dragonfly, MachineError> {
    let dragonfly = Dragonfly {
        nodes_per_switch: section.number("nodes-per-switch", 1..=1024)?,
        switches_per_group: section.number("switches-per-group", 1..=1024)?,
        links_per_switch: section.number("links-per-switch", 1..=1024)?,
        groups: section.number("groups", 2..=MOST_NODES)?,
        routing: section.word("routing", ROUTINGS)?,
    };
    let most = dragonfly.switches_per_group * dragonfly.links_per_switch + 1;
    if dragonfly.groups > most {
        let expected = format!(
            "2 to {most}: every group needs a link to every other, \
             and has switches-per-group x links-per-switch = {}",
            most - 1
        );
        return Err(section.conflict("groups", expected));
    }
    if dragonfly.routing != DragonflyRouting::Minimal && dragonfly.groups < 3 {
        return Err(section.conflict("groups", "at least 3 to go by a third".to_owned()));
    }
    if dragonfly.nodes() > MOST_NODES.into() {
        return Err(section.conflict("groups", format!("at most {MOST_NODES} nodes in all")));
    }
    Ok(dragonfly)
}

fn graph(section: &mut Section<'_>) -> Result<Vec<GraphSwitch>, MachineError> {
    let mut switches = Vec::new();
    for mut switch in section.sections("switches")? {
        let name = switch.text("name")?;
        let expected = "node numbers such as \"0-15, 20\"; leave it out if there are none";
        let nodes =
            if switch.has("nodes") { switch.parsed("nodes", expected, parse_ranges)? } else { Vec::new() };
        let links = if switch.has("links") { switch.texts("links")? } else { Vec::new() };
        switch.finish()?;
        switches.push(GraphSwitch { name, nodes, links });
    }
    Ok(switches)
}

/// Numbers from a text such as `0-15, 20`, in its order.
fn parse_ranges(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split(',').filter(|part| !text.trim().is_empty() || !part.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MOST_NODES {
            return None;
        }
        // A number is of one switch, once: more is refused before it takes memory.
        if numbers.len() as u64 + u64::from(last - first) >= MOST_NODES.into() {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The text that [`parse_ranges`] reads so.
fn ranges_text(numbers: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(*first..).take_while(|(number, expected)| **number == *expected).count();
        let last = first + run as u32 - 1;
        parts.push(if run == 1 { first.to_string() } else { format!("{first}-{last}") });
        rest = &rest[run..];
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_written() {
        for (text, numbers) in
            [("", vec![]), ("3", vec![3]), ("0-3, 7", vec![0, 1, 2, 3, 7]), ("5, 1-2", vec![5, 1, 2])]
        {
            assert_eq!(parse_ranges(text), Some(numbers.clone()), "{text}");
            assert_eq!(ranges_text(&numbers), text);
        }
        let twice = "0-1048575, 0";
        for text in [twice, "a", "3-1", "1-", "1,,2", "0-4294967295", "-1"] {
            assert_eq!(parse_ranges(text), None, "{text}");
        }
    }
}
