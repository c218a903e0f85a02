//! Open-loop synthetic traffic on any network: what it accepts and how long messages take at a given load.
//!
//! Every node sends messages at random times, whether or not the network keeps up; a message's latency is from the time
//! at which it is made, so that waiting at its sender counts (Dally and Towles 2004, section 23.1). Messages made after
//! the warm-up and before the end are measured, and the run goes on with traffic until the last of them has arrived. What
//! is accepted is what arrives between the two.
//!
//! A node that has very many messages under way holds back the next, with its time, so that memory does not grow when
//! the network is saturated.

mod error;
mod gaps;
mod pattern;

pub use crate::open_loop::Span;
pub use error::TrafficError;
pub use pattern::{Pattern, Permutation};

use std::convert::Infallible;

use pio_machine::Duration;

use crate::kernel::{self, BatchMeans, Histogram, Simulation, Slab, Stream, Time, WarmUp};
use crate::network::carrier::{Delivery, MessageId, Network};
use crate::open_loop::{Arrival, Sources};
use gaps::Gaps;
use pattern::Destinations;

/// Messages of one node that a network may have under way: more than its buffers hold of one node, so that a node that
/// holds back has messages waiting all the time.
const MOST_UNDER_WAY: u32 = 1024;

/// A network is unstable if messages made in the measured time exceed those arrived by this share of them, and by
/// [`SLACK`] a node.
const UNSTABLE_SHARE: f64 = 0.02;
const SLACK: u64 = 2;

/// What every node sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Where to.
    pub pattern: Pattern,
    /// When messages are made.
    pub arrivals: Arrivals,
    /// How many bytes a message has.
    pub size: Size,
    /// Messages that each node makes in a second.
    pub messages_per_s: f64,
}

/// The times between the messages of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// In every slot of this length a message with the same probability: at most one a slot, at its beginning.
    Bernoulli {
        /// The slot: a network's cycle, usually.
        slot: Duration,
    },
    /// Exponential.
    Exponential,
    /// Uniform between 0 and twice the mean.
    Uniform,
}

/// How large messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All so many bytes.
    Fixed(u64),
    /// Exponential with a mean of so many bytes, rounded to whole bytes, at least 1.
    Exponential(u64),
}

/// What a network does at one load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPoint {
    /// Bytes of messages that each node makes in a second, on average.
    pub offered_bytes_per_s: f64,
    /// Bytes of messages that arrive in a second, a node on average.
    pub accepted_bytes_per_s: f64,
    /// Mean latency from making to the arrival of the last byte, in seconds.
    pub mean_s: f64,
    /// Half the width of its 95 % confidence interval, in seconds; infinite if too few messages were measured.
    pub half_width_s: f64,
    /// The latency that half of the messages do not exceed.
    pub p50: Duration,
    /// The latency that 99 % of the messages do not exceed.
    pub p99: Duration,
    /// The longest latency.
    pub max: Duration,
    /// Messages whose latency was measured.
    pub messages: u64,
    /// Whether more is offered than accepted: latencies then only tell how long was measured.
    pub is_unstable: bool,
}

impl Traffic {
    /// The mean size of messages in bytes.
    pub fn mean_bytes(&self) -> f64 {
        match self.size {
            Size::Fixed(bytes) | Size::Exponential(bytes) => bytes as f64,
        }
    }

    /// Sends this traffic through `network`, which nothing else uses, and measures it. What is random is drawn from the
    /// run's `seed`.
    ///
    /// # Errors
    /// If the traffic is impossible on a network of so many nodes, or nothing would be measured.
    pub fn run(&self, network: &mut impl Network, span: Span, seed: u64) -> Result<LoadPoint, TrafficError> {
        self.check(network.nodes(), span)?;
        let destinations = Destinations::of(&self.pattern, network.nodes())?;
        let mut run = Run::new(self, destinations, network, span, seed);
        let Ok(()) = kernel::run(&mut run);
        Ok(run.result())
    }

    fn check(&self, nodes: u32, span: Span) -> Result<(), TrafficError> {
        if !(self.messages_per_s > 0.0 && self.messages_per_s <= 1e12) {
            return Err(TrafficError::Rate { found: self.messages_per_s });
        }
        if let Arrivals::Bernoulli { slot } = self.arrivals {
            let probability = slot.seconds() * self.messages_per_s;
            if !(probability > 0.0 && probability <= 1.0) {
                return Err(TrafficError::Slot { slot, found: self.messages_per_s });
            }
        }
        if nodes == 0 || span.measured == Duration::ZERO {
            return Err(TrafficError::Nothing);
        }
        Ok(())
    }
}

/// A run under way.
struct Run<'t, N> {
    traffic: &'t Traffic,
    network: &'t mut N,
    destinations: Destinations,
    gaps: Gaps,
    streams: Vec<Streams>,
    sources: Sources,
    under_way: Slab<Message>,
    from: Time,
    until: Time,
    measured: Measured,
    /// What has arrived; kept only for its room.
    delivered: Vec<Delivery>,
}

/// What a node draws from.
struct Streams {
    times: Stream,
    destinations: Stream,
    sizes: Stream,
}

#[derive(Clone, Copy)]
struct Message {
    made: Time,
    from: u32,
    bytes: u64,
}

struct Measured {
    latencies: Histogram,
    means: BatchMeans,
    made: u64,
    arrived: u64,
    arrived_bytes: u64,
    /// Messages to be measured that are under way.
    awaited: u64,
    was_held: bool,
}

impl Measured {
    fn nothing() -> Measured {
        Measured {
            latencies: Histogram::new(),
            means: BatchMeans::new(WarmUp::Count(0)),
            made: 0,
            arrived: 0,
            arrived_bytes: 0,
            awaited: 0,
            was_held: false,
        }
    }
}

impl<'t, N: Network> Run<'t, N> {
    fn new(
        traffic: &'t Traffic,
        destinations: Destinations,
        network: &'t mut N,
        span: Span,
        seed: u64,
    ) -> Run<'t, N> {
        let nodes = network.nodes();
        let from = Time::default() + span.warm_up;
        let streams = (0..nodes).map(|node| Streams {
            times: Stream::named(seed, &format!("arrivals of node {node}")),
            destinations: Stream::named(seed, &format!("destinations of node {node}")),
            sizes: Stream::named(seed, &format!("sizes of node {node}")),
        });
        let mut run = Run {
            traffic,
            network,
            destinations,
            gaps: Gaps::of(traffic.arrivals, traffic.messages_per_s),
            streams: streams.collect(),
            sources: Sources::new(nodes, Some(MOST_UNDER_WAY)),
            under_way: Slab::new(),
            from,
            until: from + span.measured,
            measured: Measured::nothing(),
            delivered: Vec::new(),
        };
        for node in 0..nodes {
            if run.destinations.sends(node) {
                let first = run.gaps.first(&mut run.streams[node as usize].times);
                run.go_on(Time::default(), node, first);
            }
        }
        run
    }

    /// A node makes its next message, and sends it.
    fn send(&mut self, Arrival { source: node, now, made }: Arrival) {
        let streams = &mut self.streams[node as usize];
        let to = self.destinations.draw(node, &mut streams.destinations);
        let bytes = match self.traffic.size {
            Size::Fixed(bytes) => bytes,
            Size::Exponential(mean) => (streams.sizes.exponential(mean as f64).round() as u64).max(1),
        };
        let gap = self.gaps.next(&mut streams.times);
        if self.is_measured(made) {
            self.measured.made += 1;
            self.measured.awaited += 1;
        }
        let number = self.under_way.insert(Message { made, from: node, bytes });
        self.network.send(now, MessageId(number), node, to, bytes);
        self.go_on(now, node, gap);
    }

    /// A node makes its next message so many picoseconds after the one before.
    fn go_on(&mut self, now: Time, node: u32, gap: u64) {
        let held = self.sources.go_on(now, node, Duration::from_picoseconds(gap));
        self.measured.was_held |= held.is_some_and(|made| self.is_measured(made));
    }

    /// A message has arrived.
    fn take(&mut self, delivery: &Delivery) {
        let Message { made, from, bytes } = self.under_way[delivery.message.0];
        self.under_way.remove(delivery.message.0);
        let arrived = delivery.last_byte;
        if self.is_measured(arrived) {
            self.measured.arrived += 1;
            self.measured.arrived_bytes += bytes;
        }
        if self.is_measured(made) {
            let latency = arrived.since(made).picoseconds();
            self.measured.awaited -= 1;
            self.measured.latencies.record(latency);
            self.measured.means.add(latency as f64);
        }
        self.sources.done(arrived, from);
    }

    fn is_measured(&self, time: Time) -> bool {
        (self.from..self.until).contains(&time)
    }

    fn result(&self) -> LoadPoint {
        let measured = &self.measured;
        let count = self.sources.count();
        let nodes = f64::from(count);
        let seconds = self.until.since(self.from).seconds();
        let senders = (0..count).filter(|node| self.destinations.sends(*node)).count();
        let share = senders as f64 / nodes;
        let estimate = measured.means.estimate();
        let missing = measured.made.saturating_sub(measured.arrived);
        let allowed = (UNSTABLE_SHARE * measured.made as f64) as u64 + SLACK * u64::from(count);
        // Nothing arrives of what is made in that time where nodes are still held by what they made before.
        let is_empty = measured.latencies.count() == 0;
        let latency = |percent| Duration::from_picoseconds(measured.latencies.percentile(percent));
        LoadPoint {
            offered_bytes_per_s: self.traffic.messages_per_s * self.traffic.mean_bytes() * share,
            accepted_bytes_per_s: measured.arrived_bytes as f64 / seconds / nodes,
            mean_s: if is_empty { f64::INFINITY } else { measured.latencies.mean() * 1e-12 },
            half_width_s: estimate.map_or(f64::INFINITY, |estimate| estimate.half_width * 1e-12),
            p50: latency(50.0),
            p99: latency(99.0),
            max: Duration::from_picoseconds(measured.latencies.max()),
            messages: measured.latencies.count(),
            is_unstable: measured.was_held || measured.awaited > 0 || missing > allowed || is_empty,
        }
    }
}

/// What is sent at a time belongs to it: messages are made first, and the network is let on to just before.
const SOURCES: usize = 0;

impl<N: Network> Simulation<2> for Run<'_, N> {
    type Error = Infallible;

    fn next_times(&self) -> [Option<Time>; 2] {
        [self.sources.next_time(), self.network.next_time()]
    }

    /// When all is measured. A network that does not keep up is not waited for longer than it was measured.
    fn is_over(&self, next: Time) -> bool {
        let is_drained = self.measured.awaited == 0;
        next >= self.until && (is_drained || next >= self.until + self.until.since(self.from))
    }

    fn proceed(&mut self, model: usize, until: Time) -> Result<(), Infallible> {
        if model == SOURCES {
            if let Some(arrival) = self.sources.pop() {
                self.send(arrival);
            }
            return Ok(());
        }
        let mut delivered = std::mem::take(&mut self.delivered);
        self.network.advance(until, &mut delivered);
        delivered.drain(..).for_each(|delivery| self.take(&delivery));
        self.delivered = delivered;
        Ok(())
    }
}
