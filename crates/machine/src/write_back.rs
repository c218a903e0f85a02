//! How what was written leaves the memory of a node for its device, as Linux does it
//! (Documentation/admin-guide/sysctl/vm.rst, `dirty_*`; `balance_dirty_pages` in mm/page-writeback.c).

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::Section;

/// When the kernel writes the pages that programs have written to their device, and when those wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// Bytes of dirty pages from which on the kernel writes them to the device while programs go on.
    pub background: u64,
    /// Who writes is slowed down to the device's speed before dirty pages come to so many bytes: from the mean of this and
    /// `background` on.
    pub limit: u64,
    /// Pages that have been dirty for so long are written to the device, however few they are.
    pub age: Duration,
    /// What the device takes.
    pub bandwidth: Bandwidth,
}

impl WriteBack {
    pub(crate) fn read(mut section: Section<'_>) -> Result<WriteBack, MachineError> {
        const BYTES: std::ops::RangeInclusive<u64> = 0..=1 << 60;
        let found = WriteBack {
            background: section.size("background", BYTES)?,
            limit: section.size("limit", BYTES)?,
            age: section.duration("age", "1000000 s")?,
            bandwidth: section.bandwidth("bandwidth")?,
        };
        if found.limit < found.background {
            let least = section.name("background");
            return Err(
                section.conflict("limit", format!("no less than {least}, from which on anything is written"))
            );
        }
        section.finish()?;
        Ok(found)
    }

    pub(crate) fn text(&self) -> String {
        let WriteBack { background, limit, age, bandwidth } = self;
        let (background, limit) = (size_text(*background), size_text(*limit));
        format!(
            "{{ background = \"{background}\", limit = \"{limit}\", age = \"{age}\", bandwidth = \"{bandwidth}\" }}"
        )
    }
}
