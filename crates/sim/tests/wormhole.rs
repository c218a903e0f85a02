//! Wormhole and cut-through switching: latency without load by hand, and nothing lost, doubled or out of order with it.

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Duration, Link, Pipeline, Reuse, Wormhole as Description,
};
use pio_sim::kernel::Time;
use pio_sim::network::topology::Topology;
use pio_sim::network::wormhole::Wormhole;
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
