//! Nodes with several links against what must hold of them.

use pio_machine::{Bandwidth, Duration, FlowRoutes, Machine, Rails as Description, Topology as Shape};
use pio_plan::{Hints, Strategy};
use pio_sim::kernel::{Model, Time};
use pio_sim::network::flow::FlowNetwork;
use pio_sim::network::topology::Topology;
use pio_sim::network::{Delivery, MessageId, Network, Rails};
use pio_sim::workload::catalogue;
use pio_sim::{Options, simulate};
use proptest::prelude::*;

/// A byte takes a nanosecond on a link, and its first one 100 ns on each.
const LATENCY: u64 = 100;

fn ns(nanoseconds: u64) -> Time {
    Time(nanoseconds * 1000)
}

fn network(links: &[u32], piece: Option<u64>) -> Rails {
    let topology = Topology::flat(links.iter().sum()).unwrap();
    let bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000);
    let latency = Duration::from_picoseconds(LATENCY * 1000);
    let inner = FlowNetwork::new(topology, bandwidth, latency, FlowRoutes::Static);
    Rails::new(Box::new(inner), links, piece)
}

fn run(network: &mut Rails) -> Vec<Delivery> {
    let mut delivered = Vec::new();
    network.advance_through(Time::NEVER, &mut delivered);
    delivered
}

fn last_bytes(network: &mut Rails) -> Vec<Time> {
    run(network).iter().map(|delivery| delivery.last_byte).collect()
}

#[test]
fn a_divided_message_takes_a_share_of_the_time() {
    let mut network = network(&[4, 4], Some(100));
    network.send(ns(0), MessageId(7), 0, 1, 1001);
    // 251 bytes on one link, 250 on the others; two links of latency.
    let expected = Delivery { message: MessageId(7), first_byte: ns(200), last_byte: ns(451) };
    assert_eq!(run(&mut network), [expected]);
}

#[test]
fn pieces_are_not_smaller_than_said() {
    let mut network = network(&[4, 4], Some(400));
    network.send(ns(0), MessageId(0), 0, 1, 999);
    assert_eq!(last_bytes(&mut network), [ns(200 + 500)], "two pieces");
}

#[test]
fn undivided_messages_take_links_in_turn() {
    let mut network = network(&[2, 2], None);
    for message in 0..4 {
        network.send(ns(0), MessageId(message), 0, 1, 1000);
    }
    // Two at a time.
    assert_eq!(last_bytes(&mut network), [ns(1200), ns(1200), ns(2200), ns(2200)]);
}

#[test]
fn the_side_with_fewer_links_limits() {
    // Eight clients with a link each, and a server with two.
    let links = [1, 1, 1, 1, 1, 1, 1, 1, 2];
    let mut network = network(&links, Some(1));
    for client in 0..8 {
        network.send(ns(0), MessageId(client), client, 8, 1000);
    }
    assert_eq!(last_bytes(&mut network), [ns(4200); 8], "8000 bytes at 2 bytes a nanosecond");
}

#[test]
fn a_message_that_overtakes_waits_for_those_before_it() {
    let mut network = network(&[2, 2], None);
    network.send(ns(0), MessageId(0), 0, 1, 1000);
    network.send(ns(0), MessageId(1), 0, 1, 10);
    let delivered = run(&mut network);
    assert_eq!(delivered.iter().map(|delivery| delivery.message.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(delivered[1].last_byte, ns(210), "its time is that at which it came");
}

/// A prediction of ranks on one node that write files: with as many links as ranks could use, and with one.
#[test]
fn a_job_gets_the_bandwidth_of_all_links_of_its_node() {
    let bandwidth = |nodes: u32| {
        let mut machine = Machine::built_in("dragonfly-2048").unwrap();
        machine.nodes.count = 2;
        machine.network.topology = Shape::Flat;
        machine.network.link.bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000);
        // Servers have room for more than the node can send.
        machine.network.rails = Description { nodes, servers: 2, piece: None };
        let entry = catalogue().iter().find(|entry| entry.name == "ior-easy").unwrap();
        let parameters = [("ranks", "16"), ("transfer", "1 MiB"), ("block", "64 MiB"), ("phases", "write")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let workload = entry.build(&parameters, 1).unwrap();
        let options = Options { ranks_per_node: Some(16), ..Options::default() };
        let (strategy, hints) = (Strategy::Independent, Hints::default());
        simulate(&machine, &workload, strategy, &hints, &options, None, &mut |_| {})
            .unwrap()
            .bandwidth_bytes_per_s()
    };
    for nodes in [1, 4] {
        let part = bandwidth(nodes) / 1e9 / f64::from(nodes);
        // Ranks begin and end at different times, and a link waits now and then for its turn.
        assert!(part < 1.0 && part > 0.9, "{nodes} links: {part}");
    }
}

proptest! {
    /// Nothing is lost or doubled, a pair's messages keep their order, and none is faster than all links of its nodes.
    #[test]
    fn every_message_arrives_once_in_order_and_not_too_early(
        links in prop::collection::vec(1..5_u32, 2..7),
        piece in prop::option::of(1..600_u64),
        messages in prop::collection::vec((0..64_usize, 0..64_usize, 0..5000_u64, 0..900_u64), 1..100),
    ) {
        let mut network = network(&links, piece);
        let (mut now, mut delivered, mut sent) = (Time::default(), Vec::new(), Vec::new());
        for (number, (from, to, bytes, pause)) in messages.into_iter().enumerate() {
            now = now + Duration::from_picoseconds(pause * 1000);
            network.advance_through(now, &mut delivered);
            let (from, to) = (from % links.len(), to % links.len());
            network.send(now, MessageId(number as u32), from as u32, to as u32, bytes);
            sent.push((now, from, to, bytes));
        }
        delivered.extend(run(&mut network));
        prop_assert_eq!(delivered.len(), sent.len());
        let mut seen = vec![false; sent.len()];
        let mut last_of_pair = std::collections::BTreeMap::new();
        for Delivery { message, first_byte, last_byte } in delivered {
            prop_assert!(!std::mem::replace(&mut seen[message.0 as usize], true));
            let (start, from, to, bytes) = sent[message.0 as usize];
            prop_assert!(last_of_pair.insert((from, to), message.0).is_none_or(|last| last < message.0));
            prop_assert!(first_byte >= Time(start.0 + 2 * LATENCY * 1000));
            let most = u64::from(if piece.is_some() { links[from].max(links[to]) } else { 1 });
            prop_assert!(last_byte.0 >= start.0 + (2 * LATENCY + bytes / most) * 1000);
        }
        prop_assert_eq!(network.next_time(), None);
    }
}
