//! Switches, channels and lanes as the engine wants them: what is looked at together lies together.
//!
//! Channels are numbered in the order in which they lead into switches, by switch and port; those that lead to nodes come
//! last, in order of the nodes. A lane's number is its channel's, times a power of two, and its own. So the lanes that
//! lead into a switch have successive numbers; a lane's *place* is its number among them.

use super::bits::first_from;
use super::error::WormholeError;
use super::flit::Flit;
use crate::network::topology::{Channel as Wire, ChannelId, Device, Topology};

/// Ports of a switch on one side, at most: one word of bits.
const MOST_PORTS: usize = 64;

/// No output port: a channel that a node sends into.
pub(super) const FROM_NODE: u32 = u32::MAX;

/// No lane.
pub(super) const NO_LANE: u32 = u32::MAX;

/// All that is wired, and its state.
#[derive(Debug)]
pub(super) struct Fabric {
    pub(super) switches: Vec<Switch>,
    pub(super) outputs: Vec<Output>,
    pub(super) channels: Vec<Channel>,
    /// How many channels lead into switches: those of a lower number.
    pub(super) switch_channels: usize,
    pub(super) lanes: Vec<Lane>,
    /// The channel that each node sends into.
    pub(super) injection: Vec<u32>,
    pub(super) geometry: Geometry,
    /// Flits of a lane's buffer.
    pub(super) depth: u16,
    /// The flits in the buffers behind the front ones: a ring for each lane that leads into a switch.
    flits: Vec<Flit>,
    ring_shift: u32,
    ring_mask: u32,
}

/// How lanes are numbered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Bits of a lane's number that count within its channel.
    pub(super) shift: u32,
}

/// A switch.
#[derive(Debug)]
pub(super) struct Switch {
    /// The first of the channels that lead into it, and how many there are.
    pub(super) first_channel: u32,
    pub(super) inputs: u32,
    /// The first of its output ports among those of all switches, and how many there are.
    pub(super) first_output: u32,
    pub(super) outputs: u32,
    /// The input ports with lanes whose front flit may cross the switch.
    pub(super) ready_ports: u64,
}

/// An output port of a switch.
#[derive(Debug)]
pub(super) struct Output {
    /// The channel that leaves by it.
    pub(super) channel: u32,
    /// Round-robin state: the input port that goes first.
    pub(super) first_input: u8,
}

/// A channel.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Channel {
    /// Its lanes whose front flit may cross the switch that it leads to.
    pub(super) ready: u64,
    /// Its lanes that no packet has.
    pub(super) free: u64,
    /// And those that no packet may have before all credits are back.
    draining: u64,
    /// Flits that are on it or in the buffers behind, where anybody looks at it.
    pub(super) used: u32,
    /// The switch or node that sends into it, and the output port among those of all switches, or [`FROM_NODE`].
    pub(super) sender: u32,
    pub(super) output: u32,
    /// The first of the lanes that lead into the switch that sends into it, and how many places they have.
    pub(super) first_place: u32,
    pub(super) places: u32,
    /// The switch that it leads to, and the input port there.
    pub(super) switch: u32,
    pub(super) port: u8,
    /// Round-robin state: which output port, and which of its lanes, goes first.
    pub(super) first_output: u8,
    pub(super) first_lane: u8,
}

/// How far the packet at the front of a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// There is none.
    Idle,
    /// Its head waits for its route and then for an output lane.
    Asking,
    /// It has an output lane, and its flits ask for the switch as they come.
    Moving,
    /// Its front flit was given the switch.
    Crossing,
}

/// A lane: the credits of who sends into it, and the state of the buffer that it leads to. Two fit into a line of the
/// processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Lane {
    /// The lane of the sender whose packet has it.
    pub(super) holder: u32,
    /// The output lane that the packet at the front has; before it has one, the first of the channel that it asks at.
    pub(super) out: u32,
    /// Round-robin state: the output lane that it accepted last.
    pub(super) accepted: u32,
    /// Flits that may be sent into it.
    pub(super) credits: u16,
    /// Place of the front flit in the ring, and how many flits there are; and the front flit itself, so that a lane that
    /// has no other does not touch the ring.
    pub(super) start: u16,
    pub(super) length: u16,
    pub(super) front: Flit,
    /// Round-robin state: the place among the sender's lanes that goes first.
    pub(super) grant: u16,
    /// In which cycles its front asks for what takes several.
    pub(super) turn: u16,
    pub(super) stage: Stage,
    /// The output port of the packet at the front, and the class of the output lane.
    pub(super) port: u8,
    pub(super) class: u8,
}

/// A flit that is sent from a lane into another.
pub(super) struct Sent {
    pub(super) flit: Flit,
    pub(super) out: u32,
    /// How many flits are left in the lane, and credits for the other.
    pub(super) left: u16,
    pub(super) credits: u16,
}

impl Fabric {
    pub(super) fn wire(
        topology: &Topology,
        virtual_channels: u32,
        buffer: u32,
    ) -> Result<Fabric, WormholeError> {
        let numbers = Numbers::of(topology);
        let mut switches = Vec::new();
        let mut outputs = Vec::new();
        let mut first_channel = 0;
        for number in 0..topology.switches() {
            let device = Device::Switch(number);
            let (incoming, outgoing) = (topology.incoming(device), topology.outgoing(device));
            let ports = outgoing.len().max(incoming.len());
            if ports > MOST_PORTS {
                let topology = topology.to_string();
                return Err(WormholeError::Ports { topology, switch: number, ports, most: MOST_PORTS });
            }
            switches.push(Switch {
                first_channel,
                inputs: incoming.len() as u32,
                first_output: outputs.len() as u32,
                outputs: outgoing.len() as u32,
                ready_ports: 0,
            });
            first_channel += incoming.len() as u32;
            outputs.extend(outgoing.iter().map(|id| Output { channel: numbers.of_id(*id), first_input: 0 }));
        }
        let free = !0 >> (64 - virtual_channels);
        let shift = virtual_channels.next_power_of_two().ilog2();
        let channel = |wire: &Wire| Channel::of(*wire, &switches, free, shift);
        let channels: Vec<Channel> = numbers.order.iter().map(channel).collect();
        let ring_shift = buffer.next_power_of_two().ilog2();
        let switch_channels = first_channel as usize;
        Ok(Fabric {
            lanes: vec![Lane::with(buffer as u16); channels.len() << shift],
            flits: vec![0; switch_channels << shift << ring_shift],
            injection: injection(topology, &numbers)?,
            switches,
            outputs,
            channels,
            switch_channels,
            geometry: Geometry { shift },
            depth: buffer as u16,
            ring_shift,
            ring_mask: (1 << ring_shift) - 1,
        })
    }

    #[inline]
    pub(super) fn channel(&self, lane: u32) -> usize {
        self.geometry.channel(lane)
    }

    /// Which of its channel's lanes it is.
    #[inline]
    pub(super) fn within(&self, lane: u32) -> u32 {
        self.geometry.within(lane)
    }

    #[inline]
    pub(super) fn lane(&self, channel: usize, within: usize) -> u32 {
        self.geometry.lane(channel, within)
    }

    /// Puts a flit into a lane's buffer; gives the lane.
    #[inline]
    pub(super) fn push(&mut self, number: u32, flit: Flit) -> &Lane {
        let lane = &mut self.lanes[number as usize];
        debug_assert!(lane.length < self.depth, "credits keep buffers from running over");
        if lane.length == 0 {
            lane.front = flit;
        } else {
            let place = u32::from(lane.start.wrapping_add(lane.length)) & self.ring_mask;
            self.flits[((number << self.ring_shift) | place) as usize] = flit;
        }
        lane.length += 1;
        lane
    }

    /// The flit at the front of a lane that has one.
    #[inline]
    pub(super) fn front(&self, number: u32) -> Flit {
        self.lanes[number as usize].front
    }

    /// Sends the flit at the front of a lane into the output lane that it has; `is_tail` tells the last of a packet, whose
    /// successor in the lane is looked at later.
    #[inline]
    pub(super) fn pop<const PLAIN: bool>(&mut self, number: u32, is_tail: impl Fn(Flit) -> bool) -> Sent {
        let lane = &mut self.lanes[number as usize];
        let flit = lane.front;
        lane.start = lane.start.wrapping_add(1);
        lane.length -= 1;
        if lane.length > 0 {
            let place = u32::from(lane.start) & self.ring_mask;
            lane.front = self.flits[((number << self.ring_shift) | place) as usize];
        }
        if is_tail(flit) {
            lane.stage = if lane.length == 0 { Stage::Idle } else { Stage::Asking };
        }
        let (left, out) = (lane.length, lane.out);
        let credits = self.use_credit::<PLAIN>(out);
        Sent { flit, out, left, credits }
    }

    /// A flit is sent into a lane that has a credit; gives how many it has left.
    #[inline]
    pub(super) fn use_credit<const PLAIN: bool>(&mut self, number: u32) -> u16 {
        if !PLAIN {
            let channel = self.channel(number);
            self.channels[channel].used += 1;
        }
        let lane = &mut self.lanes[number as usize];
        lane.credits -= 1;
        lane.credits
    }

    /// A packet takes a lane that is free; gives how many credits there are.
    #[inline]
    pub(super) fn take(&mut self, number: u32, holder: u32) -> u16 {
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        self.channels[channel].free &= !bit;
        let lane = &mut self.lanes[number as usize];
        lane.holder = holder;
        lane.credits
    }

    /// Whether no packet has a lane.
    pub(super) fn is_free(&self, number: u32) -> bool {
        self.channels[self.channel(number)].free >> self.within(number) & 1 == 1
    }

    /// A packet's tail was sent into the lane, which is free now, or when all credits are back. Gives whether it is now.
    #[inline]
    pub(super) fn release(&mut self, number: u32, is_when_empty: bool) -> bool {
        self.lanes[number as usize].holder = NO_LANE;
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        let channel = &mut self.channels[channel];
        if is_when_empty {
            channel.draining |= bit;
        } else {
            channel.free |= bit;
        }
        !is_when_empty
    }

    /// A flit has left a lane. Gives whether the lane is free now, having waited for that, and who has it.
    #[inline]
    pub(super) fn return_credit<const PLAIN: bool>(&mut self, number: u32) -> (bool, u32) {
        if PLAIN {
            let lane = &mut self.lanes[number as usize];
            lane.credits += 1;
            return (false, lane.holder);
        }
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        let (channel, lane) = (&mut self.channels[channel], &mut self.lanes[number as usize]);
        channel.used -= 1;
        lane.credits += 1;
        if channel.draining & bit == 0 || lane.credits < self.depth {
            return (false, lane.holder);
        }
        channel.draining &= !bit;
        channel.free |= bit;
        (true, lane.holder)
    }
}

impl Geometry {
    #[inline]
    pub(super) fn channel(self, lane: u32) -> usize {
        (lane >> self.shift) as usize
    }

    #[inline]
    pub(super) fn within(self, lane: u32) -> u32 {
        lane & ((1 << self.shift) - 1)
    }

    #[inline]
    pub(super) fn lane(self, channel: usize, within: usize) -> u32 {
        ((channel << self.shift) | within) as u32
    }

    /// The lane of several of a channel that is next in turn for a head that accepted this one last.
    #[inline]
    pub(super) fn next_lane(self, accepted: u32, channel: usize, lanes: u64) -> usize {
        // Behind the last one comes the first one again, and so it does after a turn at another channel.
        let after = self.within(accepted.wrapping_add(1));
        first_from(lanes, if self.channel(accepted) == channel { after as usize } else { 0 })
    }
}

impl Channel {
    fn of(wire: Wire, switches: &[Switch], free: u64, shift: u32) -> Channel {
        let (sender, output, first_place, places) = match wire.from.device {
            Device::Node(node) => (node, FROM_NODE, 0, 0),
            Device::Switch(switch) => {
                let state = &switches[switch as usize];
                let output = state.first_output + u32::from(wire.from.number);
                (switch, output, state.first_channel << shift, state.inputs << shift)
            }
        };
        let (switch, port) = match wire.to.device {
            Device::Node(node) => (node, 0),
            Device::Switch(switch) => (switch, wire.to.number as u8),
        };
        Channel {
            ready: 0,
            free,
            draining: 0,
            used: 0,
            sender,
            output,
            first_place,
            places,
            switch,
            port,
            first_output: 0,
            first_lane: 0,
        }
    }
}

impl Lane {
    fn with(credits: u16) -> Lane {
        Lane {
            holder: NO_LANE,
            out: NO_LANE,
            credits,
            start: 0,
            length: 0,
            front: 0,
            accepted: NO_LANE,
            grant: 0,
            turn: 0,
            stage: Stage::Idle,
            port: 0,
            class: 0,
        }
    }
}

/// The order of the channels.
struct Numbers {
    order: Vec<Wire>,
    of_id: Vec<u32>,
}

impl Numbers {
    fn of(topology: &Topology) -> Numbers {
        let mut numbers = Numbers { order: Vec::new(), of_id: vec![u32::MAX; topology.channels().len()] };
        let switches = (0..topology.switches()).map(Device::Switch);
        for device in switches.chain((0..topology.nodes()).map(Device::Node)) {
            for id in topology.incoming(device) {
                numbers.of_id[id.0 as usize] = numbers.order.len() as u32;
                numbers.order.push(topology.channel(*id));
            }
        }
        numbers
    }

    fn of_id(&self, id: ChannelId) -> u32 {
        self.of_id[id.0 as usize]
    }
}

/// The channel that each node sends into.
fn injection(topology: &Topology, numbers: &Numbers) -> Result<Vec<u32>, WormholeError> {
    let into_switch = |id: &ChannelId| matches!(topology.channel(*id).to.device, Device::Switch(_));
    let of_node = |node| {
        let first = topology.outgoing(Device::Node(node)).first().copied().filter(into_switch);
        let unlinked = || WormholeError::Unlinked { topology: topology.to_string(), node };
        first.map(|id| numbers.of_id(id)).ok_or_else(unlinked)
    };
    (0..topology.nodes()).map(of_node).collect()
}
