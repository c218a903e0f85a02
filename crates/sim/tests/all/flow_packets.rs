//! The flow level against the same messages packet by packet, flit by flit.

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Duration, FlowRoutes, Link, Pipeline, Reuse,
    Wormhole as Description,
};
use pio_sim::kernel::{Stream, Time};
use pio_sim::network::flow::FlowNetwork;
use pio_sim::network::topology::Topology;
use pio_sim::network::wormhole::Wormhole;
use pio_sim::network::{MessageId, Network};

/// 64 bytes a nanosecond: a flit of 64 bytes in a cycle of 1 ns.
const BANDWIDTH: u64 = 64_000_000_000;
const BYTES: u64 = 64 * 1024;

/// When each message is there, both ways.
fn both(topology: &Topology, pairs: &[(u32, u32)]) -> (Vec<Time>, Vec<Time>) {
    let link = Link {
        bandwidth: Bandwidth::from_bytes_per_second(BANDWIDTH),
        latency: Duration::from_picoseconds(1000),
    };
    let description = Description {
        flit: 64,
        payload: 512,
        header: 0,
        virtual_channels: 8,
        buffer: 32,
        cut_through: true,
        reuse: Reuse::TailSent,
        allocator: Allocator::Islip,
        iterations: 3,
        arbitration: Arbitration::RoundRobin,
        choice: Choice::Static,
        pipeline: Pipeline {
            injection: 0,
            routing: 0,
            vc_allocation: 1,
            switch_allocation: 1,
            switch_traversal: 1,
            credit: 1,
        },
    };
    let mut packets = Wormhole::new(topology, &link, &description, 1).unwrap();
    let mut flows = FlowNetwork::new(topology.clone(), link.bandwidth, link.latency, FlowRoutes::Static);
    (arrivals(&mut packets, pairs), arrivals(&mut flows, pairs))
}

fn arrivals(network: &mut impl Network, pairs: &[(u32, u32)]) -> Vec<Time> {
    for (message, (from, to)) in pairs.iter().enumerate() {
        network.send(Time(0), MessageId(message as u32), *from, *to, BYTES);
    }
    let mut delivered = Vec::new();
    network.advance_through(Time::NEVER, &mut delivered);
    let mut arrivals = vec![Time::NEVER; pairs.len()];
    for delivery in delivered {
        arrivals[delivery.message.0 as usize] = delivery.last_byte;
    }
    arrivals
}

fn mean(times: &[Time]) -> f64 {
    times.iter().map(|time| time.0 as f64).sum::<f64>() / times.len() as f64
}

fn last(times: &[Time]) -> f64 {
    times.iter().map(|time| time.0 as f64).fold(0.0, f64::max)
}

/// Nobody meets anybody: packets differ by what switches take, some nanoseconds a hop in a microsecond.
#[test]
fn without_contention_both_levels_agree() {
    let topology = Topology::fat_tree(4, 2).unwrap();
    let shift: Vec<(u32, u32)> = (0..16).map(|from| (from, (from + 5) % 16)).collect();
    let (packets, flows) = both(&topology, &shift);
    for (packet, flow) in packets.iter().zip(&flows) {
        let ratio = packet.0 as f64 / flow.0 as f64;
        assert!((0.99..1.03).contains(&ratio), "{ratio}");
    }
}

/// Into one node: its link is what limits, at either level, and the last message ends at the same time.
#[test]
fn what_one_link_limits_ends_together() {
    for topology in
        [Topology::flat(9).unwrap(), Topology::fat_tree(3, 2).unwrap(), Topology::fly(3, 2).unwrap()]
    {
        let into_one: Vec<(u32, u32)> = (1..9).map(|from| (from, 0)).collect();
        let (packets, flows) = both(&topology, &into_one);
        let ratio = last(&packets) / last(&flows);
        assert!((0.99..1.03).contains(&ratio), "{topology}: {ratio}");
    }
}

/// Every node to a random one at once. Where messages meet, one waits behind another's packets, or takes turns with them
/// unfairly: single messages differ by much, their mean by a tenth either way. What is last can be held up by a packet ahead
/// of it that wants another way, which fluids never do: most so in a fly, which has one way a pair.
#[test]
fn random_messages_take_about_as_long() {
    for topology in
        [Topology::fat_tree(4, 2).unwrap(), Topology::fly(4, 2).unwrap(), Topology::mesh(&[4, 4]).unwrap()]
    {
        for seed in 0..4 {
            let mut stream = Stream::named(seed, "pairs");
            let pairs: Vec<(u32, u32)> = (0..16).map(|from| (from, stream.below(16) as u32)).collect();
            let (packets, flows) = both(&topology, &pairs);
            let (means, lasts) = (mean(&packets) / mean(&flows), last(&packets) / last(&flows));
            assert!((0.87..1.13).contains(&means), "{topology}: mean {means}");
            assert!((0.99..1.30).contains(&lasts), "{topology}: last {lasts}");
        }
    }
}
