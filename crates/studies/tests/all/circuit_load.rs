//! The circuit-switched network under rising load: it takes what it can, does not take less when offered more, and never
//! stands still.

use std::ops::Range;

use pio_machine::{Duration, Machine, Switching};
use pio_sim::kernel::{Model, Time};
use pio_sim::network::circuit::Circuit;
use pio_sim::network::topology::Topology;
use pio_sim::network::{MessageId, Network};
use pio_studies::coll::{Destinations, Distribution, Process, Span, run};

fn qsnet(topology: &Topology) -> Circuit {
    let network = Machine::built_in("qsnet-64").unwrap().network;
    let Switching::Circuit(switches) = network.switching else { panic!("circuits") };
    Circuit::new(topology, &network.link, &switches).unwrap()
}

/// Megabytes a second that some of 64 nodes, which all want to move `load`, move together, and the half width of the
/// interval.
fn accepted(load: f64, destinations: impl Fn(u32) -> Destinations, nodes: Range<usize>) -> (f64, f64) {
    let process = |node| Process {
        node,
        destinations: destinations(node),
        load: load * 1e6,
        bytes: 4096.0,
        writes: 1.0,
        times: Distribution::Exponential,
        sizes: Distribution::Exponential,
        outstanding: 8,
    };
    let processes: Vec<Process> = (0..64).map(process).collect();
    let window = Span { warm_up: Duration::from_seconds(1e-3), measured: Duration::from_seconds(2e-3) };
    let mut network = qsnet(&Topology::fat_tree(4, 3).unwrap());
    let rate = run(&mut network, &processes, window, 1).rate(nodes, window);
    (rate.mean / 1e6, rate.half_width / 1e6)
}

fn others(node: u32) -> Destinations {
    Destinations::Random((0..64).filter(|other| *other != node).collect())
}

#[test]
fn accepted_load_is_the_offered_one_and_then_stays() {
    let mut highest: f64 = 0.0;
    for load in [20.0, 80.0, 160.0, 320.0, 640.0] {
        let (all, half_width) = accepted(load, others, 0..64);
        let (found, half_width) = (all / 64.0, half_width / 64.0);
        if load <= 80.0 {
            assert!((found - load).abs() < half_width.max(0.05 * load), "{found} of {load} MB/s");
        }
        assert!(found > 0.95 * highest, "{found} at {load} MB/s, after {highest}");
        highest = highest.max(found);
    }
    // More than a node can take in is out of reach.
    assert!((100.0..280.0).contains(&highest), "{highest}");
}

#[test]
fn a_hot_spot_takes_in_what_its_link_carries() {
    for load in [20.0, 200.0] {
        // 63 nodes share the link of node 0, 338.6 MB/s; node 0 has that of node 1 for itself.
        let to = |node| Destinations::Fixed(if node == 0 { 1 } else { 0 });
        let (hot, _) = accepted(load, to, 1..64);
        assert!((300.0..=345.0).contains(&hot), "{hot} MB/s at {load}");
    }
}

/// Messages of 10 packets, to nodes that are near and far in turn, twice as many as can get through, until so many
/// flits have crossed a link.
fn overload(topology: &Topology, flit_hops: u64) {
    const FLITS: u64 = 189;
    let mut network = qsnet(topology);
    let nodes = network.nodes();
    let mut delivered = Vec::new();
    let (mut sent, mut arrived, mut round) = (0, 0, 0_u64);
    while network.totals().hops * FLITS < flit_hops {
        let now = Time(round * 10_000_000);
        network.advance_through(now, &mut delivered);
        for from in 0..nodes {
            let to = (from * 7 + round as u32 * 13) % nodes;
            let to = if from % 3 == 0 { to / 16 * 16 } else { to };
            network.send(now, MessageId(sent), from, to, 3200);
            sent += 1;
        }
        arrived += delivered.len();
        delivered.clear();
        round += 1;
    }
    network.advance_through(Time::NEVER, &mut delivered);
    assert_eq!(arrived + delivered.len(), sent as usize);
    assert_eq!(network.totals().packets, u64::from(sent) * 10);
}

#[test]
fn overload_does_not_stop_the_network() {
    overload(&Topology::fat_tree(4, 3).unwrap(), 5_000_000);
    overload(&Topology::fat_tree(2, 5).unwrap(), 5_000_000);
    overload(&Topology::fly(4, 3).unwrap(), 5_000_000);
    overload(&Topology::mesh(&[4, 4]).unwrap(), 5_000_000);
}

#[test]
#[ignore = "slow"]
fn slow_overload_does_not_stop_the_network() {
    overload(&Topology::fat_tree(4, 3).unwrap(), 100_000_000);
    overload(&Topology::fat_tree(2, 6).unwrap(), 100_000_000);
    overload(&Topology::fly(4, 3).unwrap(), 100_000_000);
    overload(&Topology::omega(64).unwrap(), 100_000_000);
    overload(&Topology::mesh(&[8, 8]).unwrap(), 100_000_000);
}
