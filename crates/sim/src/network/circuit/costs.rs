//! What everything costs, worked out once.

use pio_machine::circuit::{Arbitration, Circuit, Library, Memory, Partners};
use pio_machine::{Bandwidth, Duration, Link};

/// Times are picoseconds, as durations; sizes bytes.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Of the head over one link.
    pub link: Duration,
    /// Of the head through one switch.
    pub flow_through: Duration,
    pub virtual_channels: u32,
    /// Virtual channels have numbers 2 to the power of this apart from channel to channel: a shift is no division.
    pub stride_bits: u32,
    pub arbitration: Arbitration,
    /// In which the age of packets counts; 0 if exactly.
    pub age_step: Duration,
    /// From a message's being sent to its first packet's being ready.
    pub start: Duration,
    /// Of the receiver's thread processor, each message.
    pub matching: Duration,
    pub transaction_out: Duration,
    pub transaction_in: Duration,
    pub gap: Duration,
    pub slice: u64,
    /// Whom adapters know, if not all.
    pub partners: Option<Partners>,
    /// The bus between main memory and adapter, if data cross it.
    pub bus: Option<BusCosts>,
    /// Most bytes of data in a packet.
    pub payload: u64,
    /// How much of a body the buffer at the end of one link takes, as time on the link.
    pub buffer: Duration,
    flit: u64,
    flit_time: Duration,
    transaction: u64,
    transaction_overhead: u64,
    packet_overhead: u64,
}

#[derive(Clone, Debug)]
pub(super) struct BusCosts {
    pub bandwidth: Bandwidth,
    pub packet: Duration,
    pub turn: Duration,
}

impl Costs {
    pub(super) fn new(link: &Link, description: &Circuit) -> Costs {
        let (packet, adapter) = (&description.packet, &description.adapter);
        let flit_time = link.bandwidth.time_of(packet.flit);
        let bus = || BusCosts {
            bandwidth: adapter.bus.bandwidth,
            packet: adapter.bus.packet,
            turn: adapter.bus.turn,
        };
        Costs {
            link: link.latency,
            flow_through: description.flow_through,
            virtual_channels: description.virtual_channels,
            stride_bits: description.virtual_channels.next_power_of_two().trailing_zeros(),
            arbitration: description.arbitration,
            age_step: description.age_step,
            start: adapter.start,
            matching: match adapter.library {
                Library::Direct => Duration::ZERO,
                Library::Mpi => adapter.matching,
            },
            transaction_out: adapter.transaction_out,
            transaction_in: adapter.transaction_in,
            gap: adapter.gap,
            slice: adapter.slice,
            partners: adapter.partners.clone(),
            bus: (adapter.memory == Memory::Main).then(bus),
            payload: packet.transaction * u64::from(packet.transactions),
            buffer: flit_time.saturating_mul(description.buffer / packet.flit),
            flit: packet.flit,
            flit_time,
            transaction: packet.transaction,
            transaction_overhead: packet.transaction_overhead,
            packet_overhead: packet.overhead,
        }
    }

    /// Transactions of a packet of so much data; one without data tells the receiver that the message is there.
    pub(super) fn transactions(&self, payload: u64) -> u64 {
        payload.div_ceil(self.transaction).max(1)
    }

    /// How long a packet of so much data takes on a link.
    pub(super) fn body(&self, payload: u64) -> Duration {
        let overhead = self.packet_overhead + self.transactions(payload) * self.transaction_overhead;
        self.flit_time.saturating_mul((payload + overhead).div_ceil(self.flit))
    }
}
