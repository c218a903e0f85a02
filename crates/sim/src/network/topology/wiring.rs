//! Channels as they are plugged in.

use super::{Channel, ChannelId, Device, Port, PortTable, Wired};

/// A network under construction.
#[derive(Debug)]
pub(super) struct Wiring {
    nodes: u32,
    switches: u32,
    channels: Vec<Channel>,
    /// The next free output and input port of each device.
    free: Vec<(u16, u16)>,
}

impl Wiring {
    /// Nothing is connected yet.
    pub(super) fn new(nodes: u32, switches: u32) -> Wiring {
        let devices = nodes as usize + switches as usize;
        Wiring { nodes, switches, channels: Vec::new(), free: vec![(0, 0); devices] }
    }

    /// A link both ways, at the next free port of each device.
    pub(super) fn link(&mut self, one: Device, other: Device) {
        self.channel(one, other);
        self.channel(other, one);
    }

    /// A channel from the next free output port to the next free input port.
    pub(super) fn channel(&mut self, from: Device, to: Device) {
        let output = &mut self.free[index(self.nodes, from)].0;
        let from = Port { device: from, number: *output };
        *output += 1;
        let input = &mut self.free[index(self.nodes, to)].1;
        let to = Port { device: to, number: *input };
        *input += 1;
        self.channels.push(Channel { from, to });
    }

    /// A link both ways at these ports, in whatever order the ports are used: none may be left out in the end.
    pub(super) fn link_at(&mut self, one: Port, other: Port) {
        for (from, to) in [(one, other), (other, one)] {
            self.free[index(self.nodes, from.device)].0 += 1;
            self.free[index(self.nodes, to.device)].1 += 1;
            self.channels.push(Channel { from, to });
        }
    }

    pub(super) fn finish(self) -> Wired {
        let table = |ports: fn(&(u16, u16)) -> u16, end: fn(&Channel) -> Port| {
            let mut starts = Vec::with_capacity(self.free.len() + 1);
            let mut total = 0_u32;
            for free in &self.free {
                starts.push(total);
                total += u32::from(ports(free));
            }
            starts.push(total);
            let unused = ChannelId(u32::MAX);
            let mut channels = vec![unused; total as usize];
            for (number, channel) in self.channels.iter().enumerate() {
                let port = end(channel);
                let device = index(self.nodes, port.device);
                let place = starts[device] as usize + usize::from(port.number);
                let is_own = place < starts[device + 1] as usize;
                assert!(is_own && channels[place] == unused, "{port:?} is plugged in twice or left out");
                channels[place] = ChannelId(number as u32);
            }
            PortTable { starts, channels }
        };
        let outgoing = table(|free| free.0, |channel| channel.from);
        let incoming = table(|free| free.1, |channel| channel.to);
        let end = |id: &ChannelId| index(self.nodes, self.channels[id.0 as usize].to.device) as u32;
        let ends = outgoing.channels.iter().map(end).collect();
        Wired {
            nodes: self.nodes,
            switches: self.switches,
            channels: self.channels,
            outgoing,
            incoming,
            ends,
        }
    }
}

fn index(nodes: u32, device: Device) -> usize {
    match device {
        Device::Node(node) => node as usize,
        Device::Switch(switch) => nodes as usize + switch as usize,
    }
}
