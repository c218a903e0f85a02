//! What it costs to write files anew that are there.

use crate::describe::call_text;
use crate::error::MachineError;
use crate::machine::{CallCost, call_cost};
use crate::section::Section;

/// What calls take longer where a program opens a file to write it anew (`O_TRUNC`): file systems free what it had, and many write
/// what it has then to the device when it is closed, as a crash would lose both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrites {
    /// The open, by the bytes that the file had.
    pub open: CallCost,
    /// The close, by those that it has.
    pub close: CallCost,
}

impl Rewrites {
    pub(crate) fn read(mut section: Section<'_>) -> Result<Rewrites, MachineError> {
        let found = Rewrites {
            open: call_cost(section.section("open")?)?,
            close: call_cost(section.section("close")?)?,
        };
        section.finish()?;
        Ok(found)
    }

    pub(crate) fn text(&self) -> String {
        format!("{{ open = {}, close = {} }}", call_text(&self.open), call_text(&self.close))
    }
}
