//! What connects the nodes.

mod flow;
mod topology;
mod wormhole;

pub use flow::{Flow, FlowRoutes};
pub use topology::{Dragonfly, DragonflyRouting, GraphSwitch, Topology};
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
}

/// How messages get through a network, with what each way needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Messages meet at the links of their nodes, and nowhere else. What a description gets that says nothing of it.
    Links,
    /// Messages share every link on their way as fluids do.
    Flow(Flow),
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
    Wormhole,
    CutThrough,
}

const SWITCHING: &[(&str, SwitchingKind)] = &[
    ("links", SwitchingKind::Links),
    ("flow", SwitchingKind::Flow),
    ("wormhole", SwitchingKind::Wormhole),
    ("cut-through", SwitchingKind::CutThrough),
];

impl Network {
    /// Reads the section; `nodes` are all of the machine, I/O nodes included.
    pub(crate) fn read(mut section: Section<'_>, nodes: u64) -> Result<Network, MachineError> {
        let kind = if section.has("switching") {
            section.word("switching", SWITCHING)?
        } else {
            SwitchingKind::Links
        };
        let topology = Topology::read(&mut section)?;
        let switching = match kind {
            SwitchingKind::Links => Switching::Links,
            SwitchingKind::Flow => Switching::Flow(Flow::read(section.section("flow")?)?),
            SwitchingKind::Wormhole => {
                Switching::Wormhole(Wormhole::read(section.section("router")?, false)?)
            }
            SwitchingKind::CutThrough => {
                Switching::Wormhole(Wormhole::read(section.section("router")?, true)?)
            }
        };
        topology.check_room(&section, &switching, nodes)?;
        let mut link = section.section("link")?;
        let network = Network {
            topology,
            switching,
            link: Link { bandwidth: link.bandwidth("bandwidth")?, latency: link.duration("latency", "1 s")? },
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
            Switching::Wormhole(wormhole) => wormhole.write(out)?,
        }
        let link = &self.link;
        writeln!(out, "link = {{ bandwidth = \"{}\", latency = \"{}\" }}", link.bandwidth, link.latency)
    }
}
