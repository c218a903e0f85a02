//! Messages as fluids: every channel shares its bandwidth among the messages that cross it, max-min fairly.
//!
//! No message can get more but by taking from one that has less (Bertsekas and Gallager 1992, section 6.5.2). Rates change
//! when a message starts or ends, and at no other time; so the cost follows messages, not packets or bytes. What
//! buffers, arbitration and blocking do to packets is left out: `docs/design/networks.md` says how far that goes.
//!
//! All messages of one node to another are one stream, in their order: a stream has one share, however many wait in it. Where
//! each stream chooses its way, the next may go a shorter one than what is still under way: it then arrives with that.

mod finish;
mod routes;
mod sharing;

use std::collections::{BTreeMap, VecDeque};

use pio_machine::{Bandwidth, Congestion, Duration, FlowRoutes};

use super::carrier::{Delivery, MessageId, Network};
use super::pairs::Pairs;
use super::topology::Topology;
use crate::kernel::{Events, Model, Time};
use finish::Finishes;
use routes::Router;
use sharing::{HeldUp, Sharing};

/// A network at flow level.
#[derive(Debug)]
pub struct FlowNetwork {
    nodes: u32,
    router: Router,
    /// Of one channel.
    latency: Duration,
    sharing: Sharing,
    /// By the number of their flow.
    streams: Vec<Stream>,
    /// The stream of each pair of nodes that has one.
    open: Pairs,
    finishes: Finishes,
    /// Messages that have left their sender, each with its pair.
    arriving: Events<((u32, u32), Delivery)>,
    /// Where pairs have ways of several lengths: when the last message arrives of those of a pair that have left.
    last_arrivals: BTreeMap<(u32, u32), Time>,
    /// Since when rates have to be shared out anew.
    unsettled: Option<Time>,
    /// Flows whose rates changed: kept for its room.
    changed: Vec<u32>,
    /// Where congestion spreads: what is left of the rates.
    held_up: Option<HeldUp>,
}

/// What one node sends another: the message that is under way, and those behind it.
#[derive(Debug)]
struct Stream {
    pair: (u32, u32),
    /// Time of a first byte on the way.
    latency: Duration,
    /// When what the pair sent before has arrived, by whatever way it went.
    not_before: Time,
    message: MessageId,
    /// When its first byte left.
    begin: Time,
    /// Bytes of it that had not left at `since`.
    left: f64,
    /// Bytes a picosecond from then on.
    rate: f64,
    since: Time,
    waiting: VecDeque<(MessageId, u64)>,
}

impl FlowNetwork {
    /// A network of this shape, all of whose channels have this bandwidth, and this latency of a first byte.
    pub fn new(
        topology: Topology,
        bandwidth: Bandwidth,
        latency: Duration,
        routes: FlowRoutes,
    ) -> FlowNetwork {
        FlowNetwork {
            nodes: topology.nodes(),
            sharing: Sharing::new(topology.channels().len(), bytes_per_picosecond(bandwidth)),
            router: Router::new(topology, routes),
            latency,
            streams: Vec::new(),
            open: Pairs::new(),
            finishes: Finishes::default(),
            arriving: Events::new(),
            last_arrivals: BTreeMap::new(),
            unsettled: None,
            changed: Vec::new(),
            held_up: None,
        }
    }

    /// The same, with congestion that spreads or not; it does not, if nothing is said. Only with static routes.
    pub fn with_congestion(mut self, congestion: Congestion) -> FlowNetwork {
        self.held_up = (congestion == Congestion::Spreads).then(HeldUp::default);
        self
    }

    /// How many streams are under way: pairs of nodes with a message between them.
    pub fn streams(&self) -> usize {
        self.open.count()
    }

    /// The rate of what `from` sends `to` now, in bytes a second; nothing if there is nothing.
    pub fn rate(&self, from: u32, to: u32) -> Option<f64> {
        let flow = self.open.get(from, to)?;
        Some(self.streams[flow as usize].rate * 1e12)
    }

    fn start(&mut self, now: Time, message: MessageId, pair: (u32, u32), bytes: u64) {
        let hops = self.router.hops(pair.0, pair.1, |channel| self.sharing.load(channel));
        let latency = self.latency.saturating_mul(hops.length.into());
        let not_before = self.last_arrivals.get(&pair).copied().unwrap_or_default();
        if bytes == 0 {
            let arrival = (now + latency).max(not_before);
            let delivery = Delivery { message, first_byte: arrival, last_byte: arrival };
            return self.leave(pair, delivery);
        }
        let flow = self.sharing.add(hops.shares);
        let stream = Stream {
            pair,
            latency,
            not_before,
            message,
            begin: now,
            left: bytes as f64,
            rate: 0.0,
            since: now,
            waiting: VecDeque::new(),
        };
        match self.streams.get_mut(flow as usize) {
            Some(place) => *place = stream,
            None => self.streams.push(stream),
        }
        self.finishes.set(flow, Time::NEVER);
        self.open.set(pair.0, pair.1, flow);
        self.unsettled = Some(now);
    }

    /// The message of this flow has left: the next one, if any, goes on at the same rate.
    fn finish(&mut self, now: Time, flow: u32) {
        let stream = &self.streams[flow as usize];
        let pair = stream.pair;
        let arrival = if now == LAST { Time::NEVER } else { now + stream.latency };
        let (first_byte, last_byte) = (stream.begin + stream.latency, arrival.max(stream.not_before));
        self.leave(pair, Delivery { message: stream.message, first_byte, last_byte });
        while let Some((message, bytes)) = self.streams[flow as usize].waiting.pop_front() {
            if bytes == 0 {
                self.leave(pair, Delivery { message, first_byte: last_byte, last_byte });
                continue;
            }
            let stream = &mut self.streams[flow as usize];
            (stream.message, stream.begin, stream.left, stream.since) = (message, now, bytes as f64, now);
            self.finishes.set(flow, stream.finish());
            return;
        }
        self.finishes.set(flow, Time::NEVER);
        self.open.remove(pair.0, pair.1);
        self.sharing.remove(flow);
        self.unsettled = Some(now);
    }

    /// A message has left its sender, and arrives when it says.
    fn leave(&mut self, pair: (u32, u32), delivery: Delivery) {
        if self.router.chooses() {
            self.last_arrivals.insert(pair, delivery.last_byte);
        }
        self.arriving.add(delivery.last_byte, (pair, delivery));
    }

    /// The next message that is under way has arrived.
    fn arrive(&mut self) -> Option<Delivery> {
        let (now, (pair, delivery)) = self.arriving.pop()?;
        if self.last_arrivals.get(&pair).is_some_and(|last| *last <= now) {
            self.last_arrivals.remove(&pair);
        }
        Some(delivery)
    }

    /// Shares out the rates, if streams have come or gone.
    fn settle(&mut self) {
        let Some(now) = self.unsettled.take() else { return };
        self.changed.clear();
        self.sharing.settle(&mut self.changed);
        if let Some(held_up) = &mut self.held_up {
            self.sharing.hold_up(held_up);
            // Any rate can be another, wherever a flow came or went.
            self.changed.clear();
            let streams = &self.streams;
            let is_changed =
                |flow: &u32| held_up.rate(*flow).is_some_and(|rate| rate != streams[*flow as usize].rate);
            self.changed.extend((0..streams.len() as u32).filter(is_changed));
        }
        for flow in &self.changed {
            let stream = &mut self.streams[*flow as usize];
            let sent = stream.rate * now.since(stream.since).picoseconds() as f64;
            stream.left = (stream.left - sent).max(0.0);
            stream.since = now;
            let held_up = self.held_up.as_ref().and_then(|held_up| held_up.rate(*flow));
            stream.rate = held_up.unwrap_or_else(|| self.sharing.rate(*flow));
            self.finishes.set(*flow, stream.finish());
        }
        self.finishes.refresh();
    }
}

impl Stream {
    /// When the last byte of the message leaves, if the rate stays.
    fn finish(&self) -> Time {
        (self.since + Duration::from_picoseconds((self.left / self.rate).ceil() as u64)).min(LAST)
    }
}

/// When what takes longer than time is counted has left: it never arrives, but the network is not at rest meanwhile.
const LAST: Time = Time(Time::NEVER.0 - 1);

impl Network for FlowNetwork {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        if self.unsettled.is_some_and(|since| since < now) {
            self.settle();
        }
        match self.open.get(from, to) {
            Some(flow) => self.streams[flow as usize].waiting.push_back((message, bytes)),
            None => self.start(now, message, (from, to), bytes),
        }
    }
}

impl Model for FlowNetwork {
    type Out = Delivery;

    /// Also the moment of the last change, until rates have been shared out: many messages sent at once cost it once.
    fn next_time(&self) -> Option<Time> {
        if self.unsettled.is_some() {
            return self.unsettled;
        }
        let finish = self.finishes.first();
        match self.arriving.next_time() {
            Some(arrival) => Some(arrival.min(finish)),
            None => (finish < Time::NEVER).then_some(finish),
        }
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        loop {
            self.settle();
            let Some(now) = self.next_time().filter(|now| *now <= until) else { return };
            while self.finishes.first() == now && now < Time::NEVER {
                self.finish(now, self.finishes.first_flow());
                self.finishes.refresh();
            }
            if self.arriving.next_time() == Some(now) {
                while self.arriving.next_time() == Some(now) {
                    delivered.extend(self.arrive());
                }
                return;
            }
        }
    }
}

fn bytes_per_picosecond(bandwidth: Bandwidth) -> f64 {
    bandwidth.bytes_per_second() as f64 / 1e12
}
