//! The flow level: as many messages under way all the time, between random nodes of a fat tree or a dragonfly. Every message is one that
//! starts and one that ends: rates are shared out anew twice.

use std::hint::black_box;

use pio_machine::{Bandwidth, Dragonfly, DragonflyRouting, Duration, FlowRoutes};
use pio_sim::kernel::{Model, Stream, Time};
use pio_sim::network::flow::FlowNetwork;
use pio_sim::network::topology::{Topology, TopologyError};
use pio_sim::network::{MessageId, Network};

use crate::measure::{Part, ROUNDS, Watch, bare_loop, distances, millions, rate};

pub(crate) const PART: Part = Part { name: "flow", run };

/// A network, and messages under way.
struct Case {
    topology: fn() -> Result<Topology, TopologyError>,
    under_way: u32,
}

const SMALL: fn() -> Result<Topology, TopologyError> = || Topology::fat_tree(4, 3);
const MIDDLE: fn() -> Result<Topology, TopologyError> = || Topology::fat_tree(16, 3);
const LARGE_TREE: fn() -> Result<Topology, TopologyError> = || Topology::fat_tree(47, 3);
const LARGE_DRAGONFLY: fn() -> Result<Topology, TopologyError> = || {
    Topology::dragonfly(&Dragonfly {
        nodes_per_switch: 16,
        switches_per_group: 32,
        links_per_switch: 16,
        groups: 196,
        routing: DragonflyRouting::Minimal,
    })
};

const CASES: [Case; 8] = [
    Case { topology: SMALL, under_way: 64 },
    Case { topology: SMALL, under_way: 256 },
    Case { topology: SMALL, under_way: 1024 },
    Case { topology: MIDDLE, under_way: 64 },
    Case { topology: MIDDLE, under_way: 1024 },
    Case { topology: MIDDLE, under_way: 16_384 },
    Case { topology: LARGE_TREE, under_way: 10_000 },
    Case { topology: LARGE_DRAGONFLY, under_way: 10_000 },
];

/// Mean bytes of a message, exponential.
const MEAN_BYTES: f64 = 1e6;

fn run() {
    let distances = distances();
    for Case { topology, under_way } in CASES {
        let Ok(topology) = topology() else { continue };
        for routes in [FlowRoutes::Static, FlowRoutes::Spread] {
            // Spread over thousands of channels a message: another matter.
            if routes == FlowRoutes::Spread && topology.nodes() > 64 {
                continue;
            }
            let messages = if under_way > 10_000 { 200 } else { 4000 };
            let (mut best, mut bare) = (0.0_f64, 0.0_f64);
            for _ in 0..if under_way > 10_000 { 1 } else { ROUNDS } {
                bare = bare.max(rate(|| bare_loop(1000, 1_000_000, &distances)));
                best = best.max(one(&topology, under_way, messages, routes));
            }
            let name = format!("{topology}, {} nodes, {under_way} under way, {routes:?}", topology.nodes());
            println!(
                "  {name:<65} {:>9.2} us a message · bare loop {} events/s · 1 : {:.0}",
                1e6 / best,
                millions(bare),
                bare / best
            );
        }
    }
}

/// Messages a second.
fn one(topology: &Topology, under_way: u32, messages: u32, routes: FlowRoutes) -> f64 {
    let nodes = u64::from(topology.nodes());
    let mut stream = Stream::named(1, "flow");
    let bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000);
    let mut network =
        FlowNetwork::new(topology.clone(), bandwidth, Duration::from_picoseconds(100_000), routes);
    let mut number = 0;
    let mut send = |network: &mut FlowNetwork, now: Time| {
        // Pairs that have no stream, so that all of them have a share of their own.
        let (from, to) = loop {
            let pair = (stream.below(nodes) as u32, stream.below(nodes) as u32);
            if pair.0 != pair.1 && network.rate(pair.0, pair.1).is_none() {
                break pair;
            }
        };
        network.send(now, MessageId(number), from, to, 1 + stream.exponential(MEAN_BYTES) as u64);
        number += 1;
    };
    for _ in 0..under_way {
        send(&mut network, Time(0));
    }
    let mut delivered = Vec::new();
    let mut left = messages;
    let watch = Watch::start();
    while let Some(time) = network.next_time().filter(|_| left > 0) {
        network.advance(time, &mut delivered);
        for delivery in delivered.drain(..) {
            send(&mut network, delivery.last_byte);
            left = left.saturating_sub(1);
        }
    }
    black_box(network.streams());
    f64::from(messages) / watch.seconds()
}
