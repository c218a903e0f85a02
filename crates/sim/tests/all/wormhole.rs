//! Wormhole and cut-through switching: latency without load by hand, and nothing lost, doubled or out of order with it.

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Duration, Link, Pipeline, Reuse, Wormhole as Description,
};
use pio_sim::kernel::{Model, Stream, Time};
use pio_sim::network::topology::Topology;
use pio_sim::network::traffic::{Arrivals, Pattern, Size, Span, Traffic};
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
    network.advance_through(Time::NEVER, &mut delivered);
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
        (
            "cut-through when empty",
            Description { cut_through: true, reuse: Reuse::TailCredit, ..packets.clone() },
        ),
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

fn dragonfly(routing: pio_machine::DragonflyRouting) -> pio_machine::Dragonfly {
    pio_machine::Dragonfly {
        nodes_per_switch: 2,
        switches_per_group: 3,
        links_per_switch: 1,
        groups: 4,
        routing,
    }
}

fn topologies() -> Vec<Topology> {
    let made = [
        Topology::flat(9),
        Topology::fat_tree(2, 4),
        Topology::fly(3, 2),
        Topology::omega(16),
        Topology::mesh(&[4, 3]),
        Topology::torus(&[5, 4]),
        Topology::dragonfly(&dragonfly(pio_machine::DragonflyRouting::Minimal)),
        Topology::dragonfly(&dragonfly(pio_machine::DragonflyRouting::Valiant)),
        Topology::dragonfly(&dragonfly(pio_machine::DragonflyRouting::Adaptive)),
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

/// Uniform traffic, a message of `flits` flits of the plain description at a time.
fn uniform(load: f64, flits: u64, network: &Wormhole) -> Traffic {
    Traffic {
        pattern: Pattern::Uniform { to_self: true },
        arrivals: Arrivals::Bernoulli { slot: network.cycle() },
        size: Size::Fixed(2 * flits),
        messages_per_s: load * network.capacity_bytes_per_s(2 * flits) / (2 * flits) as f64,
    }
}

fn cycles(count: u64) -> Duration {
    Duration::from_picoseconds(CYCLE * count)
}

/// Accepted load as a share of the links' bandwidth, and mean latency in cycles.
fn measure(topology: &Topology, description: &Description, load: f64, length: u64) -> (f64, f64, bool) {
    let mut network = network(topology, &link(1), description);
    let flits = description.payload / description.flit;
    let span = Span { warm_up: cycles(length / 4), measured: cycles(length) };
    let point = uniform(load, flits, &network).run(&mut network, span, 1).expect("possible");
    (point.accepted_bytes_per_s / 400e6, point.mean_s * 1e12 / CYCLE as f64, point.is_unstable)
}

#[test]
fn inputs_without_channels_saturate_where_heads_of_lines_block() {
    // With one lane a channel is a FIFO: a switch carries 2 - sqrt(2) of its links (Karol, Hluchyj and Morgan 1987), 0.618
    // if it has 8 ports. Between two packets of a lane, the head's route and lane cost 2 cycles, of 22 here.
    let star = Topology::flat(8).expect("a switch");
    let alone = Description { virtual_channels: 1, buffer: 64, payload: 40, ..plain() };
    let (accepted, ..) = measure(&star, &alone, 1.0, 20_000);
    assert!((0.5..0.618).contains(&accepted), "{accepted}");
    // Packets of one flit pay the 3 cycles up to the switch each: a lane passes on no more than a third.
    let short = Description { payload: 2, ..alone };
    let (accepted, ..) = measure(&star, &short, 1.0, 4_000);
    assert!((0.25..0.3334).contains(&accepted), "{accepted}");
    // With many lanes there is nearly always somebody for each output.
    let many = Description { virtual_channels: 32, iterations: 8, ..plain() };
    let (accepted, ..) = measure(&star, &many, 1.0, 3_000);
    assert!(accepted > 0.9, "{accepted}");
}

#[test]
fn waiting_at_low_load_is_that_of_the_queues_on_the_way() {
    // Through one switch: at the sender Bernoulli arrivals of one flit a cycle never wait. At the output, arrivals from N
    // inputs of one cycle each wait (N - 1) / N * rho / (2 (1 - rho)) cycles on average (Karol, Hluchyj and Morgan 1987,
    // output queueing), which virtual channels come close to as long as the load is low.
    let star = Topology::flat(16).expect("a switch");
    let many = Description { virtual_channels: 16, iterations: 4, ..plain() };
    for load in [0.1, 0.2, 0.3] {
        let (_, latency, _) = measure(&star, &many, load, 20_000);
        let without_load = 1.0 + 1.0 + (4.0 + 1.0);
        let expected = 15.0 / 16.0 * load / (2.0 * (1.0 - load));
        let waited = latency - without_load;
        // What waits for its virtual channel or the switch loses a little more.
        assert!(waited > 0.9 * expected && waited < 1.6 * expected + 0.02, "{load}: {waited} for {expected}");
    }
}

#[test]
fn accepted_load_does_not_fall_with_offered_load() {
    for topology in [Topology::fat_tree(4, 3).expect("a tree"), Topology::fly(4, 3).expect("a fly")] {
        let mut most = 0.0_f64;
        let mut latency = 0.0_f64;
        for load in [0.2, 0.5, 0.8, 1.0] {
            let (accepted, mean, is_unstable) = measure(&topology, &plain(), load, 1_500);
            assert!(accepted > 0.98 * most, "{topology} at {load}: {accepted} after {most}");
            assert!(mean > latency, "{topology} at {load}: {mean} after {latency}");
            assert_eq!(is_unstable, load > 0.7, "{topology} at {load}");
            if load < 0.6 {
                assert!((accepted - load).abs() < 0.02, "{topology} at {load}: {accepted}");
            }
            (most, latency) = (most.max(accepted), mean);
        }
    }
}

#[test]
fn a_hot_spot_saturates_where_its_link_is_full() {
    // Each of N - 1 nodes sends a share h of its packets to the hot one, and so does it one of N - 1 of the others: its
    // link is full at load 1 / ((N - 1) h + (1 - h)). Several iterations: with one, an output that was granted in vain is
    // idle for a cycle, and the link is never fuller than nine tenths.
    let matched_well = Description { iterations: 4, ..plain() };
    let trees = [Topology::fat_tree(4, 3).expect("a tree"), Topology::fly(4, 3).expect("a fly")];
    for (topology, share) in trees.iter().flat_map(|topology| [(topology, 0.1), (topology, 0.3)]) {
        let full = 1.0 / (63.0 * share + (1.0 - share));
        for (part, is_full) in [(0.95, false), (1.1, true)] {
            let mut network = network(topology, &link(1), &matched_well);
            let pattern = Pattern::HotSpot { nodes: vec![5], share };
            let traffic = Traffic { pattern, ..uniform(part * full, 1, &network) };
            let span = Span { warm_up: cycles(2_000), measured: cycles(6_000) };
            let point = traffic.run(&mut network, span, 1).expect("possible");
            assert_eq!(point.is_unstable, is_full, "{topology}, {share}, {part} of its load: {point:?}");
            let accepted = point.accepted_bytes_per_s / 400e6 / full;
            // What goes elsewhere is not held up as much.
            let expected = 0.97 * part.min(1.0)..part + 0.02;
            assert!(expected.contains(&accepted), "{topology}, {share}, {part}: {accepted}");
        }
    }
}

#[test]
fn more_channels_and_deeper_buffers_carry_more() {
    let tree = Topology::fat_tree(4, 2).expect("a tree");
    let packets = Description { payload: 10, ..plain() };
    let accepted = |virtual_channels, buffer| {
        let description = Description { virtual_channels, buffer, ..packets.clone() };
        measure(&tree, &description, 1.0, 6_000).0
    };
    let (one, two, eight) = (accepted(1, 8), accepted(2, 8), accepted(8, 8));
    assert!(one < two && two < eight, "{one} {two} {eight}");
    // A credit is back 5 cycles after its flit left: a buffer of 2 of them lets 2 flits go every 5 cycles.
    assert!(accepted(1, 2) < 0.41, "{}", accepted(1, 2));
}

#[test]
fn a_lone_stream_gets_the_whole_link_or_what_its_credits_allow() {
    let star = Topology::flat(2).expect("a switch");
    for (buffer, channels, expected) in
        [(8, 1, 1.0), (5, 1, 1.0), (4, 1, 0.8), (2, 1, 0.4), (1, 1, 0.2), (1, 4, 0.2)]
    {
        let description = Description { payload: 2000, buffer, virtual_channels: channels, ..plain() };
        let mut network = network(&star, &link(1), &description);
        network.send(Time(0), MessageId(0), 0, 1, 2000);
        let delivered = drain(&mut network);
        let cycles = (delivered[0].last_byte.0 - delivered[0].first_byte.0) / CYCLE;
        let rate = 999.0 / cycles as f64;
        assert!((rate - expected).abs() < 0.01, "buffer {buffer}: {rate} flits a cycle, not {expected}");
    }
}

#[test]
fn the_oldest_goes_first_by_age() {
    // Six nodes send ten messages each to a seventh. Each gets at most a third of the link: by age the first three share
    // it until they have done, in turn all six do.
    let star = Topology::flat(7).expect("a switch");
    let late_among_first = |arbitration| {
        let description = Description { arbitration, ..plain() };
        let mut network = network(&star, &link(1), &Description { virtual_channels: 1, ..description });
        for number in 0..60 {
            network.send(Time(0), MessageId(number), number / 10, 6, 2);
        }
        drain(&mut network).iter().take(24).filter(|delivery| delivery.message.0 >= 30).count()
    };
    assert!(late_among_first(Arbitration::Age) <= 4, "{}", late_among_first(Arbitration::Age));
    assert!(late_among_first(Arbitration::RoundRobin) >= 10, "{}", late_among_first(Arbitration::RoundRobin));
}

#[test]
fn headers_and_flits_that_are_not_full_take_their_part_of_a_link() {
    let star = Topology::flat(2).expect("a switch");
    let packets = Description { flit: 16, payload: 50, header: 10, ..plain() };
    let network = network(&star, &link(1), &packets);
    // A flit of 16 bytes takes 40 ns; 60 bytes are 4 flits, 11 bytes are 1.
    for (bytes, flits) in [(50, 4), (100, 8), (101, 9), (1, 1), (6, 1), (7, 2)] {
        let expected = bytes as f64 / (f64::from(flits) * 40e-9);
        assert!((network.capacity_bytes_per_s(bytes) / expected - 1.0).abs() < 1e-9, "{bytes}");
    }
}

#[test]
fn same_seed_same_result() {
    let tree = Topology::fat_tree(4, 2).expect("a tree");
    let run = |seed| {
        let mut network = Wormhole::new(&tree, &link(1), &plain(), seed).expect("possible");
        let span = Span { warm_up: cycles(100), measured: cycles(1000) };
        uniform(0.5, 1, &network).run(&mut network, span, 1).expect("possible")
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn networks_that_cannot_be_are_refused_by_name() {
    let refuse = |topology: &Topology, description: &Description| {
        Wormhole::new(topology, &link(1), description, 1).expect_err("impossible").to_string()
    };
    let torus = Topology::torus(&[5, 5]).expect("a torus");
    let error = refuse(&torus, &Description { virtual_channels: 1, ..plain() });
    assert!(error.contains("1 virtual channels: expected at least 2"), "{error}");
    let error = refuse(&Topology::flat(65).expect("a switch"), &plain());
    assert!(error.contains("switch 0 has 65 ports on one side: expected at most 64"), "{error}");
    let wide = Description { buffer: 1 << 14, ..plain() };
    let error = refuse(&Topology::fly(2, 14).expect("a fly"), &wide);
    assert!(error.contains("with buffers of 16384 flits: expected at most 2^30 virtual channels"), "{error}");
}

/// A message's number says between which nodes it goes, and which it is of those that go there, modulo this.
const TURNS: u32 = 1 << 18;

/// Twice the saturating load until every message has arrived: at least so many flit-hops, and every message once and in
/// order.
fn saturate(topology: &Topology, description: &Description, flit_hops: u64) {
    let mut network = network(topology, &link(1), description);
    let mut stream = Stream::named(1, "saturation");
    let nodes = network.nodes();
    let pairs = (nodes * nodes) as usize;
    let (mut sent, mut arrived) = (vec![0_u32; pairs], vec![0_u32; pairs]);
    let mut delivered = Vec::new();
    let mut check = |delivered: &mut Vec<Delivery>| {
        for delivery in delivered.drain(..) {
            let MessageId(number) = delivery.message;
            let turn = &mut arrived[(number / TURNS) as usize];
            assert_eq!(number % TURNS, *turn % TURNS, "{topology}: lost, doubled or out of order");
            *turn += 1;
        }
    };
    let mut now = Time(0);
    // Every node sends a packet as often as its link can take one: more than twice what the network accepts.
    let interval = description.flits(description.payload) * CYCLE;
    while network.flit_hops() < flit_hops {
        // What waits at the senders is bounded: beyond that, more does not press harder.
        if network.under_way() < 200 * u64::from(nodes) {
            for from in 0..nodes {
                let to = stream.below(nodes.into()) as u32;
                let pair = from * nodes + to;
                let turn = &mut sent[pair as usize];
                let number = pair * TURNS + *turn % TURNS;
                *turn += 1;
                network.send(now, MessageId(number), from, to, description.payload);
            }
        }
        now = now + Duration::from_picoseconds(interval);
        while network.next_time().is_some_and(|time| time < now) {
            network.advance(Time(now.0 - 1), &mut delivered);
        }
        let hops = network.flit_hops();
        assert!(network.next_time().is_some(), "{topology}: deadlock after {hops} flit-hops");
        check(&mut delivered);
    }
    check(&mut drain(&mut network));
    assert_eq!(network.under_way(), 0, "{topology}: deadlock");
    assert_eq!(sent, arrived, "{topology}: lost");
}

#[test]
fn no_deadlock_at_twice_the_saturating_load() {
    for topology in topologies() {
        saturate(&topology, &Description { payload: 10, buffer: 2, ..plain() }, 60_000);
    }
}

/// Ten to the eighth flit-hops at twice the saturating load.
fn saturate_long(topology: Result<Topology, pio_sim::network::topology::TopologyError>) {
    saturate(&topology.expect("possible"), &Description { payload: 10, ..plain() }, 100_000_000);
}

#[test]
#[ignore = "slow"]
fn slow_no_deadlock_in_a_tree() {
    saturate_long(Topology::fat_tree(4, 3));
}

#[test]
#[ignore = "slow"]
fn slow_no_deadlock_in_a_fly() {
    saturate_long(Topology::fly(4, 3));
}

#[test]
#[ignore = "slow"]
fn slow_no_deadlock_in_an_omega_network() {
    saturate_long(Topology::omega(64));
}

#[test]
#[ignore = "slow"]
fn slow_no_deadlock_in_a_mesh() {
    saturate_long(Topology::mesh(&[8, 8]));
}

#[test]
#[ignore = "slow"]
fn slow_no_deadlock_in_a_torus() {
    saturate_long(Topology::torus(&[8, 8]));
}

#[test]
#[ignore = "slow"]
fn slow_no_deadlock_in_a_dragonfly() {
    saturate_long(Topology::dragonfly(&dragonfly(pio_machine::DragonflyRouting::Minimal)));
}

#[test]
#[ignore = "slow"]
fn slow_no_deadlock_in_a_dragonfly_with_detours() {
    saturate_long(Topology::dragonfly(&dragonfly(pio_machine::DragonflyRouting::Valiant)));
}
