//! How what is not in the memory of a node comes from its device.

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration};
use crate::section::Section;

/// What reads of a file wait for whose pages the node's memory does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdReads {
    /// How long one waits for its first page, unless it goes on where the reader's last one ended: then the kernel has asked
    /// for it already.
    pub request: Duration,
    /// The rate at which one reader gets pages.
    pub stream: Bandwidth,
    /// The rate of the device, for all readers of the node together.
    pub bandwidth: Bandwidth,
}

impl ColdReads {
    pub(crate) fn read(mut section: Section<'_>) -> Result<ColdReads, MachineError> {
        let found = ColdReads {
            request: section.duration("request", "1000 s")?,
            stream: section.bandwidth("stream")?,
            bandwidth: section.bandwidth("bandwidth")?,
        };
        section.finish()?;
        Ok(found)
    }

    pub(crate) fn text(&self) -> String {
        let ColdReads { request, stream, bandwidth } = self;
        format!("{{ request = \"{request}\", stream = \"{stream}\", bandwidth = \"{bandwidth}\" }}")
    }
}
