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

const KEYS: [&str; 2] = ["read", "write"];

impl CallCosts {
    pub(crate) fn read(section: Section<'_>) -> Result<CallCosts, MachineError> {
        let [read, write] = two_costs(section, KEYS)?;
        Ok(CallCosts { read, write })
    }

    pub(crate) fn text(&self) -> String {
        two_texts(KEYS, [&self.read, &self.write])
    }
}

/// The costs of two kinds of calls, of which a table has one under each of these keys.
pub(crate) fn two_costs(
    mut section: Section<'_>,
    [one, other]: [&'static str; 2],
) -> Result<[CallCost; 2], MachineError> {
    let costs = [call_cost(section.section(one)?)?, call_cost(section.section(other)?)?];
    section.finish()?;
    Ok(costs)
}

/// Such a table.
pub(crate) fn two_texts([one, other]: [&str; 2], costs: [&CallCost; 2]) -> String {
    let [first, second] = costs.map(call_text);
    format!("{{ {one} = {first}, {other} = {second} }}")
}
