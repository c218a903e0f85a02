//! Packet switches with a queue in their middle, as those of the IBM Vulcan and SP (Stunkel et al. 1994).

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::Section;

/// Packet switches with a central queue that all their outputs share and a path that bypasses it, and the adapters
/// between nodes and switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CentralQueue {
    /// Most bytes of a packet, its header included in them.
    pub packet: u32,
    /// Bytes that an input port takes in before its packet has somewhere to go.
    pub input: u32,
    /// The path past the queue: from the head of a packet at an input port to the head on the output's link.
    pub bypass: Duration,
    /// The same by way of the queue, if nothing else is in it.
    pub latency: Duration,
    /// Chunks of the queue.
    pub chunks: u32,
    /// Bytes of a chunk: the unit in which the queue is given out.
    pub chunk: u32,
    /// Chunks that are set aside for each output, so that no output can be kept waiting by others.
    pub reserved: u32,
    /// What stands between each node and its link.
    pub adapter: Adapter,
}

/// What stands between a node and its link: it cuts messages into packets and puts them together again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Bytes a second, in each direction.
    pub bandwidth: Bandwidth,
    /// Bytes of packets that it holds, in each direction.
    pub buffer: u32,
}

/// More is no packet but a message.
const MOST_BYTES: u64 = 1 << 20;

impl CentralQueue {
    /// Chunks that a packet of so many bytes takes; one of none still has a head.
    pub fn chunks_of(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.chunk).max(1)
    }

    /// Chunks that any packet may take in a switch with so many output ports.
    pub fn shared_chunks(&self, outputs: u32) -> u32 {
        self.chunks.saturating_sub(self.reserved.saturating_mul(outputs))
    }

    pub(super) fn read(mut section: Section<'_>) -> Result<CentralQueue, MachineError> {
        let bytes = |section: &mut Section<'_>, key| -> Result<u32, MachineError> {
            Ok(section.size(key, 1..=MOST_BYTES)? as u32)
        };
        let packet = bytes(&mut section, "packet")?;
        let queue = CentralQueue {
            packet,
            input: bytes(&mut section, "input")?,
            bypass: section.duration("bypass", "1 s")?,
            latency: section.duration("latency", "1 s")?,
            chunks: section.number("chunks", 1..=1 << 24)?,
            chunk: bytes(&mut section, "chunk")?,
            reserved: section.number("reserved", 1..=1 << 16)?,
            adapter: Adapter::read(section.section("adapter")?, packet)?,
        };
        if queue.latency < queue.bypass {
            let expected = format!("no less than bypass = \"{}\"", queue.bypass);
            return Err(section.conflict("latency", expected));
        }
        let needed = queue.chunks_of(packet).saturating_add(queue.reserved);
        if queue.chunks < needed {
            let expected =
                format!("at least {needed}: room for a packet beside what is reserved for an output");
            return Err(section.conflict("chunks", expected));
        }
        section.finish()?;
        Ok(queue)
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let bytes = |bytes: u32| size_text(bytes.into());
        writeln!(
            out,
            "central-queue = {{ packet = \"{}\", input = \"{}\", bypass = \"{}\", latency = \"{}\", chunks = {}, \
             chunk = \"{}\", reserved = {}, adapter = {{ bandwidth = \"{}\", buffer = \"{}\" }} }}",
            bytes(self.packet),
            bytes(self.input),
            self.bypass,
            self.latency,
            self.chunks,
            bytes(self.chunk),
            self.reserved,
            self.adapter.bandwidth,
            bytes(self.adapter.buffer)
        )
    }
}

impl Adapter {
    fn read(mut section: Section<'_>, packet: u32) -> Result<Adapter, MachineError> {
        let adapter = Adapter {
            bandwidth: section.bandwidth("bandwidth")?,
            buffer: section.size("buffer", 1..=1 << 30)? as u32,
        };
        if adapter.buffer < packet {
            return Err(
                section.conflict("buffer", format!("room for a packet of {}", size_text(packet.into())))
            );
        }
        section.finish()?;
        Ok(adapter)
    }
}
