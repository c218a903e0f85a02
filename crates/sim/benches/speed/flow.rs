//! The flow level: as many messages under way all the time, between random nodes of a fat tree. Every message is one that
//! starts and one that ends: rates are shared out anew twice.

use std::hint::black_box;

use pio_machine::{Bandwidth, Duration, FlowRoutes};
use pio_sim::kernel::{Model, Stream, Time};
use pio_sim::network::flow::FlowNetwork;
use pio_sim::network::topology::Topology;
use pio_sim::network::{MessageId, Network};

use crate::measure::{Part, ROUNDS, Watch, bare_loop, distances, millions, rate};

pub(crate) const PART: Part = Part { name: "flow", run };

/// Arity and levels of the tree, and messages under way.
const CASES: [(u32, u32, u32); 6] =
    [(4, 3, 64), (4, 3, 256), (4, 3, 1024), (16, 3, 64), (16, 3, 1024), (16, 3, 16384)];

/// Mean bytes of a message, exponential.
const MEAN_BYTES: f64 = 1e6;

fn run() {
    let distances = distances();
    for (arity, levels, under_way) in CASES {
        for routes in [FlowRoutes::Static, FlowRoutes::Spread] {
            // Spread over thousands of channels a message: another matter.
            if routes == FlowRoutes::Spread && arity > 4 {
                continue;
            }
            let messages = if under_way > 4096 { 200 } else { 4000 };
            let (mut best, mut bare) = (0.0_f64, 0.0_f64);
            for _ in 0..if under_way > 4096 { 1 } else { ROUNDS } {
                bare = bare.max(rate(|| bare_loop(1000, 1_000_000, &distances)));
                best = best.max(one(arity, levels, under_way, messages, routes));
            }
            let nodes = arity.pow(levels);
            let name = format!("{nodes} nodes, {under_way} under way, {routes:?}");
            println!(
                "  {name:<44} {:>9.2} us a message · bare loop {} events/s · 1 : {:.0}",
                1e6 / best,
                millions(bare),
                bare / best
            );
        }
    }
}

/// Messages a second.
fn one(arity: u32, levels: u32, under_way: u32, messages: u32, routes: FlowRoutes) -> f64 {
    let Ok(topology) = Topology::fat_tree(arity, levels) else { return f64::NAN };
    let nodes = u64::from(topology.nodes());
    let mut stream = Stream::named(1, "flow");
    let bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000);
    let mut network = FlowNetwork::new(topology, bandwidth, Duration::from_picoseconds(100_000), routes);
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
