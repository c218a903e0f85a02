//! Messages under way: cut into packets where they are sent, put together and put in order where they arrive.

use crate::kernel::{Slab, Time};
use crate::network::carrier::{Delivery, MessageId};
use crate::network::pairs::Pairs;

/// No message, no packet.
pub(super) const NONE: u32 = u32::MAX;

/// A message that was sent and is not delivered: a line of the processor's cache.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Message {
    id: MessageId,
    pub(super) from: u32,
    pub(super) to: u32,
    /// How many were sent before it, on the whole network.
    pub(super) age: u64,
    /// Bytes that no packet has taken yet.
    bytes_left: u64,
    is_all_sent: bool,
    /// Packets on the way.
    packets: u32,
    /// Cycles in which the first and the last byte of it arrived.
    first: u64,
    last: u64,
    /// The next message of the same sender.
    pub(super) next: u32,
    /// The next message of the same sender to the same receiver.
    follower: u32,
    /// Whether an earlier message to the same receiver is under way.
    is_held: bool,
}

/// All messages under way.
#[derive(Debug)]
pub(super) struct Messages {
    slots: Slab<Message>,
    /// The last message under way from a node to another.
    last: Pairs,
    sent: u64,
}

impl Messages {
    pub(super) fn new() -> Messages {
        Messages { slots: Slab::new(), last: Pairs::new(), sent: 0 }
    }

    /// How many are under way.
    pub(super) fn count(&self) -> u64 {
        self.slots.count() as u64
    }

    /// Takes in a message; gives its slot.
    pub(super) fn add(&mut self, id: MessageId, from: u32, to: u32, bytes: u64) -> u32 {
        let slot = self.slots.insert(Message {
            id,
            from,
            to,
            age: self.sent,
            bytes_left: bytes,
            is_all_sent: false,
            packets: 0,
            first: u64::MAX,
            last: 0,
            next: NONE,
            follower: NONE,
            is_held: false,
        });
        self.sent += 1;
        if let Some(before) = self.last.set(from, to, slot) {
            self.slots[before].follower = slot;
            self.slots[slot].is_held = true;
        }
        slot
    }

    pub(super) fn get(&self, slot: u32) -> &Message {
        &self.slots[slot]
    }

    /// Reads what a delivery of it would look at.
    #[inline]
    pub(super) fn read_ahead(&self, slot: u32) -> u32 {
        let message = &self.slots[slot];
        self.last.read_ahead(message.from, message.to)
    }

    pub(super) fn set_next(&mut self, slot: u32, next: u32) {
        self.slots[slot].next = next;
    }

    /// The bytes of its next packet, of at most `payload`, and whether it is the last.
    pub(super) fn next_packet(&mut self, slot: u32, payload: u64) -> (u64, bool) {
        let message = &mut self.slots[slot];
        let bytes = message.bytes_left.min(payload);
        message.bytes_left -= bytes;
        message.packets += 1;
        message.is_all_sent = message.bytes_left == 0;
        (bytes, message.is_all_sent)
    }

    /// Some of it has arrived.
    pub(super) fn note_first(&mut self, slot: u32, cycle: u64) {
        let message = &mut self.slots[slot];
        message.first = message.first.min(cycle);
    }

    /// A packet of it has arrived. If all of it has, and all that its sender sent there before, it is delivered, and so
    /// is what waited for it.
    pub(super) fn note_packet(
        &mut self,
        slot: u32,
        cycle: u64,
        time_of: impl Fn(u64) -> Time,
        delivered: &mut Vec<Delivery>,
    ) {
        let message = &mut self.slots[slot];
        message.packets -= 1;
        message.last = cycle;
        let mut slot = slot;
        while self.slots[slot].is_ready() {
            let message = &self.slots[slot];
            delivered.push(Delivery {
                message: message.id,
                first_byte: time_of(message.first),
                last_byte: time_of(message.last),
            });
            let (from, to, follower) = (message.from, message.to, message.follower);
            self.slots.remove(slot);
            slot = follower;
            if slot == NONE {
                self.last.remove(from, to);
                return;
            }
            self.slots[slot].is_held = false;
        }
    }
}

impl Message {
    fn is_ready(&self) -> bool {
        self.is_all_sent && self.packets == 0 && !self.is_held
    }
}
