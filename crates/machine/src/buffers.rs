//! A computer whose processes share processors, file buffers and disks: what Miller and Katz (1991, section 6) simulate.

use std::fmt::{self, Write};
use std::path::Path;

use toml::de::DeTable;

use crate::cpu::Cpu;
use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::{Section, Source};

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
    /// How many.
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
const BLOCKS: std::ops::RangeInclusive<u64> = 1..=1 << 26;

impl Computer {
    /// Reads a description from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is wrong: names file, line, and what is allowed.
    pub fn load(path: &Path) -> Result<Computer, MachineError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| MachineError::File { path: path.to_owned(), source })?;
        Computer::parse(&path.display().to_string(), &text)
    }

    /// Reads a description from a text; `file` is its name in errors.
    ///
    /// # Errors
    /// If something in it is wrong: names file, line, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Computer, MachineError> {
        let source = Source { file, text };
        let table = DeTable::parse(text).map_err(|error| MachineError::Syntax {
            file: file.to_owned(),
            line: source.line(error.span().map_or(0, |span| span.start)),
            message: error.message().replace('\n', ", "),
        })?;
        let mut root = Section::root(&source, table.get_ref());
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
        root.finish()?;
        Ok(computer)
    }

    /// The Cray Y-MP of Miller and Katz: one of its processors, with its share of the rest (`machines/cray-ymp.toml`).
    ///
    /// # Errors
    /// None: the description is built in, and tested.
    pub fn cray_ymp() -> Result<Computer, MachineError> {
        Computer::parse("machines/cray-ymp.toml", include_str!("../../../machines/cray-ymp.toml"))
    }
}

impl Buffers {
    /// Reads the section of an I/O node's memory, which must have a size.
    pub(crate) fn read_cache(section: Section<'_>) -> Result<Buffers, MachineError> {
        let empty = section.conflict("size", "a size above \"0 B\", or no cache at all".to_owned());
        let buffers = Buffers::read(section)?;
        if buffers.size > 0 { Ok(buffers) } else { Err(empty) }
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
            return Err(section.conflict("block", "no more than buffers.size".to_owned()));
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
