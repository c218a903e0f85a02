//! PIOS: the simulation of a parallel machine's I/O and message traffic of Baylor et al. 1995, section III.
//!
//! Half of the nodes compute. Each of them draws I/O requests for I/O nodes, and messages for the other compute nodes, all
//! destinations equally likely, at times of two Poisson processes. A read is a small request, some time at the I/O node, and
//! a response of the request's size; a write is its data, and some time at the I/O node. What arrives at a compute node is
//! consumed at once, and I/O nodes process all requests on arrival: nobody waits but for the network and within the I/O
//! node.
//!
//! The network is any [`Network`]; what happens within an I/O node is told by [`IoNodes`].

mod io_nodes;
mod placement;
mod traffic;

pub use io_nodes::{IoNodes, MeanTimes, Request, WholeNodes};
pub use placement::{Placement, PlacementError};

use pio_machine::Duration;
use pio_sim::io_node::IoNodeError;
use pio_sim::kernel::{self, BatchMeans, Estimate, Simulation, Slab, Time, WarmUp};
use pio_sim::network::{Delivery, MessageId, Network};

use traffic::{Kind, Traffic};

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Who computes and who does I/O.
    pub placement: Placement,
    /// I/O requests a second of each compute node.
    pub requests_per_s: f64,
    /// Bytes of each.
    pub request_bytes: u64,
    /// Messages a second from each compute node to the others.
    pub messages_per_s: f64,
    /// The rest of the workload.
    pub mix: Mix,
    /// Gives the random numbers.
    pub seed: u64,
}

/// What all scenarios of a study have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// How likely a request is a read.
    pub read_probability: f64,
    /// How likely it misses the I/O node's cache.
    pub miss_ratio: f64,
    /// Bytes of a message that asks for a read.
    pub read_request_bytes: u64,
    /// Bytes of a short message between compute nodes, and of a long one.
    pub message_bytes: [u64; 2],
    /// How likely one is short.
    pub short_probability: f64,
}

impl Mix {
    /// That of Baylor et al. 1995, sections III and IV.
    pub const BAYLOR: Mix = Mix {
        read_probability: 0.67,
        miss_ratio: 0.3,
        read_request_bytes: 200,
        message_bytes: [2048, 32_768],
        short_probability: 0.95,
    };
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// After so many reads, or, without I/O, so many messages.
    pub measurements: u64,
    /// But no later than when so many bytes have been sent.
    pub bytes: u64,
}

/// What was measured: means in seconds. Nothing where fewer than two requests of the kind were completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// From a read's generation to the arrival of its request's first byte at the I/O node.
    pub read_request: Option<Estimate>,
    /// From a response's start at the I/O node to the arrival of its last byte.
    pub read_response: Option<Estimate>,
    /// All of a read, but the time within the I/O node.
    pub read_network: Option<Estimate>,
    /// The time of a read within the I/O node.
    pub read_io_node: Option<Estimate>,
    /// From a write's generation to the arrival of its last byte at the I/O node.
    pub write_network: Option<Estimate>,
    /// The time of a write within the I/O node.
    pub write_io_node: Option<Estimate>,
    /// From a message's generation to the arrival of its last byte.
    pub message: Option<Estimate>,
    /// Simulated time.
    pub time: Duration,
    /// Bytes sent.
    pub bytes: u64,
}

/// Simulates a scenario.
///
/// # Errors
/// If an I/O node cannot serve such requests.
pub fn simulate(
    network: &mut impl Network,
    io_nodes: &mut impl IoNodes,
    scenario: &Scenario,
    length: Length,
) -> Result<Measured, IoNodeError> {
    let mut run = Run::new(network, io_nodes, scenario, length);
    kernel::run(&mut run)?;
    Ok(run.measured())
}

/// A simulation under way.
struct Run<'a, N, I> {
    network: &'a mut N,
    io_nodes: &'a mut I,
    scenario: &'a Scenario,
    length: Length,
    traffic: Traffic,
    /// Everything that is on its way, by number.
    under_way: Slab<UnderWay>,
    /// What has arrived and what is done; kept only for their room.
    delivered: Vec<Delivery>,
    done: Vec<(Time, u32)>,
    now: Time,
    bytes: u64,
    reads: u64,
    messages: u64,
    read_request: BatchMeans,
    read_response: BatchMeans,
    read_network: BatchMeans,
    read_io_node: BatchMeans,
    write_network: BatchMeans,
    write_io_node: BatchMeans,
    message: BatchMeans,
}

/// A request or message on its way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    kind: Kind,
    /// The compute node that generated it, and its destination.
    from: u32,
    to: u32,
    bytes: u64,
    generated: Time,
    /// When its request's first byte, and when all of it, was at the I/O node.
    first_at: Time,
    all_at: Time,
    /// When its response was sent.
    answered: Time,
}

impl<'a, N: Network, I: IoNodes> Run<'a, N, I> {
    fn new(network: &'a mut N, io_nodes: &'a mut I, scenario: &'a Scenario, length: Length) -> Run<'a, N, I> {
        let means = |share: u64| BatchMeans::new(WarmUp::Count(length.measurements / share));
        Run {
            network,
            io_nodes,
            scenario,
            length,
            traffic: Traffic::new(scenario),
            under_way: Slab::new(),
            delivered: Vec::new(),
            done: Vec::new(),
            now: Time(0),
            bytes: 0,
            reads: 0,
            messages: 0,
            read_request: means(20),
            read_response: means(20),
            read_network: means(20),
            read_io_node: means(20),
            write_network: means(40),
            write_io_node: means(40),
            message: means(20),
        }
    }

    /// The next source generates what it has drawn.
    fn generate(&mut self) {
        let Some((now, drawn)) = self.traffic.next() else { return };
        self.now = now;
        let bytes = match drawn.kind {
            Kind::Read { .. } => self.scenario.mix.read_request_bytes,
            Kind::Write { .. } | Kind::Message => drawn.bytes,
        };
        let under_way = UnderWay {
            kind: drawn.kind,
            from: drawn.from,
            to: drawn.to,
            bytes: drawn.bytes,
            generated: now,
            first_at: now,
            all_at: now,
            answered: now,
        };
        let number = self.under_way.insert(under_way);
        self.bytes += bytes;
        self.network.send(now, MessageId(number), drawn.from, drawn.to, bytes);
    }

    /// A message is where it was sent to.
    fn delivered(&mut self, delivery: &Delivery) -> Result<(), IoNodeError> {
        let now = delivery.last_byte;
        self.now = now;
        let number = delivery.message.0;
        let under_way = &mut self.under_way[number];
        let is_answer = under_way.answered > under_way.generated;
        match under_way.kind {
            Kind::Read { .. } if is_answer => {
                let found = *under_way;
                let within = found.answered.since(found.all_at);
                self.read_request.add(found.first_at.since(found.generated).seconds());
                self.read_response.add(now.since(found.answered).seconds());
                self.read_io_node.add(within.seconds());
                self.read_network.add(now.since(found.generated).seconds() - within.seconds());
                self.reads += 1;
                self.under_way.remove(number);
            }
            Kind::Read { is_hit } | Kind::Write { is_hit } => {
                under_way.first_at = delivery.first_byte;
                under_way.all_at = now;
                let is_read = matches!(under_way.kind, Kind::Read { .. });
                let request = Request { number, is_read, is_hit, bytes: under_way.bytes };
                let node = self.scenario.placement.number_of_io_node(under_way.to);
                self.io_nodes.arrive(now, node, request)?;
            }
            Kind::Message => {
                self.message.add(now.since(under_way.generated).seconds());
                self.messages += 1;
                self.under_way.remove(number);
            }
        }
        Ok(())
    }

    /// An I/O node is done with a request.
    fn processed(&mut self, now: Time, number: u32) {
        self.now = now;
        let under_way = &mut self.under_way[number];
        match under_way.kind {
            Kind::Read { .. } => {
                under_way.answered = now;
                self.bytes += under_way.bytes;
                self.network.send(now, MessageId(number), under_way.to, under_way.from, under_way.bytes);
            }
            Kind::Write { .. } | Kind::Message => {
                self.write_network.add(under_way.all_at.since(under_way.generated).seconds());
                self.write_io_node.add(now.since(under_way.all_at).seconds());
                self.under_way.remove(number);
            }
        }
    }

    fn measured(&self) -> Measured {
        Measured {
            read_request: self.read_request.estimate(),
            read_response: self.read_response.estimate(),
            read_network: self.read_network.estimate(),
            read_io_node: self.read_io_node.estimate(),
            write_network: self.write_network.estimate(),
            write_io_node: self.write_io_node.estimate(),
            message: self.message.estimate(),
            time: self.now.since(Time(0)),
            bytes: self.bytes,
        }
    }
}

/// The network first: it must not be behind when something is sent.
const NETWORK: usize = 0;
const IO_NODES: usize = 1;

impl<N: Network, I: IoNodes> Simulation<3> for Run<'_, N, I> {
    type Error = IoNodeError;

    fn next_times(&self) -> [Option<Time>; 3] {
        [self.network.next_time(), self.io_nodes.next_time(), self.traffic.next_time()]
    }

    fn is_over(&self, _next: Time) -> bool {
        let measured = if self.scenario.requests_per_s > 0.0 { self.reads } else { self.messages };
        measured >= self.length.measurements || self.bytes >= self.length.bytes
    }

    fn proceed(&mut self, model: usize, until: Time) -> Result<(), IoNodeError> {
        match model {
            NETWORK => {
                let mut delivered = std::mem::take(&mut self.delivered);
                self.network.advance(until, &mut delivered);
                delivered.drain(..).try_for_each(|delivery| self.delivered(&delivery))?;
                self.delivered = delivered;
            }
            IO_NODES => {
                let mut done = std::mem::take(&mut self.done);
                self.io_nodes.advance(until, &mut done);
                done.drain(..).for_each(|(now, number)| self.processed(now, number));
                self.done = done;
            }
            _ => self.generate(),
        }
        Ok(())
    }
}
