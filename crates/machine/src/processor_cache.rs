//! What reads and writes cost that find the pages of their file in the caches of the node's processors.

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
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
    /// What a read takes longer that begins where no cache has the file, nor what is before it: a processor foresees only what
    /// follows on what was.
    pub read_miss: Duration,
    /// The same of a write.
    pub write_miss: Duration,
}

impl ProcessorCache {
    pub(crate) fn read(mut section: Section<'_>) -> Result<ProcessorCache, MachineError> {
        let found = ProcessorCache {
            size: section.size("size", 0..=1 << 40)?,
            read: section.bandwidth("read")?,
            write: section.bandwidth("write")?,
            read_miss: section.duration_or(Duration::ZERO, "read-miss", "1 ms")?,
            write_miss: section.duration_or(Duration::ZERO, "write-miss", "1 ms")?,
        };
        section.finish()?;
        Ok(found)
    }

    pub(crate) fn text(&self) -> String {
        let ProcessorCache { size, read, write, read_miss, write_miss } = self;
        let size = size_text(*size);
        format!(
            "{{ size = \"{size}\", read = \"{read}\", write = \"{write}\", read-miss = \"{read_miss}\", \
             write-miss = \"{write_miss}\" }}"
        )
    }
}
