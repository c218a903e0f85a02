//! Processors that processes share, and what the operating system costs them.

use crate::error::MachineError;
use crate::quantity::Duration;
use crate::section::Section;

/// Processors that processes take by turns. The section `[cpu]` of a [`Computer`](crate::Computer).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Number of processors.
    pub count: u32,
    /// How long a process keeps one while another waits for it; not 0.
    pub quantum: Duration,
    /// Time to put another process on a processor than the last.
    pub switch: Duration,
    /// Processor time of a read or write call in the file system's code.
    pub system_call: Duration,
    /// Processor time taken by a disk that is done with a request.
    pub interrupt: Duration,
}

impl Cpu {
    pub(crate) fn read(mut section: Section<'_>) -> Result<Cpu, MachineError> {
        let cpu = Cpu {
            count: section.number("count", 1..=4096)?,
            quantum: section.duration("quantum", "1000 s")?,
            switch: section.duration("switch", "1 s")?,
            system_call: section.duration("system-call", "1 s")?,
            interrupt: section.duration("interrupt", "1 s")?,
        };
        if cpu.quantum == Duration::ZERO {
            return Err(section.conflict("quantum", "a time above \"0 s\"".to_owned()));
        }
        section.finish()?;
        Ok(cpu)
    }
}
