//! What it costs to write files anew that are there.

use crate::call_costs::{two_costs, two_texts};
use crate::error::MachineError;
use crate::machine::CallCost;
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

const KEYS: [&str; 2] = ["open", "close"];

impl Rewrites {
    pub(crate) fn read(section: Section<'_>) -> Result<Rewrites, MachineError> {
        let [open, close] = two_costs(section, KEYS)?;
        Ok(Rewrites { open, close })
    }

    pub(crate) fn text(&self) -> String {
        two_texts(KEYS, [&self.open, &self.close])
    }
}
