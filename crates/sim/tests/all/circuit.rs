//! The circuit-switched network against hand-computed times, and under more load than it can take.

use pio_machine::circuit::{Arbitration, Circuit as Description, Memory, Partners};
use pio_machine::{Duration, Link, Machine, Switching};
use pio_sim::kernel::{Model, Time};
use pio_sim::network::circuit::{Circuit, CircuitError, Priority};
use pio_sim::network::topology::Topology;
use pio_sim::network::{Delivery, MessageId, Network};

const NS: u64 = 1000;

/// The machine of the paper: its links, and its switches and adapters.
fn qsnet() -> (Link, Description) {
    let network = Machine::built_in("qsnet-64").unwrap().network;
    let Switching::Circuit(description) = network.switching else { panic!("circuits") };
    (network.link, description)
}

fn description() -> Description {
    qsnet().1
}

fn network(description: &Description) -> Circuit {
    Circuit::new(&Topology::fat_tree(4, 3).unwrap(), &qsnet().0, description).unwrap()
}

/// Lets everything happen.
fn drain(network: &mut Circuit) -> Vec<Delivery> {
    let mut delivered = Vec::new();
    network.advance_through(Time::NEVER, &mut delivered);
    delivered
}

#[test]
fn no_load_latency_is_the_sum_of_its_parts() {
    // Node 0 to a node under the same switch, under the same switch of the second level, and across the root.
    for (to, switches) in [(1, 1), (4, 3), (15, 3), (16, 5), (63, 5)] {
        // Bytes, and flits of the packets: data and 10 B a transaction and 8 B a packet, in flits of 2 B.
        for (bytes, flits) in [(0, 9), (1, 10), (2, 10), (64, 41), (65, 47), (320, 189)] {
            let mut network = network(&description());
            network.send(Time(0), MessageId(7), 0, to, bytes);
            let head = 2_060 * NS + (switches + 1) * 20 * NS + switches * 35 * NS;
            // 5 ns a flit; but the receiving processor needs 114.3 ns for each transaction.
            let transactions = bytes.div_ceil(64).max(1);
            let body = (flits * 5 * NS).max(transactions * 114_300);
            let expected =
                Delivery { message: MessageId(7), first_byte: Time(head), last_byte: Time(head + body) };
            assert_eq!(drain(&mut network), [expected], "{bytes} B to node {to}");
        }
    }
}

#[test]
fn packets_follow_each_other_at_the_speed_of_the_link() {
    // 1 MiB: 3276 packets of 320 B and one of 256 B, each 10.2 ns behind the other; the last takes 304 B = 152 flits.
    let mut network = network(&description());
    network.send(Time(0), MessageId(0), 0, 1, 1 << 20);
    let head = 2_060 * NS + 2 * 20 * NS + 35 * NS;
    let last = head + 3276 * (945 * NS + 10_200) + 152 * 5 * NS;
    assert_eq!(drain(&mut network)[0].last_byte, Time(last));
}

/// Bytes a second of a long message while as many go the other way.
fn ping(description: &Description, both_ways: bool) -> f64 {
    let mut network = network(description);
    let bytes = 4_000_000;
    network.send(Time(0), MessageId(0), 0, 1, bytes);
    if both_ways {
        network.send(Time(0), MessageId(1), 1, 0, bytes);
    }
    let delivered = drain(&mut network);
    assert_eq!(delivered.len(), 1 + usize::from(both_ways));
    let last = delivered.iter().map(|delivery| delivery.last_byte).max().unwrap();
    bytes as f64 / (last.0 as f64 / 1e12) / 1e6
}

#[test]
fn pings_have_the_bandwidths_they_were_fitted_to() {
    let mut description = description();
    let near = |found: f64, published: f64| {
        assert!((found / published - 1.0).abs() < 0.02, "{found} for {published}");
    };
    near(ping(&description, false), 335.0);
    near(ping(&description, true), 280.0);
    description.adapter.memory = Memory::Main;
    near(ping(&description, false), 200.0);
    near(ping(&description, true), 80.0);
}

/// Numbers that look random, the same in every run.
fn draws(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[test]
fn nothing_is_lost_or_doubled_or_overtaken_under_overload() {
    for arbitration in [Arbitration::PacketAge, Arbitration::SwitchAge] {
        let mut description = description();
        description.arbitration = arbitration;
        description.adapter.slice = 640;
        let mut network = network(&description);
        let mut draw = draws(1);
        let mut sent: Vec<(u32, u32)> = Vec::new();
        let mut delivered = Vec::new();
        let mut packets = 0;
        // Every node sends twice what it can; half of it to four nodes.
        for round in 0..20 {
            let now = Time(round * 5_000 * NS);
            network.advance(now, &mut delivered);
            for from in 0..64 {
                let to = if draw(2) == 0 { draw(4) as u32 * 16 } else { draw(64) as u32 };
                let bytes = if draw(8) == 0 { 0 } else { draw(7000) };
                packets += bytes.div_ceil(320).max(1);
                network.send(now, MessageId(sent.len() as u32), from, to, bytes);
                sent.push((from, to));
            }
        }
        network.advance_through(Time::NEVER, &mut delivered);
        assert_eq!(network.totals().packets, packets);
        assert_eq!(delivered.len(), sent.len());
        let mut last = std::collections::BTreeMap::new();
        for delivery in delivered {
            let pair = sent[delivery.message.0 as usize];
            // A message that has been there twice is not above itself.
            assert!(
                last.insert(pair, delivery.message).is_none_or(|last| last < delivery.message),
                "{pair:?}"
            );
        }
    }
}

#[test]
fn the_same_messages_take_the_same_time_again() {
    let run = || {
        let mut network = network(&description());
        let mut draw = draws(2);
        for number in 0..500 {
            let (from, to) = (draw(64) as u32, draw(64) as u32);
            network.send(Time(0), MessageId(number), from, to, draw(20_000));
        }
        drain(&mut network)
    };
    assert_eq!(run(), run());
}

#[test]
fn two_circuits_share_a_link_evenly() {
    // Nodes 1 and 2 send to node 0: together what the link carries, each half of it.
    let mut network = network(&description());
    let bytes = 1_000_000;
    for from in [1, 2] {
        network.send(Time(0), MessageId(from), from, 0, bytes);
    }
    let delivered = drain(&mut network);
    let times: Vec<f64> = delivered.iter().map(|delivery| delivery.last_byte.0 as f64 / 1e6).collect();
    assert!((times[0] / times[1] - 1.0).abs() < 0.01, "{times:?}");
    let together = 2.0 * bytes as f64 / times[1];
    // 320 of 378 bytes of 400 MB/s.
    assert!((330.0..=338.7).contains(&together), "{together} MB/s");
}

/// Megabytes a second that each of these writers gets of node 0's link.
fn shares(description: &Description, writers: &[u32]) -> Vec<f64> {
    let mut network = network(description);
    for from in writers {
        network.send(Time(0), MessageId(*from), *from, 0, 10_000_000);
    }
    let until = 2_000_000 * NS;
    network.advance(Time(until), &mut Vec::new());
    let mut progress: Vec<(MessageId, u64)> = network.progress().collect();
    progress.sort_by_key(|one| one.0.0);
    progress.iter().map(|(_, bytes)| *bytes as f64 / (until as f64 / 1e6)).collect()
}

#[test]
fn age_in_steps_lies_between_the_two_rules() {
    let writers: Vec<u32> = (1..64).collect();
    let near = |arbitration, age_step| {
        let description = Description { arbitration, age_step, ..description() };
        let shares = shares(&description, &writers);
        shares[..3].iter().sum::<f64>() / 3.0
    };
    let switch = near(Arbitration::SwitchAge, Duration::ZERO);
    let packet = near(Arbitration::PacketAge, Duration::ZERO);
    let stepped = near(Arbitration::PacketAge, description().age_step);
    assert!(packet < stepped && stepped < switch, "{packet} {stepped} {switch}");
}

#[test]
fn a_receiver_that_knows_fewer_partners_than_write_to_it_slows_down() {
    let mut unknown = description();
    unknown.adapter.partners = Some(Partners { known: 3, other: Duration::from_picoseconds(2_000 * NS) });
    let together = |description: &Description, writers: u32| {
        shares(description, &(1..=writers).collect::<Vec<u32>>()).iter().sum::<f64>()
    };
    let mut known = description();
    known.adapter.partners = None;
    assert_eq!(together(&unknown, 3), together(&known, 3));
    assert!(together(&unknown, 12) < 0.9 * together(&known, 12));
}

#[test]
fn who_is_urgent_goes_first() {
    // Five long messages to node 0, and a short one among them: urgent or not.
    let time = |priority| {
        let mut network = network(&description());
        for from in 1..6 {
            network.send(Time(0), MessageId(from), from, 0, 100_000);
        }
        let mut delivered = Vec::new();
        network.advance(Time(50_000 * NS), &mut delivered);
        network.send_with_priority(Time(50_000 * NS), MessageId(9), 9, 0, 3200, priority);
        let all = drain(&mut network);
        all.iter().find(|delivery| delivery.message == MessageId(9)).unwrap().last_byte
    };
    assert!(time(Priority::High) < time(Priority::Normal));
}

#[test]
fn a_network_that_could_deadlock_is_refused() {
    let (link, description) = qsnet();
    let torus = Topology::torus(&[4, 4]).unwrap();
    let refused = Circuit::new(&torus, &link, &description);
    assert!(matches!(refused, Err(CircuitError::Classes { classes: 2, .. })));
}
