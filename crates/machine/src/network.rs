//! What connects the nodes.

mod central_queue;
pub mod circuit;
mod flow;
mod rails;
mod topology;
mod wormhole;

pub use central_queue::{Adapter, CentralQueue};
pub use flow::{Congestion, Flow, FlowRoutes};
pub use rails::Rails;
pub use topology::{Dragonfly, DragonflyRouting, FatTree, GraphSwitch, Topology};
pub use wormhole::{Allocator, Arbitration, Choice, Pipeline, Reuse, Wormhole};

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration};
use crate::section::Section;

/// What connects the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its shape.
    pub topology: Topology,
    /// How messages get through it.
    pub switching: Switching,
    /// Each of its links.
    pub link: Link,
    /// How many of them a node has.
    pub rails: Rails,
}

/// How messages get through a network, with what each way needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Messages meet at the links of their nodes, and nowhere else. What a description gets that says nothing of it.
    Links,
    /// Messages share every link on their way as fluids do.
    Flow(Flow),
    /// Packets go through switches with a central queue.
    CentralQueue(CentralQueue),
    /// Packets hold their way until they are acknowledged.
    Circuit(circuit::Circuit),
    /// Messages go in packets, and packets in flits, through switches with virtual channels and credits.
    Wormhole(Wormhole),
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bytes a second, each way.
    pub bandwidth: Bandwidth,
    /// Time of the first byte on one link.
    pub latency: Duration,
}

#[derive(Clone, Copy)]
enum SwitchingKind {
    Links,
    Flow,
    CentralQueue,
    Circuit,
    Wormhole,
    CutThrough,
}

const SWITCHING: &[(&str, SwitchingKind)] = &[
    ("links", SwitchingKind::Links),
    ("flow", SwitchingKind::Flow),
    ("central-queue", SwitchingKind::CentralQueue),
    ("circuit", SwitchingKind::Circuit),
    ("wormhole", SwitchingKind::Wormhole),
    ("cut-through", SwitchingKind::CutThrough),
];

impl Network {
    /// Whether the adapters between nodes and links are part of it.
    pub fn has_adapters(&self) -> bool {
        matches!(self.switching, Switching::CentralQueue(_) | Switching::Circuit(_))
    }

    /// Reads the section of a machine with so many compute nodes, and I/O nodes beside them.
    pub(crate) fn read(
        mut section: Section<'_>,
        compute_nodes: u32,
        io_nodes: u32,
    ) -> Result<Network, MachineError> {
        let kind = if section.has("switching") {
            section.word("switching", SWITCHING)?
        } else {
            SwitchingKind::Links
        };
        let topology = Topology::read(&mut section)?;
        let switching = match kind {
            SwitchingKind::Links => Switching::Links,
            SwitchingKind::Flow => Switching::Flow(Flow::read(section.section("flow")?)?),
            SwitchingKind::CentralQueue => {
                Switching::CentralQueue(CentralQueue::read(section.section("central-queue")?)?)
            }
            SwitchingKind::Circuit => {
                Switching::Circuit(circuit::Circuit::read(section.section("circuit")?)?)
            }
            SwitchingKind::Wormhole => {
                Switching::Wormhole(Wormhole::read(section.section("router")?, false)?)
            }
            SwitchingKind::CutThrough => {
                Switching::Wormhole(Wormhole::read(section.section("router")?, true)?)
            }
        };
        let rails =
            if section.has("rails") { Rails::read(section.section("rails")?)? } else { Rails::default() };
        topology.check_room(&mut section, &switching, rails.ends(compute_nodes, io_nodes))?;
        let mut link = section.section("link")?;
        let network = Network {
            topology,
            switching,
            link: Link { bandwidth: link.bandwidth("bandwidth")?, latency: link.duration("latency", "1 s")? },
            rails,
        };
        link.finish()?;
        section.finish()?;
        Ok(network)
    }

    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[network]")?;
        self.topology.write(out)?;
        match &self.switching {
            Switching::Links => {}
            Switching::Flow(flow) => {
                writeln!(out, "switching = \"flow\"")?;
                flow.write(out)?;
            }
            Switching::CentralQueue(queue) => {
                writeln!(out, "switching = \"central-queue\"")?;
                queue.write(out)?;
            }
            Switching::Circuit(circuit) => {
                writeln!(out, "switching = \"circuit\"")?;
                circuit.write(out)?;
            }
            Switching::Wormhole(wormhole) => wormhole.write(out)?,
        }
        self.rails.write(out)?;
        let link = &self.link;
        writeln!(out, "link = {{ bandwidth = \"{}\", latency = \"{}\" }}", link.bandwidth, link.latency)
    }
}
