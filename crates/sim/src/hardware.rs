//! What the processes share: cores, links, the directory, and the I/O servers.
//!
//! All but the I/O servers (see [`crate::server`]) are first come, first served. As events are handled in order of time,
//! such a one needs no line of those that wait: when it will be free says all there is to know of them.

use std::collections::BTreeMap;

use pio_layout::Striping;
use pio_machine::{Bandwidth, Duration, Machine, Placement, Storage, Switching, Topology as Shape};

use crate::error::SimError;
use crate::kernel::Time;
use crate::network::topology::Topology;
use crate::server::{Costs, Server};

/// The machine at work.
#[derive(Debug)]
pub(crate) struct Hardware {
    nodes: Vec<Node>,
    distance: Distance,
    bandwidth: Bandwidth,
    latency: Duration,
    switch: Duration,
    /// Node of each compute node's number.
    compute: Vec<u32>,
    pub(crate) servers: Vec<Server>,
    directory: Queue,
    /// For each rank: when it last stopped computing.
    computed: BTreeMap<u32, Time>,
}

/// How many links lie between two nodes.
#[derive(Debug)]
enum Distance {
    /// As many between all.
    Same(u64),
    /// As many as the route has, without so many that are inside nodes.
    Route { topology: Topology, inside: u64 },
}

#[derive(Debug)]
struct Node {
    cores: Vec<Core>,
    outgoing: Queue,
    incoming: Queue,
}

#[derive(Debug)]
struct Core {
    queue: Queue,
    last: Option<u32>,
}

/// First come, first served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    free: Time,
}

impl Queue {
    /// Takes in what comes at `now` and needs `service`. When its service begins and ends.
    pub(crate) fn serve(&mut self, now: Time, service: Duration) -> (Time, Time) {
        let begin = self.free.max(now);
        self.free = begin + service;
        (begin, self.free)
    }
}

impl Hardware {
    pub(crate) fn new(machine: &Machine) -> Result<Hardware, SimError> {
        if machine.network.switching != Switching::Links {
            return Err(SimError::Switching { machine: machine.name.clone() });
        }
        let (io, costs) = match &machine.storage {
            Storage::Striped { io, strip, read, write, .. } => {
                (Some(io), Some(Costs { strip: *strip, read: read.clone(), write: write.clone() }))
            }
            Storage::Local { .. } => (None, None),
        };
        let dedicated = io.filter(|io| io.dedicated).map_or(0, |io| io.count);
        let total = machine.nodes.count + dedicated;
        let servers: Vec<u32> = io.map_or_else(Vec::new, |io| {
            let place = |server: u32| match io.placement {
                Placement::Clustered => total - io.count + server,
                // The middle of the server's share of the nodes.
                Placement::Distributed => {
                    ((u64::from(server) * 2 + 1) * u64::from(total) / (u64::from(io.count) * 2)) as u32
                }
            };
            (0..io.count).map(place).collect()
        });
        let is_apart = |node: &u32| dedicated == 0 || servers.binary_search(node).is_err();
        let core = || Core { queue: Queue::default(), last: None };
        let node = |_| Node {
            cores: (0..machine.nodes.cores).map(|_| core()).collect(),
            outgoing: Queue::default(),
            incoming: Queue::default(),
        };
        let server = |node: &u32| costs.clone().map(|costs| Server::new(*node, costs));
        Ok(Hardware {
            nodes: (0..total).map(node).collect(),
            distance: Distance::new(&machine.network.topology, total)?,
            bandwidth: machine.network.link.bandwidth,
            latency: machine.network.link.latency,
            switch: machine.nodes.switch,
            compute: (0..total).filter(is_apart).collect(),
            servers: servers.iter().filter_map(server).collect(),
            directory: Queue::default(),
            computed: BTreeMap::new(),
        })
    }

    /// The node that is compute node `number`.
    pub(crate) fn compute_node(&self, number: u32) -> u32 {
        self.compute[number as usize]
    }

    /// Keeps a core of `node` busy for `rank`. When it is done.
    pub(crate) fn compute(&mut self, node: u32, rank: u32, now: Time, duration: Duration) -> Time {
        let switch = self.switch;
        let cores = &mut self.nodes[node as usize].cores;
        // The core that is free first; among equals the one this rank had last, then the first.
        let earliest = cores.iter().map(|core| core.queue.free.max(now)).min().unwrap_or(now);
        let ready = |core: &Core| core.queue.free.max(now) == earliest;
        let own = cores.iter().position(|core| ready(core) && core.last == Some(rank));
        let Some(index) = own.or_else(|| cores.iter().position(ready)) else { return now + duration };
        let core = &mut cores[index];
        let changes = core.last.replace(rank).is_some_and(|last| last != rank);
        // A rank that goes on computing where it left off has its core for a slice of milliseconds, many calls long: that
        // we make ranks take turns call by call is for fairness alone, and costs it nothing.
        let goes_on = self.computed.get(&rank) == Some(&now);
        let extra = if changes && !goes_on { switch } else { Duration::ZERO };
        let busy = Duration::from_picoseconds(duration.picoseconds().saturating_add(extra.picoseconds()));
        let end = core.queue.serve(now, busy).1;
        self.computed.insert(rank, end);
        end
    }

    /// Time of the first byte from node to node.
    pub(crate) fn latency(&self, from: u32, to: u32) -> Duration {
        Duration::from_picoseconds(self.latency.picoseconds().saturating_mul(self.distance.links(from, to)))
    }

    /// A message leaves `from` for `to`: when its first byte is there.
    pub(crate) fn send(&mut self, from: u32, to: u32, now: Time, bytes: u64) -> Time {
        let duration = self.bandwidth.time_of(bytes);
        let (begin, _) = self.nodes[from as usize].outgoing.serve(now, duration);
        begin + self.latency(from, to)
    }

    /// The first byte of a message is at `node`: when the last one is in.
    pub(crate) fn receive(&mut self, node: u32, now: Time, bytes: u64) -> Time {
        let duration = self.bandwidth.time_of(bytes);
        self.nodes[node as usize].incoming.serve(now, duration).1
    }

    /// The directory server opens or closes a file: when it is done.
    pub(crate) fn directory(&mut self, now: Time, service: Duration) -> Time {
        self.directory.serve(now, service).1
    }
}

impl Distance {
    fn new(shape: &Shape, nodes: u32) -> Result<Distance, SimError> {
        Ok(match shape {
            // One link into each switch, and one out of the last.
            Shape::Flat => Distance::Same(2),
            Shape::Omega { radix } => Distance::Same(stages(*radix, nodes) + 1),
            // A node of these has its switch inside.
            Shape::Mesh { .. } | Shape::Torus { .. } => {
                Distance::Route { topology: Topology::described(shape, nodes)?, inside: 2 }
            }
            _ => Distance::Route { topology: Topology::described(shape, nodes)?, inside: 0 },
        })
    }

    fn links(&self, from: u32, to: u32) -> u64 {
        match self {
            Distance::Same(links) => *links,
            Distance::Route { topology, inside } => u64::from(topology.hops(from, to)) - inside,
        }
    }
}

/// Stages of switches with `radix` ports a side that so many nodes need.
fn stages(radix: u32, nodes: u32) -> u64 {
    let mut stages = 1;
    let mut reached = u64::from(radix);
    while reached < u64::from(nodes) {
        reached *= u64::from(radix);
        stages += 1;
    }
    stages
}

/// The parts of the interval from `offset` that each server has, as server, bytes, and those of them in its first strip:
/// one part a server, as the strips that follow each other on a server are contiguous there.
pub(crate) fn parts(
    striping: &Striping,
    offset: u64,
    bytes: u64,
) -> impl Iterator<Item = (u32, u64, u64)> + use<> {
    let striping = *striping;
    let end = offset.saturating_add(bytes);
    let strips = if bytes == 0 { 0 } else { (end - 1) / striping.unit - offset / striping.unit + 1 };
    let first = striping.server_of(offset);
    let touched = strips.min(u64::from(striping.factor)) as u32;
    (0..touched).map(move |step| {
        if touched == 1 {
            return (first, bytes, bytes.min(striping.unit - offset % striping.unit));
        }
        let server = (first + step) % striping.factor;
        let part = striping.len_of_server(server, end) - striping.len_of_server(server, offset);
        let begins = if step == 0 { offset % striping.unit } else { 0 };
        (server, part, part.min(striping.unit - begins))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_under_an_even_load_is_exact() {
        // D/D/1: one arrival every 10, service 8: nobody waits. Every 10, service 12: the k-th waits 2 k.
        let mut queue = Queue::default();
        for number in 0..100 {
            let (begin, end) = queue.serve(Time(number * 10), Duration::from_picoseconds(8));
            assert_eq!((begin, end), (Time(number * 10), Time(number * 10 + 8)));
        }
        let mut queue = Queue::default();
        for number in 0..100 {
            let (begin, _) = queue.serve(Time(number * 10), Duration::from_picoseconds(12));
            assert_eq!(begin, Time(number * 12));
        }
    }

    #[test]
    fn parts_are_the_strips_summed_by_server() {
        for (unit, factor, first) in [(10, 4, 0), (10, 4, 3), (7, 1, 0), (1, 5, 2)] {
            let striping = Striping::new(unit, factor, first).unwrap();
            for offset in [0, 3, 10, 39, 41, 200] {
                for bytes in [0, 1, 7, 10, 38, 40, 41, 99] {
                    let mut expected = vec![(0, 0); factor as usize];
                    for strip in striping.strips(offset..offset + bytes) {
                        let (part, first) = &mut expected[strip.server as usize];
                        if *part == 0 {
                            *first = strip.len;
                        }
                        *part += strip.len;
                    }
                    let mut found = vec![(0, 0); factor as usize];
                    for (server, part, first) in parts(&striping, offset, bytes) {
                        assert!(part > 0 && found[server as usize] == (0, 0));
                        found[server as usize] = (part, first);
                    }
                    assert_eq!(found, expected, "{striping:?} {offset} {bytes}");
                }
            }
        }
    }

    #[test]
    fn hops_follow_the_shape() {
        let mut machine = Machine::built_in("paragon-caltech").unwrap();
        machine.network.topology = Shape::Mesh { dimensions: vec![16, 2] };
        let hardware = Hardware::new(&machine).unwrap();
        assert_eq!(hardware.distance.links(0, 0), 0);
        assert_eq!(hardware.distance.links(0, 17), 2);
        assert_eq!(hardware.distance.links(15, 16), 16);
        assert_eq!(stages(4, 128), 4);
        assert_eq!(stages(2, 2), 1);
    }

    #[test]
    fn dedicated_servers_are_no_compute_nodes() {
        let machine = Machine::built_in("sp-argonne").unwrap();
        let hardware = Hardware::new(&machine).unwrap();
        assert_eq!(hardware.compute.len(), 120);
        assert!(hardware.servers.iter().all(|server| !hardware.compute.contains(&server.node)));
    }
}
