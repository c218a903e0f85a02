//! Circuits: random traffic of short and long messages on the 64-node 4-ary 3-tree of QsNET. Where it is dense, packets
//! wait for each other and share links.

use pio_machine::{Machine, Switching};
use pio_sim::kernel::{Model, Stream, Time};
use pio_sim::network::circuit::Circuit;
use pio_sim::network::topology::Topology;
use pio_sim::network::{Delivery, MessageId, Network};

use crate::measure::{Part, against_bare_loop};

pub(crate) const PART: Part = Part { name: "circuit", run };

/// Data of a packet; a node can inject one in so much time.
const PACKET_BYTES: u64 = 320;
const INJECTION_PS: f64 = 955_200.0;
const PACKETS: u64 = 400_000;

fn run() {
    let machine = Machine::built_in("qsnet-64").expect("a machine that is built in");
    let Switching::Circuit(switches) = &machine.network.switching else { return };
    let topology = Topology::fat_tree(4, 3).expect("a tree of 64 nodes");
    for (load, packets) in [(0.3, 1), (0.3, 100), (0.6, 100)] {
        let name = format!("64 nodes, load {load}, messages of {packets} packets");
        against_bare_loop(&name, "packets", || {
            let network = Circuit::new(&topology, &machine.network.link, switches);
            send(&mut network.expect("a tree keeps circuits"), load, packets)
        });
    }
}

/// Messages of so many packets, from any node to any other. How many packets arrived.
fn send(network: &mut Circuit, load: f64, packets: u64) -> u64 {
    let nodes = u64::from(network.nodes());
    let mut stream = Stream::named(1, "circuit");
    let mut delivered: Vec<Delivery> = Vec::new();
    let mean = INJECTION_PS * packets as f64 / load / nodes as f64;
    let mut now = 0.0;
    for number in 0..PACKETS / packets {
        now += stream.exponential(mean);
        let time = Time(now as u64);
        while network.next_time().is_some_and(|next| next <= time) {
            network.advance(time, &mut delivered);
            delivered.clear();
        }
        let from = stream.below(nodes);
        let to = (from + 1 + stream.below(nodes - 1)) % nodes;
        network.send(time, MessageId(number as u32), from as u32, to as u32, packets * PACKET_BYTES);
    }
    network.totals().packets
}
