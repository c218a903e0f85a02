//! Fat trees: k-ary n-trees, and trees with other numbers of links at each level, oversubscribed ones among them.
//!
//! Level 0 is next to the nodes. A switch of level `l` is one of several *copies* above the same *subtree* of nodes: as many
//! as there are ways up to it from a node, the product of the uplinks of the levels below. Within its level it has the
//! number subtree x copies + copy. Its ports from 0 lead down, one to each subtree below (or to a node), and the others up.
//! Port `j` up leads to the copy of the next level that has this copy's digits and one more, `j`.
//!
//! In a k-ary n-tree these numbers are those of Petrini and Vanneschi (IPPS 1997): switches of two levels are linked if they
//! agree in all digits of base `arity` but one.

use pio_machine::FatTree as Shape;

use super::error::{MOST_NODES, TopologyError, nodes_of, within};
use super::picture::{Place, rise};
use super::wiring::Wiring;
use super::{Device, Routing};

#[derive(Debug)]
pub(super) struct FatTree {
    nodes: u32,
    levels: Vec<Level>,
}

/// The switches of a level.
#[derive(Debug)]
struct Level {
    /// The number of the first one among all switches.
    first: u32,
    count: u32,
    /// Ports down and up.
    down: u32,
    up: u32,
    /// Switches above each subtree.
    copies: u32,
    /// Nodes below each port down.
    below: u32,
}

impl FatTree {
    pub(super) fn wire_k_ary(arity: u32, levels: u32) -> Result<(Wiring, FatTree), TopologyError> {
        let arity = within(KIND, "arity", arity, 2..=1024)?;
        let levels = within(KIND, "levels", levels, 1..=20)?;
        nodes_of(KIND, arity, levels, "levels")?;
        FatTree::wire(&Shape::k_ary(arity, levels))
    }

    pub(super) fn wire(shape: &Shape) -> Result<(Wiring, FatTree), TopologyError> {
        let tree = FatTree::of(shape)?;
        let switches = tree.levels.iter().map(|level| level.count).sum();
        let mut wiring = Wiring::new(tree.nodes, switches);
        for node in 0..tree.nodes {
            wiring.link(Device::Node(node), Device::Switch(node / tree.levels[0].down));
        }
        for pair in tree.levels.windows(2) {
            let (lower, upper) = (&pair[0], &pair[1]);
            for number in 0..lower.count {
                let (subtree, copy) = (number / lower.copies, number % lower.copies);
                for port in 0..lower.up {
                    let above = subtree / upper.down * upper.copies + copy + port * lower.copies;
                    wiring.link(Device::Switch(lower.first + number), Device::Switch(upper.first + above));
                }
            }
        }
        Ok((wiring, tree))
    }

    fn of(shape: &Shape) -> Result<FatTree, TopologyError> {
        let count = within(KIND, "levels", shape.downlinks.len() as u32, 1..=20)?;
        within(KIND, "numbers of uplinks", shape.uplinks.len() as u32, count - 1..=count - 1)?;
        for links in shape.downlinks.iter().chain(&shape.uplinks) {
            within(KIND, "links", *links, 1..=1024)?;
        }
        let counts: Vec<u64> = shape.switches().collect();
        // Those of a k-ary tree are fewer than its nodes times its levels.
        let is_k_ary = shape.as_k_ary().is_some();
        let switches = if is_k_ary { 0 } else { counts.iter().copied().fold(0, u64::saturating_add) };
        for (what, found) in [("nodes", shape.nodes()), ("switches", switches)] {
            if found > MOST_NODES {
                let expected = format!("at most {MOST_NODES}");
                return Err(TopologyError::Size { topology: KIND, what, found, expected });
            }
        }
        let (mut first, mut copies, mut below) = (0, 1, 1);
        let mut levels = Vec::new();
        for (index, down) in shape.downlinks.iter().copied().enumerate() {
            let up = shape.uplinks.get(index).copied().unwrap_or(0);
            let count = counts[index] as u32;
            levels.push(Level { first, count, down, up, copies, below });
            (first, copies, below) = (first + count, copies * up, below * down);
        }
        Ok(FatTree { nodes: below, levels })
    }

    /// A switch's level, and its number there.
    fn place_of(&self, switch: u32) -> (usize, u32) {
        let level = self.levels.partition_point(|level| level.first <= switch) - 1;
        (level, switch - self.levels[level].first)
    }

    /// The port down, if the destination is below the switch.
    fn down(level: &Level, number: u32, destination: u32) -> Option<u16> {
        let subtree = destination / level.below / level.down;
        (number / level.copies == subtree).then(|| (destination / level.below % level.down) as u16)
    }
}

const KIND: &str = "fat-tree";

impl Routing for FatTree {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        let (level, number) = self.place_of(switch);
        let level = &self.levels[level];
        match FatTree::down(level, number, destination) {
            Some(port) => out.push(port),
            None => out.extend(level.down as u16..(level.down + level.up) as u16),
        }
    }

    /// Up by the destination's digits (Zahavi's d-mod-k): what goes to one node meets early and disturbs no other, and
    /// in a k-ary n-tree shifts of all nodes by the same distance do not meet at all.
    fn port(&self, switch: u32, destination: u32) -> u16 {
        let (level, number) = self.place_of(switch);
        let level = &self.levels[level];
        let up = || (level.down + destination / level.copies % level.up) as u16;
        FatTree::down(level, number, destination).unwrap_or_else(up)
    }

    fn place(&self, device: Device) -> Place {
        let rise = rise(self.nodes);
        let bottom = (self.levels.len() - 1) as f64 * rise;
        match device {
            Device::Node(node) => Place::new(f64::from(node), bottom + rise.min(5.0)),
            Device::Switch(switch) => {
                let (level, number) = self.place_of(switch);
                let apart = f64::from(self.nodes) / f64::from(self.levels[level].count);
                let x = (f64::from(number) + 0.5) * apart - 0.5;
                Place::new(x, bottom - level as f64 * rise)
            }
        }
    }
}
