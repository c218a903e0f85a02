//! Messages and the packets they are cut into, in slots that are used again.

use super::Circuit;
use super::state::{Message, Packet};

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
