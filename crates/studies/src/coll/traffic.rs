//! Traffic of the study: processes, one a node, that move messages to and from others.
//!
//! A process wants to move a message each time its clock says so. It has so many under way at most; the rest waits its
//! turn. Only their number is kept: where to and how long is drawn when a message's turn comes, so that memory does not
//! grow with the backlog.

use std::convert::Infallible;
use std::ops::Range;

use pio_machine::Duration;
use pio_sim::kernel::{self, Estimate, Model, Simulation, Slab, Stream, Time};
use pio_sim::network::circuit::Circuit;
use pio_sim::network::{Delivery, MessageId, Network};
use pio_sim::open_loop::{Arrival, Distribution, Sources, Span};

/// Where a process's messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// Each to one of these nodes, each as likely.
    Random(Vec<u32>),
    /// All to this node.
    Fixed(u32),
}

/// A process that moves messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Where it runs.
    pub node: u32,
    /// To whom.
    pub destinations: Destinations,
    /// Bytes a second that it wants to move.
    pub load: f64,
    /// Mean size of a message.
    pub bytes: f64,
    /// Share of messages that it writes. It reads the others: asks for them with an empty message.
    pub writes: f64,
    /// Of the times between messages.
    pub times: Distribution,
    /// Of the sizes.
    pub sizes: Distribution,
    /// Messages under way at most.
    pub outstanding: u32,
}

/// What became of the messages in the span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Bytes moved for each process in each part of the span.
    pub moved: Vec<[u64; PARTS]>,
    /// Messages that ended in the span.
    pub messages: u64,
    /// Packets through the network, from the beginning.
    pub packets: u64,
}

/// A span in which as much is wanted at this load as in this one at another, if that is longer.
pub(super) fn stretched(span: Span, load: f64, other: f64) -> Span {
    let factor = f64::max(other / load, 1.0);
    Span { measured: Duration::from_seconds(span.measured.seconds() * factor), ..span }
}

/// The measured span is cut into so many parts of the same length, for the confidence interval.
pub(super) const PARTS: usize = 10;

impl Outcome {
    /// Bytes a second that these processes moved together.
    pub fn rate(&self, processes: Range<usize>, span: Span) -> Estimate {
        let part = span.measured.seconds() / PARTS as f64;
        let sum = |number| self.moved[processes.clone()].iter().map(|moved| moved[number]).sum::<u64>();
        let rates: Vec<f64> = (0..PARTS).map(|number| sum(number) as f64 / part).collect();
        Estimate::of_independent(&rates).expect("a span has more than two parts")
    }
}

/// Runs processes on a network in which nothing is under way, from time 0 on.
pub fn run(network: &mut Circuit, processes: &[Process], span: Span, seed: u64) -> Outcome {
    let mut run = Run::new(network, processes, span.warm_up, seed);
    let part = Duration::from_seconds(span.measured.seconds() / PARTS as f64);
    let mut before = run.moved_until(Time(0) + span.warm_up);
    for number in 0..PARTS {
        let moved = run.moved_until(run.end + part);
        for ((outcome, moved), before) in run.outcome.moved.iter_mut().zip(&moved).zip(&before) {
            outcome[number] = moved - before;
        }
        before = moved;
    }
    run.outcome.packets = run.network.totals().packets;
    run.outcome
}

struct Run<'a> {
    network: &'a mut Circuit,
    processes: &'a [Process],
    warm_up: Duration,
    /// Up to when everything happens now, and whether it has.
    end: Time,
    has_ended: bool,
    streams: Vec<Stream>,
    sources: Sources,
    backlog: Vec<u64>,
    under_way: Vec<u32>,
    transfers: Slab<Transfer>,
    /// Bytes of the messages of each process that have ended.
    ended: Vec<u64>,
    /// What has arrived; kept only for its room.
    delivered: Vec<Delivery>,
    outcome: Outcome,
}

#[derive(Clone, Copy)]
struct Transfer {
    process: usize,
    peer: u32,
    bytes: u64,
    /// What has been asked for and not sent.
    is_request: bool,
}

impl<'a> Run<'a> {
    fn new(network: &'a mut Circuit, processes: &'a [Process], warm_up: Duration, seed: u64) -> Run<'a> {
        let stream = |process: &Process| Stream::named(seed, &format!("process on node {}", process.node));
        let mut run = Run {
            network,
            processes,
            warm_up,
            end: Time::default(),
            has_ended: false,
            streams: processes.iter().map(stream).collect(),
            sources: Sources::new(processes.len() as u32, None),
            backlog: vec![0; processes.len()],
            under_way: vec![0; processes.len()],
            transfers: Slab::new(),
            ended: vec![0; processes.len()],
            delivered: Vec::new(),
            outcome: Outcome { moved: vec![[0; PARTS]; processes.len()], ..Outcome::default() },
        };
        for (number, process) in processes.iter().enumerate() {
            let first = process.times.draw_rest(&mut run.streams[number], process.bytes / process.load);
            run.sources.go_on(Time(0), number as u32, Duration::from_seconds(first));
        }
        run
    }

    /// Lets everything happen up to `end`, but for messages that are wanted then. Bytes that have been moved for each process
    /// by then: those of messages that have ended, and of those under way what is there.
    fn moved_until(&mut self, end: Time) -> Vec<u64> {
        (self.end, self.has_ended) = (end, false);
        let Ok(()) = kernel::run(self);
        let mut moved = self.ended.clone();
        for (message, bytes) in self.network.progress() {
            moved[self.transfers[message.0].process] += bytes;
        }
        moved
    }

    fn clock_ticks(&mut self, Arrival { source, now, .. }: Arrival) {
        let number = source as usize;
        let process = &self.processes[number];
        let gap = process.times.draw(&mut self.streams[number], process.bytes / process.load);
        self.sources.go_on(now, source, Duration::from_seconds(gap));
        self.backlog[number] += 1;
        self.go_on(now, number);
    }

    /// Begins what may begin.
    fn go_on(&mut self, now: Time, number: usize) {
        let process = &self.processes[number];
        while self.backlog[number] > 0 && self.under_way[number] < process.outstanding {
            self.backlog[number] -= 1;
            self.under_way[number] += 1;
            let stream = &mut self.streams[number];
            let peer = match &process.destinations {
                Destinations::Random(nodes) => nodes[stream.below(nodes.len() as u64) as usize],
                Destinations::Fixed(node) => *node,
            };
            let bytes = process.sizes.draw(stream, process.bytes).round().max(1.0) as u64;
            let is_request = !stream.chance(process.writes);
            let id = self.transfers.insert(Transfer { process: number, peer, bytes, is_request });
            let sent = if is_request { 0 } else { bytes };
            self.network.send(now, MessageId(id), process.node, peer, sent);
        }
    }

    fn delivered(&mut self, delivery: &Delivery) {
        let id = delivery.message;
        let now = delivery.last_byte;
        let transfer = &mut self.transfers[id.0];
        if transfer.is_request {
            transfer.is_request = false;
            let node = self.processes[transfer.process].node;
            return self.network.send(now, id, transfer.peer, node, transfer.bytes);
        }
        let (process, bytes) = (transfer.process, transfer.bytes);
        self.transfers.remove(id.0);
        self.ended[process] += bytes;
        self.outcome.messages += u64::from(now >= Time(0) + self.warm_up);
        self.under_way[process] -= 1;
        self.go_on(now, process);
    }
}

/// What is under way comes before the end of a part, and what is wanted at that time after it.
const NETWORK: usize = 0;
const END: usize = 1;

impl Simulation<3> for Run<'_> {
    type Error = Infallible;

    fn next_times(&self) -> [Option<Time>; 3] {
        [self.network.next_time(), Some(self.end), self.sources.next_time()]
    }

    fn is_over(&self, _next: Time) -> bool {
        self.has_ended
    }

    fn proceed(&mut self, model: usize, until: Time) -> Result<(), Infallible> {
        match model {
            NETWORK => {
                let mut delivered = std::mem::take(&mut self.delivered);
                self.network.advance(until, &mut delivered);
                delivered.drain(..).for_each(|delivery| self.delivered(&delivery));
                self.delivered = delivered;
            }
            END => self.has_ended = true,
            _ => {
                if let Some(arrival) = self.sources.pop() {
                    self.clock_ticks(arrival);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_stretched_for_little_load_only() {
        let span = Span { warm_up: Duration::ZERO, measured: Duration::from_seconds(0.06) };
        assert_eq!(stretched(span, 100.0, 300.0).measured, Duration::from_seconds(0.18));
        assert_eq!(stretched(span, 600.0, 300.0), span);
    }
}
