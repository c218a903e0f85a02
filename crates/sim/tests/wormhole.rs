//! Wormhole and cut-through switching: latency without load by hand, and nothing lost, doubled or out of order with it.

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Duration, Link, Pipeline, Reuse, Wormhole as Description,
};
use pio_sim::kernel::{Stream, Time};
use pio_sim::network::topology::Topology;
use pio_sim::network::wormhole::{Wormhole, WormholeError};
use pio_sim::network::{Delivery, MessageId, Network};

/// A cycle of 5 ns.
const CYCLE: u64 = 5_000;

fn link(latency_cycles: u64) -> Link {
    Link {
        bandwidth: Bandwidth::from_bytes_per_second(400_000_000),
        latency: Duration::from_picoseconds(latency_cycles * CYCLE),
    }
}

/// One cycle a stage, packets of one flit.
fn plain() -> Description {
    Description {
        flit: 2,
        payload: 2,
        header: 0,
        virtual_channels: 4,
        buffer: 8,
        cut_through: false,
        reuse: Reuse::TailSent,
        allocator: Allocator::Islip,
        iterations: 1,
        arbitration: Arbitration::RoundRobin,
        choice: Choice::Random,
        pipeline: Pipeline {
            injection: 1,
            routing: 1,
            vc_allocation: 1,
            switch_allocation: 1,
            switch_traversal: 1,
            credit: 0,
        },
    }
}

fn network(topology: &Topology, link: &Link, description: &Description) -> Wormhole {
    Wormhole::new(topology, link, description, 1).expect("the description fits the topology")
}

fn drain(network: &mut Wormhole) -> Vec<Delivery> {
    let mut delivered = Vec::new();
    while network.next_time().is_some() {
        network.advance(Time::NEVER, &mut delivered);
    }
    delivered
}

#[test]
fn latency_without_load_is_that_computed_by_hand() {
    let tree = Topology::fat_tree(4, 3).expect("a tree");
    let fly = Topology::fly(4, 3).expect("a fly");
    // Switches on the way: from a leaf to itself 1, to the same leaf switch 1, to the same half 3, anywhere 5; in a fly 3.
    let cases = [
        (&tree, 0, 0, 1),
        (&tree, 0, 1, 1),
        (&tree, 0, 5, 3),
        (&tree, 0, 63, 5),
        (&fly, 7, 7, 3),
        (&fly, 9, 60, 3),
    ];
    for (topology, from, to, switches) in cases {
        let pipelines = [(1, 1, 1, 1, 1, 1), (2, 0, 1, 1, 1, 0), (1, 3, 2, 4, 2, 7), (3, 1, 4, 1, 0, 2)];
        for (injection, routing, vc_allocation, switch_allocation, switch_traversal, latency) in pipelines {
            for flits in [1, 2, 20] {
                let pipeline = Pipeline {
                    injection,
                    routing,
                    vc_allocation,
                    switch_allocation,
                    switch_traversal,
                    credit: 3,
                };
                // A lane sends its next flit only after a whole step of switch allocation.
                let between = u64::from(switch_allocation);
                let buffer = 64;
                let description = Description { pipeline, payload: 2 * flits, buffer, ..plain() };
                let mut network = network(topology, &link(latency), &description);
                network.send(Time(3 * CYCLE), MessageId(7), from, to, 2 * flits);
                let stages = u64::from(routing + vc_allocation + switch_allocation + switch_traversal);
                let head = 3 + u64::from(injection) + latency + switches * (stages + latency);
                let tail = head + (flits - 1) * between;
                let expected = Delivery {
                    message: MessageId(7),
                    first_byte: Time(head * CYCLE),
                    last_byte: Time(tail * CYCLE),
                };
                assert_eq!(drain(&mut network), [expected], "{topology} {from} to {to}: {description:?}");
                assert_eq!(network.flit_hops(), flits * (switches + 1));
                assert_eq!(network.under_way(), 0);
            }
        }
    }
}

/// Every message once, and those of one node to another in the order in which they were sent.
fn check_all_arrived_in_order(network: &mut Wormhole, sent: &[(u32, u32)], name: &str) {
    let delivered = drain(network);
    assert_eq!(network.under_way(), 0, "{name}: deadlock");
    assert_eq!(delivered.len(), sent.len(), "{name}: lost or doubled");
    let mut seen = vec![false; sent.len()];
    let mut latest = std::collections::BTreeMap::new();
    for delivery in delivered {
        let number = delivery.message.0;
        assert!(!std::mem::replace(&mut seen[number as usize], true), "{name}: {number} twice");
        let before = latest.insert(sent[number as usize], number);
        assert!(before.is_none_or(|before| before < number), "{name}: {before:?} before {number}");
        assert!(delivery.first_byte <= delivery.last_byte);
    }
}

/// Every knob at least once.
fn variants() -> Vec<(&'static str, Description)> {
    let packets = Description { flit: 16, payload: 50, header: 10, ..plain() };
    let slow = Pipeline {
        injection: 2,
        routing: 0,
        vc_allocation: 2,
        switch_allocation: 3,
        switch_traversal: 2,
        credit: 4,
    };
    vec![
        ("plain", plain()),
        ("packets", packets.clone()),
        ("three channels", Description { virtual_channels: 3, buffer: 1, ..packets.clone() }),
        ("cut-through", Description { cut_through: true, ..packets.clone() }),
        ("cut-through when empty", Description { cut_through: true, reuse: Reuse::TailCredit, ..packets.clone() }),
        ("when empty", Description { reuse: Reuse::TailCredit, ..packets.clone() }),
        ("inputs first", Description { allocator: Allocator::SeparableInputFirst, ..packets.clone() }),
        ("iterations", Description { iterations: 3, ..packets.clone() }),
        ("age", Description { arbitration: Arbitration::Age, iterations: 2, ..packets.clone() }),
        ("static", Description { choice: Choice::Static, ..packets.clone() }),
        ("least loaded", Description { choice: Choice::LeastLoaded, ..packets.clone() }),
        ("two random", Description { choice: Choice::TwoRandom, ..packets.clone() }),
        ("slow", Description { pipeline: slow, ..packets.clone() }),
        ("many channels", Description { virtual_channels: 64, ..packets }),
    ]
}

fn topologies() -> Vec<Topology> {
    let dragonfly = |routing| pio_machine::Dragonfly {
        nodes_per_switch: 2,
        switches_per_group: 3,
        links_per_switch: 1,
        groups: 4,
        routing,
    };
    let made = [
        Topology::flat(9),
        Topology::fat_tree(2, 4),
        Topology::fly(3, 2),
        Topology::omega(16),
        Topology::mesh(&[4, 3]),
        Topology::torus(&[5, 4]),
        Topology::dragonfly(&dragonfly(pio_machine::DragonflyRouting::Minimal)),
        Topology::dragonfly(&dragonfly(pio_machine::DragonflyRouting::Valiant)),
    ];
    made.into_iter().map(|topology| topology.expect("possible")).collect()
}

#[test]
fn nothing_is_lost_doubled_or_out_of_order() {
    for topology in topologies() {
        for (name, description) in variants() {
            let name = format!("{topology}, {name}");
            let mut network = match Wormhole::new(&topology, &link(2), &description, 1) {
                Err(WormholeError::VirtualChannels { found, needed, .. }) => {
                    assert!(found < needed, "{name}");
                    continue;
                }
                network => network.expect("possible"),
            };
            let mut stream = Stream::named(7, &name);
            let mut now = Time(0);
            let mut sent = Vec::new();
            let nodes = u64::from(network.nodes());
            // A burst that fills every buffer: far more than the network can take in the time.
            for number in 0..40 * nodes as u32 {
                let (from, to) = (stream.below(nodes) as u32, stream.below(nodes) as u32);
                let bytes = [0, 1, 40, 50, 51, 333][stream.below(6) as usize];
                network.send(now, MessageId(number), from, to, bytes);
                sent.push((from, to));
                now = now + Duration::from_picoseconds(stream.below(CYCLE));
            }
            check_all_arrived_in_order(&mut network, &sent, &name);
        }
    }
}
