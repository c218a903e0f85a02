//! What the engine keeps of packets, messages, channels, switches and adapters.

use std::collections::VecDeque;

use crate::network::carrier::MessageId;

/// A picosecond that never comes: a channel is in use, and until when is not known yet.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// A message on its way.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: MessageId,
    /// The number of its route.
    pub(super) route: u32,
    /// Bytes that its sender has not made packets of.
    pub(super) unsent: u64,
    /// When its first byte came to the adapter of its destination, once it is known.
    pub(super) first_byte: Option<u64>,
}

/// A packet on its way: its head is on channel `hop` of its message's route, or at the end of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) message: u32,
    /// The number of its message's route.
    pub(super) route: u32,
    pub(super) bytes: u32,
    pub(super) is_last: bool,
    pub(super) place: Place,
    pub(super) hop: u16,
    /// The first of the channels that it still occupies: it reaches from the store behind that one to its head.
    pub(super) first: u16,
    /// The device behind channel `first`, whose store it leaves as it goes on.
    pub(super) store: u32,
    /// Since when it may go on from that store.
    pub(super) ready: u64,
    /// When its tail is in that store: it cannot leave sooner.
    pub(super) fed: u64,
}

/// Where the head of a packet is, as seen by the switch that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a channel, or at an input port without a claim to anything.
    Moving,
    /// At an input port, and in line for its output by a reserved slot.
    InLine,
    /// In a store, all of it or on its way into it; in line for its output.
    Stored,
}

/// A channel, with the output port that it comes from and the input port that it leads to.
#[derive(Debug)]
pub(super) struct Channel {
    /// The device that it comes from, and the one that it leads to.
    pub(super) from: u32,
    pub(super) to: u32,
    /// When the present or last packet's head was put on it.
    pub(super) started: u64,
    /// When the next one's can be: [`UNKNOWN`] while the present one has nowhere to go.
    pub(super) free_at: u64,
    /// When the input port is clear of the last packet.
    pub(super) clear_at: u64,
    /// When the input port last put a packet into the queue: its turn comes the later.
    pub(super) served: u64,
    /// Whether it will be looked at when it is free.
    pub(super) is_watched: bool,
    /// Whether a packet holds the slot that is reserved for the output.
    pub(super) is_claimed: bool,
    /// Packets in line for the output.
    pub(super) line: VecDeque<u32>,
}

/// A switch.
#[derive(Debug)]
pub(super) struct Switch {
    /// Chunks of the queue that are free, those reserved for outputs apart.
    pub(super) free: u32,
    /// Packets at input ports, which want room in the queue.
    pub(super) waiting: Vec<u32>,
}

/// The side of an adapter that makes packets of messages.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) messages: VecDeque<u32>,
    pub(super) is_busy: bool,
    /// Bytes that its buffer can take, those of `leaving` apart.
    pub(super) room: u32,
    /// Packets on their way out of the buffer: when their bytes will be free, and how many.
    pub(super) leaving: VecDeque<(u64, u32)>,
    /// Whether it waits for a packet to leave the buffer.
    pub(super) is_stalled: bool,
}

/// The side of an adapter that makes messages of packets.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Packets in its buffer: when it will be done with each, and their bytes.
    pub(super) held: VecDeque<(u64, u32)>,
    /// Bytes that its buffer can take.
    pub(super) room: u32,
    /// From when on that is so.
    pub(super) room_at: u64,
    /// When it will be done with all that it holds.
    pub(super) done_at: u64,
}
