//! Messages as fluids.

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::section::Section;

/// Messages as fluids: every link on a message's way shares its bandwidth fairly among those that cross it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which way a message goes.
    pub routes: FlowRoutes,
}

/// Which way a message goes, where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRoutes {
    /// The static route of its pair of nodes.
    Static,
    /// All that the network's adaptive routing allows, in equal parts at every switch.
    Spread,
}

const ROUTES: &[(&str, FlowRoutes)] = &[("static", FlowRoutes::Static), ("spread", FlowRoutes::Spread)];

impl Flow {
    pub(super) fn read(mut section: Section<'_>) -> Result<Flow, MachineError> {
        let flow = Flow { routes: section.word("routes", ROUTES)? };
        section.finish()?;
        Ok(flow)
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let routes = match self.routes {
            FlowRoutes::Static => "static",
            FlowRoutes::Spread => "spread",
        };
        writeln!(out, "flow = {{ routes = \"{routes}\" }}")
    }
}
