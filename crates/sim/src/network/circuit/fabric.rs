//! The switches: how the head of a packet gets from link to link, who waits, and who goes first.

use std::cmp::Reverse;

use pio_machine::circuit::Arbitration;

use crate::kernel::Time;

use super::Circuit;
use super::state::{Event, NONE, Priority, Rank, Waiter};
use super::wiring::Ports;

impl Circuit {
    /// Whether a channel has a virtual channel to give.
    pub(super) fn has_free(&self, now: Time, channel: u32) -> bool {
        self.virtual_channels_of(channel).any(|index| self.virtual_channels[index as usize].is_free(now))
    }

    pub(super) fn channel_of(&self, virtual_channel: u32) -> u32 {
        virtual_channel >> self.costs.stride_bits
    }

    /// The packet that holds this virtual channel of a channel.
    pub(super) fn holder(&self, channel: u32, number: u32) -> Option<u32> {
        let index = (channel << self.costs.stride_bits) + number;
        Some(self.virtual_channels[index as usize].holder).filter(|holder| *holder != NONE)
    }

    /// The head of a packet, at a switch, looks for its way on.
    pub(super) fn at_switch(&mut self, now: Time, packet: u32) {
        let Some(switch) = self.switch_of(packet) else { return };
        let ports = self.wiring.ports(switch, self.packets[packet].to);
        let rank = self.rank(now, packet);
        while let Some(port) = self.choose(now, switch, &ports) {
            // What becomes free at this very moment goes to who has waited for it, if they come first.
            let rival = self
                .first_waiter(now, switch, port)
                .filter(|(_, waiter)| self.order(now, waiter.rank) > self.order(now, rank));
            let Some((index, waiter)) = rival else { return self.leave(now, packet, switch, port, &ports) };
            self.waiting[switch as usize].remove(index);
            self.leave(now, waiter.packet, switch, port, &waiter.ports());
        }
        self.waiting[switch as usize].push(Waiter {
            packet,
            first_port: ports.start,
            end_port: ports.end,
            rank,
        });
        for port in ports {
            for index in self.virtual_channels_of(self.wiring.channel(switch, port)) {
                self.announce(index);
            }
        }
    }

    /// A virtual channel is free: the first of those that wait for its link takes it.
    pub(super) fn freed(&mut self, now: Time, virtual_channel: u32) {
        let state = &mut self.virtual_channels[virtual_channel as usize];
        state.announced = false;
        if !state.is_free(now) {
            // Taken at the moment it became free, or even freed again since.
            return self.announce_if_awaited(virtual_channel);
        }
        let Some((switch, port)) = self.wiring.start(self.channel_of(virtual_channel)) else { return };
        let Some((index, waiter)) = self.first_waiter(now, switch, port) else { return };
        self.waiting[switch as usize].remove(index);
        self.leave(now, waiter.packet, switch, port, &waiter.ports());
    }

    /// Gives a packet a virtual channel of a channel that has one free: its head goes over the link.
    pub(super) fn take(&mut self, now: Time, packet: u32, channel: u32) {
        let mut indices = self.virtual_channels_of(channel);
        let free = indices.find(|index| self.virtual_channels[*index as usize].is_free(now));
        let free = free.expect("whoever takes a channel has seen that one of its virtual channels is free");
        self.virtual_channels[free as usize].holder = packet;
        self.goes_on(now, packet);
        self.packets[packet].path.push(free);
        let at_end = now + self.costs.link;
        if self.wiring.end(channel).is_none() {
            self.events.add(at_end, Event::AtNode { packet });
        } else {
            self.events.add(at_end + self.costs.flow_through, Event::AtSwitch { packet });
        }
    }

    /// The acknowledgement sets out at `from`, and frees one link after the other. When it is at the source.
    pub(super) fn close(&mut self, from: Time, packet: u32) -> Time {
        let path = std::mem::take(&mut self.packets[packet].path);
        let mut time = from + self.costs.link;
        for (position, &index) in path.iter().enumerate().rev() {
            let state = &mut self.virtual_channels[index as usize];
            state.holder = NONE;
            state.free = time;
            self.announce_if_awaited(index);
            if position > 0 {
                time = time + self.costs.flow_through + self.costs.link;
            }
        }
        self.packets[packet].path = path;
        time
    }

    /// A packet leaves a switch by one of the ports that would do.
    fn leave(&mut self, now: Time, packet: u32, switch: u32, port: u16, ports: &Ports) {
        if ports.len() > 1 {
            self.first_choice[switch as usize] = port + 1;
        }
        self.take(now, packet, self.wiring.channel(switch, port));
    }

    /// The port, of those that will do and have a virtual channel free, of which fewest are taken: adaptive routing picks
    /// the least loaded link (section 2.2.1). Among equals they take turns.
    fn choose(&self, now: Time, switch: u32, ports: &Ports) -> Option<u16> {
        let first = self.first_choice[switch as usize];
        let load = |port: u16| {
            let mut indices = self.virtual_channels_of(self.wiring.channel(switch, port));
            let is_taken = |index: u32| u32::from(!self.virtual_channels[index as usize].is_free(now));
            let taken = indices.by_ref().map(is_taken).sum::<u32>();
            (taken < self.costs.virtual_channels).then_some((taken, port < first, port))
        };
        ports.clone().filter_map(load).min().map(|(_, _, port)| port)
    }

    fn first_waiter(&self, now: Time, switch: u32, port: u16) -> Option<(usize, Waiter)> {
        let waiting = self.waiting[switch as usize].iter().copied().enumerate();
        waiting
            .filter(|(_, waiter)| waiter.ports().contains(&port))
            .max_by_key(|(_, waiter)| self.order(now, waiter.rank))
    }

    /// What decides when a packet that is at a switch from `now` on goes first.
    fn rank(&self, now: Time, packet: u32) -> Rank {
        let state = &self.packets[packet];
        Rank { priority: state.priority, born: state.born, came: now, packet }
    }

    /// How these compare: the greatest goes first. By the packet's number in the end, so that there is always an order.
    fn order(&self, now: Time, rank: Rank) -> (Priority, u64, Reverse<Time>, Reverse<u32>) {
        let age = match self.costs.arbitration {
            Arbitration::PacketAge => {
                now.since(rank.born).picoseconds() / self.costs.age_step.picoseconds().max(1)
            }
            Arbitration::SwitchAge => 0,
        };
        (rank.priority, age, Reverse(rank.came), Reverse(rank.packet))
    }

    /// The switch where the head of a packet is.
    fn switch_of(&self, packet: u32) -> Option<u32> {
        self.wiring.end(self.channel_of(*self.packets[packet].path.last()?))
    }

    fn virtual_channels_of(&self, channel: u32) -> std::ops::Range<u32> {
        let first = channel << self.costs.stride_bits;
        first..first + self.costs.virtual_channels
    }

    fn announce_if_awaited(&mut self, virtual_channel: u32) {
        let start = self.wiring.start(self.channel_of(virtual_channel));
        let awaited = |(switch, port): (u32, u16)| {
            self.waiting[switch as usize].iter().any(|waiter| waiter.ports().contains(&port))
        };
        if start.is_some_and(awaited) {
            self.announce(virtual_channel);
        }
    }

    /// Makes the event of a virtual channel's becoming free, if it is known when that will be.
    fn announce(&mut self, virtual_channel: u32) {
        let state = &mut self.virtual_channels[virtual_channel as usize];
        if state.holder == NONE && !state.announced {
            state.announced = true;
            self.events.add(state.free, Event::Free { virtual_channel });
        }
    }
}
