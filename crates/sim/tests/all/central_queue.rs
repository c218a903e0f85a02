//! Switches with a central queue: closed forms, order, conservation, freedom from deadlock.

use std::collections::HashMap;

use pio_machine::{Adapter, Bandwidth, CentralQueue as Description, Duration, Link};
use pio_sim::kernel::{Model, Stream, Time};
use pio_sim::network::central_queue::{CentralQueue, CentralQueueError};
use pio_sim::network::topology::Topology;
use pio_sim::network::{Delivery, MessageId, Network};

fn nanoseconds(number: f64) -> Duration {
    Duration::from_seconds(number * 1e-9)
}

/// 150 MB/s links, 85 MB/s adapters.
fn link() -> Link {
    Link { bandwidth: Bandwidth::from_bytes_per_second(150_000_000), latency: nanoseconds(13.3) }
}

fn described() -> Description {
    Description {
        packet: 512,
        input: 62,
        bypass: nanoseconds(66.5),
        latency: nanoseconds(199.5),
        chunks: 128,
        chunk: 16,
        reserved: 1,
        adapter: Adapter { bandwidth: Bandwidth::from_bytes_per_second(85_000_000), buffer: 4096 },
    }
}

fn network(topology: Topology) -> CentralQueue {
    CentralQueue::new(topology, &link(), &described()).unwrap()
}

fn run(network: &mut CentralQueue) -> Vec<Delivery> {
    let mut delivered = Vec::new();
    network.advance_through(Time::NEVER, &mut delivered);
    delivered
}

/// Picoseconds of so many bytes, as on paper: rounded up.
fn time_of(bytes: u64, bytes_per_s: u64) -> u64 {
    (bytes * 1_000_000_000_000).div_ceil(bytes_per_s)
}

#[test]
fn a_packet_alone_takes_the_time_of_its_parts() {
    // Adapter, links and switches of the route, then the packet's length on a link, and the other adapter.
    for (nodes, to, links) in [(16, 1, 2), (16, 15, 4), (32, 31, 5), (64, 63, 6), (128, 127, 6)] {
        for bytes in [1, 200, 512] {
            let mut network = network(Topology::omega(nodes).unwrap());
            network.send(Time(1000), MessageId(7), 0, to, bytes);
            let head = 1000 + time_of(bytes, 85_000_000) + links * 13_300 + (links - 1) * 66_500;
            let last = head + time_of(bytes, 150_000_000) + time_of(bytes, 85_000_000);
            let expected = Delivery { message: MessageId(7), first_byte: Time(head), last_byte: Time(last) };
            assert_eq!(run(&mut network), [expected], "{bytes} bytes over {links} links of {nodes} nodes");
            assert_eq!(network.counts().bypassed, links - 1);
        }
    }
}

#[test]
fn packets_of_a_message_follow_at_the_pace_of_the_adapters() {
    let mut network = network(Topology::omega(64).unwrap());
    network.send(Time(0), MessageId(0), 0, 63, 32_768);
    let adapter = time_of(512, 85_000_000);
    let first = adapter + 6 * 13_300 + 5 * 66_500;
    let last = first + time_of(512, 150_000_000) + 64 * adapter;
    let expected = Delivery { message: MessageId(0), first_byte: Time(first), last_byte: Time(last) };
    assert_eq!(run(&mut network), [expected]);
    assert_eq!((network.counts().packets, network.counts().queued), (64, 0));
}

#[test]
fn a_message_of_nothing_arrives() {
    let mut network = network(Topology::omega(16).unwrap());
    network.send(Time(0), MessageId(0), 3, 3, 0);
    let at = Time(2 * 13_300 + 66_500);
    assert_eq!(run(&mut network), [Delivery { message: MessageId(0), first_byte: at, last_byte: at }]);
}

#[test]
fn the_second_of_two_packets_for_an_output_goes_by_the_queue() {
    // Adapters and receivers fast enough not to matter; both heads come at once, and one link of the switch serves both.
    let mut described = described();
    described.adapter.bandwidth = Bandwidth::from_bytes_per_second(10_000_000_000_000);
    let mut network = CentralQueue::new(Topology::flat(3).unwrap(), &link(), &described).unwrap();
    for from in [0, 1] {
        network.send(Time(0), MessageId(from), from, 2, 512);
    }
    let arrivals: Vec<u64> = run(&mut network).iter().map(|delivery| delivery.first_byte.0).collect();
    let adapter = time_of(512, 10_000_000_000_000);
    let length = time_of(512, 150_000_000);
    let first = adapter + 13_300 + 66_500 + 13_300;
    // The queue hides its latency behind the first packet: the link is never idle.
    assert_eq!(arrivals, [first, first + length]);
    let counts = network.counts();
    assert_eq!((counts.bypassed, counts.queued, counts.blocked), (1, 1, 0));
}

#[test]
fn a_head_that_cannot_get_on_keeps_the_channel_behind_it() {
    // Six senders for one destination: 120 chunks take three packets; the other two stay at their inputs, one of them in
    // line by the reserved slot. All arrive, back to back.
    let mut described = described();
    described.adapter.bandwidth = Bandwidth::from_bytes_per_second(10_000_000_000_000);
    let mut network = CentralQueue::new(Topology::flat(8).unwrap(), &link(), &described).unwrap();
    for from in 0..6 {
        network.send(Time(0), MessageId(from), from, 7, 512);
    }
    let arrivals: Vec<u64> = run(&mut network).iter().map(|delivery| delivery.first_byte.0).collect();
    let length = time_of(512, 150_000_000);
    for pair in arrivals.windows(2) {
        assert_eq!(pair[1] - pair[0], length, "{arrivals:?}");
    }
    let counts = network.counts();
    assert_eq!((counts.bypassed, counts.blocked, arrivals.len()), (1, 2, 6));
}

/// Sends random messages at `load` of each node's adapter for a while. Checks that each arrives once and in the order of its
/// pair; gives bytes received a second and node until the sending ended.
fn drive(topology: Topology, load: f64, until_s: f64, destination: impl Fn(&mut Stream, u32) -> u32) -> f64 {
    let nodes = topology.nodes();
    let mut network = network(topology);
    let mut random = Stream::named(1, "traffic");
    let mut sends = Vec::new();
    for node in 0..nodes {
        let mut at = 0.0;
        loop {
            let bytes = 1 + random.below(4096);
            at += random.exponential(2048.5 / (85e6 * load));
            if at > until_s {
                break;
            }
            sends.push((Time((at * 1e12) as u64), node, destination(&mut random, node), bytes));
        }
    }
    sends.sort();
    let mut expected: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
    let mut delivered = Vec::new();
    let (mut next, mut received) = (0, 0);
    let mut last = HashMap::new();
    while next < sends.len() || network.next_time().is_some() {
        let until = sends.get(next).map_or(Time::NEVER, |send| send.0);
        network.advance(until, &mut delivered);
        for delivery in delivered.drain(..) {
            let (_, from, to, bytes) = sends[delivery.message.0 as usize];
            let in_order = expected.get_mut(&(from, to)).unwrap();
            assert_eq!(in_order.remove(0), delivery.message.0, "lost, twice, or out of order");
            assert!(delivery.first_byte <= delivery.last_byte);
            assert!(*last.get(&to).unwrap_or(&Time(0)) <= delivery.first_byte.max(delivery.last_byte));
            last.insert(to, delivery.last_byte);
            if delivery.last_byte.0 as f64 <= until_s * 1e12 {
                received += bytes;
            }
        }
        if next < sends.len() && network.next_time().is_none_or(|time| time > until) {
            let (at, from, to, bytes) = sends[next];
            expected.entry((from, to)).or_default().push(next as u32);
            network.send(at, MessageId(next as u32), from, to, bytes);
            next += 1;
        }
    }
    assert!(expected.values().all(Vec::is_empty), "lost");
    let counts = network.counts();
    assert_eq!(counts.packets, counts.received);
    assert!(network.is_empty());
    received as f64 / until_s / f64::from(nodes)
}

fn uniform(random: &mut Stream, nodes: u32) -> u32 {
    random.below(nodes.into()) as u32
}

#[test]
fn accepted_load_follows_offered_load_and_never_falls() {
    for topology in
        [Topology::omega(32).unwrap(), Topology::fat_tree(4, 2).unwrap(), Topology::fly(4, 2).unwrap()]
    {
        let nodes = topology.nodes();
        let mut before = 0.0;
        for load in [0.1, 0.3, 0.6, 1.0, 2.0] {
            let accepted = drive(topology.clone(), load, 4e-3, |random, _| uniform(random, nodes));
            assert!(accepted > before * 0.97, "{topology}: {accepted} after {before} at {load}");
            if load < 0.5 {
                // A few messages are still on their way at the end.
                assert!((accepted / (85e6 * load) - 1.0).abs() < 0.15, "{topology}: {accepted} at {load}");
            }
            before = accepted;
        }
    }
}

#[test]
fn hot_spots_do_not_stop_it() {
    let accepted = drive(Topology::omega(64).unwrap(), 2.0, 1e-3, |random, node| {
        if random.chance(0.5) { 0 } else { (node + random.below(64) as u32) % 64 }
    });
    assert!(accepted > 0.0);
}

#[test]
#[ignore = "slow"]
fn slow_twice_the_saturating_load_does_not_stop_it() {
    let shapes = [
        Topology::omega(64),
        Topology::omega(128),
        Topology::fat_tree(4, 3),
        Topology::fat_tree(2, 6),
        Topology::fly(4, 3),
        Topology::mesh(&[8, 8]),
    ];
    for topology in shapes.map(Result::unwrap) {
        let nodes = topology.nodes();
        let name = topology.to_string();
        // 10^8 flit-hops of 2 bytes are about 80,000 packets over 5 channels.
        let accepted = drive(topology, 2.0, 20e-3, |random, _| uniform(random, nodes));
        assert!(accepted > 20e6, "{name}: {accepted}");
    }
}

#[test]
fn a_queue_without_room_for_a_packet_is_refused() {
    let described = Description { chunks: 39, ..described() };
    let error = CentralQueue::new(Topology::omega(16).unwrap(), &link(), &described).unwrap_err();
    assert_eq!(error, CentralQueueError::Chunks { switch: 0, ports: 8, chunks: 40, found: 39 });
}
