//! An I/O node by itself under an open load: Figure 6 of Baylor et al. 1995.

use pio_machine::Duration;
use pio_plan::Direction;

use super::node::{IoNode, Use};
use super::request::{Adapter, Between, IoDone, IoNodeError, IoRequest};
use crate::kernel::{self, BatchMeans, Estimate, Model, Simulation, Stream, Time, WarmUp};
use crate::open_loop::{Arrival, Sources};

/// Requests that come at random (exponential times between them), to random places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenLoad {
    /// Requests a second.
    pub rate: f64,
    /// Bytes of each.
    pub bytes: u64,
    /// Bytes that ask for a read.
    pub message: u64,
    /// Probability of a read.
    pub reads: f64,
    /// Probability of a miss.
    pub misses: f64,
    /// How many to complete.
    pub requests: u64,
    /// Of the random numbers.
    pub seed: u64,
}

/// Processing times of requests, seconds, from their coming to their end. Nothing where too few were seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Processing {
    /// Reads that hit.
    pub read_hit: Option<Estimate>,
    /// Reads that missed.
    pub read_miss: Option<Estimate>,
    /// Writes that hit.
    pub write_hit: Option<Estimate>,
    /// Writes that missed.
    pub write_miss: Option<Estimate>,
    /// All of them.
    pub all: Option<Estimate>,
    /// For how long each part of the node was in use.
    pub in_use: Use,
    /// When the last was done.
    pub end: Time,
}

impl OpenLoad {
    /// Runs a node under this load from empty; what comes before the steady state is cut.
    ///
    /// # Errors
    /// If the load makes no sense, or the node cannot serve such requests.
    pub fn run(&self, machine: &pio_machine::IoNode, adapter: Adapter) -> Result<Processing, IoNodeError> {
        self.check()?;
        let node = IoNode::new(machine, adapter);
        let mut run = Run {
            most: self.requests,
            arrivals: Arrivals::new(self, &node),
            node,
            tallies: Tallies::default(),
            done: Vec::new(),
            completed: 0,
            end: Time::default(),
        };
        kernel::run(&mut run)?;
        Ok(run.tallies.processing(run.node.in_use(), run.end))
    }

    fn check(&self) -> Result<(), IoNodeError> {
        let chances = [("reads", self.reads), ("misses", self.misses)];
        for (what, chance) in chances {
            if !(0.0..=1.0).contains(&chance) {
                return Err(IoNodeError::Load { what, found: chance, expected: "a probability from 0 to 1" });
            }
        }
        if !(self.rate > 0.0 && self.rate <= 1e9) {
            let expected = "above 0 and at most 1e9 a second";
            return Err(IoNodeError::Load { what: "rate", found: self.rate, expected });
        }
        Ok(())
    }
}

/// A run under way.
struct Run {
    most: u64,
    arrivals: Arrivals,
    node: IoNode,
    tallies: Tallies,
    /// What the node has done; kept only for its room.
    done: Vec<IoDone>,
    completed: u64,
    /// When the last was done.
    end: Time,
}

/// A request that comes when another is done comes first.
const ARRIVALS: usize = 0;

impl Simulation<2> for Run {
    type Error = IoNodeError;

    fn next_times(&self) -> [Option<Time>; 2] {
        [self.arrivals.source.next_time(), self.node.next_time()]
    }

    fn is_over(&self, _next: Time) -> bool {
        self.completed >= self.most
    }

    fn proceed(&mut self, model: usize, until: Time) -> Result<(), IoNodeError> {
        if model == ARRIVALS {
            let Some(Arrival { now, .. }) = self.arrivals.source.pop() else { return Ok(()) };
            let request = self.arrivals.request(now);
            return self.node.arrive(now, request);
        }
        self.node.advance(until, &mut self.done);
        for IoDone { id, came, done } in self.done.drain(..) {
            self.tallies.add(id, done.since(came));
            self.completed += 1;
            self.end = done;
        }
        Ok(())
    }
}

/// The requests, in the order of their coming. A request's number says its class.
struct Arrivals {
    load: OpenLoad,
    source: Sources,
    times: Stream,
    kinds: Stream,
    places: Stream,
    /// How many places there are, and how far apart.
    count: u64,
    apart: u64,
}

impl Arrivals {
    fn new(load: &OpenLoad, node: &IoNode) -> Arrivals {
        let stream = |name| Stream::named(load.seed, name);
        let (count, apart) = node.places(load.bytes);
        let mut arrivals = Arrivals {
            load: *load,
            source: Sources::new(1, None),
            times: stream("arrivals at the I/O node"),
            kinds: stream("kinds of request"),
            places: stream("places of requests"),
            count,
            apart,
        };
        arrivals.go_on(Time::default());
        arrivals
    }

    fn request(&mut self, now: Time) -> IoRequest {
        self.go_on(now);
        let read = self.kinds.chance(self.load.reads);
        let hit = !self.kinds.chance(self.load.misses);
        IoRequest {
            id: u32::from(read) + 2 * u32::from(hit),
            direction: if read { Direction::Read } else { Direction::Write },
            offset: self.places.below(self.count) * self.apart,
            bytes: self.load.bytes,
            message: if read { self.load.message } else { 0 },
            hit,
            between: Between::NetworkAndDisk,
        }
    }

    fn go_on(&mut self, now: Time) {
        let mean = Duration::from_seconds(1.0 / self.load.rate);
        self.source.go_on(now, 0, self.times.duration_exponential(mean));
    }
}

/// Times by class: write and read that missed, write and read that hit; and all.
struct Tallies {
    classes: [BatchMeans; 4],
    all: BatchMeans,
}

impl Default for Tallies {
    fn default() -> Tallies {
        let empty = || BatchMeans::new(WarmUp::Found);
        Tallies { classes: [empty(), empty(), empty(), empty()], all: empty() }
    }
}

impl Tallies {
    fn add(&mut self, class: u32, time: Duration) {
        self.classes[class as usize % 4].add(time.seconds());
        self.all.add(time.seconds());
    }

    fn processing(self, in_use: Use, end: Time) -> Processing {
        let [write_miss, read_miss, write_hit, read_hit] = self.classes.map(|class| class.estimate());
        Processing { read_hit, read_miss, write_hit, write_miss, all: self.all.estimate(), in_use, end }
    }
}
