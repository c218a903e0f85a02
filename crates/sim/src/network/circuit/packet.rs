//! Messages and the packets they are cut into, in slots that are used again.

use pio_machine::Duration;

use crate::kernel::Time;
use crate::network::MessageId;

use super::{Circuit, NONE, Priority};

/// A message that is under way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub id: MessageId,
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    pub priority: Priority,
    /// Bytes that are in packets.
    pub cut: u64,
    pub all_cut: bool,
    /// Packets that are not acknowledged.
    pub open: u32,
    /// Packets at the destination hold so many of its bytes.
    pub there: u64,
    pub first_byte: Time,
    /// When the packets that are there have been taken in.
    pub taken_in: Time,
    /// Whether its receiver knows of it.
    pub arrived: bool,
    /// The next one of the same sender to the same receiver.
    pub next: u32,
    /// Who still needs it: its sender, until all is acknowledged; its receiver, until it has arrived.
    users: u8,
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
    pub message: u32,
    pub to: u32,
    pub from: u32,
    pub payload: u64,
    pub priority: Priority,
    /// When it entered the network.
    pub born: Time,
    /// Of its last byte being in the receiver's memory, at the earliest.
    pub taken_in: Time,
    /// The virtual channels that it holds, in the order of the way.
    pub path: Vec<u32>,
    /// How long its body takes on a link that it has to itself.
    pub body: Duration,
    /// So much of `body`, and of the gap behind it, has left the source at `since`; and so much of `body` is at the
    /// destination.
    pub sent: Duration,
    pub arrived: Duration,
    pub since: Time,
    /// How many share the link that most share, once it flows; 0 before that.
    pub slowness: u32,
    /// Whether all of it has left the source.
    pub has_left: bool,
    /// Whether it is known when.
    pub will_leave: bool,
    /// The numbers of the events that count. They go on when the slot is used again.
    pub left_schedule: u32,
    pub tail_schedule: u32,
}

impl Circuit {
    pub(super) fn new_message(&mut self, message: Message) -> u32 {
        self.messages.insert(message)
    }

    pub(super) fn let_go_of_message(&mut self, slot: u32) {
        let message = &mut self.messages[slot];
        message.users -= 1;
        if message.users == 0 {
            self.messages.remove(slot);
        }
    }

    /// Cuts the next packet off a message of which something is left.
    pub(super) fn cut(&mut self, slot: u32) -> u32 {
        let message = &mut self.messages[slot];
        let payload = (message.bytes - message.cut).min(self.costs.payload);
        message.cut += payload;
        message.all_cut = message.cut == message.bytes;
        message.open += 1;
        let (from, to, priority) = (message.from, message.to, message.priority);
        let index = self.packets.reuse(Packet::default);
        let packet = &mut self.packets[index];
        packet.path.clear();
        *packet = Packet {
            message: slot,
            to,
            from,
            payload,
            priority,
            body: self.costs.body(payload),
            path: std::mem::take(&mut packet.path),
            left_schedule: packet.left_schedule.wrapping_add(1),
            tail_schedule: packet.tail_schedule.wrapping_add(1),
            ..Packet::default()
        };
        index
    }
}
