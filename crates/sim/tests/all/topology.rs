//! Topologies against what must hold of each.

use pio_machine::{Dragonfly, DragonflyRouting, FatTree, GraphSwitch};
use pio_sim::network::topology::{ChannelId, Device, Topology, TopologyError};

/// One of each kind, small enough for all pairs.
fn all() -> Vec<Topology> {
    vec![
        Topology::flat(7).unwrap(),
        Topology::fat_tree(2, 4).unwrap(),
        Topology::fat_tree(4, 3).unwrap(),
        Topology::fat_tree(5, 2).unwrap(),
        Topology::fat_tree(3, 1).unwrap(),
        tree(&[6, 4], &[3]),
        tree(&[4, 3, 2], &[2, 1]),
        tree(&[2, 3, 5], &[3, 4]),
        Topology::fly(4, 3).unwrap(),
        Topology::fly(2, 5).unwrap(),
        Topology::fly(3, 1).unwrap(),
        Topology::omega(16).unwrap(),
        Topology::omega(32).unwrap(),
        Topology::omega(64).unwrap(),
        Topology::omega(128).unwrap(),
        Topology::mesh(&[5]).unwrap(),
        Topology::mesh(&[4, 3, 2]).unwrap(),
        Topology::mesh(&[1, 6]).unwrap(),
        Topology::torus(&[8]).unwrap(),
        Topology::torus(&[4, 5]).unwrap(),
        Topology::torus(&[3, 2, 4]).unwrap(),
        leaf_spine(),
        ring_of_switches(),
    ]
}

fn tree(downlinks: &[u32], uplinks: &[u32]) -> Topology {
    Topology::tree(&FatTree { downlinks: downlinks.to_vec(), uplinks: uplinks.to_vec() }).unwrap()
}

fn switch(name: &str, nodes: impl IntoIterator<Item = u32>, links: &[&str]) -> GraphSwitch {
    let links = links.iter().map(|link| (*link).to_owned()).collect();
    GraphSwitch { name: name.to_owned(), nodes: nodes.into_iter().collect(), links }
}

fn leaf_spine() -> Topology {
    let leaves =
        (0..4).map(|leaf| switch(&format!("leaf-{leaf}"), leaf * 3..leaf * 3 + 3, &["one", "two", "two"]));
    Topology::graph(&leaves.chain([switch("one", [], &[]), switch("two", [], &[])]).collect::<Vec<_>>())
        .unwrap()
}

/// Three around: every route is the shortest.
fn ring_of_switches() -> Topology {
    let names = ["a", "b", "c"];
    let ring = (0..3).map(|at| switch(names[at], [2 * at as u32, 2 * at as u32 + 1], &[names[(at + 1) % 3]]));
    Topology::graph(&ring.collect::<Vec<_>>()).unwrap()
}

fn dragonfly(
    nodes_per_switch: u32,
    switches_per_group: u32,
    links_per_switch: u32,
    groups: u32,
    routing: DragonflyRouting,
) -> Topology {
    let shape = Dragonfly { nodes_per_switch, switches_per_group, links_per_switch, groups, routing };
    Topology::dragonfly(&shape).unwrap()
}

/// Those whose routes need not be the shortest there are.
fn not_shortest() -> Vec<Topology> {
    use DragonflyRouting::{Adaptive, Minimal, Valiant};
    let around = |at: u32| switch(&format!("s{at}"), [at], &[&format!("s{}", (at + 1) % 7)]);
    vec![
        dragonfly(2, 4, 2, 9, Minimal),
        dragonfly(1, 3, 2, 4, Minimal),
        dragonfly(2, 1, 3, 2, Minimal),
        dragonfly(1, 4, 1, 3, Valiant),
        dragonfly(2, 4, 2, 9, Valiant),
        dragonfly(2, 4, 2, 9, Adaptive),
        Topology::graph(&(0..7).map(around).collect::<Vec<_>>()).unwrap(),
    ]
}

fn devices(topology: &Topology) -> Vec<Device> {
    let nodes = (0..topology.nodes()).map(Device::Node);
    nodes.chain((0..topology.switches()).map(Device::Switch)).collect()
}

/// Fewest channels from every device to `to`, by breadth first search against the channels.
fn distances(topology: &Topology, to: u32) -> std::collections::BTreeMap<Device, u32> {
    let mut found = std::collections::BTreeMap::from([(Device::Node(to), 0)]);
    let mut queue = std::collections::VecDeque::from([Device::Node(to)]);
    while let Some(device) = queue.pop_front() {
        // Nobody goes through a node.
        if matches!(device, Device::Node(node) if node != to) {
            continue;
        }
        for id in topology.incoming(device) {
            let from = topology.channel(*id).from.device;
            if !found.contains_key(&from) {
                found.insert(from, found[&device] + 1);
                queue.push_back(from);
            }
        }
    }
    found
}

#[test]
fn every_port_has_one_channel_and_every_channel_its_ports() {
    for topology in all().into_iter().chain(not_shortest()) {
        let mut seen = vec![0; topology.channels().len()];
        for device in devices(&topology) {
            for (number, id) in topology.outgoing(device).iter().enumerate() {
                let from = topology.channel(*id).from;
                assert_eq!((from.device, usize::from(from.number)), (device, number), "{topology}");
                seen[id.0 as usize] += 1;
            }
            for (number, id) in topology.incoming(device).iter().enumerate() {
                let to = topology.channel(*id).to;
                assert_eq!((to.device, usize::from(to.number)), (device, number), "{topology}");
                seen[id.0 as usize] += 1;
            }
        }
        assert!(seen.iter().all(|times| *times == 2), "{topology}");
        for node in 0..topology.nodes() {
            assert_eq!(topology.outgoing(Device::Node(node)).len(), 1, "{topology}");
            assert_eq!(topology.incoming(Device::Node(node)).len(), 1, "{topology}");
        }
    }
}

#[test]
fn both_directions_of_a_link_have_the_same_port() {
    for topology in
        all().into_iter().chain(not_shortest()).filter(|topology| !topology.to_string().contains("-fly"))
    {
        for channel in topology.channels() {
            let back = topology.outgoing(channel.to.device)[usize::from(channel.to.number)];
            let back = topology.channel(back);
            assert_eq!((back.from, back.to), (channel.to, channel.from), "{topology}");
        }
    }
}

#[test]
fn every_route_arrives_by_the_fewest_channels() {
    for topology in all() {
        for to in 0..topology.nodes() {
            let distances = distances(&topology, to);
            for from in 0..topology.nodes() {
                let route = topology.route(from, to);
                let first = topology.channel(route[0]);
                assert_eq!(first.from.device, Device::Node(from), "{topology}");
                for pair in route.windows(2) {
                    let (one, next) = (topology.channel(pair[0]), topology.channel(pair[1]));
                    assert_eq!(one.to.device, next.from.device, "{topology}: {from} to {to}");
                }
                let last = topology.channel(route[route.len() - 1]);
                assert_eq!(last.to.device, Device::Node(to), "{topology}: from {from}");
                assert_eq!(route.len() as u32, 1 + distances[&first.to.device], "{topology}: {from} to {to}");
            }
        }
    }
}

#[test]
fn every_candidate_is_a_step_nearer_and_the_static_port_is_one() {
    let mut candidates = Vec::new();
    for topology in all() {
        for to in 0..topology.nodes() {
            let distances = distances(&topology, to);
            let switches = 0..topology.switches();
            // A switch that no route to the destination crosses has nothing to say.
            for switch in switches.filter(|switch| distances.contains_key(&Device::Switch(*switch))) {
                let device = Device::Switch(switch);
                topology.candidates(switch, to, &mut candidates);
                assert!(candidates.contains(&topology.port(switch, to)), "{topology}");
                for port in &candidates {
                    let id = topology.outgoing(device)[usize::from(*port)];
                    let next = topology.channel(id).to.device;
                    assert_eq!(distances[&next] + 1, distances[&device], "{topology}: {device:?} to {to}");
                }
            }
        }
    }
}

#[test]
fn no_channel_waits_for_itself() {
    for topology in all().into_iter().chain(not_shortest()) {
        assert_eq!(waits_in_a_circle(&topology), None, "{topology}");
    }
}

/// A channel and class that waits, over others, for itself: from all pairs' adaptive routes.
fn waits_in_a_circle(topology: &Topology) -> Option<(ChannelId, u8)> {
    let classes = usize::from(topology.classes());
    let mut waits = vec![std::collections::BTreeSet::new(); topology.channels().len() * classes];
    let mut candidates = Vec::new();
    for to in 0..topology.nodes() {
        let mut pending: std::collections::BTreeSet<(u32, usize)> = std::collections::BTreeSet::new();
        let mut seen = pending.clone();
        for from in 0..topology.nodes() {
            let id = topology.outgoing(Device::Node(from))[0];
            let Device::Switch(switch) = topology.channel(id).to.device else { unreachable!() };
            pending.insert((switch, id.0 as usize * classes));
        }
        while let Some((switch, held)) = pending.pop_first() {
            if !seen.insert((switch, held)) {
                continue;
            }
            topology.candidates(switch, to, &mut candidates);
            for port in &candidates {
                let id = topology.outgoing(Device::Switch(switch))[usize::from(*port)];
                let class = usize::from(topology.class(switch, *port, to));
                assert!(class < classes, "{topology}");
                let wanted = id.0 as usize * classes + class;
                waits[held].insert(wanted);
                if let Device::Switch(next) = topology.channel(id).to.device {
                    pending.insert((next, wanted));
                }
            }
        }
    }
    circle(&waits).map(|vertex| (ChannelId((vertex / classes) as u32), (vertex % classes) as u8))
}

/// A vertex that is left when those that wait for none are taken away again and again.
fn circle(waits: &[std::collections::BTreeSet<usize>]) -> Option<usize> {
    let mut waited_for = vec![0; waits.len()];
    for wanted in waits.iter().flatten() {
        waited_for[*wanted] += 1;
    }
    let mut free: Vec<usize> = (0..waits.len()).filter(|vertex| waited_for[*vertex] == 0).collect();
    while let Some(vertex) = free.pop() {
        for wanted in &waits[vertex] {
            waited_for[*wanted] -= 1;
            if waited_for[*wanted] == 0 {
                free.push(*wanted);
            }
        }
    }
    waited_for.iter().position(|times| *times > 0)
}

/// How many of all pairs' static routes use the busiest channel between switches, over the mean of those in use there.
fn imbalance(topology: &Topology) -> f64 {
    let mut routes = vec![0_u32; topology.channels().len()];
    for from in 0..topology.nodes() {
        for to in 0..topology.nodes() {
            for id in topology.route(from, to) {
                routes[id.0 as usize] += 1;
            }
        }
    }
    let between = topology.channels().iter().zip(&routes).filter(|(channel, _)| {
        matches!((channel.from.device, channel.to.device), (Device::Switch(_), Device::Switch(_)))
    });
    let routes: Vec<u32> = between.map(|(_, routes)| *routes).collect();
    let mean = f64::from(routes.iter().sum::<u32>()) / routes.len() as f64;
    f64::from(*routes.iter().max().unwrap()) / mean
}

#[test]
fn static_routes_spread_evenly() {
    for (topology, most) in [
        (Topology::fat_tree(4, 3).unwrap(), 1.6),
        (Topology::fly(4, 3).unwrap(), 1.0),
        (Topology::omega(16).unwrap(), 1.0),
        (Topology::omega(32).unwrap(), 1.2),
        (Topology::omega(64).unwrap(), 1.4),
        (Topology::omega(128).unwrap(), 1.2),
    ] {
        assert!(imbalance(&topology) <= most, "{topology}: {}", imbalance(&topology));
    }
}

/// Valiant's routes with the class that each takes: none ever goes back to a lower one, and no channel and class waits
/// for itself, by whatever group they go.
#[test]
fn detours_do_not_wait_in_a_circle() {
    let topology = dragonfly(1, 3, 2, 5, DragonflyRouting::Valiant);
    let classes = usize::from(topology.classes());
    let mut waits = vec![std::collections::BTreeSet::new(); topology.channels().len() * classes];
    for from in 0..topology.nodes() {
        for to in 0..topology.nodes() {
            for draw in 0..30 {
                let mut waypoint = topology.waypoint(from, to, draw);
                let mut phase = 0;
                let mut id = topology.outgoing(Device::Node(from))[0];
                let mut held = id.0 as usize * classes;
                let mut last_class = 0;
                while let Device::Switch(switch) = topology.channel(id).to.device {
                    if waypoint.is_some_and(|waypoint| topology.is_past(switch, waypoint)) {
                        (waypoint, phase) = (None, 1);
                    }
                    let heading = waypoint.unwrap_or(to);
                    let port = topology.port(switch, heading);
                    let class = topology.class(switch, port, heading) + phase;
                    assert!(class >= last_class && usize::from(class) < classes);
                    last_class = class;
                    id = topology.outgoing(Device::Switch(switch))[usize::from(port)];
                    let wanted = id.0 as usize * classes + usize::from(class);
                    waits[held].insert(wanted);
                    held = wanted;
                }
                assert_eq!(topology.channel(id).to.device, Device::Node(to));
            }
        }
    }
    assert_eq!(circle(&waits), None);
}

#[test]
fn a_ring_without_classes_would_wait_in_a_circle() {
    let topology = Topology::torus(&[5]).unwrap();
    let mut waits = vec![std::collections::BTreeSet::new(); topology.channels().len()];
    for from in 0..5 {
        for to in 0..5 {
            for pair in topology.route(from, to).windows(2) {
                waits[pair[0].0 as usize].insert(pair[1].0 as usize);
            }
        }
    }
    assert!(circle(&waits).is_some(), "the test would find a circle");
}

#[test]
fn minimal_routes_of_a_dragonfly_cross_one_link_between_groups() {
    for groups in [3, 5, 9] {
        let topology = dragonfly(2, 4, 2, groups, DragonflyRouting::Minimal);
        let group = |device| match device {
            Device::Node(node) => node / 8,
            Device::Switch(switch) => switch / 4,
        };
        for from in 0..topology.nodes() {
            for to in 0..topology.nodes() {
                let route = topology.route(from, to);
                let ends = |id: &ChannelId| topology.channel(*id);
                let between =
                    route.iter().map(ends).filter(|one| group(one.from.device) != group(one.to.device));
                assert_eq!(between.count(), usize::from(from / 8 != to / 8));
                assert!(route.len() <= 5);
            }
        }
    }
}

#[test]
fn valiant_routes_reach_every_other_group_equally_often() {
    let topology = dragonfly(2, 4, 2, 9, DragonflyRouting::Valiant);
    let mut times = [0; 9];
    for draw in 0..7 * 100 {
        times[topology.waypoint(0, 40, draw).unwrap() as usize / 8] += 1;
    }
    assert_eq!(times, [0, 100, 100, 100, 100, 0, 100, 100, 100]);
    assert_eq!(topology.waypoint(0, 7, 3), None, "within a group, nobody goes round");
}

/// More switches than nodes: 17 levels of 2^16.
#[test]
fn a_tall_k_ary_tree_is_built() {
    assert_eq!(Topology::fat_tree(2, 17).unwrap().switches(), 17 << 16);
}

/// Around seven switches, up*/down* forbids one turn: some routes are longer than the shortest, but none is lost.
#[test]
fn routes_that_are_not_the_shortest_arrive() {
    for topology in not_shortest() {
        for to in 0..topology.nodes() {
            for from in 0..topology.nodes() {
                let route = topology.route(from, to);
                let last = topology.channel(route[route.len() - 1]).to.device;
                assert_eq!(last, Device::Node(to), "{topology}: from {from}");
                assert!(route.len() <= 8, "{topology}: {from} to {to}");
            }
        }
    }
}

#[test]
fn a_graph_that_cannot_be_is_refused_by_name() {
    let message = |switches: &[GraphSwitch]| Topology::graph(switches).unwrap_err().to_string();
    let (a, b) = (switch("a", [0], &["b"]), switch("b", [1], &[]));
    assert_eq!(
        message(&[a.clone(), switch("c", [1], &[])]),
        "graph: switch a has a link to b, which is no switch of this network"
    );
    assert_eq!(
        message(&[a.clone(), b.clone(), switch("lone", [2], &[])]),
        "graph: no way from switch a to switch lone (expected links that connect all switches)"
    );
    assert!(message(&[a.clone(), a.clone()]).contains("is on switches a and a"));
    assert!(message(&[a.clone(), switch("b", [0], &[])]).contains("node 0 is on switches b and a"));
    assert!(message(&[a.clone(), switch("b", [3], &[])]).contains("node 1 is on no switch"));
    assert!(message(&[switch("a", [0], &["a"])]).contains("switch a has a link to itself"));
    assert!(message(&[switch("a", [0], &[]), switch("a", [1], &[])]).contains("two switches are called a"));
    assert!(message(&[switch("a", [], &[])]).contains("nodes = 0: expected at least 1"));
    assert!(matches!(Topology::graph(&[]), Err(TopologyError::Size { .. })));
}

#[test]
fn numbers_out_of_range_are_refused() {
    for error in [
        Topology::flat(0),
        Topology::flat(65_536),
        Topology::fat_tree(1, 3),
        Topology::fat_tree(4, 0),
        Topology::fat_tree(4, 11),
        Topology::fly(1024, 3),
        Topology::omega(48),
        Topology::mesh(&[]),
        Topology::mesh(&[4, 0]),
        Topology::torus(&[1 << 11, 1 << 11]),
    ] {
        assert!(matches!(error, Err(TopologyError::Size { .. })), "{error:?}");
    }
}

#[test]
fn every_device_is_in_the_picture() {
    for topology in all().into_iter().chain(not_shortest()) {
        let svg = topology.svg();
        let count = |what: &str| svg.matches(what).count();
        let twice = if topology.to_string().contains("-fly") { 2 } else { 1 };
        assert_eq!(count("<circle"), topology.nodes() as usize * twice, "{topology}");
        assert_eq!(count("class=\"switch\""), topology.switches() as usize, "{topology}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{topology}");
    }
}

/// Sixty-five thousand nodes take a quarter of a million links, and their routes no room at all.
#[test]
#[ignore = "slow"]
fn slow_large_networks_have_routes() {
    let shape = Dragonfly {
        nodes_per_switch: 16,
        switches_per_group: 32,
        links_per_switch: 8,
        groups: 200,
        routing: DragonflyRouting::Minimal,
    };
    for topology in [
        Topology::fat_tree(16, 4).unwrap(),
        Topology::torus(&[32, 32, 64]).unwrap(),
        Topology::dragonfly(&shape).unwrap(),
    ] {
        let nodes = topology.nodes();
        for step in 0..nodes {
            let (from, to) = (step.wrapping_mul(2_654_435_761) % nodes, step);
            let route = topology.route(from, to);
            assert_eq!(topology.channel(route[route.len() - 1]).to.device, Device::Node(to));
        }
    }
}
