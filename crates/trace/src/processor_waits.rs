//! How long a process waited for a processor, and how often it gave its own away, as a note of the trace.

use std::fmt;
use std::str::FromStr;

use crate::large_requests::NoRates;
use crate::tables::{ProcessId, Tables};

/// Time in which a rank could have run, but had no processor: of its first thread since MPI_Init, by the kernel's count.
///
/// As a note's text: `process 3: 1250000 ns, 51 sleeps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorWait {
    /// The process.
    pub process: ProcessId,
    /// How long it waited in all, nanoseconds.
    pub waited_ns: u64,
    /// How often it gave its processor away to wait for something else; none where that is not known.
    pub sleeps: Option<u64>,
}

impl ProcessorWait {
    /// The name of such a note.
    pub const NOTE: &str = "waits for a processor";

    /// All that a trace's notes say; a note that is none is left out.
    pub fn of(tables: &Tables) -> Vec<ProcessorWait> {
        let notes = tables.notes.iter().filter(|(name, _)| name == ProcessorWait::NOTE);
        notes.filter_map(|(_, value)| value.parse().ok()).collect()
    }
}

impl fmt::Display for ProcessorWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}: {} ns", self.process.0, self.waited_ns)?;
        self.sleeps.map_or(Ok(()), |sleeps| write!(f, ", {sleeps} sleeps"))
    }
}

impl FromStr for ProcessorWait {
    type Err = NoRates;

    fn from_str(text: &str) -> Result<ProcessorWait, NoRates> {
        let number = |text: &str, unit: &str| {
            text.strip_suffix(unit).and_then(|number| number.parse().ok()).ok_or(NoRates)
        };
        let rest = text.strip_prefix("process ").ok_or(NoRates)?;
        let (process, rest) = rest.split_once(": ").ok_or(NoRates)?;
        let (waited, sleeps) = match rest.split_once(", ") {
            Some((waited, sleeps)) => (waited, Some(number(sleeps, " sleeps")?)),
            None => (rest, None),
        };
        Ok(ProcessorWait {
            process: ProcessId(process.parse().map_err(|_| NoRates)?),
            waited_ns: number(waited, " ns")?,
            sleeps,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_it_was_written_from() {
        for sleeps in [None, Some(51)] {
            let wait = ProcessorWait { process: ProcessId(3), waited_ns: 1_250_000, sleeps };
            assert_eq!(wait.to_string().parse(), Ok(wait));
        }
        for text in ["", "process 3", "process 3: 5", "process x: 5 ns", "process 3: 5 ns, 2"] {
            assert_eq!(text.parse::<ProcessorWait>(), Err(NoRates), "{text}");
        }
    }
}
