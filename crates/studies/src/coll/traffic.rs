//! Traffic of the study: processes, one a node, that move messages to and from others.
//!
//! A process wants to move a message each time its clock says so. It has so many under way at most; the rest waits its
//! turn. Only their number is kept: where to and how long is drawn when a message's turn comes, so that memory does not
//! grow with the backlog.

use std::ops::Range;

use pio_machine::Duration;

use pio_sim::kernel::{Estimate, Events, Stream, Time};
use pio_sim::network::circuit::Circuit;
use pio_sim::network::{Delivery, MessageId, Network};

/// How times and sizes are distributed around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All alike.
    Fixed,
    /// Evenly between nothing and twice the mean.
    Uniform,
    /// Exponentially.
    Exponential,
}

impl Distribution {
    fn draw(self, stream: &mut Stream, mean: f64) -> f64 {
        match self {
            Distribution::Fixed => mean,
            Distribution::Uniform => 2.0 * mean * stream.uniform(),
            Distribution::Exponential => stream.exponential(mean),
        }
    }

    /// What is left of the interval in which one happens to begin: long ones are met more often than short ones, in
    /// proportion to their length. So the first message comes no sooner than others.
    fn draw_rest(self, stream: &mut Stream, mean: f64) -> f64 {
        match self {
            Distribution::Fixed => mean * stream.uniform(),
            // The square root of a uniform number has a density in proportion to itself.
            Distribution::Uniform => 2.0 * mean * stream.uniform().sqrt() * stream.uniform(),
            Distribution::Exponential => stream.exponential(mean),
        }
    }
}

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

/// How long to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// What happens before does not count.
    pub warm_up: Duration,
    /// What happens in so much time after it does.
    pub measured: Duration,
}

/// What became of the messages in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Bytes moved for each process in each part of the window.
    pub moved: Vec<[u64; PARTS]>,
    /// Messages that ended in the window.
    pub messages: u64,
    /// Packets through the network, from the beginning.
    pub packets: u64,
}

impl Window {
    /// A window in which as much is wanted at this load as in this one at another, if that is longer.
    pub fn stretched(self, load: f64, other: f64) -> Window {
        let factor = f64::max(other / load, 1.0);
        Window { measured: Duration::from_seconds(self.measured.seconds() * factor), ..self }
    }
}

/// The window is cut into so many parts of the same length, for the confidence interval.
pub(super) const PARTS: usize = 10;

impl Outcome {
    /// Bytes a second that these processes moved together.
    pub fn rate(&self, processes: Range<usize>, window: Window) -> Estimate {
        let part = window.measured.seconds() / PARTS as f64;
        let sum = |number| self.moved[processes.clone()].iter().map(|moved| moved[number]).sum::<u64>();
        let rates: Vec<f64> = (0..PARTS).map(|number| sum(number) as f64 / part).collect();
        Estimate::of_independent(&rates).expect("a window has more than two parts")
    }
}

/// Runs processes on a network in which nothing is under way, from time 0 on.
pub fn run(network: &mut Circuit, processes: &[Process], window: Window, seed: u64) -> Outcome {
    let mut run = Run::new(processes, window.warm_up, seed);
    let part = Duration::from_seconds(window.measured.seconds() / PARTS as f64);
    let mut until = Time(0) + window.warm_up;
    run.carry_on(until, network);
    let mut before = run.moved(network);
    for number in 0..PARTS {
        until = until + part;
        run.carry_on(until, network);
        let moved = run.moved(network);
        for ((outcome, moved), before) in run.outcome.moved.iter_mut().zip(&moved).zip(&before) {
            outcome[number] = moved - before;
        }
        before = moved;
    }
    run.outcome.packets = network.totals().packets;
    run.outcome
}

struct Run<'a> {
    processes: &'a [Process],
    warm_up: Duration,
    streams: Vec<Stream>,
    clocks: Events<usize>,
    backlog: Vec<u64>,
    under_way: Vec<u32>,
    /// By message number, which is used again.
    transfers: Vec<Transfer>,
    free: Vec<u32>,
    /// Bytes of the messages of each process that have ended.
    ended: Vec<u64>,
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
    fn new(processes: &'a [Process], warm_up: Duration, seed: u64) -> Run<'a> {
        let stream = |process: &Process| Stream::named(seed, &format!("process on node {}", process.node));
        let mut run = Run {
            processes,
            warm_up,
            streams: processes.iter().map(stream).collect(),
            clocks: Events::new(),
            backlog: vec![0; processes.len()],
            under_way: vec![0; processes.len()],
            transfers: Vec::new(),
            free: Vec::new(),
            ended: vec![0; processes.len()],
            delivered: Vec::new(),
            outcome: Outcome { moved: vec![[0; PARTS]; processes.len()], ..Outcome::default() },
        };
        for (number, process) in processes.iter().enumerate() {
            let first = process.times.draw_rest(&mut run.streams[number], process.bytes / process.load);
            run.clocks.add(Time(0) + Duration::from_seconds(first), number);
        }
        run
    }

    /// Lets everything happen that happens up to `end`.
    fn carry_on(&mut self, end: Time, network: &mut Circuit) {
        let mut delivered = std::mem::take(&mut self.delivered);
        loop {
            let next = self.clocks.next_time().unwrap_or(Time::NEVER).min(end);
            network.advance(next, &mut delivered);
            if delivered.is_empty() {
                if next >= end {
                    break;
                }
                if let Some((now, process)) = self.clocks.pop() {
                    self.clock_ticks(now, process, network);
                }
            }
            for delivery in delivered.drain(..) {
                self.delivered(&delivery, network);
            }
        }
        self.delivered = delivered;
    }

    /// Bytes that have been moved for each process: those of messages that have ended, and of those under way what is
    /// there.
    fn moved(&self, network: &Circuit) -> Vec<u64> {
        let mut moved = self.ended.clone();
        for (message, bytes) in network.progress() {
            moved[self.transfers[message.0 as usize].process] += bytes;
        }
        moved
    }

    fn interval(&mut self, number: usize) -> Duration {
        let process = &self.processes[number];
        let mean = process.bytes / process.load;
        Duration::from_seconds(process.times.draw(&mut self.streams[number], mean))
    }

    fn clock_ticks(&mut self, now: Time, number: usize, network: &mut Circuit) {
        let next = now + self.interval(number);
        self.clocks.add(next, number);
        self.backlog[number] += 1;
        self.go_on(now, number, network);
    }

    /// Begins what may begin.
    fn go_on(&mut self, now: Time, number: usize, network: &mut Circuit) {
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
            let transfer = Transfer { process: number, peer, bytes, is_request };
            let id = self.slot(transfer);
            let sent = if is_request { 0 } else { bytes };
            network.send(now, MessageId(id), process.node, peer, sent);
        }
    }

    fn slot(&mut self, transfer: Transfer) -> u32 {
        if let Some(id) = self.free.pop() {
            self.transfers[id as usize] = transfer;
            return id;
        }
        self.transfers.push(transfer);
        (self.transfers.len() - 1) as u32
    }

    fn delivered(&mut self, delivery: &Delivery, network: &mut Circuit) {
        let id = delivery.message;
        let now = delivery.last_byte;
        let transfer = &mut self.transfers[id.0 as usize];
        if transfer.is_request {
            transfer.is_request = false;
            let node = self.processes[transfer.process].node;
            return network.send(now, id, transfer.peer, node, transfer.bytes);
        }
        let (process, bytes) = (transfer.process, transfer.bytes);
        self.free.push(id.0);
        self.ended[process] += bytes;
        self.outcome.messages += u64::from(now >= Time(0) + self.warm_up);
        self.under_way[process] -= 1;
        self.go_on(now, process, network);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_an_interval_has_the_mean_of_renewal_theory() {
        // E[X^2] / 2 E[X]: half the mean, two thirds of it, all of it.
        let mut stream = Stream::named(1, "intervals");
        for (distribution, expected) in
            [(Distribution::Fixed, 0.5), (Distribution::Uniform, 2.0 / 3.0), (Distribution::Exponential, 1.0)]
        {
            let count = 100_000;
            let sum: f64 = (0..count).map(|_| distribution.draw_rest(&mut stream, 3.0)).sum();
            let mean = sum / f64::from(count) / 3.0;
            assert!((mean - expected).abs() < 0.01, "{distribution:?}: {mean}");
        }
    }

    #[test]
    fn a_window_is_stretched_for_little_load_only() {
        let window = Window { warm_up: Duration::ZERO, measured: Duration::from_seconds(0.06) };
        assert_eq!(window.stretched(100.0, 300.0).measured, Duration::from_seconds(0.18));
        assert_eq!(window.stretched(600.0, 300.0), window);
    }
}
