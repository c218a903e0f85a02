//! Switches with a central queue: packets a second, with everything that is counted about them.

use pio_machine::{Adapter, Bandwidth, CentralQueue as Description, Duration, Link};
use pio_sim::kernel::{Histogram, Model, Stream, Time};
use pio_sim::network::central_queue::CentralQueue;
use pio_sim::network::topology::Topology;
use pio_sim::network::{MessageId, Network};

use crate::measure::{Part, against_bare_loop};

pub(crate) const PART: Part = Part { name: "central-queue", run };

const MESSAGES: u64 = 300_000;
const PACKET: u32 = 512;
const LOAD: f64 = 0.3;

fn run() {
    let topologies =
        [("4-ary 3-tree", Topology::fat_tree(4, 3)), ("clustered omega network", Topology::omega(64))];
    for (name, topology) in topologies {
        let Ok(topology) = topology else { continue };
        let what = format!("64 nodes, {name}, uniform, load {LOAD}");
        against_bare_loop(&what, "packets", || uniform(&topology));
    }
}

/// One packet after the other from each node, at exponential distances, to nodes drawn at random.
fn uniform(topology: &Topology) -> u64 {
    let bandwidth = Bandwidth::from_bytes_per_second(150_000_000);
    let link = Link { bandwidth, latency: Duration::from_picoseconds(13_300) };
    let described = Description {
        packet: PACKET,
        input: 62,
        bypass: Duration::from_picoseconds(66_500),
        latency: Duration::from_picoseconds(199_500),
        chunks: 128,
        chunk: 16,
        reserved: 1,
        adapter: Adapter { bandwidth, buffer: 8 * PACKET },
    };
    let Ok(mut network) = CentralQueue::new(topology.clone(), &link, &described) else { return 0 };
    let nodes = u64::from(topology.nodes());
    let gap_ps = 1e12 * f64::from(PACKET) / 150e6 / LOAD / nodes as f64;
    let mut random = Stream::named(1, "packets");
    let mut latencies = Histogram::new();
    let mut sent = vec![0; MESSAGES as usize];
    let mut delivered = Vec::new();
    let mut at = 0.0;
    for number in 0..MESSAGES {
        at += random.exponential(gap_ps);
        let now = Time(at as u64);
        while network.next_time().is_some_and(|next| next <= now) {
            network.advance(now, &mut delivered);
            for delivery in delivered.drain(..) {
                latencies.record(delivery.last_byte.0 - sent[delivery.message.0 as usize]);
            }
        }
        sent[number as usize] = now.0;
        let (from, to) = (random.below(nodes) as u32, random.below(nodes) as u32);
        network.send(now, MessageId(number as u32), from, to, PACKET.into());
    }
    latencies.count()
}
