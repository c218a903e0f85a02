//! A topology as the switches see it: channels by number, and the ports that a packet can leave by.

use std::ops::Range;

use crate::network::topology::{Device, Topology};

/// Adjacent output ports of a switch. A routing tag names either one port or a group of adjacent ones (section 2.2.1).
pub(super) type Ports = Range<u16>;

#[derive(Debug)]
pub(super) struct Wiring {
    topology: Topology,
    /// Of each channel: the switch and port that it leaves, unless it leaves a node.
    starts: Vec<Option<(u32, u16)>>,
    /// Of each channel: the switch that it leads to, unless it leads to a node.
    ends: Vec<Option<u32>>,
    /// The channels of the switches, by switch and port.
    outgoing: Vec<Vec<u32>>,
    /// The channel out of each node.
    injection: Vec<u32>,
    /// By switch and destination; empty where that would be too much to keep.
    table: Vec<(u16, u16)>,
    /// What the topology answered last: kept for its memory alone.
    candidates: Vec<u16>,
}

/// Entries of the table at most: 16 MiB. Beyond, the topology is asked each time.
const MOST_ENTRIES: u64 = 1 << 22;

impl Wiring {
    pub(super) fn new(topology: &Topology) -> Wiring {
        let channels = topology.channels();
        let switch = |device| match device {
            Device::Switch(switch) => Some(switch),
            Device::Node(_) => None,
        };
        let numbers = |device| topology.outgoing(device).iter().map(|id| id.0);
        let mut wiring = Wiring {
            starts: channels
                .iter()
                .map(|channel| switch(channel.from.device).map(|switch| (switch, channel.from.number)))
                .collect(),
            ends: channels.iter().map(|channel| switch(channel.to.device)).collect(),
            outgoing: (0..topology.switches())
                .map(|switch| numbers(Device::Switch(switch)).collect())
                .collect(),
            injection: (0..topology.nodes()).filter_map(|node| numbers(Device::Node(node)).next()).collect(),
            topology: topology.clone(),
            table: Vec::new(),
            candidates: Vec::new(),
        };
        let (switches, nodes) = (topology.switches(), topology.nodes());
        if u64::from(switches) * u64::from(nodes) <= MOST_ENTRIES {
            let all = (0..switches).flat_map(|switch| (0..nodes).map(move |node| (switch, node)));
            wiring.table = all.map(|(switch, node)| wiring.look_up(switch, node)).collect();
        }
        wiring
    }

    pub(super) fn nodes(&self) -> u32 {
        self.topology.nodes()
    }

    pub(super) fn switches(&self) -> usize {
        self.outgoing.len()
    }

    pub(super) fn channels(&self) -> usize {
        self.ends.len()
    }

    /// The channel out of a node.
    pub(super) fn injection(&self, node: u32) -> u32 {
        self.injection[node as usize]
    }

    /// The channel that leaves a switch by a port.
    pub(super) fn channel(&self, switch: u32, port: u16) -> u32 {
        self.outgoing[switch as usize][usize::from(port)]
    }

    /// The switch and port that a channel leaves; nothing if it leaves a node.
    pub(super) fn start(&self, channel: u32) -> Option<(u32, u16)> {
        self.starts[channel as usize]
    }

    /// The switch that a channel leads to; nothing if it leads to a node.
    pub(super) fn end(&self, channel: u32) -> Option<u32> {
        self.ends[channel as usize]
    }

    /// The ports of a switch by which a packet for this node can leave: where they are not adjacent, the first that are.
    pub(super) fn ports(&mut self, switch: u32, destination: u32) -> Ports {
        let index = switch as usize * self.injection.len() + destination as usize;
        let (first, end) =
            self.table.get(index).copied().unwrap_or_else(|| self.look_up(switch, destination));
        first..end
    }

    fn look_up(&mut self, switch: u32, destination: u32) -> (u16, u16) {
        self.topology.candidates(switch, destination, &mut self.candidates);
        let first = self.candidates.iter().copied().min().unwrap_or(0);
        let mut end = first + 1;
        while self.candidates.contains(&end) {
            end += 1;
        }
        (first, end)
    }
}
