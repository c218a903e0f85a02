//! Nodes with several links into the network.

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::quantity::size_text;
use crate::section::Section;

/// How many links a node has into the network, and how messages use them. Each link is a place of the topology of its own,
/// the links of a node one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rails {
    /// Links of a compute node.
    pub nodes: u32,
    /// Links of a dedicated I/O node.
    pub servers: u32,
    /// A message is divided among the links of its nodes in pieces of at least so many bytes; without it, each message takes
    /// one link.
    pub piece: Option<u64>,
}

const MOST_RAILS: u32 = 64;

impl Default for Rails {
    fn default() -> Rails {
        Rails { nodes: 1, servers: 1, piece: None }
    }
}

impl Rails {
    /// Whether every node has one link.
    pub fn is_single(&self) -> bool {
        (self.nodes, self.servers) == (1, 1)
    }

    /// The places of the topology that a machine of so many nodes needs.
    pub fn ends(&self, compute_nodes: u32, io_nodes: u32) -> u64 {
        u64::from(compute_nodes) * u64::from(self.nodes) + u64::from(io_nodes) * u64::from(self.servers)
    }

    pub(super) fn read(mut section: Section<'_>) -> Result<Rails, MachineError> {
        let nodes = section.number("nodes", 1..=MOST_RAILS)?;
        let rails = Rails {
            nodes,
            servers: if section.has("servers") { section.number("servers", 1..=MOST_RAILS)? } else { nodes },
            piece: if section.has("piece") { Some(section.size("piece", 1..=1 << 30)?) } else { None },
        };
        section.finish()?;
        Ok(rails)
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        if *self == Rails::default() {
            return Ok(());
        }
        let piece =
            self.piece.map_or_else(String::new, |piece| format!(", piece = \"{}\"", size_text(piece)));
        writeln!(out, "rails = {{ nodes = {}, servers = {}{piece} }}", self.nodes, self.servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, Topology};

    fn text(rails: Rails) -> String {
        let mut machine = Machine::built_in("dragonfly-2048").expect("it is built in");
        machine.nodes.count = 8;
        machine.network.topology = Topology::Flat;
        machine.network.rails = rails;
        machine.to_toml("a test")
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for rails in [
            Rails::default(),
            Rails { nodes: 8, servers: 2, piece: None },
            Rails { nodes: 1, servers: 2, piece: Some(1 << 16) },
        ] {
            let machine = Machine::parse("a.toml", &text(rails.clone())).expect("a machine");
            assert_eq!(machine.network.rails, rails);
        }
    }

    #[test]
    fn servers_have_as_many_as_nodes_if_nothing_is_said() {
        let rails = Rails { nodes: 4, servers: 2, piece: None };
        let text = text(rails).replace(", servers = 2", "");
        assert_eq!(Machine::parse("a.toml", &text).expect("a machine").network.rails.servers, 4);
    }

    #[test]
    fn every_rail_needs_a_place_in_the_network() {
        let mut machine = Machine::built_in("dragonfly-2048").expect("it is built in");
        // 1600 nodes and 448 servers fill 2048 places.
        machine.network.rails = Rails { nodes: 1, servers: 2, piece: None };
        let error = Machine::parse("a.toml", &machine.to_toml("a test")).expect_err("too many").to_string();
        assert!(error.contains("room for 2496 nodes") && error.contains("room for 2048"), "{error}");
    }
}
