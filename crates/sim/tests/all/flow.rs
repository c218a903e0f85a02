//! The flow level against its definition, by hand, and against a naive filling.

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Congestion, Dragonfly, DragonflyRouting, Duration, FatTree,
    FlowRoutes, GraphSwitch, Link, Pipeline, Reuse, Wormhole,
};
use pio_sim::kernel::{Model, Time};
use pio_sim::network::flow::FlowNetwork;
use pio_sim::network::topology::Topology;
use pio_sim::network::{Delivery, MessageId, Network};
use proptest::prelude::*;

/// 1 byte a nanosecond.
const BANDWIDTH: u64 = 1_000_000_000;
const LATENCY: u64 = 100_000;

fn network(topology: &Topology, routes: FlowRoutes) -> FlowNetwork {
    let bandwidth = Bandwidth::from_bytes_per_second(BANDWIDTH);
    FlowNetwork::new(topology.clone(), bandwidth, Duration::from_picoseconds(LATENCY), routes)
}

/// All that arrives until nothing is under way.
fn run(network: &mut FlowNetwork) -> Vec<Delivery> {
    let mut delivered = Vec::new();
    network.advance_through(Time::NEVER, &mut delivered);
    delivered
}

fn ns(nanoseconds: u64) -> Time {
    Time(nanoseconds * 1000)
}

#[test]
fn a_message_alone_takes_its_hops_and_its_bytes() {
    let topology = Topology::fat_tree(4, 3).unwrap();
    for (to, hops) in [(1, 2), (4, 4), (63, 6)] {
        let mut network = network(&topology, FlowRoutes::Static);
        network.send(ns(50), MessageId(7), 0, to, 1000);
        let expected = Delivery {
            message: MessageId(7),
            first_byte: ns(50 + 100 * hops),
            last_byte: ns(50 + 100 * hops + 1000),
        };
        assert_eq!(run(&mut network), [expected]);
    }
}

#[test]
fn a_message_without_bytes_takes_its_hops() {
    let mut network = network(&Topology::flat(2).unwrap(), FlowRoutes::Static);
    network.send(ns(0), MessageId(0), 0, 1, 0);
    let expected = Delivery { message: MessageId(0), first_byte: ns(200), last_byte: ns(200) };
    assert_eq!(run(&mut network), [expected]);
}

#[test]
fn what_takes_longer_than_time_is_counted_does_not_leave_the_network_at_rest() {
    let topology = Topology::flat(2).unwrap();
    let mut network = network(&topology, FlowRoutes::Static);
    network.send(ns(0), MessageId(0), 0, 1, u64::MAX);
    assert!(network.next_time().is_some());
    let arrivals: Vec<Time> = run(&mut network).iter().map(|delivery| delivery.last_byte).collect();
    assert_eq!(arrivals, [Time::NEVER]);
    assert_eq!(network.next_time(), None);
}

#[test]
fn two_that_meet_at_a_receiver_have_half_each_until_one_is_done() {
    let mut network = network(&Topology::flat(3).unwrap(), FlowRoutes::Static);
    network.send(ns(0), MessageId(0), 0, 2, 1000);
    network.send(ns(0), MessageId(1), 1, 2, 3000);
    let last: Vec<Time> = run(&mut network).iter().map(|delivery| delivery.last_byte).collect();
    // 1000 bytes each in 2000 ns, then 2000 at full speed.
    assert_eq!(last, [ns(2200), ns(4200)]);
}

/// Bertsekas and Gallager's kind of example: what one flow cannot use, the others of its channel get.
#[test]
fn what_a_flow_cannot_use_the_others_get() {
    let mut network = network(&Topology::flat(6).unwrap(), FlowRoutes::Static);
    // Three into node 5: a third each. One of these comes from node 0, which has one more: that one gets two thirds.
    for (message, (from, to)) in [(0, 5), (1, 5), (2, 5), (0, 4)].into_iter().enumerate() {
        network.send(ns(0), MessageId(message as u32), from, to, 1_000_000);
    }
    network.advance(ns(0), &mut Vec::new());
    for ((from, to), share) in
        [((0, 5), 1.0 / 3.0), ((1, 5), 1.0 / 3.0), ((2, 5), 1.0 / 3.0), ((0, 4), 2.0 / 3.0)]
    {
        let rate = network.rate(from, to).unwrap() / BANDWIDTH as f64;
        assert!((rate - share).abs() < 1e-12, "{from} to {to}: {rate}");
    }
}

#[test]
fn messages_of_a_pair_follow_each_other() {
    let mut network = network(&Topology::flat(2).unwrap(), FlowRoutes::Static);
    for (message, bytes) in [1000, 0, 1, 500, 0].into_iter().enumerate() {
        network.send(ns(0), MessageId(message as u32), 0, 1, bytes);
    }
    let delivered = run(&mut network);
    let found: Vec<(u32, Time, Time)> =
        delivered.iter().map(|one| (one.message.0, one.first_byte, one.last_byte)).collect();
    let expected = [
        (0, ns(200), ns(1200)),
        (1, ns(1200), ns(1200)),
        (2, ns(1200), ns(1201)),
        (3, ns(1201), ns(1701)),
        (4, ns(1701), ns(1701)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_message_to_oneself_arrives() {
    for topology in [Topology::fat_tree(2, 2).unwrap(), Topology::fly(2, 2).unwrap()] {
        let mut network = network(&topology, FlowRoutes::Spread);
        network.send(ns(0), MessageId(0), 3, 3, 10);
        assert_eq!(run(&mut network).len(), 1);
    }
}

/// Every node of a fat tree sends across its top at full speed at once, if the flows are spread; static routes meet.
#[test]
fn a_fat_tree_has_full_bisection_if_flows_are_spread() {
    let topology = Topology::fat_tree(4, 3).unwrap();
    let last = |routes| {
        let mut network = network(&topology, routes);
        for from in 0..64 {
            // The digits of the number reversed: the worst for routes that go by digits.
            let to = from % 4 * 16 + from / 4 % 4 * 4 + from / 16;
            network.send(ns(0), MessageId(from), from, to, 10_000);
        }
        run(&mut network).last().unwrap().last_byte
    };
    assert_eq!(last(FlowRoutes::Spread), ns(10_600));
    // Where all digits are the same, the node sends to itself; the three others of its switch share one way up.
    assert_eq!(last(FlowRoutes::Static), ns(30_600));
}

/// Two switches with a link between them: nodes 0 and 1, and nodes 2 to 9.
fn two_switches() -> Topology {
    let switch = |name: &str, nodes: std::ops::Range<u32>, links: &[&str]| GraphSwitch {
        name: name.to_owned(),
        nodes: nodes.collect(),
        links: links.iter().map(|link| (*link).to_owned()).collect(),
    };
    Topology::graph(&[switch("a", 0..2, &["b"]), switch("b", 2..10, &[])]).unwrap()
}

/// Node 0 and seven nodes of the other switch all send to node 2. Node 1 sends to node 3, which nobody else does, over the link
/// that node 0 needs too.
const HOT_SPOT: [(u32, u32); 9] = [(0, 2), (3, 2), (4, 2), (5, 2), (6, 2), (7, 2), (8, 2), (9, 2), (1, 3)];

#[test]
fn a_victim_of_a_hot_spot_keeps_its_share_only_with_congestion_control() {
    // Eight share a receiver. The victim has what they leave of the link; held up, it waits behind the one of them there.
    for (congestion, victim) in [(Congestion::Controlled, 7.0 / 8.0), (Congestion::Spreads, 1.0 / 8.0)] {
        let mut network = network(&two_switches(), FlowRoutes::Static).with_congestion(congestion);
        for (message, (from, to)) in (0..).zip(HOT_SPOT) {
            network.send(ns(0), MessageId(message), from, to, 1_000_000);
        }
        network.advance(ns(0), &mut Vec::new());
        for (from, to) in HOT_SPOT {
            let expected = if (from, to) == (1, 3) { victim } else { 1.0 / 8.0 };
            let rate = network.rate(from, to).unwrap() / BANDWIDTH as f64;
            assert!((rate - expected).abs() < 1e-12, "{congestion:?}, {from} to {to}: {rate}");
        }
        // Whoever is held up has all of its bytes through in the end.
        assert_eq!(run(&mut network).len(), HOT_SPOT.len());
    }
}

/// Five switches in a row. One flow goes along all of them and meets a hot spot's flow at the second link and another's at the
/// last; a victim shares the third with it alone. It is held up by what waits behind, whichever flow came first.
#[test]
fn the_order_of_flows_does_not_matter_where_congestion_spreads() {
    let switch = |name: &str, nodes: std::ops::Range<u32>, links: &[&str]| GraphSwitch {
        name: name.to_owned(),
        nodes: nodes.collect(),
        links: links.iter().map(|link| (*link).to_owned()).collect(),
    };
    let topology = Topology::graph(&[
        switch("a", 0..1, &["b"]),
        switch("b", 1..2, &["c"]),
        switch("c", 2..11, &["d"]),
        switch("d", 11..13, &["e"]),
        switch("e", 13..22, &[]),
    ])
    .unwrap();
    let (along, victim) = ((0, 21), (10, 12));
    let near: Vec<_> = [1].into_iter().chain(3..10).map(|from| (from, 2)).collect();
    let far: Vec<_> = [11].into_iter().chain(14..21).map(|from| (from, 13)).collect();
    for hot in [[near.clone(), far.clone()].concat(), [far, near].concat()] {
        let mut network = network(&topology, FlowRoutes::Static).with_congestion(Congestion::Spreads);
        for (message, (from, to)) in (0..).zip(hot.into_iter().chain([along, victim])) {
            network.send(ns(0), MessageId(message), from, to, 1_000_000);
        }
        network.advance(ns(0), &mut Vec::new());
        for (from, to) in [along, victim] {
            let rate = network.rate(from, to).unwrap() / BANDWIDTH as f64;
            assert!((rate - 1.0 / 8.0).abs() < 1e-12, "{from} to {to}: {rate}");
        }
    }
}

/// The same with packets: those of one virtual channel wait behind each other, as in a network without congestion control.
#[test]
fn packets_of_one_virtual_channel_hold_up_a_victim_as_much() {
    const SENT: u32 = 2000;
    let description = Wormhole {
        flit: 1,
        payload: 8,
        header: 0,
        virtual_channels: 1,
        buffer: 16,
        cut_through: false,
        reuse: Reuse::TailSent,
        allocator: Allocator::Islip,
        iterations: 1,
        arbitration: Arbitration::RoundRobin,
        choice: Choice::Static,
        pipeline: Pipeline {
            injection: 1,
            routing: 1,
            vc_allocation: 1,
            switch_allocation: 1,
            switch_traversal: 1,
            credit: 1,
        },
    };
    let link = Link {
        bandwidth: Bandwidth::from_bytes_per_second(BANDWIDTH),
        latency: Duration::from_picoseconds(1000),
    };
    let topology = two_switches();
    let mut network = pio_sim::network::wormhole::Wormhole::new(&topology, &link, &description, 1).unwrap();
    // Messages of one packet, more than get through in the time.
    for round in 0..SENT {
        for (pair, (from, to)) in (0..).zip(HOT_SPOT) {
            network.send(ns(0), MessageId(round * 9 + pair), from, to, 8);
        }
    }
    let mut delivered = Vec::new();
    network.advance_through(ns(20_000), &mut delivered);
    let arrived =
        |pair: u32| delivered.iter().filter(|delivery| delivery.message.0 % 9 == pair).count() as f64;
    let into_hot_spot: f64 = (0..8).map(arrived).sum();
    let (hot, victim) = (arrived(0), arrived(8));
    // Each of the eight has its eighth of what the hot spot takes in, and the victim as much; to within its start.
    assert!((hot / into_hot_spot - 1.0 / 8.0).abs() < 0.01, "{hot} of {into_hot_spot}");
    assert!((victim / hot - 1.0).abs() < 0.1, "{victim} beside {hot}");
}

/// A leaf with half as many links up as down: its nodes get half of theirs when all send out of it.
#[test]
fn an_oversubscribed_leaf_shares_its_links_up() {
    let shape = FatTree { downlinks: vec![8, 4], uplinks: vec![4] };
    let topology = Topology::tree(&shape).unwrap();
    for routes in [FlowRoutes::Static, FlowRoutes::Spread] {
        let mut network = network(&topology, routes);
        for node in 0..8 {
            network.send(ns(0), MessageId(node), node, 8 + node, 1_000_000);
        }
        network.advance(ns(0), &mut Vec::new());
        for node in 0..8 {
            let rate = network.rate(node, 8 + node).unwrap() / BANDWIDTH as f64;
            assert!((rate - 0.5).abs() < 1e-12, "{routes:?}, node {node}: {rate}");
        }
    }
}

/// The definition, word by word: all rates grow by what the fullest channel still has room for.
fn naive_rates(topology: &Topology, pairs: &[(u32, u32)]) -> Vec<f64> {
    let routes: Vec<Vec<usize>> = pairs
        .iter()
        .map(|(from, to)| topology.route(*from, *to).iter().map(|id| id.0 as usize).collect())
        .collect();
    let mut rates = vec![0.0; pairs.len()];
    let mut left = vec![1.0; topology.channels().len()];
    let mut open: Vec<usize> = (0..pairs.len()).collect();
    while !open.is_empty() {
        let mut crossing = vec![0; left.len()];
        for flow in &open {
            for channel in &routes[*flow] {
                crossing[*channel] += 1;
            }
        }
        let room = |channel: usize| left[channel] / f64::from(crossing[channel]);
        let used = (0..left.len()).filter(|channel| crossing[*channel] > 0);
        let step = used.map(room).fold(f64::INFINITY, f64::min);
        for flow in &open {
            rates[*flow] += step;
            for channel in &routes[*flow] {
                left[*channel] -= step;
            }
        }
        open.retain(|flow| routes[*flow].iter().all(|channel| left[*channel] > 1e-9));
    }
    rates
}

fn shapes() -> Vec<Topology> {
    vec![
        Topology::flat(9).unwrap(),
        Topology::fat_tree(2, 4).unwrap(),
        Topology::fat_tree(4, 2).unwrap(),
        Topology::fly(3, 2).unwrap(),
        Topology::omega(32).unwrap(),
        Topology::torus(&[4, 4]).unwrap(),
        Topology::mesh(&[3, 5]).unwrap(),
    ]
}

/// Small groups: many pairs share the straight way from group to group, so that flows often go by a third one.
fn adaptive_dragonfly() -> Topology {
    let shape = Dragonfly {
        nodes_per_switch: 2,
        switches_per_group: 2,
        links_per_switch: 1,
        groups: 3,
        routing: DragonflyRouting::Adaptive,
    };
    Topology::dragonfly(&shape).unwrap()
}

#[test]
fn a_message_on_a_shorter_way_does_not_overtake() {
    let topology = adaptive_dragonfly();
    // Of the first group's nodes to the next group's: which pair finds its way full.
    for routes in [FlowRoutes::Static, FlowRoutes::Spread] {
        let mut overtaken = false;
        for (from, to) in (0..4).flat_map(|from| (4..8).map(move |to| (from, to))) {
            let mut network = network(&topology, routes);
            // Others are before the pair's first message on the straight way, and are gone when its second one leaves.
            for (number, other) in (0..4).filter(|other| *other != from).enumerate() {
                network.send(ns(0), MessageId(10 + number as u32), other, to ^ 1, 20);
            }
            network.send(ns(0), MessageId(0), from, to, 100);
            let mut delivered = Vec::new();
            network.advance_through(ns(150), &mut delivered);
            network.send(ns(150), MessageId(1), from, to, 0);
            delivered.extend(run(&mut network));
            let of_pair: Vec<&Delivery> =
                delivered.iter().filter(|delivery| delivery.message.0 < 2).collect();
            assert_eq!(of_pair.iter().map(|delivery| delivery.message.0).collect::<Vec<_>>(), [0, 1]);
            assert!(of_pair[1].last_byte >= of_pair[0].last_byte);
            overtaken |= of_pair[1].last_byte == of_pair[0].last_byte;
        }
        assert!(overtaken, "{routes:?}: a second message that went a shorter way waits for the first");
    }
}

proptest! {
    /// After every batch of changes, rates are those that the naive filling finds from nothing.
    #[test]
    fn rates_are_max_min_fair_after_any_changes(
        shape in 0..7_usize,
        steps in prop::collection::vec((0..64_u32, 0..64_u32, 1..2000_u64, 0..800_u64), 1..120),
    ) {
        let topology = &shapes()[shape];
        let nodes = topology.nodes();
        let mut network = network(topology, FlowRoutes::Static);
        let (mut now, mut delivered) = (Time::default(), Vec::new());
        for (number, (from, to, bytes, pause)) in steps.into_iter().enumerate() {
            // Half of the messages come at the same time as the one before.
            let target = now + Duration::from_picoseconds(if pause < 400 { 0 } else { pause * 1000 });
            network.advance_through(target, &mut delivered);
            now = target;
            network.send(now, MessageId(number as u32), from % nodes, to % nodes, bytes);
            network.advance(now, &mut delivered);
            let pairs: Vec<(u32, u32)> = (0..nodes)
                .flat_map(|from| (0..nodes).map(move |to| (from, to)))
                .filter(|(from, to)| network.rate(*from, *to).is_some())
                .collect();
            for ((from, to), expected) in pairs.iter().zip(naive_rates(topology, &pairs)) {
                let rate = network.rate(*from, *to).unwrap() / BANDWIDTH as f64;
                prop_assert!((rate - expected).abs() < 1e-7, "{} to {}: {} not {}", from, to, rate, expected);
            }
        }
    }

    /// Nothing is lost or doubled, a pair's messages keep their order, none is faster than alone, no channel carries more
    /// than it can.
    #[test]
    fn every_message_arrives_once_in_order_and_not_too_early(
        shape in 0..8_usize,
        spread in any::<bool>(),
        messages in prop::collection::vec((0..64_u32, 0..64_u32, 0..5000_u64, 0..900_u64), 1..150),
    ) {
        let topology = &shapes().into_iter().chain([adaptive_dragonfly()]).nth(shape).unwrap();
        let nodes = topology.nodes();
        let mut network = network(topology, if spread { FlowRoutes::Spread } else { FlowRoutes::Static });
        let (mut now, mut delivered, mut sent) = (Time::default(), Vec::new(), Vec::new());
        for (number, (from, to, bytes, pause)) in messages.into_iter().enumerate() {
            now = now + Duration::from_picoseconds(pause * 1000);
            network.advance_through(now, &mut delivered);
            let (from, to) = (from % nodes, to % nodes);
            network.send(now, MessageId(number as u32), from, to, bytes);
            sent.push((now, from, to, bytes));
        }
        delivered.extend(run(&mut network));
        prop_assert_eq!(delivered.len(), sent.len());
        let mut seen = vec![false; sent.len()];
        let mut last_of_pair = std::collections::BTreeMap::new();
        let mut into = vec![(Time::NEVER, Time::default(), 0); nodes as usize];
        let mut before = Time::default();
        for Delivery { message, first_byte, last_byte } in delivered {
            prop_assert!(!std::mem::replace(&mut seen[message.0 as usize], true));
            prop_assert!(before <= last_byte);
            before = last_byte;
            let (start, from, to, bytes) = sent[message.0 as usize];
            let alone = u64::from(topology.hops(from, to)) * LATENCY;
            prop_assert!(first_byte >= Time(start.0 + alone));
            prop_assert!(last_byte.0 >= first_byte.0 + bytes * 1000);
            prop_assert!(last_of_pair.insert((from, to), message.0).is_none_or(|last| last < message.0));
            let carried = &mut into[to as usize];
            *carried = (carried.0.min(first_byte), carried.1.max(last_byte), carried.2 + bytes);
        }
        for (first, last, bytes) in into.into_iter().filter(|(.., bytes)| *bytes > 0) {
            // Bytes that are on their channel at the same time arrive apart, if their ways are of other lengths.
            prop_assert!(last.0 - first.0 + 12 * LATENCY >= bytes * 1000);
        }
    }
}
