//! What there is in a network: messages, packets, virtual channels, adapters, and what will happen to them.

use std::collections::VecDeque;

use pio_machine::Duration;

use super::wiring::Ports;
use crate::kernel::Time;
use crate::network::carrier::MessageId;

/// Which packets go first where they wait for the same link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// After those of high priority.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// No packet, message or event.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A message can be cut into packets.
    Posted { message: u32 },
    /// An adapter may be able to go on.
    Pump { node: u32 },
    /// The adapter's processor turns to a packet that is to go out.
    Inject { packet: u32 },
    /// The head of a packet can leave the switch where it is.
    AtSwitch { packet: u32 },
    /// The head of a packet is at its destination.
    AtNode { packet: u32 },
    /// The whole packet has left its source; of no meaning if the packet has been rescheduled since.
    Left { packet: u32, schedule: u32 },
    /// The whole packet is at its destination; likewise.
    Tail { packet: u32, schedule: u32 },
    /// The acknowledgement is back at the source.
    Closed { packet: u32 },
    /// A virtual channel that packets wait for is free.
    Free { virtual_channel: u32 },
    /// A message is there, and its receiver knows.
    Arrived { message: u32 },
}

/// A message that is under way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) id: MessageId,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u64,
    pub(super) priority: Priority,
    /// Bytes that are in packets.
    pub(super) cut: u64,
    pub(super) all_cut: bool,
    /// Packets that are not acknowledged.
    pub(super) open: u32,
    /// Packets at the destination hold so many of its bytes.
    pub(super) there: u64,
    pub(super) first_byte: Time,
    /// When the packets that are there have been taken in.
    pub(super) taken_in: Time,
    /// Whether its receiver knows of it.
    pub(super) arrived: bool,
    /// The next one of the same sender to the same receiver.
    pub(super) next: u32,
    /// Who still needs it: its sender, until all is acknowledged; its receiver, until it has arrived.
    pub(super) users: u8,
}

impl Message {
    pub(super) fn new(id: MessageId, from: u32, to: u32, bytes: u64, priority: Priority) -> Message {
        Message {
            id,
            from,
            to,
            bytes,
            priority,
            cut: 0,
            all_cut: false,
            open: 0,
            there: 0,
            first_byte: Time::NEVER,
            taken_in: Time(0),
            arrived: false,
            next: NONE,
            users: 2,
        }
    }
}

/// A packet, from its being cut to its circuit's being closed.
#[derive(Clone, Debug, Default)]
pub(super) struct Packet {
    pub(super) message: u32,
    pub(super) to: u32,
    pub(super) from: u32,
    pub(super) payload: u64,
    pub(super) priority: Priority,
    /// When it entered the network.
    pub(super) born: Time,
    /// Of its last byte being in the receiver's memory, at the earliest.
    pub(super) taken_in: Time,
    /// The virtual channels that it holds, in the order of the way.
    pub(super) path: Vec<u32>,
    /// How long its body takes on a link that it has to itself.
    pub(super) body: Duration,
    /// So much of `body`, and of the gap behind it, has left the source at `since`; and so much of `body` is at the
    /// destination.
    pub(super) sent: Duration,
    pub(super) arrived: Duration,
    pub(super) since: Time,
    /// How many share the link that most share, once it flows; 0 before that.
    pub(super) slowness: u32,
    /// Whether all of it has left the source.
    pub(super) has_left: bool,
    /// Whether it is known when.
    pub(super) will_leave: bool,
    /// The numbers of the events that count. They go on when the slot is used again.
    pub(super) left_schedule: u32,
    pub(super) tail_schedule: u32,
    /// How much later than the rest of it its acknowledgement sets out.
    pub(super) release: Duration,
}

/// One of the channels that a link's direction is divided into: has buffers of its own, and one packet at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualChannel {
    /// The packet that has it.
    pub(super) holder: u32,
    /// When its last holder's acknowledgement has passed.
    pub(super) free: Time,
    /// Whether there will be an event when it is free.
    pub(super) announced: bool,
}

impl Default for VirtualChannel {
    fn default() -> VirtualChannel {
        VirtualChannel { holder: NONE, free: Time(0), announced: false }
    }
}

impl VirtualChannel {
    pub(super) fn is_free(&self, now: Time) -> bool {
        self.holder == NONE && self.free <= now
    }
}

/// A packet whose head waits at a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) packet: u32,
    /// The ports that will do.
    pub(super) first_port: u16,
    pub(super) end_port: u16,
    pub(super) rank: Rank,
}

impl Waiter {
    pub(super) fn ports(&self) -> Ports {
        self.first_port..self.end_port
    }
}

/// What decides who goes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    pub(super) priority: Priority,
    /// When the packet entered the network.
    pub(super) born: Time,
    /// When it came to the switch.
    pub(super) came: Time,
    pub(super) packet: u32,
}

/// One node's.
#[derive(Debug, Default)]
pub(super) struct Adapter {
    /// Messages that are not acknowledged, by where they go; the first is the one whose turn it is.
    pub(super) flows: VecDeque<Flow>,
    /// The next packet, and when its data are here.
    pub(super) next: Option<(u32, Time)>,
    /// The nodes that it heard of last, the last one in front.
    pub(super) known: VecDeque<u32>,
    /// Whether the engine has a packet that has not wholly left.
    pub(super) is_sending: bool,
    /// When the processor is free; and the thread processor.
    pub(super) processor: Time,
    pub(super) thread: Time,
    pub(super) bus: Bus,
}

/// The messages to one node, of one priority, in their order.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) to: u32,
    pub(super) priority: Priority,
    pub(super) first: u32,
    pub(super) last: u32,
    /// What is left of its turn.
    pub(super) slice: u64,
}

#[derive(Debug, Default)]
pub(super) struct Bus {
    pub(super) free: Time,
    pub(super) last: Option<Way>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Out,
    In,
}
