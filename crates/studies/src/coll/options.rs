//! What of the study a user can change.

use pio_machine::circuit::Circuit as Switches;
use pio_machine::{Duration, Machine, Switching};
use pio_sim::network::circuit::Circuit;
use pio_sim::network::topology::Topology;
use pio_sim::open_loop::{Distribution, Span};

use crate::coll::placement::{ApplicationMapping, FirstHalf, IoMapping};
use crate::coll::{CollError, ping};

/// The experiments' parameters. The default is what the paper says it ran.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine: its network keeps circuits.
    pub machine: Machine,
    /// Of the random streams.
    pub seed: u64,
    /// What of each run is watched.
    pub window: Span,
    /// How many I/O nodes there are.
    pub io_nodes: u32,
    /// Where they are.
    pub io: Vec<IoMapping>,
    /// Whether applications run on them.
    pub applications: Vec<ApplicationMapping>,
    /// Whose nodes come first, in combined traffic with clustered I/O nodes.
    pub first: Vec<FirstHalf>,
    /// Share of I/O messages whose data go to I/O nodes. All, as the paper's I/O nodes "are only sinks of the I/O traffic"
    /// (section 3.4), whichever part of it stands for reads; the data of the others come from there.
    pub writes: f64,
    /// Of the times between I/O messages.
    pub times: Distribution,
    /// Of the sizes of I/O messages.
    pub sizes: Distribution,
    /// Mean size of I/O messages.
    pub io_bytes: u64,
    /// Size of the compute job's messages.
    pub compute_bytes: u64,
    /// Messages that a process has under way at most.
    pub outstanding: u32,
    /// Loads of the I/O job in combined traffic: of each node, as a part of what a node can inject, ascending.
    pub io_loads: Vec<f64>,
    /// Offered loads of Figures 7 and 8, bytes a second for each I/O node, ascending: Table 1 is of the last ones.
    pub offered_io: Vec<f64>,
    /// Offered loads of Figure 9, bytes a second for each compute node, ascending.
    pub offered_compute: Vec<f64>,
}

/// Bytes a second in a megabyte a second: the paper's are decimal (400 MB/s is a flit of 2 B every 5 ns).
pub const MEGA: f64 = 1e6;

impl Options {
    /// The paper's experiments on this machine.
    pub fn new(machine: Machine) -> Options {
        let mega = |loads: &[u32]| loads.iter().map(|load| f64::from(*load) * MEGA).collect();
        Options {
            machine,
            seed: 1,
            window: Span { warm_up: Duration::from_seconds(0.02), measured: Duration::from_seconds(0.06) },
            io_nodes: 8,
            io: vec![IoMapping::Clustered, IoMapping::Distributed],
            applications: vec![ApplicationMapping::Shared, ApplicationMapping::Dedicated],
            first: vec![FirstHalf::Compute, FirstHalf::Io],
            writes: 1.0,
            times: Distribution::Exponential,
            sizes: Distribution::Exponential,
            io_bytes: 1 << 20,
            compute_bytes: 256 << 10,
            outstanding: 1,
            io_loads: vec![0.1, 0.3, 0.5],
            offered_io: mega(&[50, 100, 150, 200, 250, 300, 350, 400, 600, 1000, 1600]),
            offered_compute: mega(&[40, 80, 100, 120, 140, 170, 200]),
        }
    }
}

/// The network of the machine, to be built anew for every run.
#[derive(Clone, Debug)]
pub struct System {
    topology: Topology,
    link: pio_machine::Link,
    pub(super) switches: Switches,
    /// Bytes a second that a node can inject: a long ping's.
    pub(super) injection: f64,
}

impl System {
    /// # Errors
    /// If the machine's network keeps no circuits, or cannot be.
    pub fn new(machine: &Machine) -> Result<System, CollError> {
        let Switching::Circuit(switches) = &machine.network.switching else {
            return Err(CollError::NoCircuits { machine: machine.name.clone() });
        };
        let topology = Topology::described(&machine.network.topology, machine.nodes.count)?;
        let link = machine.network.link.clone();
        // What can be wrong with a network is found here, once.
        Circuit::new(&topology, &link, switches)?;
        let mut system = System { topology, link, switches: switches.clone(), injection: 0.0 };
        system.injection = ping::bandwidth(&system, 4_000_000, false);
        Ok(system)
    }

    pub(super) fn nodes(&self) -> u32 {
        self.topology.nodes()
    }

    /// Levels of switches that a packet from one node to another climbs: each is a place of contention on the way down.
    pub(super) fn levels(&self, from: u32, to: u32) -> u32 {
        self.topology.hops(from, to) / 2
    }

    pub(super) fn network(&self) -> Circuit {
        self.with(&self.switches)
    }

    /// The same network with other switches and adapters.
    pub(super) fn with(&self, switches: &Switches) -> Circuit {
        Circuit::new(&self.topology, &self.link, switches).expect("this network has been built before")
    }
}
