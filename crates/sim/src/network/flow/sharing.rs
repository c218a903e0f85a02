//! Max-min fair rates, kept up as flows come and go.
//!
//! Rates are max-min fair if every flow has a bottleneck: a channel that is full, and on which no flow has more (Bertsekas
//! and Gallager 1992, section 6.5.2). Progressive filling finds them: all rates grow together; when a channel is full,
//! the flows that cross it stay where they are.
//!
//! Most flows keep their rate when one comes or goes. So the filling is done over only as far as it differs from the last.
//! Of all other flows it is known where they will stay. What is not known is *open*: at first, the new flows. The level
//! rises from one channel to the next that can matter:
//!
//! - A channel is full for its open flows, given what the others will have. If some of those would have more than the level
//!   now, this comes too early: they are opened too. Else, the open ones stay.
//! - The level is that of the flows that have their bottleneck in a channel, and that is not full now. They are opened.
//!
//! What is below the level never changes again, so every flow is opened once at most, and stays once. The cost is that of
//! the flows that are opened, and hardly any of those keeps its rate.

use super::queue::{Level, Queue};
use super::routes::Share;

/// Flows, channels, and who crosses what.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Bytes a picosecond of each channel.
    capacity: f64,
    /// By channel: the flows that cross it.
    members: Vec<Vec<Member>>,
    channels: Vec<Channel>,
    flows: Vec<Flow>,
    /// By flow: what it crosses.
    hops: Vec<Vec<Hop>>,
    /// Numbers of flows that are no more.
    free: Vec<u32>,
    /// How often rates were shared out.
    settlings: u32,
    /// New flows, and channels of flows that came or went.
    added: Vec<u32>,
    touched: Vec<u32>,
    /// Flows that were opened, and their rates before.
    open: Vec<(u32, f64)>,
    /// How many of these have no rate yet.
    rising: usize,
    /// Channels that they cross, and that are not yet queued for it.
    crossed: Vec<u32>,
    /// Channels by the level at which they are to be looked at.
    queue: Queue,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u32,
    /// Index among the flow's hops.
    hop: u32,
}

#[derive(Clone, Copy, Debug)]
struct Hop {
    channel: u32,
    /// Index among the channel's members.
    place: u32,
    weight: f64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    rate: f64,
    bottleneck: u32,
    /// The last settling in which it was open.
    opened: u32,
    /// The last settling in which it stayed at a rate.
    stayed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    /// Capacity that flows leave which are not open.
    left: f64,
    /// Sum of the weights of open flows, and how many they are.
    weight: f64,
    open: u32,
    /// How many flows have their bottleneck here; not those that are open.
    holds: u32,
    /// The rate of these.
    level: f64,
    /// The level at which it is queued: never if it is not.
    queued: Level,
    /// The last settling in which it was queued, or an open flow crossed it.
    reached: u32,
    /// Whether it is among those that are crossed.
    is_crossed: bool,
}

const NOWHERE: u32 = u32::MAX;

/// Rates that differ by less may be the same. What thousands of flows leave of a channel is the difference of numbers
/// thousands of times larger, each rounded to 16 digits.
const ROUNDING: f64 = 1e-9;

/// Settlings after which what flows leave is summed up anew, before rounding adds up to anything.
const FRESH: u32 = 1 << 12;

impl Sharing {
    pub(super) fn new(channels: usize, capacity: f64) -> Sharing {
        let channel = Channel {
            left: capacity,
            weight: 0.0,
            open: 0,
            holds: 0,
            level: 0.0,
            queued: Level::NEVER,
            reached: 0,
            is_crossed: false,
        };
        Sharing {
            capacity,
            members: vec![Vec::new(); channels],
            channels: vec![channel; channels],
            flows: Vec::new(),
            hops: Vec::new(),
            free: Vec::new(),
            settlings: 0,
            added: Vec::new(),
            touched: Vec::new(),
            open: Vec::new(),
            rising: 0,
            crossed: Vec::new(),
            queue: Queue::new(channels),
        }
    }

    /// A new flow over these channels; its rate is known when it is settled. Its number: one that is free again, or else
    /// the next.
    pub(super) fn add(&mut self, shares: &[Share]) -> u32 {
        let new = Flow { rate: 0.0, bottleneck: NOWHERE, opened: 0, stayed: 0 };
        let flow = self.free.pop().unwrap_or_else(|| {
            self.hops.push(Vec::new());
            self.flows.push(new);
            self.flows.len() as u32 - 1
        });
        self.flows[flow as usize] = new;
        let hops = &mut self.hops[flow as usize];
        for (hop, Share { channel, weight }) in (0..).zip(shares.iter().copied()) {
            let members = &mut self.members[channel as usize];
            hops.push(Hop { channel, place: members.len() as u32, weight });
            members.push(Member { flow, hop });
            self.touched.push(channel);
        }
        self.added.push(flow);
        flow
    }

    /// The flow is no more. It has been settled.
    pub(super) fn remove(&mut self, flow: u32) {
        let Flow { rate, bottleneck, .. } = self.flows[flow as usize];
        self.channels[bottleneck as usize].holds -= 1;
        while let Some(Hop { channel, place, weight }) = self.hops[flow as usize].pop() {
            let members = &mut self.members[channel as usize];
            members.swap_remove(place as usize);
            if let Some(moved) = members.get(place as usize) {
                self.hops[moved.flow as usize][moved.hop as usize].place = place;
            }
            let left = &mut self.channels[channel as usize].left;
            *left = if members.is_empty() { self.capacity } else { *left + weight * rate };
            self.touched.push(channel);
        }
        self.free.push(flow);
    }

    /// Bytes a picosecond of a flow that is settled.
    pub(super) fn rate(&self, flow: u32) -> f64 {
        self.flows[flow as usize].rate
    }

    /// Shares out the rates after any number of flows came and went. Adds those whose rate is another now.
    pub(super) fn settle(&mut self, changed: &mut Vec<u32>) {
        self.settlings += 1;
        if self.settlings.is_multiple_of(FRESH) {
            self.sum_up();
        }
        while let Some(flow) = self.added.pop() {
            self.open_flow(flow);
        }
        while let Some(channel) = self.touched.pop() {
            self.queue(channel);
        }
        self.queue_crossed();
        self.fill();
        for (number, before) in self.open.drain(..) {
            if self.flows[number as usize].rate != before {
                changed.push(number);
            }
        }
    }

    /// Lets the level rise from channel to channel.
    fn fill(&mut self) {
        let mut level = 0.0;
        while let Some((due, channel)) = self.next_due() {
            level = due.rate().max(level);
            self.look_at(channel, level);
        }
    }

    /// Takes the next channel out of the queue.
    fn next_due(&mut self) -> Option<(Level, u32)> {
        while let Some((expected, number)) = self.queue.first() {
            let channel = &mut self.channels[number as usize];
            let due = channel.due(self.capacity);
            // As flows stay behind, there is more for those left: a level only rises while the channel waits.
            channel.queued = due;
            if due == expected {
                channel.queued = Level::NEVER;
                self.queue.remove_first();
                return Some((due, number));
            }
            if due == Level::NEVER {
                self.queue.remove_first();
            } else {
                self.queue.set(number, due);
            }
        }
        None
    }

    /// The level has risen to where this channel is full for its open flows, or has been for those it holds.
    fn look_at(&mut self, number: u32, level: f64) {
        let channel = &self.channels[number as usize];
        let before = self.open.len();
        if channel.holds > 0 && channel.full_at(self.capacity) > channel.level * (1.0 + ROUNDING) {
            self.open_members(number, |flow| flow.bottleneck == number);
        } else {
            let most = level * (1.0 + ROUNDING);
            self.open_members(number, |flow| flow.rate > most);
        }
        if self.open.len() == before {
            self.stay(number, level);
        } else {
            self.queue_crossed();
        }
    }

    fn queue_crossed(&mut self) {
        while let Some(channel) = self.crossed.pop() {
            self.channels[channel as usize].is_crossed = false;
            self.queue(channel);
        }
    }

    /// Has a channel looked at in time.
    fn queue(&mut self, number: u32) {
        let channel = &mut self.channels[number as usize];
        if channel.reached != self.settlings {
            (channel.reached, channel.open, channel.weight) = (self.settlings, 0, 0.0);
        }
        let due = channel.due(self.capacity);
        if due < channel.queued {
            channel.queued = due;
            self.queue.set(number, due);
        }
    }

    /// Opens the flows of a channel that are wanted and not yet open. None of them stayed below the level.
    fn open_members(&mut self, channel: u32, is_wanted: impl Fn(&Flow) -> bool) {
        for index in 0..self.members[channel as usize].len() {
            let number = self.members[channel as usize][index].flow;
            let flow = &self.flows[number as usize];
            if flow.opened != self.settlings && is_wanted(flow) {
                self.open_flow(number);
            }
        }
    }

    fn open_flow(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        flow.opened = self.settlings;
        self.open.push((number, flow.rate));
        self.rising += 1;
        if let Some(bottleneck) = self.channels.get_mut(flow.bottleneck as usize) {
            bottleneck.holds -= 1;
        }
        for hop in &self.hops[number as usize] {
            let channel = &mut self.channels[hop.channel as usize];
            if channel.reached != self.settlings {
                (channel.reached, channel.open, channel.weight) = (self.settlings, 0, 0.0);
            }
            if !channel.is_crossed {
                channel.is_crossed = true;
                self.crossed.push(hop.channel);
            }
            channel.left += hop.weight * flow.rate;
            channel.weight += hop.weight;
            channel.open += 1;
        }
    }

    /// The open flows of a channel stay at this level.
    fn stay(&mut self, number: u32, level: f64) {
        let mut stayed = 0;
        for member in &self.members[number as usize] {
            let flow = &mut self.flows[member.flow as usize];
            if flow.opened != self.settlings || flow.stayed == self.settlings {
                continue;
            }
            (flow.stayed, flow.rate, flow.bottleneck) = (self.settlings, level, number);
            stayed += 1;
            for hop in &self.hops[member.flow as usize] {
                let channel = &mut self.channels[hop.channel as usize];
                channel.left -= hop.weight * level;
                channel.weight -= hop.weight;
                channel.open -= 1;
            }
        }
        let channel = &mut self.channels[number as usize];
        // Beside flows that are there already, the level is theirs but for rounding: kept, so that this does not add up.
        if channel.holds == 0 {
            channel.level = level;
        }
        channel.holds += stayed;
        self.rising -= stayed as usize;
        if self.rising == 0 && stayed > 0 {
            // Most of what is queued was for flows that stay now.
            let (channels, capacity) = (&mut self.channels, self.capacity);
            self.queue.keep(|number| {
                let channel = &mut channels[number as usize];
                channel.queued = channel.due(capacity);
                channel.queued
            });
        }
    }

    /// What flows leave of every channel, from their rates.
    fn sum_up(&mut self) {
        for channel in &mut self.channels {
            channel.left = self.capacity;
        }
        for (flow, hops) in self.flows.iter().zip(&self.hops) {
            for hop in hops {
                self.channels[hop.channel as usize].left -= hop.weight * flow.rate;
            }
        }
    }
}

impl Channel {
    /// The level at which it is full, the flows that are not open being where they will be; infinite if it never is.
    fn full_at(&self, capacity: f64) -> f64 {
        if self.open > 0 {
            if self.left > 0.0 { self.left / self.weight } else { 0.0 }
        } else if self.left > capacity * ROUNDING {
            f64::INFINITY
        } else {
            0.0
        }
    }

    /// The level at which it is to be looked at.
    fn due(&self, capacity: f64) -> Level {
        let full_at = self.full_at(capacity);
        if self.open > 0 && (self.holds == 0 || full_at < self.level) {
            Level::of(full_at)
        } else if self.holds > 0 && (self.open > 0 || full_at > 0.0) {
            Level::of(self.level)
        } else {
            Level::NEVER
        }
    }
}
