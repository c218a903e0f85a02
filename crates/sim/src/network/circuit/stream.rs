//! The bodies of packets: how fast they flow, and when they have left their source and are at their destination.
//!
//! A body is the time it takes on a link that it has to itself. Once the circuit is complete, it flows at the speed of the
//! slowest link of its way, and a link is shared evenly by those that flow over it. With two virtual channels this is
//! max-min fair: everyone gets a half at least, and whoever shares at all gets just that.
//!
//! Before that, while the head waits, the body fills the buffers behind it. A packet that fits in them leaves its source
//! to the next one though its circuit is not complete.

use pio_machine::Duration;

use crate::kernel::Time;

use super::Circuit;
use super::state::Event;

impl Circuit {
    /// The head of a packet goes on over a link: the buffers up to here have taken what they could.
    pub(super) fn goes_on(&mut self, now: Time, packet: u32) {
        let state = &mut self.packets[packet];
        let links = state.path.len() as u64;
        let room = self.costs.buffer.saturating_mul(links);
        let whole = state.body.saturating_add(self.costs.gap);
        let until_now = state.sent.saturating_add(now.since(state.since)).min(whole);
        // What had left before cannot have been more than the room for it.
        state.sent = if room >= state.body { until_now } else { until_now.min(room) };
        state.since = now;
        let fits = self.costs.buffer.saturating_mul(links + 1) >= state.body;
        if fits && !state.will_leave {
            state.will_leave = true;
            let rest = whole.saturating_sub(state.sent);
            self.events.add(now + rest, Event::Left { packet, schedule: state.left_schedule });
        }
    }

    /// The head of a packet is at its destination: the circuit is complete, and the body flows.
    pub(super) fn at_node(&mut self, now: Time, packet: u32) {
        let whole = self.packets[packet].body.saturating_add(self.costs.gap);
        let state = &mut self.packets[packet];
        state.sent = state.sent.saturating_add(now.since(state.since)).min(whole);
        state.since = now;
        let slot = state.message;
        self.messages[slot].first_byte = self.messages[slot].first_byte.min(now);
        self.take_in(now, packet);
        for position in 0..self.packets[packet].path.len() {
            let channel = self.channel_at(packet, position);
            self.streams[channel as usize] += 1;
        }
        let slowness = self.most_sharing(packet);
        let state = &mut self.packets[packet];
        state.slowness = slowness;
        let on_time = slowness == 1 && state.will_leave;
        self.schedule_tail(now, packet);
        if !on_time {
            self.schedule_left(now, packet);
        }
        if slowness > 1 {
            self.others_change(now, packet);
        }
    }

    /// The whole packet has left its source, whose adapter turns to the next.
    pub(super) fn left(&mut self, now: Time, packet: u32) {
        self.packets[packet].has_left = true;
        let node = self.packets[packet].from;
        self.adapters[node as usize].is_sending = false;
        self.pump(now, node);
    }

    /// The whole packet is at its destination.
    pub(super) fn tail(&mut self, now: Time, packet: u32) {
        let slowness = self.packets[packet].slowness;
        self.packets[packet].slowness = 0;
        for position in 0..self.packets[packet].path.len() {
            let channel = self.channel_at(packet, position);
            self.streams[channel as usize] -= 1;
        }
        if slowness > 1 {
            self.others_change(now, packet);
        }
        let state = &self.packets[packet];
        let acknowledged = now.max(state.taken_in);
        let (slot, payload) = (state.message, state.payload);
        self.totals.packets += 1;
        self.totals.hops += state.path.len() as u64;
        let closed = self.close(acknowledged + self.packets[packet].release, packet);
        self.events.add(closed, Event::Closed { packet });
        self.came(acknowledged, slot, payload);
    }

    /// Those that flow over a link of this packet's way share it with one more or one less.
    fn others_change(&mut self, now: Time, packet: u32) {
        for position in 0..self.packets[packet].path.len() {
            let channel = self.channel_at(packet, position);
            let own = u32::from(self.packets[packet].slowness > 0);
            if self.streams[channel as usize] == own {
                continue;
            }
            for number in 0..self.costs.virtual_channels {
                let Some(other) = self.holder(channel, number).filter(|other| *other != packet) else {
                    continue;
                };
                let before = self.packets[other].slowness;
                if before == 0 {
                    continue;
                }
                let slowness = self.most_sharing(other);
                if slowness != before {
                    self.settle(now, other);
                    self.packets[other].slowness = slowness;
                    self.schedule_tail(now, other);
                    self.schedule_left(now, other);
                }
            }
        }
    }

    /// How many flow over the link of its way over which most do.
    fn most_sharing(&self, packet: u32) -> u32 {
        let path = &self.packets[packet].path;
        let sharing = path.iter().map(|index| self.streams[self.channel_of(*index) as usize]);
        sharing.max().unwrap_or(1)
    }

    /// Notes how far a body that flows has come.
    fn settle(&mut self, now: Time, packet: u32) {
        let whole = self.packets[packet].body.saturating_add(self.costs.gap);
        let state = &mut self.packets[packet];
        let progress = now.since(state.since).picoseconds() / u64::from(state.slowness);
        let progress = Duration::from_picoseconds(progress);
        state.sent = state.sent.saturating_add(progress).min(whole);
        state.arrived = state.arrived.saturating_add(progress).min(state.body);
        state.since = now;
    }

    fn schedule_tail(&mut self, now: Time, packet: u32) {
        let state = &mut self.packets[packet];
        state.tail_schedule = state.tail_schedule.wrapping_add(1);
        let rest = state.body.saturating_sub(state.arrived).saturating_mul(u64::from(state.slowness));
        self.events.add(now + rest, Event::Tail { packet, schedule: state.tail_schedule });
    }

    fn schedule_left(&mut self, now: Time, packet: u32) {
        let whole = self.packets[packet].body.saturating_add(self.costs.gap);
        let state = &mut self.packets[packet];
        if state.has_left {
            return;
        }
        state.will_leave = true;
        state.left_schedule = state.left_schedule.wrapping_add(1);
        let rest = whole.saturating_sub(state.sent).saturating_mul(u64::from(state.slowness));
        self.events.add(now + rest, Event::Left { packet, schedule: state.left_schedule });
    }

    fn channel_at(&self, packet: u32, position: usize) -> u32 {
        self.channel_of(self.packets[packet].path[position])
    }
}
