//! The study of Baylor, Benveniste and Hsu (1995): parallel I/O on a massively parallel machine, with and without other
//! traffic.
//!
//! The paper's method has two steps: a queueing model of one I/O node gives the mean time of each kind of request at each
//! rate ([`io_node_times`]); these are then what I/O nodes take in the simulation of the machine ([`crate::pios`]). A
//! [`Point`] is one such simulation; [`plots()`] are the paper's figures, [`statements()`] what its text says, beside what is
//! computed. `papers/baylor-1995/README.md` says what was calibrated on what.

mod io_node;
mod plots;
mod points;
mod rates;
mod statements;
mod tables;

use std::collections::BTreeMap;

use pio_machine::{Machine, MachineError, Switching};
use pio_sim::io_node::IoNodeError;
use pio_sim::kernel::Estimate;
use pio_sim::network::central_queue::{CentralQueue, CentralQueueError};
use pio_sim::network::topology::{Topology, TopologyError};
use rayon::prelude::*;
use thiserror::Error;

use crate::pios::{self, Length, Measured, Mix, Placement, PlacementError, Scenario, WholeNodes};

pub use io_node::{IoNodeTimes, io_node_times};
pub use plots::{Plot, plots};
pub use rates::{RATE_ROWS, RateRow, loads, rates};
pub use statements::statements;
pub use tables::text;

/// The machine of the study, built in.
pub const MACHINE: &str = "pios-64";

/// A floating point operation takes one cycle of the switches (section III): 75 MHz.
pub const OPERATIONS_PER_S: f64 = 75e6;

/// Request rates are labelled by operations for each byte of requests of this size.
pub const LABEL_BYTES: f64 = 32_768.0;

/// What a message load of 1 is: a byte a cycle of 25 ns (40 MB/s), as the printed rates have it.
pub const LOAD_BYTES_PER_S: f64 = 40e6;

/// Requests a second of a compute node for a label of the paper, floating point operations a byte.
pub fn requests_per_s(flops_per_byte: f64) -> f64 {
    OPERATIONS_PER_S / (flops_per_byte * LABEL_BYTES)
}

/// Messages a second of a compute node for a load.
pub fn messages_per_s(load: f64) -> f64 {
    let [short, long] = Mix::BAYLOR.message_bytes.map(|bytes| bytes as f64);
    let share = Mix::BAYLOR.short_probability;
    load * LOAD_BYTES_PER_S / (share * short + (1.0 - share) * long)
}

/// One simulation. Ordered, so that results are in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Nodes in all.
    pub nodes: u32,
    /// Those that do I/O.
    pub io_nodes: u32,
    /// Floating point operations a byte: the label of the request rate; nothing without I/O.
    pub flops_per_byte: Option<f64>,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Load of messages between compute nodes.
    pub load: f64,
}

impl Point {
    /// Requests a second at each I/O node.
    pub fn rate_at_io_node(&self) -> f64 {
        let compute_nodes = f64::from(self.nodes / 2);
        self.flops_per_byte.map_or(0.0, requests_per_s) * compute_nodes / f64::from(self.io_nodes)
    }

    /// What orders points: the same for the same point.
    fn key(&self) -> Key {
        let label = self.flops_per_byte.map(f64::to_bits);
        Key(self.nodes, self.io_nodes, label, self.request_bytes, self.load.to_bits())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u32, u32, Option<u64>, u64, u64);

/// What a simulation gave. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// In the network.
    pub measured: Measured,
    /// Within an I/O node; nothing without I/O.
    pub io_node: Option<IoNodeTimes>,
    /// Whether I/O nodes were simulated along with the network.
    pub is_integrated: bool,
}

impl Outcome {
    /// A read's time within the I/O node.
    fn read_io_node(&self, mix: &Mix) -> Option<Estimate> {
        if self.is_integrated { self.measured.read_io_node } else { Some(self.io_node?.read(mix.miss_ratio)) }
    }

    /// A write's time within the I/O node.
    fn write_io_node(&self, mix: &Mix) -> Option<Estimate> {
        if self.is_integrated {
            self.measured.write_io_node
        } else {
            Some(self.io_node?.write(mix.miss_ratio))
        }
    }
}

/// What and how much to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Read probability, miss ratio, sizes.
    pub mix: Mix,
    /// Sizes of systems, of I/O parts, labels, request sizes, loads: in place of the paper's, where given.
    pub nodes: Option<Vec<u32>>,
    /// Numbers of I/O nodes.
    pub io_nodes: Option<Vec<u32>>,
    /// Labels of request rates.
    pub flops_per_byte: Option<Vec<f64>>,
    /// Bytes of requests.
    pub request_bytes: Option<Vec<u64>>,
    /// Loads of messages.
    pub loads: Option<Vec<f64>>,
    /// Reads of each simulation, or messages, if there is no I/O.
    pub measurements: u64,
    /// Bytes sent in each simulation at most.
    pub bytes: u64,
    /// Whether to simulate I/O nodes along with the network, in place of the paper's two steps.
    pub is_integrated: bool,
    /// Gives the random numbers.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mix: Mix::BAYLOR,
            nodes: None,
            io_nodes: None,
            flops_per_byte: None,
            request_bytes: None,
            loads: None,
            measurements: 20_000,
            bytes: 4 << 30,
            is_integrated: false,
            seed: 1995,
        }
    }
}

/// Why a study cannot be made.
#[derive(Debug, Error)]
pub enum BaylorError {
    /// The machine is not built in.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// It has no network of the study's kind.
    #[error("machine {machine}: expected network.switching = \"central-queue\" and an [io-node] section")]
    Kind {
        /// Its name.
        machine: String,
    },
    /// There is no such network.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// There is no such network.
    #[error(transparent)]
    Network(#[from] CentralQueueError),
    /// The I/O node cannot serve such requests.
    #[error(transparent)]
    IoNode(#[from] IoNodeError),
    /// The nodes cannot be divided so.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// What simulations gave, by point.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcomes {
    by_key: BTreeMap<Key, Outcome>,
    /// The I/O node alone, by bytes of a request and requests a second.
    io_node: BTreeMap<(u64, u64), Option<IoNodeTimes>>,
    mix: Mix,
}

impl Outcomes {
    /// Of a point, if it was simulated.
    pub fn at(&self, point: Point) -> Option<&Outcome> {
        self.by_key.get(&point.key())
    }

    /// The I/O node's times for requests of so many bytes at so many a second, if they were found.
    pub fn io_node(&self, request_bytes: u64, per_s: f64) -> Option<IoNodeTimes> {
        self.io_node.get(&(request_bytes, per_s.to_bits())).copied().flatten()
    }

    /// A read's processing time at a point: network and I/O node.
    pub fn read_processing(&self, point: Point) -> Option<Estimate> {
        let outcome = self.at(point)?;
        Some(sum(outcome.measured.read_network?, outcome.read_io_node(&self.mix)?))
    }

    /// A write's processing time at a point: network and I/O node.
    pub fn write_processing(&self, point: Point) -> Option<Estimate> {
        let outcome = self.at(point)?;
        Some(sum(outcome.measured.write_network?, outcome.write_io_node(&self.mix)?))
    }

    /// The part of a read's processing time that it spends within the I/O node.
    pub fn io_node_share(&self, point: Point) -> Option<f64> {
        Some(self.at(point)?.read_io_node(&self.mix)?.mean / self.read_processing(point)?.mean)
    }
}

/// Simulates the points that `figures` (6 to 13) need, on all cores. Tells `progress` how many of how many are done.
///
/// # Errors
/// If an option asks for what cannot be.
pub fn simulate(
    options: &Options,
    figures: &[u32],
    progress: &(impl Fn(usize, usize) + Sync),
) -> Result<Outcomes, BaylorError> {
    let machine = Machine::built_in(MACHINE)?;
    let mut points: BTreeMap<Key, Point> = BTreeMap::new();
    for point in figures.iter().flat_map(|figure| points::points(*figure, options)) {
        points.insert(point.key(), point);
    }
    // What cannot be is refused before the first of them is simulated.
    let mut sizes: Vec<u32> = points.values().map(|point| point.nodes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for point in points.values() {
        Placement::new(point.nodes, point.io_nodes)?;
    }
    for nodes in sizes {
        network(&machine, nodes)?;
    }
    let mut rates: Vec<(u64, f64)> = points
        .values()
        .filter(|point| point.flops_per_byte.is_some())
        .map(|point| (point.request_bytes, point.rate_at_io_node()))
        .collect();
    if figures.contains(&6) {
        rates.extend(points::io_node_rates(options));
    }
    rates.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    rates.dedup();
    let all = rates.len() + points.len();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let tell = || progress(1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed), all);

    let io_node: BTreeMap<(u64, u64), Option<IoNodeTimes>> = rates
        .par_iter()
        .map(|&(bytes, per_s)| {
            let found = io_node_times(&machine, options, bytes, per_s)?;
            tell();
            Ok(((bytes, per_s.to_bits()), found))
        })
        .collect::<Result<_, BaylorError>>()?;
    // The longest first, so that no core is left alone with one.
    let mut in_turn: Vec<&Point> = points.values().collect();
    in_turn.sort_by(|a, b| b.load.total_cmp(&a.load));
    let by_key = in_turn
        .par_iter()
        .with_max_len(1)
        .map(|point| {
            let times = io_node.get(&(point.request_bytes, point.rate_at_io_node().to_bits()));
            // Where the I/O node is saturated there is no mean, and no outcome.
            let outcome = match (point.flops_per_byte, times.copied().flatten()) {
                (Some(_), None) => None,
                (_, times) => Some((point.key(), outcome(&machine, options, point, times)?)),
            };
            tell();
            Ok(outcome)
        })
        .filter_map(Result::transpose)
        .collect::<Result<_, BaylorError>>()?;
    Ok(Outcomes { by_key, io_node, mix: options.mix.clone() })
}

/// The network of a machine at another size.
///
/// # Errors
/// If it is of another kind, or there is none of this size.
pub fn network(machine: &Machine, nodes: u32) -> Result<CentralQueue, BaylorError> {
    let Switching::CentralQueue(described) = &machine.network.switching else {
        return Err(BaylorError::Kind { machine: machine.name.clone() });
    };
    let topology = Topology::described(&machine.network.topology, nodes)?;
    Ok(CentralQueue::new(topology, &machine.network.link, described)?)
}

fn outcome(
    machine: &Machine,
    options: &Options,
    point: &Point,
    times: Option<IoNodeTimes>,
) -> Result<Outcome, BaylorError> {
    let scenario = Scenario {
        placement: Placement::new(point.nodes, point.io_nodes)?,
        requests_per_s: point.flops_per_byte.map_or(0.0, requests_per_s),
        request_bytes: point.request_bytes,
        messages_per_s: messages_per_s(point.load),
        mix: options.mix.clone(),
        seed: options.seed,
    };
    let length = Length { measurements: options.measurements, bytes: options.bytes };
    let mut network = network(machine, point.nodes)?;
    let measured = match (&machine.io_node, options.is_integrated) {
        (Some(described), true) => {
            let message = options.mix.read_request_bytes;
            let mut io_nodes = WholeNodes::new(described, point.io_nodes, message, options.seed);
            pios::simulate(&mut network, &mut io_nodes, &scenario, length)?
        }
        _ => {
            let mut io_nodes = times.as_ref().map_or_else(IoNodeTimes::none, IoNodeTimes::as_means);
            pios::simulate(&mut network, &mut io_nodes, &scenario, length)?
        }
    };
    let is_integrated = options.is_integrated && times.is_some();
    Ok(Outcome { measured, io_node: times, is_integrated })
}

/// The sum of two means that do not depend on each other.
fn sum(a: Estimate, b: Estimate) -> Estimate {
    Estimate {
        mean: a.mean + b.mean,
        half_width: a.half_width.hypot(b.half_width),
        counted: a.counted.min(b.counted),
        cut: a.cut.max(b.cut),
        is_settled: a.is_settled && b.is_settled,
    }
}
