//! What is inside an I/O node.

use std::fmt::{self, Write};

use crate::disk::Disks;
use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::{Section, Source};

/// An I/O node: a network of queues that a request passes (Baylor et al. 1995, section III).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoNode {
    /// Between network and memory, each way.
    pub adapter: Bandwidth,
    /// What the processor does for a request.
    pub cpu: RequestCpu,
    /// Between memory and the disks' channels.
    pub bus: Bandwidth,
    /// Between the bus and a disk's cache; each disk has its own.
    pub channel: Bandwidth,
    /// Memory for requests under way: one that finds no space waits outside, and so do all behind it.
    pub buffer: u64,
    /// The disks.
    pub disks: Disks,
    /// Bytes that are contiguous on a disk: the next go to the next disk.
    pub unit: u64,
}

/// What an I/O node's processor does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCpu {
    /// To take it in.
    pub request: Duration,
    /// To send a read's data back. A write has no such stage.
    pub response: Duration,
}

const OF_BAYLOR: &str = include_str!("../../../machines/io-nodes/baylor-1995.toml");

impl IoNode {
    /// Reads the section `[io-node]` from a text that has nothing else; `file` is its name in errors.
    ///
    /// # Errors
    /// If something in it is wrong: names file, line, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<IoNode, MachineError> {
        let source = Source { file, text, is_seen: true };
        let table = source.table()?;
        let mut root = Section::root(&source, table.get_ref());
        let node = IoNode::read(root.section("io-node")?)?;
        root.finish()?;
        Ok(node)
    }

    /// The I/O node of Baylor et al. 1995, fitted to what their text says of their Figure 6.
    ///
    /// # Errors
    /// None but those of [`IoNode::parse`], which its text does not have.
    pub fn of_baylor() -> Result<IoNode, MachineError> {
        IoNode::parse("machines/io-nodes/baylor-1995.toml", OF_BAYLOR)
    }

    /// The most bytes of a strip that lie together on the disks: without RAID, those of a unit on one disk. The disks of a RAID
    /// group divide a strip themselves.
    pub fn together(&self, strip: u64) -> u64 {
        if self.disks.raid.is_some() { strip } else { strip.min(self.unit) }
    }

    /// Reads the section.
    pub(crate) fn read(mut section: Section<'_>) -> Result<IoNode, MachineError> {
        let mut cpu = section.section("cpu")?;
        let request = RequestCpu {
            request: cpu.duration("request", "1 s")?,
            response: cpu.duration("response", "1 s")?,
        };
        cpu.finish()?;
        let node = IoNode {
            adapter: section.bandwidth("adapter")?,
            cpu: request,
            bus: section.bandwidth("bus")?,
            channel: section.bandwidth("channel")?,
            buffer: section.size("buffer", 4096..=1 << 50)?,
            disks: Disks::read(section.section("disk")?)?,
            unit: section.size("unit", 512..=1 << 40)?,
        };
        section.finish()?;
        Ok(node)
    }

    /// The section, as [`IoNode::read`] reads it.
    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[io-node]\nadapter = \"{}\"", self.adapter)?;
        writeln!(
            out,
            "cpu = {{ request = \"{}\", response = \"{}\" }}",
            self.cpu.request, self.cpu.response
        )?;
        writeln!(out, "bus = \"{}\"\nchannel = \"{}\"", self.bus, self.channel)?;
        writeln!(out, "buffer = \"{}\"\nunit = \"{}\"", size_text(self.buffer), size_text(self.unit))?;
        self.disks.write(out)
    }
}
