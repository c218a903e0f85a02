//! Circuits: random traffic of short and long messages on the 64-node 4-ary 3-tree of QsNET: where it is dense, packets
//! wait and links are shared.

use std::time::Instant;

use pio_machine::{Machine, Switching};
use pio_sim::kernel::{Stream, Time};
use pio_sim::network::circuit::Circuit;
use pio_sim::network::topology::Topology;
use pio_sim::network::{Delivery, MessageId, Network};

use crate::measure::{Part, ROUNDS, bare_loop, distances, millions, rate};

pub const PART: Part = Part { name: "circuit", run };

/// Packets of 320 B; a node can inject one every 955.2 ns.
const PACKET_BYTES: u64 = 320;
const INJECTION_PS: f64 = 955_200.0;
const MESSAGES: u32 = 400_000;

fn run() {
    let Ok(machine) = Machine::built_in("qsnet-64") else { return };
    let Switching::Circuit(switches) = &machine.network.switching else { return };
    let Ok(topology) = Topology::fat_tree(4, 3) else { return };
    let distances = distances();
    for (name, load, length) in
        [("load 0.3", 0.3, 1), ("load 0.3, long messages", 0.3, 100), ("load 0.6", 0.6, 1)]
    {
        let (mut best, mut bare, mut events) = (0.0_f64, 0.0_f64, 0.0);
        for _ in 0..ROUNDS {
            bare = bare.max(rate(|| bare_loop(1000, 1_000_000, &distances)));
            let Ok(mut network) = Circuit::new(&topology, &machine.network.link, switches) else { return };
            best = best.max(packets_a_second(&mut network, load, length));
            let totals = network.totals();
            events = totals.events as f64 / totals.packets as f64;
        }
        println!(
            "  {name:<26} {} packets/s · {events:.1} events a packet · bare loop {} events/s · 1 : {:.0}",
            millions(best),
            millions(bare),
            bare / best
        );
    }
}

/// Each message so many packets long, to any other node.
fn packets_a_second(network: &mut Circuit, load: f64, packets: u64) -> f64 {
    let nodes = u64::from(network.nodes());
    let mut stream = Stream::named(1, "circuit");
    let mut delivered: Vec<Delivery> = Vec::new();
    let mean = INJECTION_PS * packets as f64 / load / nodes as f64;
    let mut now = 0.0;
    let started = Instant::now();
    for number in 0..MESSAGES / packets as u32 {
        now += stream.exponential(mean);
        let time = Time(now as u64);
        while network.next_time().is_some_and(|next| next <= time) {
            network.advance(time, &mut delivered);
            delivered.clear();
        }
        network.advance(time, &mut delivered);
        delivered.clear();
        let from = stream.below(nodes);
        let to = (from + 1 + stream.below(nodes - 1)) % nodes;
        network.send(time, MessageId(number), from as u32, to as u32, packets * PACKET_BYTES);
    }
    network.totals().packets as f64 / started.elapsed().as_secs_f64()
}
