//! What a process's page faults brought in, as a note of the trace.

use std::fmt;
use std::str::FromStr;

use crate::large_requests::NoRates;
use crate::tables::{ProcessId, Tables};

/// Page faults of a process that waited for a device or server (*major* ones), from its first mapping of a file on.
///
/// As a note's text: `process 3: 4297 major, 17604608 bytes from devices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFaults {
    /// The process.
    pub process: ProcessId,
    /// How many of its faults waited.
    pub major: u64,
    /// Bytes that the process caused to be read from devices meanwhile, by faults or otherwise.
    pub device_bytes: u64,
}

impl PageFaults {
    /// The name of such a note.
    pub const NOTE: &str = "page faults";

    /// All that a trace's notes say; a note that is none is left out.
    pub fn of(tables: &Tables) -> Vec<PageFaults> {
        let notes = tables.notes.iter().filter(|(name, _)| name == PageFaults::NOTE);
        notes.filter_map(|(_, value)| value.parse().ok()).collect()
    }
}

impl fmt::Display for PageFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PageFaults { process, major, device_bytes } = self;
        write!(f, "process {}: {major} major, {device_bytes} bytes from devices", process.0)
    }
}

impl FromStr for PageFaults {
    type Err = NoRates;

    fn from_str(text: &str) -> Result<PageFaults, NoRates> {
        let (process, rest) =
            text.strip_prefix("process ").and_then(|rest| rest.split_once(": ")).ok_or(NoRates)?;
        let rest = rest.strip_suffix(" bytes from devices").ok_or(NoRates)?;
        let (major, device_bytes) = rest.split_once(" major, ").ok_or(NoRates)?;
        Ok(PageFaults {
            process: ProcessId(process.parse().map_err(|_| NoRates)?),
            major: major.parse().map_err(|_| NoRates)?,
            device_bytes: device_bytes.parse().map_err(|_| NoRates)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_it_was_written_from() {
        let faults = PageFaults { process: ProcessId(3), major: 4297, device_bytes: 17_604_608 };
        assert_eq!(faults.to_string().parse(), Ok(faults));
        for text in
            ["", "process 3", "process x: 1 major, 2 bytes from devices", "process 1: 2 major, 3 bytes"]
        {
            assert_eq!(text.parse::<PageFaults>(), Err(NoRates), "{text}");
        }
    }
}
