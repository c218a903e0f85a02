//! What a read or write takes longer whose process has done other work since its last.

use crate::describe::call_text;
use crate::error::MachineError;
use crate::machine::{CallCost, call_cost};
use crate::section::Section;

/// For a call and its bytes, after [`crate::Nodes::cooling`] of other work: by then the processor's caches have nothing left of the
/// kernel's code and of the memory to or from which the call moves them. After less it is less, in proportion. What a call costs
/// otherwise is what it takes right behind another, from or to the same memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterWork {
    /// Of a read.
    pub read: CallCost,
    /// Of a write.
    pub write: CallCost,
}

impl AfterWork {
    pub(crate) fn read(mut section: Section<'_>) -> Result<AfterWork, MachineError> {
        let found = AfterWork {
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
