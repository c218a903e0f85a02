//! Events of a block process by process, each process's in order of start.
//!
//! Ranks that do alike then lie one behind the other, and which of them had its turn when need not be told: starts say it.

mod decode;
mod encode;
mod model;
mod numbering;

pub(crate) use decode::decode;
pub(crate) use encode::Encoder;
pub(crate) use numbering::FirstHandles;
