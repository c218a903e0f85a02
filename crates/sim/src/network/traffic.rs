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

pub use error::TrafficError;
pub use pattern::{Pattern, Permutation};

use pio_machine::Duration;

use crate::kernel::{BatchMeans, Events, Histogram, Slab, Stream, Time, WarmUp};
use crate::network::carrier::{Delivery, MessageId, Network};
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

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Simulated time that is not measured, at the start.
    pub warm_up: Duration,
    /// Simulated time that is.
    pub measured: Duration,
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
        let mut run = Run::new(self, destinations, network.nodes(), span, seed);
        run.carry_out(network);
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
struct Run<'t> {
    traffic: &'t Traffic,
    destinations: Destinations,
    gaps: Gaps,
    sources: Vec<Source>,
    /// When which node makes its next message.
    coming: Events<u32>,
    under_way: Slab<Message>,
    from: Time,
    until: Time,
    measured: Measured,
}

/// A node as a sender.
struct Source {
    /// When it makes its next message.
    next: Time,
    times: Stream,
    destinations: Stream,
    sizes: Stream,
    under_way: u32,
    /// Whether it holds back its next message.
    is_holding: bool,
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

impl<'t> Run<'t> {
    fn new(traffic: &'t Traffic, destinations: Destinations, nodes: u32, span: Span, seed: u64) -> Run<'t> {
        let from = Time::default() + span.warm_up;
        let sources = (0..nodes).map(|node| Source {
            next: Time::default(),
            times: Stream::named(seed, &format!("arrivals of node {node}")),
            destinations: Stream::named(seed, &format!("destinations of node {node}")),
            sizes: Stream::named(seed, &format!("sizes of node {node}")),
            under_way: 0,
            is_holding: false,
        });
        let mut run = Run {
            traffic,
            destinations,
            gaps: Gaps::of(traffic.arrivals, traffic.messages_per_s),
            sources: sources.collect(),
            coming: Events::new(),
            under_way: Slab::new(),
            from,
            until: from + span.measured,
            measured: Measured::nothing(),
        };
        for node in 0..nodes {
            if run.destinations.sends(node) {
                run.plan(node);
            }
        }
        run
    }

    fn carry_out(&mut self, network: &mut impl Network) {
        let mut delivered = Vec::new();
        loop {
            let next = self.coming.next_time().unwrap_or(Time::NEVER);
            // What is sent at a time belongs to it: the network is let on to just before.
            let now = network.next_time().unwrap_or(Time::NEVER).min(next);
            if self.is_over(now) {
                return;
            }
            if now < next {
                network.advance(Time(next.0 - 1), &mut delivered);
                for delivery in delivered.drain(..) {
                    self.take(&delivery);
                }
            } else if let Some((now, node)) = self.coming.pop() {
                self.send(network, now, node);
            }
        }
    }

    /// Whether all is measured at `now`. A network that does not keep up is not waited for longer than it was measured.
    fn is_over(&self, now: Time) -> bool {
        let is_drained = self.measured.awaited == 0;
        now >= self.until && (is_drained || now >= self.until + self.until.since(self.from))
    }

    /// A node makes its next message, and sends it.
    fn send(&mut self, network: &mut impl Network, now: Time, node: u32) {
        let source = &mut self.sources[node as usize];
        let made = source.next;
        let to = self.destinations.draw(node, &mut source.destinations);
        let bytes = match self.traffic.size {
            Size::Fixed(bytes) => bytes,
            Size::Exponential(mean) => (source.sizes.exponential(mean as f64).round() as u64).max(1),
        };
        source.under_way += 1;
        let message = Message { made, from: node, bytes };
        if self.is_measured(made) {
            self.measured.made += 1;
            self.measured.awaited += 1;
        }
        let number = self.under_way.insert(message);
        network.send(now, MessageId(number), node, to, bytes);
        let source = &mut self.sources[node as usize];
        source.next = made + Duration::from_picoseconds(self.gaps.next(&mut source.times));
        self.plan_after(node, now);
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
        let source = &mut self.sources[from as usize];
        source.under_way -= 1;
        if source.is_holding {
            source.is_holding = false;
            self.plan_after(from, arrived);
        }
    }

    /// Plans a node's first message.
    fn plan(&mut self, node: u32) {
        let source = &mut self.sources[node as usize];
        source.next = Time(self.gaps.first(&mut source.times));
        self.plan_after(node, Time::default());
    }

    /// Plans a node's next message, which cannot be sent before `now`, if the node need not hold it back.
    fn plan_after(&mut self, node: u32, now: Time) {
        let source = &mut self.sources[node as usize];
        if source.under_way < MOST_UNDER_WAY {
            self.coming.add(source.next.max(now), node);
        } else {
            source.is_holding = true;
            self.measured.was_held |= source.next >= self.from && source.next < self.until;
        }
    }

    fn is_measured(&self, time: Time) -> bool {
        (self.from..self.until).contains(&time)
    }

    fn result(&self) -> LoadPoint {
        let measured = &self.measured;
        let nodes = self.sources.len() as f64;
        let seconds = self.until.since(self.from).seconds();
        let senders = (0..self.sources.len() as u32).filter(|node| self.destinations.sends(*node)).count();
        let share = senders as f64 / nodes;
        let estimate = measured.means.estimate();
        let missing = measured.made.saturating_sub(measured.arrived);
        let allowed = (UNSTABLE_SHARE * measured.made as f64) as u64 + SLACK * self.sources.len() as u64;
        let latency = |percent| Duration::from_picoseconds(measured.latencies.percentile(percent));
        LoadPoint {
            offered_bytes_per_s: self.traffic.messages_per_s * self.traffic.mean_bytes() * share,
            accepted_bytes_per_s: measured.arrived_bytes as f64 / seconds / nodes,
            mean_s: measured.latencies.mean() * 1e-12,
            half_width_s: estimate.map_or(f64::INFINITY, |estimate| estimate.half_width * 1e-12),
            p50: latency(50.0),
            p99: latency(99.0),
            max: Duration::from_picoseconds(measured.latencies.max()),
            messages: measured.latencies.count(),
            is_unstable: measured.was_held || measured.awaited > 0 || missing > allowed,
        }
    }
}
