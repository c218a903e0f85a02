//! Switches, channels and lanes as the engine wants them: what is looked at together lies together.
//!
//! Channels are numbered in the order in which they lead into switches, by switch and port; those that lead to nodes come
//! last, in order of the nodes. A lane's number is its channel's, times a power of two, and its own. So the lanes that
//! lead into a switch have successive numbers; a lane's *place* is its number among them.

use super::error::WormholeError;
use super::flit::Flit;
use crate::network::bits::first_from;
use crate::network::topology::{Channel as Wire, ChannelId, Device, Topology};

/// Ports of a switch on one side, at most: one word of bits.
const MOST_PORTS: usize = 64;

/// No lane, and no output port.
pub(super) const NO_LANE: u32 = u32::MAX;
const NO_PORT: u8 = u8::MAX;

/// All that is wired, and its state.
#[derive(Debug)]
pub(super) struct Fabric {
    pub(super) switches: Vec<Switch>,
    pub(super) outputs: Vec<Output>,
    pub(super) channels: Vec<Channel>,
    /// How many channels lead into switches: those of a lower number.
    pub(super) switch_channels: usize,
    /// Lanes as those see them that send into them, and, of lanes that lead into switches, as these see them.
    pub(super) entries: Vec<Entry>,
    pub(super) lanes: Vec<Lane>,
    /// What only some networks need: of a lane that leads into a switch, in which cycles its front asks for what takes
    /// several; and of a channel.
    pub(super) turns: Vec<u16>,
    loads: Vec<Load>,
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

/// A channel: two fit into a line of the processor's cache.
#[derive(Debug)]
#[repr(align(32))]
pub(super) struct Channel {
    /// Its lanes whose front flit may cross the switch that it leads to.
    pub(super) ready: u64,
    /// Its lanes that no packet has.
    pub(super) free: u64,
    /// The switch or node that sends into it.
    pub(super) sender: u32,
    pub(super) is_from_node: bool,
    /// The switch that it leads to, and the input port there.
    pub(super) switch: u32,
    pub(super) port: u8,
    /// Round-robin state: which output port, and which of its lanes, goes first.
    pub(super) first_output: u8,
    pub(super) first_lane: u8,
}

/// What a network needs of a channel that has packets wait for room, or looks at how full it is.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Its lanes that no packet may have before all credits are back.
    draining: u64,
    /// Flits that are on it or in the buffers behind.
    used: u32,
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

/// Where a lane begins: what who sends into it knows of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The lane of the sender whose packet has it.
    pub(super) holder: u32,
    /// Flits that may be sent into it.
    pub(super) credits: u16,
    /// Round-robin state: the place among the sender's lanes that goes first.
    pub(super) grant: u16,
}

/// Where a lane ends: the buffer of the switch that it leads to. Four fit into a line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub(super) struct Lane {
    /// The output lane that the packet at the front has; before it has one, that of the channel that it asks at whose number
    /// within the channel is the class that it asks for.
    pub(super) out: u32,
    /// The flit at the front, so that a lane that has no other does not touch the ring of those behind it.
    pub(super) front: Flit,
    /// Its place in the ring, and how many flits there are.
    start: u16,
    pub(super) length: u16,
    pub(super) stage: Stage,
    /// The output port of the packet at the front.
    pub(super) port: u8,
    /// Round-robin state: the output port and which of its lanes it accepted last.
    accepted_port: u8,
    accepted: u8,
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
        let channel = |wire: &Wire| Channel::of(*wire, free);
        let channels: Vec<Channel> = numbers.order.iter().map(channel).collect();
        let ring_shift = buffer.next_power_of_two().ilog2();
        let switch_channels = first_channel as usize;
        Ok(Fabric {
            entries: vec![
                Entry { holder: NO_LANE, credits: buffer as u16, grant: 0 };
                channels.len() << shift
            ],
            lanes: vec![EMPTY; switch_channels << shift],
            turns: vec![0; switch_channels << shift],
            loads: vec![Load::default(); channels.len()],
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

    /// The first of the lanes that lead into a switch.
    #[inline]
    pub(super) fn first_place(&self, switch: u32) -> u32 {
        self.switches[switch as usize].first_channel << self.geometry.shift
    }

    /// How many places they have.
    #[inline]
    pub(super) fn places(&self, switch: u32) -> u32 {
        self.switches[switch as usize].inputs << self.geometry.shift
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
            self.loads[channel].used += 1;
        }
        let entry = &mut self.entries[number as usize];
        entry.credits -= 1;
        entry.credits
    }

    /// A packet takes a lane that is free; gives how many credits there are.
    #[inline]
    pub(super) fn take(&mut self, number: u32, holder: u32) -> u16 {
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        self.channels[channel].free &= !bit;
        let entry = &mut self.entries[number as usize];
        entry.holder = holder;
        entry.credits
    }

    /// Whether no packet has a lane.
    pub(super) fn is_free(&self, number: u32) -> bool {
        self.channels[self.channel(number)].free >> self.within(number) & 1 == 1
    }

    /// A packet's tail was sent into the lane, which is free now, or when all credits are back. Gives whether it is now.
    #[inline]
    pub(super) fn release(&mut self, number: u32, is_when_empty: bool) -> bool {
        self.entries[number as usize].holder = NO_LANE;
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        if is_when_empty {
            self.loads[channel].draining |= bit;
        } else {
            self.channels[channel].free |= bit;
        }
        !is_when_empty
    }

    /// A flit has left a lane. Gives whether the lane is free now, having waited for that, and who has it.
    #[inline]
    pub(super) fn return_credit<const PLAIN: bool>(&mut self, number: u32) -> (bool, u32) {
        let entry = &mut self.entries[number as usize];
        entry.credits += 1;
        if PLAIN {
            return (false, entry.holder);
        }
        let (channel, bit) = (self.geometry.channel(number), 1 << self.geometry.within(number));
        let load = &mut self.loads[channel];
        load.used -= 1;
        if load.draining & bit == 0 || entry.credits < self.depth {
            return (false, entry.holder);
        }
        load.draining &= !bit;
        self.channels[channel].free |= bit;
        (true, entry.holder)
    }

    /// Flits that are on a channel or in the buffers behind, in a network that looks at that.
    #[inline]
    pub(super) fn load(&self, channel: u32) -> u32 {
        self.loads[channel as usize].used
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
}

impl Lane {
    /// Of several lanes of the output port of the packet at the front, the next in turn.
    #[inline]
    pub(super) fn next_out(&self, lanes: u64, geometry: Geometry) -> usize {
        // Behind the last one comes the first one again, and so it does after a turn at another port.
        let after = (u32::from(self.accepted) + 1) & ((1 << geometry.shift) - 1);
        first_from(lanes, if self.accepted_port == self.port { after as usize } else { 0 })
    }

    /// The packet at the front has accepted a lane of its output port.
    #[inline]
    pub(super) fn accept(&mut self, within: usize) {
        (self.accepted_port, self.accepted) = (self.port, within as u8);
    }
}

impl Channel {
    fn of(wire: Wire, free: u64) -> Channel {
        let (sender, is_from_node) = match wire.from.device {
            Device::Node(node) => (node, true),
            Device::Switch(switch) => (switch, false),
        };
        let (switch, port) = match wire.to.device {
            Device::Node(node) => (node, 0),
            Device::Switch(switch) => (switch, wire.to.number as u8),
        };
        Channel { ready: 0, free, sender, switch, is_from_node, port, first_output: 0, first_lane: 0 }
    }
}

/// A lane in which nothing is.
const EMPTY: Lane = Lane {
    out: NO_LANE,
    front: 0,
    start: 0,
    length: 0,
    stage: Stage::Idle,
    port: 0,
    accepted_port: NO_PORT,
    accepted: 0,
};

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
