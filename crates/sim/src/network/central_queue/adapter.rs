//! The adapters: packets out of messages, messages out of packets.
//!
//! Each side handles one packet after the other, whole packets only, at its bandwidth, and holds a buffer of them between
//! itself and the link.

use super::state::{Packet, Place};
use super::{CentralQueue, Event};
use crate::kernel::Time;
use crate::network::carrier::Delivery;

impl CentralQueue {
    /// Begins with the next packet of a node's messages, if there is one, and room for it.
    pub(super) fn make_packet(&mut self, node: u32) {
        let sender = &mut self.senders[node as usize];
        let Some(&message) = sender.messages.front() else { return };
        if sender.is_busy {
            return;
        }
        let bytes = self.messages[message].unsent.min(self.packet_bytes.into()) as u32;
        while sender.room < bytes {
            match sender.leaving.front() {
                Some(&(at, left)) if at <= self.now => {
                    sender.room += left;
                    sender.leaving.pop_front();
                }
                Some(&(at, _)) => {
                    self.events.add(Time(at), Event::Room { node });
                    return;
                }
                None => {
                    sender.is_stalled = true;
                    return;
                }
            }
        }
        sender.is_busy = true;
        sender.room -= bytes;
        self.add(self.now + self.times.in_adapter[bytes as usize], Event::Made { node });
    }

    /// A packet of so many bytes will have left a node's adapter at `left_at`.
    pub(super) fn packet_leaves_adapter(&mut self, node: u32, left_at: u64, bytes: u32) {
        let sender = &mut self.senders[node as usize];
        sender.leaving.push_back((left_at, bytes));
        if std::mem::take(&mut sender.is_stalled) {
            self.add(left_at, Event::Room { node });
        }
    }

    /// The packet that a node's adapter has worked at is ready for the link.
    pub(super) fn packet_made(&mut self, node: u32) {
        let sender = &mut self.senders[node as usize];
        sender.is_busy = false;
        let Some(&number) = sender.messages.front() else { return };
        let message = &mut self.messages[number];
        let bytes = message.unsent.min(self.packet_bytes.into()) as u32;
        message.unsent -= u64::from(bytes);
        let is_last = message.unsent == 0;
        if is_last {
            sender.messages.pop_front();
        }
        let route = message.route;
        let channel = self.routes.channel(route, 0);
        let packet = self.packets.insert(Packet {
            message: number,
            route,
            bytes,
            is_last,
            place: Place::Stored,
            hop: 0,
            first: 0,
            store: node,
            ready: self.now,
            fed: self.now,
        });
        self.counts.packets += 1;
        self.channels[channel as usize].line.push_back(packet);
        self.look_at(channel);
        self.make_packet(node);
    }

    /// The head of a packet is at its destination: it is taken in as soon as there is room for all of it.
    pub(super) fn head_at_node(&mut self, number: u32, node: u32) {
        let packet = self.packets[number];
        let receiver = &mut self.receivers[node as usize];
        while let Some(&(done_at, bytes)) = receiver.held.front() {
            if done_at > self.now && receiver.room >= packet.bytes {
                break;
            }
            receiver.room_at = done_at;
            receiver.room += bytes;
            receiver.held.pop_front();
        }
        receiver.room -= packet.bytes;
        let taken = receiver.room_at.max(self.now);
        let tail_in = self.take_in(number, taken);

        let receiver = &mut self.receivers[node as usize];
        let begun_at = receiver.done_at.max(tail_in);
        receiver.done_at = begun_at + self.times.in_adapter[packet.bytes as usize];
        receiver.held.push_back((receiver.done_at, packet.bytes));
        let done_at = receiver.done_at;
        self.messages[packet.message].first_byte.get_or_insert(taken);
        self.counts.received += 1;
        self.packets.remove(number);
        if packet.is_last {
            self.add(done_at, Event::Arrived { message: packet.message });
        }
    }

    /// All of a message is at its destination.
    pub(super) fn message_arrived(&mut self, number: u32) -> Delivery {
        let message = &mut self.messages[number];
        let first_byte = Time(message.first_byte.unwrap_or(self.now));
        let delivery = Delivery { message: message.id, first_byte, last_byte: Time(self.now) };
        self.routes.give_back(message.route);
        self.messages.remove(number);
        delivery
    }
}
