//! The switches: how the head of a packet gets from link to link, who waits, and who goes first.

use std::cmp::Reverse;

use pio_machine::Arbitration;

use crate::kernel::Time;

use super::{Circuit, Event, NONE, Priority};

/// One of the channels that a link's direction is divided into: has buffers of its own, and one packet at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualChannel {
    /// The packet that has it.
    holder: u32,
    /// When its last holder's acknowledgement has passed.
    free: Time,
    /// Whether there will be an event when it is free.
    announced: bool,
}

impl Default for VirtualChannel {
    fn default() -> VirtualChannel {
        VirtualChannel { holder: NONE, free: Time(0), announced: false }
    }
}

impl VirtualChannel {
    fn is_free(&self, now: Time) -> bool {
        self.holder == NONE && self.free <= now
    }
}

/// A packet whose head waits at a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    packet: u32,
    /// The ports that will do, as bits.
    ports: u64,
    rank: Rank,
}

/// Who goes first: the greatest. By the packet's number in the end, so that there is always an order.
type Rank = (Priority, Reverse<Time>, Reverse<u32>);

impl Circuit {
    /// Whether a channel has a virtual channel to give.
    pub(super) fn has_free(&self, now: Time, channel: u32) -> bool {
        self.virtual_channels_of(channel).any(|index| self.virtual_channels[index as usize].is_free(now))
    }

    pub(super) fn channel_of(&self, virtual_channel: u32) -> u32 {
        virtual_channel / self.costs.virtual_channels
    }

    /// The packets that hold virtual channels of a channel.
    pub(super) fn holders(&self, channel: u32) -> impl Iterator<Item = u32> + use<'_> {
        let indices = self.virtual_channels_of(channel);
        indices.map(|index| self.virtual_channels[index as usize].holder).filter(|holder| *holder != NONE)
    }

    /// The head of a packet, at a switch, looks for its way on.
    pub(super) fn at_switch(&mut self, now: Time, packet: u32) {
        let switch = self.switch_of(packet);
        let ports = self.wiring.ports(switch, self.packets[packet as usize].to);
        let rank = self.rank(now, packet);
        while let Some(port) = self.choose(now, switch, ports) {
            // What becomes free at this very moment goes to who has waited for it, if they come first.
            let rival = self.first_waiter(switch, port).filter(|(_, waiter)| waiter.rank > rank);
            let Some((index, waiter)) = rival else {
                return self.go_on(now, packet, switch, port, ports);
            };
            self.waiting[switch as usize].remove(index);
            self.go_on(now, waiter.packet, switch, port, waiter.ports);
        }
        self.waiting[switch as usize].push(Waiter { packet, ports, rank });
        for port in bits(ports) {
            let channel = self.wiring.channel(switch, port);
            for index in self.virtual_channels_of(channel) {
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
        let Some((index, waiter)) = self.first_waiter(switch, port) else { return };
        self.waiting[switch as usize].remove(index);
        self.go_on(now, waiter.packet, switch, port, waiter.ports);
    }

    /// Gives a packet one of a channel's virtual channels, of which one is free: its head goes over the link.
    pub(super) fn take(&mut self, now: Time, packet: u32, channel: u32) {
        let free = self
            .virtual_channels_of(channel)
            .find(|index| self.virtual_channels[*index as usize].is_free(now))
            .expect("a channel that was found to have a virtual channel free");
        self.virtual_channels[free as usize].holder = packet;
        self.goes_on(now, packet);
        self.packets[packet as usize].path.push(free);
        let at_end = now + self.costs.link;
        if self.wiring.ends_at_node(channel) {
            self.events.add(at_end, Event::AtNode { packet });
        } else {
            self.events.add(at_end + self.costs.flow_through, Event::AtSwitch { packet });
        }
    }

    /// The acknowledgement sets out at `from`, and frees one link after the other. When it is at the source.
    pub(super) fn close(&mut self, from: Time, packet: u32) -> Time {
        let path = std::mem::take(&mut self.packets[packet as usize].path);
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
        self.packets[packet as usize].path = path;
        time
    }

    fn go_on(&mut self, now: Time, packet: u32, switch: u32, port: u32, ports: u64) {
        if !ports.is_power_of_two() {
            self.first_choice[switch as usize] = port + 1;
        }
        self.take(now, packet, self.wiring.channel(switch, port));
    }

    /// The port, of those that will do and have a virtual channel free, of which fewest are taken: adaptive routing picks
    /// the least loaded link (section 2.2.1). Among equals they take turns.
    fn choose(&self, now: Time, switch: u32, ports: u64) -> Option<u32> {
        let first = self.first_choice[switch as usize];
        let load = |port: u32| {
            let channel = self.wiring.channel(switch, port);
            let mut indices = self.virtual_channels_of(channel);
            let taken = |index: u32| u32::from(!self.virtual_channels[index as usize].is_free(now));
            let taken = indices.by_ref().map(taken).sum::<u32>();
            (taken < self.costs.virtual_channels).then_some((taken, port < first, port))
        };
        bits(ports).filter_map(load).min().map(|(_, _, port)| port)
    }

    fn first_waiter(&self, switch: u32, port: u32) -> Option<(usize, Waiter)> {
        let waiting = self.waiting[switch as usize].iter().copied().enumerate();
        waiting.filter(|(_, waiter)| waiter.ports >> port & 1 == 1).max_by_key(|(_, waiter)| waiter.rank)
    }

    fn rank(&self, now: Time, packet: u32) -> Rank {
        let state = &self.packets[packet as usize];
        let since = match self.costs.arbitration {
            Arbitration::PacketAge => state.born,
            Arbitration::SwitchAge => now,
        };
        (state.priority, Reverse(since), Reverse(packet))
    }

    fn switch_of(&self, packet: u32) -> u32 {
        let last = self.packets[packet as usize].path.last();
        let end = last.and_then(|index| self.wiring.end_switch(self.channel_of(*index)));
        end.expect("the head of a packet at a switch came over a link that ends there")
    }

    fn virtual_channels_of(&self, channel: u32) -> std::ops::Range<u32> {
        let count = self.costs.virtual_channels;
        channel * count..(channel + 1) * count
    }

    fn announce_if_awaited(&mut self, virtual_channel: u32) {
        let start = self.wiring.start(self.channel_of(virtual_channel));
        let awaited = |(switch, port): (u32, u32)| {
            self.waiting[switch as usize].iter().any(|waiter| waiter.ports >> port & 1 == 1)
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

fn bits(mut ports: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (ports != 0).then(|| ports.trailing_zeros())?;
        ports &= ports - 1;
        Some(bit)
    })
}
