//! What reads and writes cost that find the pages of their file in the caches of the node's processors.

use crate::error::MachineError;
use crate::quantity::{Bandwidth, size_text};
use crate::section::Section;

/// The rates of bytes of a file of which a node's processes have read or written little else since. None are slower than what
/// a call costs otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorCache {
    /// Pages are there until so many bytes of files were read and written after them.
    pub size: u64,
    /// Of bytes that are read.
    pub read: Bandwidth,
    /// Of bytes that are written.
    pub write: Bandwidth,
}

impl ProcessorCache {
    pub(crate) fn read(mut section: Section<'_>) -> Result<ProcessorCache, MachineError> {
        let found = ProcessorCache {
            size: section.size("size", 0..=1 << 40)?,
            read: section.bandwidth("read")?,
            write: section.bandwidth("write")?,
        };
        section.finish()?;
        Ok(found)
    }

    pub(crate) fn text(&self) -> String {
        let ProcessorCache { size, read, write } = self;
        format!("{{ size = \"{}\", read = \"{read}\", write = \"{write}\" }}", size_text(*size))
    }
}
