//! A flash device in a machine description: dies on channels behind a controller with a buffer.

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::Section;

/// A flash device. All of its numbers are in `docs/design/flash.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flash {
    /// Bytes that the host sees.
    pub capacity: u64,
    /// Whether all of them have been written once, in order, before anything happens; else none has.
    pub filled: bool,
    /// Buses with dies.
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes of a die, which read, program and erase together.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks: u32,
    /// Pages of a block.
    pub pages: u32,
    /// Bytes of a page of one plane.
    pub page: u64,
    /// Bytes that have a place of their own on the flash: the unit of the mapping.
    pub mapping: u64,
    /// A die's time to read a page (of all planes).
    pub read: Duration,
    /// A die's time to program a page (of all planes).
    pub program: Duration,
    /// A die's time to erase a block (of all planes).
    pub erase: Duration,
    /// Of each channel.
    pub bus: Bandwidth,
    /// To the host, each way.
    pub link: Bandwidth,
    /// Of every command, whatever else goes on: host, link and controller.
    pub latency: Duration,
    /// The controller's time for a command, one after the other.
    pub controller: Duration,
    /// Bytes of writes that the device holds: they are done, and not yet on the flash.
    pub buffer: u64,
    /// Commands that the device has at the same time; others wait at the host.
    pub depth: u32,
    /// What a command takes of a link that carries one direction at a time, as SATA's does; none where both directions are
    /// independent.
    pub half_duplex: Option<HalfDuplex>,
    /// The region that takes bursts of writes, if there is one.
    pub burst: Option<Burst>,
}

/// A link that carries one direction at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfDuplex {
    /// Of each command, beside its data: what says what is wanted, and that it is done.
    pub command: Duration,
}

/// Flash of its own with one bit a cell (an SLC cache), which takes what the host writes as long as it has room. While the
/// host wants nothing, what it holds is programmed in its place with all bits a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Bytes that it holds.
    pub size: u64,
    /// A die's time to program a page (of all planes) there.
    pub program: Duration,
    /// For how long the host has wanted nothing when the device begins to empty it.
    pub idle: Duration,
}

/// Lines beyond those that hold all data: what garbage collection keeps free, what is being written, what is being
/// erased, and one whose worth of data are invalid, so that there always is something to collect.
const SPARE_LINES: u64 = 6;

impl Flash {
    /// All dies.
    pub fn all_dies(&self) -> u32 {
        self.channels * self.dies
    }

    /// Bytes that a die programs at once: a page of each plane.
    pub fn stripe_page(&self) -> u64 {
        self.page * u64::from(self.planes)
    }

    /// Units of the mapping in what a die programs at once.
    pub fn units_of_page(&self) -> u64 {
        self.stripe_page() / self.mapping
    }

    /// Units of a line: the blocks of the same number in all planes of all dies, which are written and erased together.
    pub fn units_of_line(&self) -> u64 {
        self.units_of_page() * u64::from(self.pages) * u64::from(self.all_dies())
    }

    /// Units that the host sees.
    pub fn units(&self) -> u64 {
        self.capacity.div_ceil(self.mapping)
    }

    /// Bytes of all flash, as a multiple of what the host sees: the ratio of over-provisioning plus one.
    pub fn raw_over_capacity(&self) -> f64 {
        (self.units_of_line() * u64::from(self.blocks)) as f64 / self.units() as f64
    }

    /// Reads the table `flash`.
    pub(super) fn read(mut section: Section<'_>) -> Result<Flash, MachineError> {
        let flash = Flash {
            capacity: section.size("capacity", 1 << 20..=1 << 50)?,
            filled: section.flag("filled")?,
            channels: section.number("channels", 1..=256)?,
            dies: section.number("dies", 1..=256)?,
            planes: section.number("planes", 1..=16)?,
            blocks: section.number("blocks", 8..=1 << 20)?,
            pages: section.number("pages", 1..=65_536)?,
            page: section.size("page", 512..=1 << 20)?,
            mapping: section.size("mapping", 512..=1 << 20)?,
            read: section.duration("read", "1 s")?,
            program: section.duration("program", "1 s")?,
            erase: section.duration("erase", "10 s")?,
            bus: section.bandwidth("bus")?,
            link: section.bandwidth("link")?,
            latency: section.duration("latency", "1 s")?,
            controller: section.duration("controller", "1 s")?,
            buffer: section.size("buffer", 512..=1 << 40)?,
            depth: section.number("depth", 1..=1 << 20)?,
            half_duplex: if section.has("half-duplex") {
                Some(half_duplex(section.section("half-duplex")?)?)
            } else {
                None
            },
            burst: if section.has("burst") { Some(burst(section.section("burst")?)?) } else { None },
        };
        flash.check(&section)?;
        section.finish()?;
        Ok(flash)
    }

    /// What each number is allowed to be beside the others.
    fn check(&self, section: &Section<'_>) -> Result<(), MachineError> {
        let stripe_page = self.stripe_page();
        if self.mapping > stripe_page || !stripe_page.is_multiple_of(self.mapping) {
            let expected = format!("a part of {}, a page of all planes", size_text(stripe_page));
            return Err(section.conflict("mapping", expected));
        }
        if self.buffer < stripe_page {
            let expected = format!("at least {}, a page of all planes", size_text(stripe_page));
            return Err(section.conflict("buffer", expected));
        }
        // A line has less than 2^48 units; with the blocks that may be more than 64 bits hold.
        let raw = u128::from(self.units_of_line()) * u128::from(self.blocks);
        if raw >= u128::from(u32::MAX) || self.units() >= u64::from(u32::MAX) {
            return Err(section.conflict(
                "mapping",
                format!("units of which the device has less than 2^32 (it has {raw})"),
            ));
        }
        if self.burst.is_some_and(|burst| burst.size < stripe_page) {
            let expected = format!("a size of at least {}, a page of all planes", size_text(stripe_page));
            return Err(section.conflict("burst", expected));
        }
        let least = self.units().div_ceil(self.units_of_line()) + SPARE_LINES;
        if u64::from(self.blocks) < least {
            let expected = format!(
                "at least {least}: the capacity, and {SPARE_LINES} of each plane for garbage collection"
            );
            return Err(section.conflict("blocks", expected));
        }
        Ok(())
    }

    /// The table, as [`Flash::read`] reads it.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let size = size_text;
        write!(
            out,
            "{{ capacity = \"{}\", filled = {}, channels = {}, dies = {}, planes = {}, blocks = {}, pages = {}, \
             page = \"{}\", mapping = \"{}\", read = \"{}\", program = \"{}\", erase = \"{}\", bus = \"{}\", \
             link = \"{}\", latency = \"{}\", controller = \"{}\", buffer = \"{}\", depth = {}",
            size(self.capacity),
            self.filled,
            self.channels,
            self.dies,
            self.planes,
            self.blocks,
            self.pages,
            size(self.page),
            size(self.mapping),
            self.read,
            self.program,
            self.erase,
            self.bus,
            self.link,
            self.latency,
            self.controller,
            size(self.buffer),
            self.depth,
        )?;
        if let Some(HalfDuplex { command }) = self.half_duplex {
            write!(out, ", half-duplex = {{ command = \"{command}\" }}")?;
        }
        if let Some(Burst { size: bytes, program, idle }) = self.burst {
            let bytes = size(bytes);
            write!(out, ", burst = {{ size = \"{bytes}\", program = \"{program}\", idle = \"{idle}\" }}")?;
        }
        write!(out, " }}")
    }
}

fn half_duplex(mut section: Section<'_>) -> Result<HalfDuplex, MachineError> {
    let half_duplex = HalfDuplex { command: section.duration("command", "1 s")? };
    section.finish()?;
    Ok(half_duplex)
}

fn burst(mut section: Section<'_>) -> Result<Burst, MachineError> {
    let burst = Burst {
        size: section.size("size", 1..=1 << 50)?,
        program: section.duration("program", "1 s")?,
        idle: section.duration("idle", "1000 s")?,
    };
    section.finish()?;
    Ok(burst)
}
