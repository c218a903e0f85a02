//! What happens within I/O nodes: means, or a simulation of each.

use pio_machine::Duration;
use pio_plan::Direction;

use pio_sim::io_node::{Adapter, Between, IoDone, IoNode, IoNodeError, IoRequest};
use pio_sim::kernel::{Events, Model, Stream, Time, advance_events};

/// One request, as an I/O node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number, given by whoever asks.
    pub number: u32,
    /// Whether it reads.
    pub is_read: bool,
    /// Whether the cache has what it reads, or room for what it writes.
    pub is_hit: bool,
    /// Its bytes.
    pub bytes: u64,
}

/// What happens within the I/O nodes. They give out the requests that are done, by number, and when.
pub trait IoNodes: Model<Out = (Time, u32)> {
    /// All of a request is at I/O node `node`, counted from 0, at `now`.
    ///
    /// # Errors
    /// If the node cannot serve such a request.
    fn arrive(&mut self, now: Time, node: u32, request: Request) -> Result<(), IoNodeError>;
}

/// I/O nodes that take the same time for all requests of a kind: the second step of the paper's method, whose first step
/// found these times by a model of the I/O node alone.
#[derive(Debug)]
pub struct MeanTimes {
    times: [[Duration; 2]; 2],
    events: Events<u32>,
}

impl MeanTimes {
    /// With these times of reads and writes (first index), hits and misses (second).
    pub fn new(times: [[Duration; 2]; 2]) -> MeanTimes {
        MeanTimes { times, events: Events::new() }
    }
}

impl IoNodes for MeanTimes {
    fn arrive(&mut self, now: Time, _: u32, request: Request) -> Result<(), IoNodeError> {
        let time = self.times[usize::from(!request.is_read)][usize::from(!request.is_hit)];
        self.events.add(now + time, request.number);
        Ok(())
    }
}

impl Model for MeanTimes {
    type Out = (Time, u32);

    fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    fn advance(&mut self, until: Time, done: &mut Vec<(Time, u32)>) {
        let give = |_: &mut MeanTimes, now, number, done: &mut Vec<(Time, u32)>| done.push((now, number));
        advance_events(self, |nodes| &mut nodes.events, give, until, done);
    }
}

/// I/O nodes each of which is simulated, queues and disks, along with the network: no step between them, and no means.
#[derive(Debug)]
pub struct WholeNodes {
    nodes: Vec<IoNode>,
    /// When to look at which node: some of the times are too early, none too late.
    looks: Events<u32>,
    places: Stream,
    /// Bytes that ask for a read.
    message: u64,
    done: Vec<IoDone>,
}

impl WholeNodes {
    /// So many nodes of this kind. Their adapters are those of the network. Requests are for random places, drawn by
    /// `seed`; reads are asked for by messages of `message` bytes.
    pub fn new(machine: &pio_machine::IoNode, count: u32, message: u64, seed: u64) -> WholeNodes {
        WholeNodes {
            nodes: (0..count).map(|_| IoNode::new(machine, Adapter::OfTheNetwork)).collect(),
            looks: Events::new(),
            places: Stream::named(seed, "places of requests"),
            message,
            done: Vec::new(),
        }
    }

    fn look(&mut self, now: Time, node: u32, done: &mut Vec<(Time, u32)>) {
        let there = &mut self.nodes[node as usize];
        if there.next_time() != Some(now) {
            return;
        }
        there.advance_through(now, &mut self.done);
        done.extend(self.done.drain(..).map(|request| (now, request.id)));
        self.look_again(node);
    }

    fn look_again(&mut self, node: u32) {
        if let Some(next) = self.nodes[node as usize].next_time() {
            self.looks.add(next, node);
        }
    }
}

impl IoNodes for WholeNodes {
    fn arrive(&mut self, now: Time, node: u32, request: Request) -> Result<(), IoNodeError> {
        let there = &mut self.nodes[node as usize];
        let before = there.next_time();
        let (count, apart) = there.places(request.bytes);
        there.arrive(
            now,
            IoRequest {
                id: request.number,
                direction: if request.is_read { Direction::Read } else { Direction::Write },
                offset: self.places.below(count) * apart,
                bytes: request.bytes,
                message: if request.is_read { self.message } else { 0 },
                hit: request.is_hit,
                between: Between::NetworkAndDisk,
            },
        )?;
        if there.next_time() != before {
            self.look_again(node);
        }
        Ok(())
    }
}

impl Model for WholeNodes {
    type Out = (Time, u32);

    fn next_time(&self) -> Option<Time> {
        self.looks.next_time()
    }

    fn advance(&mut self, until: Time, done: &mut Vec<(Time, u32)>) {
        advance_events(self, |nodes| &mut nodes.looks, WholeNodes::look, until, done);
    }
}
