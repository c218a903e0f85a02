//! What reads and writes cost.

use crate::describe::call_text;
use crate::error::MachineError;
use crate::machine::{CallCost, call_cost};
use crate::section::Section;

/// What a read costs, and a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCosts {
    /// Of a read.
    pub read: CallCost,
    /// Of a write.
    pub write: CallCost,
}

impl CallCosts {
    pub(crate) fn parse(mut section: Section<'_>) -> Result<CallCosts, MachineError> {
        let found = CallCosts {
            read: call_cost(section.section("read")?)?,
            write: call_cost(section.section("write")?)?,
        };
        section.finish()?;
        Ok(found)
    }

    pub(crate) fn text(&self) -> String {
        format!("{{ read = {}, write = {} }}", call_text(&self.read), call_text(&self.write))
    }
}
