//! Switches, channels and lanes as the engine wants them: what is looked at together lies together.
//!
//! Channels are numbered in the order in which they lead into switches, by switch and port; those that lead to nodes come
//! last, in order of the nodes. A lane's number is its channel's, times a power of two, and its own. So the lanes that
//! lead into a switch have successive numbers; a lane's *place* is its number among them.

use super::Flit;
use super::error::WormholeError;
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
    /// Bits of a lane's number that count within its channel.
    pub(super) shift: u32,
    /// Flits of a lane's buffer.
    pub(super) depth: u16,
    /// The flits in the buffers: a ring for each lane that leads into a switch.
    flits: Vec<Flit>,
    ring_shift: u32,
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
    /// The output ports where lanes are free and asked for.
    pub(super) allocating_ports: u64,
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
pub(super) struct Channel {
    /// Its lanes whose front flit may cross the switch that it leads to.
    pub(super) ready: u64,
    /// Its lanes that no packet has.
    pub(super) free: u64,
    /// And those that no packet may have before all credits are back.
    draining: u64,
    /// Flits that are on it or in the buffers behind.
    pub(super) used: u32,
    /// The switch or node that sends into it, and the output port among those of all switches, or [`FROM_NODE`].
    pub(super) sender: u32,
    pub(super) output: u32,
    /// The switch that it leads to, and the input port there.
    pub(super) switch: u32,
    pub(super) port: u8,
    /// Round-robin state: which output port, and which of its lanes, goes first.
    pub(super) first_output: u8,
    pub(super) first_lane: u8,
}

/// How far the packet at the front of a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Idle,
    /// Its head waits for its route and then for an output lane.
    Routing,
    /// Its front flit has an output lane, and may ask for the switch soon.
    Settling,
    /// Its flits ask for the switch as they come.
    Moving,
}

/// A lane: the credits of who sends into it, and the state of the buffer that it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    /// The lane of the sender whose packet has it.
    pub(super) holder: u32,
    /// The output lane that the packet at the front has.
    pub(super) out: u32,
    /// Flits that may be sent into it.
    pub(super) credits: u16,
    /// Place of the front flit in the ring, and how many flits there are.
    start: u16,
    pub(super) length: u16,
    /// Round-robin state: the place among the sender's lanes that goes first, and the output lane to accept first, by
    /// port and lane.
    pub(super) grant: u16,
    pub(super) accept: u16,
    pub(super) stage: Stage,
    /// The output port of the packet at the front, and the class of the output lane.
    pub(super) port: u8,
    pub(super) class: u8,
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
                allocating_ports: 0,
            });
            first_channel += incoming.len() as u32;
            outputs.extend(outgoing.iter().map(|id| Output { channel: numbers.of_id(*id), first_input: 0 }));
        }
        let free = !0 >> (64 - virtual_channels);
        let channel = |wire: &Wire| Channel::of(*wire, &switches, free);
        let channels: Vec<Channel> = numbers.order.iter().map(channel).collect();
        let shift = virtual_channels.next_power_of_two().ilog2();
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
            shift,
            depth: buffer as u16,
            ring_shift,
        })
    }

    #[inline]
    pub(super) fn channel(&self, lane: u32) -> usize {
        (lane >> self.shift) as usize
    }

    /// Which of its channel's lanes it is.
    #[inline]
    pub(super) fn within(&self, lane: u32) -> u32 {
        lane & ((1 << self.shift) - 1)
    }

    #[inline]
    pub(super) fn lane(&self, channel: usize, within: usize) -> u32 {
        ((channel << self.shift) | within) as u32
    }

    /// Puts a flit into a lane's buffer; gives how many there are.
    #[inline]
    pub(super) fn push(&mut self, number: u32, flit: Flit) -> u16 {
        let lane = &mut self.lanes[number as usize];
        debug_assert!(lane.length < self.depth, "credits keep buffers from running over");
        let place = u32::from(lane.start.wrapping_add(lane.length)) & ((1 << self.ring_shift) - 1);
        lane.length += 1;
        self.flits[((number << self.ring_shift) | place) as usize] = flit;
        lane.length
    }

    /// The flit at the front of a lane that has one.
    #[inline]
    pub(super) fn front(&self, number: u32) -> Flit {
        let place = u32::from(self.lanes[number as usize].start) & ((1 << self.ring_shift) - 1);
        self.flits[((number << self.ring_shift) | place) as usize]
    }

    /// Sends the flit at the front of a lane into the output lane that it has. Gives the flit, how many are left, and
    /// the output lane with its credits.
    #[inline]
    pub(super) fn pop(&mut self, number: u32) -> (Flit, u16, u32, u16) {
        let flit = self.front(number);
        let lane = &mut self.lanes[number as usize];
        lane.start = lane.start.wrapping_add(1);
        lane.length -= 1;
        let (left, out) = (lane.length, lane.out);
        (flit, left, out, self.use_credit(out))
    }

    /// A flit is sent into a lane that has a credit; gives how many it has left.
    #[inline]
    pub(super) fn use_credit(&mut self, number: u32) -> u16 {
        let channel = self.channel(number);
        self.channels[channel].used += 1;
        let lane = &mut self.lanes[number as usize];
        lane.credits -= 1;
        lane.credits
    }

    /// A packet takes a lane that is free.
    #[inline]
    pub(super) fn take(&mut self, number: u32, holder: u32) {
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        self.channels[channel].free &= !bit;
        self.lanes[number as usize].holder = holder;
    }

    /// A packet's tail was sent into the lane, which is free now, or when all credits are back.
    #[inline]
    pub(super) fn release(&mut self, number: u32, is_when_empty: bool) {
        self.lanes[number as usize].holder = NO_LANE;
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        let channel = &mut self.channels[channel];
        if is_when_empty {
            channel.draining |= bit;
        } else {
            channel.free |= bit;
        }
    }

    /// A flit has left a lane. Gives whether the lane is free now, having waited for that.
    #[inline]
    pub(super) fn return_credit(&mut self, number: u32) -> bool {
        let (channel, bit) = (self.channel(number), 1 << self.within(number));
        let (channel, lane) = (&mut self.channels[channel], &mut self.lanes[number as usize]);
        channel.used -= 1;
        lane.credits += 1;
        if channel.draining & bit == 0 || lane.credits < self.depth {
            return false;
        }
        channel.draining &= !bit;
        channel.free |= bit;
        true
    }
}

impl Channel {
    fn of(wire: Wire, switches: &[Switch], free: u64) -> Channel {
        let (sender, output) = match wire.from.device {
            Device::Node(node) => (node, FROM_NODE),
            Device::Switch(switch) => {
                (switch, switches[switch as usize].first_output + u32::from(wire.from.number))
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
            grant: 0,
            accept: 0,
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
