//! `switching = "circuit"`: switches that keep a packet's way open until its acknowledgement is back, and the adapters
//! in front of them (QsNET: Elite and Elan). `docs/design/networks-circuit.md` says what the simulator makes of it.

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::{Section, word_of};

/// The switches, the packets, and each node's adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// From the first flit of a packet at a switch to the same flit on the link behind it.
    pub flow_through: Duration,
    /// Virtual channels of a link, each way.
    pub virtual_channels: u32,
    /// Bytes that each virtual channel can hold at the end of a link.
    pub buffer: u64,
    /// Which of the packets that wait for a link goes first.
    pub arbitration: Arbitration,
    /// With [`Arbitration::PacketAge`]: age counts in steps of this; of the packets of one step, the one that has waited
    /// longest at the switch goes first. 0 if age is known exactly.
    pub age_step: Duration,
    /// How messages are cut.
    pub packet: Packet,
    /// What is between a node's memory and its link.
    pub adapter: Adapter,
}

/// Which of the packets of one priority that wait for a link goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// The one that entered the network first.
    PacketAge,
    /// The one that has waited longest at this switch.
    SwitchAge,
}

/// How messages are cut into packets: whole flits of transactions, each with its own overhead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Bytes of a flit: all that crosses a link is rounded up to whole ones.
    pub flit: u64,
    /// Most bytes of data in a transaction.
    pub transaction: u64,
    /// Most transactions in a packet.
    pub transactions: u32,
    /// Bytes that each transaction adds.
    pub transaction_overhead: u64,
    /// Bytes that each packet adds to those of its transactions.
    pub overhead: u64,
}

/// A node's network adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Where the data of messages are.
    pub memory: Memory,
    /// Who sends them.
    pub library: Library,
    /// From the call that sends a message to its first packet being ready to go.
    pub start: Duration,
    /// Added by message passing: the adapter's thread processor matches each message to its receive.
    pub matching: Duration,
    /// The processor is busy so long with each transaction that goes out.
    pub transaction_out: Duration,
    /// And with each that comes in.
    pub transaction_in: Duration,
    /// Idle time of the node's link between two packets.
    pub gap: Duration,
    /// Messages to different nodes take turns: so many bytes at a time.
    pub slice: u64,
    /// Of how many senders the adapter knows how to answer at once; none if of all.
    pub partners: Option<Partners>,
    /// The bus to the node's main memory.
    pub bus: Bus,
}

/// Where the data of messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In the adapter's own memory.
    Adapter,
    /// In the node's, behind the bus.
    Main,
}

/// Who sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The adapter's lowest-level library: remote direct memory access.
    Direct,
    /// A message-passing library, with matching at the receiver.
    Mpi,
}

/// An adapter that takes longer to release the circuit of a sender whom it has not heard lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partners {
    /// The senders of so many last heard are known.
    pub known: u32,
    /// How much later the acknowledgement sets out to any other.
    pub other: Duration,
}

/// A bus that carries one packet's data at a time, in or out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// While data move.
    pub bandwidth: Bandwidth,
    /// Added for each packet's data.
    pub packet: Duration,
    /// Added when data go the other way than those before.
    pub turn: Duration,
}

const ARBITRATIONS: &[(&str, Arbitration)] =
    &[("packet-age", Arbitration::PacketAge), ("switch-age", Arbitration::SwitchAge)];
const MEMORIES: &[(&str, Memory)] = &[("adapter", Memory::Adapter), ("main", Memory::Main)];
const LIBRARIES: &[(&str, Library)] = &[("direct", Library::Direct), ("mpi", Library::Mpi)];
const BYTES: std::ops::RangeInclusive<u64> = 0..=4096;
const LONGEST: &str = "1 ms";

impl Circuit {
    pub(crate) fn read(mut section: Section<'_>) -> Result<Circuit, MachineError> {
        let circuit = Circuit {
            flow_through: section.duration("flow-through", LONGEST)?,
            virtual_channels: section.number("virtual-channels", 1..=16)?,
            buffer: section.size("buffer", 1..=1 << 20)?,
            arbitration: section.word("arbitration", ARBITRATIONS)?,
            age_step: if section.has("age-step") {
                section.duration("age-step", "1 s")?
            } else {
                Duration::ZERO
            },
            packet: packet(section.section("packet")?)?,
            adapter: adapter(section.section("adapter")?)?,
        };
        if circuit.age_step > Duration::ZERO && circuit.arbitration != Arbitration::PacketAge {
            let expected = "no such key unless network.circuit.arbitration = \"packet-age\"".to_owned();
            return Err(section.conflict("age-step", expected));
        }
        section.finish()?;
        Ok(circuit)
    }

    /// As tables of their own: together they are too long for a line.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "circuit.flow-through = \"{}\"", self.flow_through)?;
        writeln!(out, "circuit.virtual-channels = {}", self.virtual_channels)?;
        writeln!(out, "circuit.buffer = \"{}\"", size_text(self.buffer))?;
        writeln!(out, "circuit.arbitration = \"{}\"", word_of(ARBITRATIONS, &self.arbitration))?;
        if self.age_step > Duration::ZERO {
            writeln!(out, "circuit.age-step = \"{}\"", self.age_step)?;
        }
        let packet = &self.packet;
        for (key, bytes) in [
            ("flit", packet.flit),
            ("transaction", packet.transaction),
            ("transaction-overhead", packet.transaction_overhead),
            ("overhead", packet.overhead),
        ] {
            writeln!(out, "circuit.packet.{key} = \"{}\"", size_text(bytes))?;
        }
        writeln!(out, "circuit.packet.transactions = {}", packet.transactions)?;
        let adapter = &self.adapter;
        writeln!(out, "circuit.adapter.memory = \"{}\"", word_of(MEMORIES, &adapter.memory))?;
        writeln!(out, "circuit.adapter.library = \"{}\"", word_of(LIBRARIES, &adapter.library))?;
        for (key, time) in [
            ("start", adapter.start),
            ("matching", adapter.matching),
            ("transaction-out", adapter.transaction_out),
            ("transaction-in", adapter.transaction_in),
            ("gap", adapter.gap),
        ] {
            writeln!(out, "circuit.adapter.{key} = \"{time}\"")?;
        }
        writeln!(out, "circuit.adapter.slice = \"{}\"", size_text(adapter.slice))?;
        if let Some(Partners { known, other }) = &adapter.partners {
            writeln!(out, "circuit.adapter.partners = {{ known = {known}, other = \"{other}\" }}")?;
        }
        let Bus { bandwidth, packet, turn } = &adapter.bus;
        writeln!(
            out,
            "circuit.adapter.bus = {{ bandwidth = \"{bandwidth}\", packet = \"{packet}\", turn = \"{turn}\" }}"
        )
    }
}

fn packet(mut section: Section<'_>) -> Result<Packet, MachineError> {
    let packet = Packet {
        flit: section.size("flit", 1..=4096)?,
        transaction: section.size("transaction", 1..=1 << 16)?,
        transactions: section.number("transactions", 1..=1024)?,
        transaction_overhead: section.size("transaction-overhead", BYTES)?,
        overhead: section.size("overhead", 1..=4096)?,
    };
    section.finish()?;
    Ok(packet)
}

fn adapter(mut section: Section<'_>) -> Result<Adapter, MachineError> {
    let adapter = Adapter {
        memory: section.word("memory", MEMORIES)?,
        library: section.word("library", LIBRARIES)?,
        start: section.duration("start", "1 s")?,
        matching: section.duration("matching", "1 s")?,
        transaction_out: section.duration("transaction-out", LONGEST)?,
        transaction_in: section.duration("transaction-in", LONGEST)?,
        gap: section.duration("gap", LONGEST)?,
        slice: section.size("slice", 1..=1 << 40)?,
        partners: if section.has("partners") { Some(partners(section.section("partners")?)?) } else { None },
        bus: bus(section.section("bus")?)?,
    };
    section.finish()?;
    Ok(adapter)
}

fn partners(mut section: Section<'_>) -> Result<Partners, MachineError> {
    let partners =
        Partners { known: section.number("known", 1..=1 << 20)?, other: section.duration("other", LONGEST)? };
    section.finish()?;
    Ok(partners)
}

fn bus(mut section: Section<'_>) -> Result<Bus, MachineError> {
    let bus = Bus {
        bandwidth: section.bandwidth("bandwidth")?,
        packet: section.duration("packet", LONGEST)?,
        turn: section.duration("turn", LONGEST)?,
    };
    section.finish()?;
    Ok(bus)
}

#[cfg(test)]
mod tests {
    use crate::machine::Machine;

    const TEXT: &str = include_str!("../../../../machines/qsnet-64.toml");

    fn with(from: &str, to: &str) -> Result<Machine, String> {
        assert!(TEXT.contains(from), "{from}");
        Machine::parse("qsnet.toml", &TEXT.replace(from, to)).map_err(|error| error.to_string())
    }

    #[test]
    fn steps_of_age_and_partners_may_be_left_out_and_are_refused_by_name() {
        assert!(with("age-step = \"125 us\"", "").is_ok());
        assert!(with("partners = { known = 40, other = \"0.95 us\" }", "").is_ok());
        for (from, to, expected) in [
            ("\"packet-age\"", "\"switch-age\"", "expected no such key unless network.circuit.arbitration"),
            ("known = 40", "known = 0", "expected a whole number from 1"),
            ("known = 40", "known = 40, more = 1", "more"),
            ("\"125 us\"", "\"125\"", "expected a time"),
        ] {
            let error = with(from, to).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
