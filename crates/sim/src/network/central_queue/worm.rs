//! How a packet stretches over channels, and when it lets go of them.
//!
//! Between two stores (adapter buffers and queues) a packet is a worm: from channel `first` to channel `hop` of its route,
//! bypassing the switches between. While its head has nowhere to go, nothing is known of its tail. Once the head is taken
//! in at the end of the last of them, at `taken`, nothing stops the worm any more, and as all channels are equally fast,
//! the rest follows: the last input port holds `input` of it, so what is beyond that passes the last channel while as much
//! is taken in; one channel further back, two input ports hold part of it; and so on. No channel is faster than the packet's
//! bytes, and the tail cannot come before it was there.

use super::{CentralQueue, Event, UNKNOWN};

impl CentralQueue {
    /// Puts the head of a packet on the next channel of its route, at `started`: it leaves a store, or stretches.
    pub(super) fn put_on(&mut self, number: u32, channel: u32, started: u64) {
        let there = &mut self.channels[channel as usize];
        debug_assert!(there.free_at <= started);
        there.free_at = UNKNOWN;
        there.started = started;
        let head_at = (started + self.times.link_latency).max(there.clear_at);
        self.add(head_at, Event::Head { packet: number });
    }

    /// The head of a packet is taken in at `taken`, at the end of channel `hop`: frees the channels behind it, each in its
    /// time, and the room in the store that it comes from. Gives when its tail is taken in.
    pub(super) fn take_in(&mut self, number: u32, taken: u64) -> u64 {
        let packet = self.packets[number];
        let length = self.times.on_link[packet.bytes as usize];
        let mut held = self.times.input;
        let mut cleared = 0;
        let mut tail_in = 0;
        for hop in (packet.first..=packet.hop).rev() {
            let channel = self.routes.channel(packet.route, hop);
            let there = &mut self.channels[channel as usize];
            let mut tail_out = (there.started + length).max(packet.fed);
            if length > held {
                tail_out = tail_out.max(taken + length - held);
            }
            if hop == packet.hop {
                tail_in = (taken + length).max(tail_out + self.times.link_latency);
                cleared = tail_in;
            }
            // Another head would have no place at the input port before this one is taken in, however short it is.
            there.free_at = tail_out.max(taken);
            there.clear_at = cleared;
            cleared = there.free_at;
            held += self.times.input;
            self.look_at(channel);
        }
        // What it leaves can be filled as fast as it is emptied, a chunk later.
        let left_at = taken + self.times.chunk;
        match packet.store.checked_sub(self.topology.nodes()) {
            None => self.packet_leaves_adapter(packet.store, left_at, packet.bytes),
            Some(switch) => {
                // No packet takes more.
                let chunks = self.chunks_of[packet.bytes as usize] as u16;
                self.add(left_at, Event::Left { switch, chunks });
            }
        }
        tail_in
    }

    /// A packet is in line for a channel, or the channel's end of use is known: sends the first in line on, now if the
    /// channel is free, else when it is.
    pub(super) fn look_at(&mut self, channel: u32) {
        let there = &mut self.channels[channel as usize];
        if there.line.is_empty() || there.is_watched || there.free_at == UNKNOWN {
            return;
        }
        there.is_watched = true;
        if there.free_at <= self.now {
            self.channel_freed(channel);
        } else {
            let at = there.free_at;
            self.add(at, Event::Free { channel });
        }
    }
}
