//! A computer whose processes share processors, file buffers and disks: what Miller and Katz (1991, section 6) simulate.

use std::fmt::{self, Write};
use std::path::Path;

use crate::cpu::Cpu;
use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::{Section, Source, read_file};

/// One computer: processors, buffers between processes and disks, disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computer {
    /// Short name.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// The processors.
    pub cpu: Cpu,
    /// The file buffers in main memory.
    pub buffers: Buffers,
    /// A solid-state disk; used only if it has a size.
    pub ssd: Ssd,
    /// The disks.
    pub disks: Disks,
}

/// File buffers in main memory. The section `[buffers]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of all buffers; 0 if a solid-state disk does all the buffering.
    pub size: u64,
    /// Bytes of one.
    pub block: u64,
    /// Which buffer is given away first.
    pub policy: String,
    /// Whether one process's buffers are another's, too, when it needs them.
    pub shared: bool,
    /// The most that one process may have of shared buffers, in percent.
    pub process_limit: u32,
    /// Whether as much again is read ahead of what was read in sequence.
    pub read_ahead: bool,
    /// Whether a writer goes on before its data are on disk.
    pub write_behind: bool,
    /// The most of the buffers that may wait to be written, in percent.
    pub dirty_limit: u32,
}

/// A solid-state disk that serves as buffers: below main memory's, or instead of them. The section `[ssd]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ssd {
    /// Processor time to set up one transfer from or to it.
    pub setup: Duration,
    /// Bytes a second of a transfer, during which its process keeps the processor.
    pub bandwidth: Bandwidth,
    /// Bytes of it; 0 if there is none.
    pub size: u64,
}

/// The disks. The section `[disks]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disks {
    /// Number of disks.
    pub count: u32,
    /// Over how many of them each file is striped.
    pub stripe: u32,
    /// Bytes a second of one.
    pub bandwidth: Bandwidth,
    /// Time before the first byte if the request begins where the previous one ended.
    pub sequential: Duration,
    /// The same if it is elsewhere in the same file.
    pub near: Duration,
    /// The same if it is in another file.
    pub far: Duration,
    /// Whether requests wait for each other. If not, each takes as long as if it were alone.
    pub queue: bool,
}

const SIZES: std::ops::RangeInclusive<u64> = 0..=1 << 50;
/// Each has a block at least.
const SLRU_LISTS: u64 = 4;
const BLOCKS: std::ops::RangeInclusive<u64> = 1..=1 << 26;

impl Computer {
    /// Reads a description from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is wrong: names file, line, and what is allowed.
    pub fn load(path: &Path) -> Result<Computer, MachineError> {
        let (file, text) = read_file(path)?;
        Computer::parse(&file, &text)
    }

    /// Reads a description from a text; `file` is its name in errors.
    ///
    /// # Errors
    /// If something in it is wrong: names file, line, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Computer, MachineError> {
        Computer::read(&Source { file, text, is_seen: true })
    }

    fn read(source: &Source<'_>) -> Result<Computer, MachineError> {
        let table = source.table()?;
        let mut root = Section::root(source, table.get_ref());
        let computer = Computer {
            name: root.text("name")?,
            source: root.text("source")?,
            cpu: Cpu::read(root.section("cpu")?)?,
            buffers: Buffers::read(root.section("buffers")?)?,
            ssd: Ssd::read(root.section("ssd")?)?,
            disks: Disks::read(root.section("disks")?)?,
        };
        if computer.buffers.size == 0 && computer.ssd.size == 0 {
            let expected = "a table with a size above \"0 B\", or an [ssd] with one".to_owned();
            return Err(root.conflict("buffers", expected));
        }
        if computer.ssd.size > 0 && !computer.buffers.fit(computer.ssd.size) {
            let expected = "a size for a block of buffers.block, and for four of them with slru".to_owned();
            return Err(root.section("ssd")?.conflict("size", expected));
        }
        root.finish()?;
        Ok(computer)
    }

    /// The same with other values: (key, value), the key with its tables, as in `disks.far`.
    ///
    /// # Errors
    /// As [`Computer::parse`], and if the text has no such key.
    pub fn parse_with(
        file: &str,
        text: &str,
        changes: &[(String, String)],
    ) -> Result<Computer, MachineError> {
        let unchanged = Computer::parse(file, text)?;
        if changes.is_empty() {
            return Ok(unchanged);
        }
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| MachineError::Syntax {
            file: file.to_owned(),
            line: None,
            message: error.message().to_owned(),
        })?;
        for (key, value) in changes {
            change(&mut table, key, value).map_err(|known| MachineError::NoKey {
                machine: file.to_owned(),
                key: key.clone(),
                known,
            })?;
        }
        let (file, text) = (format!("{file}, changed"), table.to_string());
        Computer::read(&Source { file: &file, text: &text, is_seen: false })
    }

    /// The description that is built in: the Cray Y-MP of Miller and Katz, one of its processors with its share of the
    /// rest.
    pub const CRAY_YMP: (&str, &str) =
        ("machines/cray-ymp.toml", include_str!("../../../machines/cray-ymp.toml"));

    /// [`Computer::CRAY_YMP`], read.
    ///
    /// # Errors
    /// None: the description is built in, and tested.
    pub fn cray_ymp() -> Result<Computer, MachineError> {
        Computer::parse(Computer::CRAY_YMP.0, Computer::CRAY_YMP.1)
    }
}

/// Gives a key another value, of the kind that it has if the text is of that kind; else names the keys that it could be.
fn change(table: &mut toml::Table, key: &str, text: &str) -> Result<(), String> {
    let (mut inner, mut rest) = (table, key);
    while let Some((section, below)) = rest.split_once('.') {
        let known = inner.keys().cloned().collect::<Vec<_>>().join(", ");
        inner = inner.get_mut(section).and_then(toml::Value::as_table_mut).ok_or(known)?;
        rest = below;
    }
    let known = inner.keys().cloned().collect::<Vec<_>>().join(", ");
    let value = inner.get_mut(rest).filter(|value| !value.is_table()).ok_or(known)?;
    let read = match value {
        toml::Value::Boolean(_) => text.parse().ok().map(toml::Value::Boolean),
        toml::Value::Integer(_) => text.parse().ok().map(toml::Value::Integer),
        _ => None,
    };
    *value = read.unwrap_or_else(|| toml::Value::String(text.to_owned()));
    Ok(())
}

impl Buffers {
    /// Reads the section of an I/O node's memory, which must have a size, and is one for all ranks.
    pub(crate) fn read_cache(section: Section<'_>) -> Result<Buffers, MachineError> {
        let empty = section.conflict("size", "a size above \"0 B\", or no cache at all".to_owned());
        let divided = section.conflict("shared", "true: an I/O node's memory is for all ranks".to_owned());
        let buffers = Buffers::read(section)?;
        match buffers {
            Buffers { size: 0, .. } => Err(empty),
            Buffers { shared: false, .. } => Err(divided),
            _ => Ok(buffers),
        }
    }

    /// The keys, as [`Buffers::read`] reads them, as one table.
    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        let Buffers { size, block, policy, shared, process_limit, read_ahead, write_behind, dirty_limit } =
            self;
        let (size, block) = (size_text(*size), size_text(*block));
        write!(out, "{{ size = \"{size}\", block = \"{block}\", policy = \"{policy}\", shared = {shared}, ")?;
        write!(out, "process-limit-percent = {process_limit}, read-ahead = {read_ahead}, ")?;
        writeln!(out, "write-behind = {write_behind}, dirty-limit-percent = {dirty_limit} }}")
    }

    /// Whether the policy can work on as many blocks as there are in so many bytes.
    fn fit(&self, size: u64) -> bool {
        size / self.block >= if self.policy == "slru" { SLRU_LISTS } else { 1 }
    }

    fn read(mut section: Section<'_>) -> Result<Buffers, MachineError> {
        let policies = ["lru", "clock", "slru", "arc", "lirs", "mru"].map(|name| (name, name));
        let buffers = Buffers {
            size: section.size("size", SIZES)?,
            block: section.size("block", BLOCKS)?,
            policy: section.word("policy", &policies)?.to_owned(),
            shared: section.flag("shared")?,
            process_limit: section.number("process-limit-percent", 1..=100)?,
            read_ahead: section.flag("read-ahead")?,
            write_behind: section.flag("write-behind")?,
            dirty_limit: section.number("dirty-limit-percent", 1..=100)?,
        };
        if buffers.size > 0 && buffers.size < buffers.block {
            return Err(section.conflict("block", format!("no more than {}", section.name("size"))));
        }
        if buffers.size > 0 && !buffers.fit(buffers.size) {
            let expected = format!("at most a {SLRU_LISTS}th of {} for slru", section.name("size"));
            return Err(section.conflict("block", expected));
        }
        section.finish()?;
        Ok(buffers)
    }
}

impl Ssd {
    fn read(mut section: Section<'_>) -> Result<Ssd, MachineError> {
        let ssd = Ssd {
            setup: section.duration("setup", "1 s")?,
            bandwidth: section.bandwidth("bandwidth")?,
            size: section.size("size", SIZES)?,
        };
        section.finish()?;
        Ok(ssd)
    }
}

impl Disks {
    fn read(mut section: Section<'_>) -> Result<Disks, MachineError> {
        let count = section.number("count", 1..=65_536)?;
        let disks = Disks {
            count,
            stripe: section.number("stripe", 1..=count)?,
            bandwidth: section.bandwidth("bandwidth")?,
            sequential: section.duration("sequential", "1000 s")?,
            near: section.duration("near", "1000 s")?,
            far: section.duration("far", "1000 s")?,
            queue: section.flag("queue")?,
        };
        if count % disks.stripe != 0 {
            return Err(section.conflict("stripe", format!("a divisor of disks.count = {count}")));
        }
        section.finish()?;
        Ok(disks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(changes: &[(&str, &str)]) -> Result<Computer, String> {
        let changes: Vec<_> =
            changes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let (file, text) = Computer::CRAY_YMP;
        Computer::parse_with(file, text, &changes).map_err(|error| error.to_string())
    }

    #[test]
    fn values_can_be_changed() {
        let computer = with(&[
            ("disks.far", "12 ms"),
            ("disks.queue", "true"),
            ("cpu.count", "4"),
            ("buffers.policy", "arc"),
        ]);
        let computer = computer.unwrap();
        assert_eq!(computer.disks.far, Duration::from_picoseconds(12_000_000_000));
        assert!(computer.disks.queue);
        assert_eq!((computer.cpu.count, computer.buffers.policy.as_str()), (4, "arc"));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let wrong = |key, value| with(&[(key, value)]).unwrap_err();
        assert!(
            wrong("disks.fer", "12 ms")
                .contains("cannot change 'disks.fer': no such key (known here: bandwidth, ")
        );
        assert!(wrong("disk.far", "12 ms").contains("cannot change 'disk.far': no such key (known here: "));
        for (key, value, expected) in [
            ("disks.far", "12", "disks.far = \"12\": expected a time from"),
            ("cpu.quantum", "0 s", "cpu.quantum = \"0 s\": expected a time above"),
            ("cpu.count", "0", "cpu.count = 0: expected a whole number from 1"),
            ("disks.stripe", "3", "disks.stripe = 3: expected a divisor of disks.count = 5"),
            ("disks.bandwidth", "0 MB/s", "disks.bandwidth = \"0 MB/s\": expected a bandwidth"),
            ("buffers.policy", "fifo", "buffers.policy = \"fifo\": expected \"lru\" or \"clock\""),
            ("buffers.size", "0 B", "buffers = "),
            ("buffers.block", "32 MiB", "buffers.block = \"32 MiB\": expected no more than buffers.size"),
            ("ssd.size", "100 B", "ssd.size = \"100 B\": expected a size for a block of buffers.block"),
        ] {
            // No line of a text that nobody wrote.
            let whole = format!("machines/cray-ymp.toml, changed: {expected}");
            assert!(wrong(key, value).starts_with(&whole), "{}", wrong(key, value));
        }
    }
}
