//! Messages as fluids.

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::section::Section;

/// Messages as fluids: every link on a message's way shares its bandwidth fairly among those that cross it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which way a message goes.
    pub routes: FlowRoutes,
    /// Whether what waits for a full channel disturbs others.
    pub congestion: Congestion,
}

/// What a message that waits for a full channel does to those that share a channel with it on the way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Nothing: whoever sends is slowed down to what gets through (congestion control, and perfect).
    Controlled,
    /// It waits in the buffers on its way, and those behind it with it: they get no more than it does.
    Spreads,
}

/// Which way a message goes, where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRoutes {
    /// The static route of its pair of nodes.
    Static,
    /// All that the network's adaptive routing allows, in equal parts at every switch.
    Spread,
}

const CONGESTIONS: &[(&str, Congestion)] =
    &[("controlled", Congestion::Controlled), ("spreads", Congestion::Spreads)];

const ROUTES: &[(&str, FlowRoutes)] = &[("static", FlowRoutes::Static), ("spread", FlowRoutes::Spread)];

impl Flow {
    pub(super) fn read(mut section: Section<'_>) -> Result<Flow, MachineError> {
        let flow = Flow {
            routes: section.word("routes", ROUTES)?,
            congestion: if section.has("congestion") {
                section.word("congestion", CONGESTIONS)?
            } else {
                Congestion::Controlled
            },
        };
        if flow.congestion == Congestion::Spreads && flow.routes == FlowRoutes::Spread {
            // Parts of a message that wait in many buffers at once have no order.
            return Err(section.conflict("congestion", "\"controlled\", or routes = \"static\"".to_owned()));
        }
        section.finish()?;
        Ok(flow)
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let routes = match self.routes {
            FlowRoutes::Static => "static",
            FlowRoutes::Spread => "spread",
        };
        let congestion = match self.congestion {
            Congestion::Controlled => "",
            Congestion::Spreads => ", congestion = \"spreads\"",
        };
        writeln!(out, "flow = {{ routes = \"{routes}\"{congestion} }}")
    }
}
