//! Switches with virtual channels and credits: uniform traffic on 64-node networks, with all statistics on.

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Duration, Link, Pipeline, Reuse, Wormhole as Description,
};
use pio_sim::network::topology::{Topology, TopologyError};
use pio_sim::network::traffic::{Arrivals, Pattern, Size, Span, Traffic};
use pio_sim::network::wormhole::Wormhole;

use crate::measure::{Part, against_bare_loop};

pub(crate) const PART: Part = Part { name: "network", run };

/// Bytes of a flit, and a second: a cycle is 1 ns.
const FLIT: u64 = 8;
const BANDWIDTH: u64 = 8_000_000_000;

/// A network at a load.
struct Case {
    topology: fn() -> Result<Topology, TopologyError>,
    flits: u64,
    load: f64,
    cycles: u64,
}

fn run() {
    let tree = || Topology::fat_tree(4, 3);
    let fly = || Topology::fly(4, 3);
    let large = || Topology::fat_tree(16, 3);
    let cases = [
        Case { topology: tree, flits: 1, load: 0.3, cycles: 10_000 },
        Case { topology: tree, flits: 20, load: 0.3, cycles: 10_000 },
        Case { topology: tree, flits: 1, load: 0.01, cycles: 300_000 },
        Case { topology: tree, flits: 1, load: 1.0, cycles: 3_000 },
        Case { topology: fly, flits: 1, load: 0.3, cycles: 10_000 },
        Case { topology: large, flits: 1, load: 0.3, cycles: 2_000 },
    ];
    for case in cases {
        let what = |nodes: u32| format!("{nodes} nodes, {} flits a packet, load {}", case.flits, case.load);
        let Ok(topology) = (case.topology)() else { continue };
        let name = what(topology.nodes());
        against_bare_loop(&name, "packets", || case.measure(&topology).0);
        against_bare_loop(&name, "flit-hops", || case.measure(&topology).1);
    }
}

impl Case {
    /// Packets measured, and flit-hops.
    fn measure(&self, topology: &Topology) -> (u64, u64) {
        let bandwidth = Bandwidth::from_bytes_per_second(BANDWIDTH);
        let link = Link { bandwidth, latency: Duration::from_picoseconds(1000) };
        let Ok(mut network) = Wormhole::new(topology, &link, &description(self.flits), 1) else {
            return (0, 0);
        };
        let traffic = Traffic {
            pattern: Pattern::Uniform { to_self: true },
            arrivals: Arrivals::Bernoulli { slot: network.cycle() },
            size: Size::Fixed(FLIT * self.flits),
            messages_per_s: self.load * BANDWIDTH as f64 / (FLIT * self.flits) as f64,
        };
        let measured = Duration::from_picoseconds(1000 * self.cycles);
        let point = traffic.run(&mut network, Span { warm_up: Duration::ZERO, measured }, 1);
        (point.map_or(0, |point| point.messages), network.flit_hops())
    }
}

/// Four virtual channels of eight flits, one cycle a stage.
fn description(flits: u64) -> Description {
    Description {
        flit: FLIT,
        payload: FLIT * flits,
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
