//! What connects the nodes: switches, links, and which way from node to node.
//!
//! A [`Topology`] is a list of channels (a channel is one direction of a link) and a rule that says, at every switch,
//! which output ports lead to a destination. The rule looks at nothing but switch and destination, so that a packet
//! carries no history. It never closes a circle of channels that wait for each other, within a class of virtual channels
//! ([`Topology::class`]): whoever keeps the classes apart cannot deadlock.
//!
//! Nothing is stored a pair of nodes: a hundred thousand nodes are a few tens of megabytes of channels.

mod dragonfly;
mod error;
mod fat_tree;
mod fly;
mod graph;
mod grid;
mod omega;
mod picture;
mod star;
mod wiring;

use std::fmt;
use std::sync::Arc;

pub use error::TopologyError;

use pio_machine::GraphSwitch;

use wiring::Wiring;

/// What a channel comes from or leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// A node, which sends and receives messages.
    Node(u32),
    /// A switch.
    Switch(u32),
}

/// Where a channel is plugged in. A device numbers its output ports from 0, and its input ports from 0; where links go
/// both ways, the two directions of a link have the same number at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Of which device.
    pub device: Device,
    /// The number of the port at its device, from 0.
    pub number: u16,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// The output port it leaves by.
    pub from: Port,
    /// The input port it leads to.
    pub to: Port,
}

/// Index of a channel in [`Topology::channels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

/// How many times as much may be before a packet on its straight way than on the way by its waypoint, for the straight way to
/// be taken: that by the waypoint has twice as many links between groups, and loads each of them (UGAL's ratio of hops).
pub const DETOUR: u32 = 2;

/// Switches, channels, and routes between nodes. Cheap to clone.
#[derive(Clone)]
pub struct Topology {
    name: Arc<str>,
    wired: Arc<Wired>,
    routing: Arc<dyn Routing>,
}

/// The channels, and those of each device in order of its ports.
#[derive(Debug)]
struct Wired {
    nodes: u32,
    switches: u32,
    channels: Vec<Channel>,
    outgoing: PortTable,
    incoming: PortTable,
    /// For each place of `outgoing`, the device that the channel leads to: so that a walk looks at a few bytes a step.
    ends: Vec<u32>,
}

/// Channels by device and port. Devices are the nodes, then the switches.
#[derive(Debug)]
struct PortTable {
    /// Where each device's channels begin; one more at the end.
    starts: Vec<u32>,
    channels: Vec<ChannelId>,
}

/// The rule of a topology. Destinations are nodes of it, switches are switches on a route to them.
trait Routing: fmt::Debug + Send + Sync {
    /// Adds the output ports on the routes from `switch` to `destination`.
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>);

    /// The output port of the static route: one of the candidates.
    fn port(&self, switch: u32, destination: u32) -> u16;

    /// Whether the candidates are the same for all nodes of a switch, but at that switch.
    fn is_by_switch(&self) -> bool {
        true
    }

    /// How many classes of virtual channels keep routes free of deadlock.
    fn classes(&self) -> u8 {
        1
    }

    /// The class to take when leaving `switch` by `port` for `destination`.
    fn class(&self, _switch: u32, _port: u16, _destination: u32) -> u8 {
        0
    }

    /// A node to go by first; `draw` chooses among those that may be.
    fn waypoint(&self, _from: u32, _to: u32, _draw: u64) -> Option<u32> {
        None
    }

    /// How many draws in succession give waypoints that differ in their effect.
    fn waypoint_kinds(&self) -> u32 {
        0
    }

    /// Whether the waypoint may be left out, if the straight way has less before it.
    fn may_leave_out_waypoint(&self) -> bool {
        false
    }

    /// Whether a packet that is at `switch` has gone by the waypoint.
    fn is_past(&self, _switch: u32, _waypoint: u32) -> bool {
        true
    }

    /// Where a device is in a picture.
    fn place(&self, device: Device) -> picture::Place;

    /// Where a node is drawn once more, to receive.
    fn receiver(&self, _node: u32) -> Option<picture::Place> {
        None
    }

    /// Whether a link goes round the back of others in a picture.
    fn is_bent(&self, _one: Device, _other: Device) -> bool {
        false
    }

    /// What a switch is called.
    fn name(&self, _switch: u32) -> Option<&str> {
        None
    }
}

impl Topology {
    /// One switch, and every node on it.
    ///
    /// # Errors
    /// If there are no nodes, or more than a switch can have ports: 65535.
    pub fn flat(nodes: u32) -> Result<Topology, TopologyError> {
        let (wiring, routing) = star::Star::wire(nodes)?;
        Ok(Topology::new(format!("{nodes} nodes on one switch"), wiring, routing))
    }

    /// The k-ary n-tree of Petrini and Vanneschi (IPPS 1997): `arity`^`levels` nodes, and as many links between any two
    /// levels as there are nodes. Adaptive up (any port leads to a nearest common ancestor), deterministic down.
    ///
    /// # Errors
    /// If it would have no node or switch, or more than 2^20 nodes.
    pub fn fat_tree(arity: u32, levels: u32) -> Result<Topology, TopologyError> {
        let (wiring, routing) = fat_tree::FatTree::wire_k_ary(arity, levels)?;
        Ok(Topology::new(format!("{arity}-ary {levels}-tree"), wiring, routing))
    }

    /// A fat tree with these links at each level (Öhring et al., IPPS 1995), routed as [`Topology::fat_tree`].
    ///
    /// # Errors
    /// If the numbers of links do not go together, or it would have more than 2^20 nodes or, unless it is k-ary, switches.
    pub fn tree(shape: &pio_machine::FatTree) -> Result<Topology, TopologyError> {
        if let Some((arity, levels)) = shape.as_k_ary() {
            return Topology::fat_tree(arity, levels);
        }
        let (wiring, routing) = fat_tree::FatTree::wire(shape)?;
        let (down, up) = (times(&shape.downlinks), times(&shape.uplinks));
        Ok(Topology::new(format!("fat tree of {down} nodes with {up} ways up"), wiring, routing))
    }

    /// The k-ary n-fly (butterfly; Dally and Towles 2004, chapter 4): `stages` stages of `arity` x `arity` switches, which
    /// packets cross in one direction; nodes send into the first stage and receive from the last. One route a pair.
    ///
    /// # Errors
    /// If it would have no node or switch, or more than 2^20 nodes.
    pub fn fly(arity: u32, stages: u32) -> Result<Topology, TopologyError> {
        let (wiring, routing) = fly::Fly::wire(arity, stages)?;
        Ok(Topology::new(format!("{arity}-ary {stages}-fly"), wiring, routing))
    }

    /// The clustered multistage network of 4 x 4 bidirectional switches of Baylor et al. 1995, for 16, 32, 64 or 128
    /// nodes. One static route a pair.
    ///
    /// # Errors
    /// For any other number of nodes.
    pub fn omega(nodes: u32) -> Result<Topology, TopologyError> {
        let (wiring, routing) = omega::Omega::wire(nodes)?;
        Ok(Topology::new(format!("clustered omega network of {nodes} nodes"), wiring, routing))
    }

    /// A mesh with so many nodes along each dimension: a node with its switch at every point, numbered with the first
    /// coordinate fastest. Packets go along one dimension after the other.
    ///
    /// # Errors
    /// If there is no dimension or more than 6, no node, or more than 2^20.
    pub fn mesh(dimensions: &[u32]) -> Result<Topology, TopologyError> {
        let (wiring, routing) = grid::Grid::wire(dimensions, false)?;
        Ok(Topology::new(format!("mesh of {} nodes", times(dimensions)), wiring, routing))
    }

    /// A mesh whose ends are joined. Packets go along one dimension after the other, the shorter way round.
    ///
    /// # Errors
    /// As [`Topology::mesh`].
    pub fn torus(dimensions: &[u32]) -> Result<Topology, TopologyError> {
        let (wiring, routing) = grid::Grid::wire(dimensions, true)?;
        Ok(Topology::new(format!("torus of {} nodes", times(dimensions)), wiring, routing))
    }

    /// The dragonfly of Kim et al. (ISCA 2008), with minimal, Valiant's or adaptive routes.
    ///
    /// # Errors
    /// If it would have no nodes, more groups than links to join them, fewer than 3 for routes by a third one, or more than
    /// 2^20 nodes.
    pub fn dragonfly(shape: &pio_machine::Dragonfly) -> Result<Topology, TopologyError> {
        let (wiring, routing) = dragonfly::Dragonfly::wire(shape)?;
        Ok(Topology::new(format!("dragonfly of {} groups", shape.groups), wiring, routing))
    }

    /// A network of one's own. Routes go up, then down (as up*/down* of Autonet does), as seen from a middle of the network,
    /// over as few channels as that allows.
    ///
    /// # Errors
    /// If a link leads to no switch, or not all switches and nodes are connected: names them.
    pub fn graph(switches: &[GraphSwitch]) -> Result<Topology, TopologyError> {
        let (wiring, routing) = graph::Graph::wire(switches)?;
        Ok(Topology::new(format!("graph of {} switches", switches.len()), wiring, routing))
    }

    /// The topology of a machine description, with room for at least `nodes`.
    ///
    /// # Errors
    /// As each kind's own constructor.
    pub fn described(shape: &pio_machine::Topology, nodes: u32) -> Result<Topology, TopologyError> {
        match shape {
            pio_machine::Topology::Flat => Topology::flat(nodes),
            pio_machine::Topology::Omega { .. } => Topology::omega(nodes.next_power_of_two().max(16)),
            pio_machine::Topology::FatTree(shape) => Topology::tree(shape),
            pio_machine::Topology::Fly { arity, stages } => Topology::fly(*arity, *stages),
            pio_machine::Topology::Mesh { dimensions } => Topology::mesh(dimensions),
            pio_machine::Topology::Torus { dimensions } => Topology::torus(dimensions),
            pio_machine::Topology::Dragonfly(shape) => Topology::dragonfly(shape),
            pio_machine::Topology::Graph { switches } => Topology::graph(switches),
        }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.wired.nodes
    }

    /// How many switches there are.
    pub fn switches(&self) -> u32 {
        self.wired.switches
    }

    /// Every channel.
    pub fn channels(&self) -> &[Channel] {
        &self.wired.channels
    }

    /// The channel of this number.
    pub fn channel(&self, id: ChannelId) -> Channel {
        self.wired.channels[id.0 as usize]
    }

    /// The channels that leave `device`, in order of its output ports.
    pub fn outgoing(&self, device: Device) -> &[ChannelId] {
        self.wired.outgoing.of(self.wired.index(device))
    }

    /// The channels that lead to `device`, in order of its input ports.
    pub fn incoming(&self, device: Device) -> &[ChannelId] {
        self.wired.incoming.of(self.wired.index(device))
    }

    /// Sets `out` to the output ports of `switch` on the routes to node `destination`: several where the network is
    /// adaptive, in an order that is always the same.
    pub fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        out.clear();
        self.routing.candidates(switch, destination, out);
    }

    /// Whether the [candidates](Topology::candidates) are the same for all nodes that receive from one switch, at every
    /// other switch: then they need not be known node by node.
    pub fn is_by_switch(&self) -> bool {
        self.routing.is_by_switch()
    }

    /// The output port of `switch` on the static route to node `destination`: one of the candidates.
    pub fn port(&self, switch: u32, destination: u32) -> u16 {
        self.routing.port(switch, destination)
    }

    /// How many classes of virtual channels are to be kept apart, for routes to be free of deadlock.
    pub fn classes(&self) -> u8 {
        self.routing.classes()
    }

    /// The class of virtual channels that a packet for `destination` takes when it leaves `switch` by output `port`. The
    /// channel from a node into the network has no say: any class. A packet that is past a waypoint takes the next higher.
    pub fn class(&self, switch: u32, port: u16, destination: u32) -> u8 {
        self.routing.class(switch, port, destination)
    }

    /// A node that a packet from node to node heads for first, where the network spreads its load so (Valiant).
    /// `draw` is any number: it chooses. The packet goes as if the waypoint were its destination until it is past it.
    pub fn waypoint(&self, from: u32, to: u32, draw: u64) -> Option<u32> {
        self.routing.waypoint(from, to, draw)
    }

    /// Whether packets may go by waypoints at all.
    pub fn has_waypoints(&self) -> bool {
        self.routing.waypoint_kinds() > 0
    }

    /// The waypoint of the static route.
    pub fn static_waypoint(&self, from: u32, to: u32) -> Option<u32> {
        if self.may_leave_out_waypoint() { None } else { self.static_detour(from, to) }
    }

    /// The waypoint that is always the same for a pair, whether or not the static route goes by it.
    pub fn static_detour(&self, from: u32, to: u32) -> Option<u32> {
        self.waypoint(from, to, pair_draw(from, to))
    }

    /// Waypoints that a pair could have, as different from each other as may be, at most so many; always the same ones.
    pub fn detours(&self, from: u32, to: u32, most: u32) -> Vec<u32> {
        let kinds = self.routing.waypoint_kinds();
        let count = most.min(kinds);
        let draw = pair_draw(from, to) >> 1;
        let detour = |number: u32| {
            let ahead = u64::from(number) * u64::from(kinds) / u64::from(count);
            self.waypoint(from, to, draw + ahead)
        };
        (0..count).filter_map(detour).collect()
    }

    /// Whether a packet need not go by its waypoint (UGAL): it is to take the straight way if that has no more than
    /// [twice](DETOUR) as much before it.
    pub fn may_leave_out_waypoint(&self) -> bool {
        self.routing.may_leave_out_waypoint()
    }

    /// Whether a packet that has come to `switch` is past its waypoint, and heads for its destination.
    pub fn is_past(&self, switch: u32, waypoint: u32) -> bool {
        self.routing.is_past(switch, waypoint)
    }

    /// The channels of the static route from node to node, from the sender's link to the receiver's. To itself, a node
    /// sends through the network.
    pub fn route(&self, from: u32, to: u32) -> Vec<ChannelId> {
        let mut channels = Vec::new();
        self.route_into(from, to, &mut channels);
        channels
    }

    /// As [`Topology::route`], in place of what `channels` holds.
    pub fn route_into(&self, from: u32, to: u32, channels: &mut Vec<ChannelId>) {
        self.route_by_into(from, to, self.static_waypoint(from, to), channels);
    }

    /// As [`Topology::route_into`], by this waypoint or by none.
    pub fn route_by_into(&self, from: u32, to: u32, waypoint: Option<u32>, channels: &mut Vec<ChannelId>) {
        channels.clear();
        self.walk(from, to, waypoint, |channel| channels.push(channel));
    }

    /// How many channels the static route from node to node has.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let mut hops = 0;
        self.walk(from, to, self.static_waypoint(from, to), |_| hops += 1);
        hops
    }

    /// Goes along the static route, by this waypoint or by none.
    fn walk(&self, from: u32, to: u32, mut waypoint: Option<u32>, mut step: impl FnMut(ChannelId)) {
        let wired = &*self.wired;
        let mut place = wired.outgoing.starts[wired.index(Device::Node(from))] as usize;
        loop {
            step(wired.outgoing.channels[place]);
            let device = wired.ends[place];
            let Some(switch) = device.checked_sub(wired.nodes) else { return };
            if waypoint.is_some_and(|waypoint| self.is_past(switch, waypoint)) {
                waypoint = None;
            }
            let port = self.port(switch, waypoint.unwrap_or(to));
            place = wired.outgoing.starts[device as usize] as usize + usize::from(port);
        }
    }

    fn new(name: String, wiring: Wiring, routing: impl Routing + 'static) -> Topology {
        Topology { name: name.into(), wired: Arc::new(wiring.finish()), routing: Arc::new(routing) }
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Topology({}, {:?})", self.name, self.routing)
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

impl Wired {
    fn index(&self, device: Device) -> usize {
        match device {
            Device::Node(node) => {
                assert!(node < self.nodes, "node {node} of {}", self.nodes);
                node as usize
            }
            Device::Switch(switch) => self.nodes as usize + switch as usize,
        }
    }
}

impl PortTable {
    fn of(&self, device: usize) -> &[ChannelId] {
        &self.channels[self.starts[device] as usize..self.starts[device + 1] as usize]
    }
}

/// As `4 x 4 x 2`.
fn times(dimensions: &[u32]) -> String {
    dimensions.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}

/// The draw of a pair's static route: scattered, and always the same (the finaliser of SplitMix64).
fn pair_draw(from: u32, to: u32) -> u64 {
    let mut draw = (u64::from(from) << 32 | u64::from(to)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    draw = (draw ^ draw >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    draw = (draw ^ draw >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    draw ^ draw >> 31
}
