//! Max-min fair rates, kept up as flows come and go.
//!
//! Rates are max-min fair if every flow has a bottleneck: a channel that is full, and on which no flow has more (Bertsekas
//! and Gallager 1992, section 6.5.2). Progressive filling finds them: all rates grow together; when a channel is full,
//! the flows that cross it stay where they are.
//!
//! Most flows keep their rate when one comes or goes. So only some are *opened* and filled again, beside the others as they
//! are: at first the new ones, and those that have their bottleneck where flows came or went. Then every channel that an
//! open flow crosses is looked at: have its other flows still their bottleneck? Those that have not are opened as
//! well, and the open ones are filled once more, until all have. What is found is what filling from nothing would
//! find, as max-min fair rates are unique.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::routes::Share;

/// Flows, channels, and who crosses what.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Bytes a picosecond of each channel.
    capacity: f64,
    /// By channel: the flows that cross it.
    members: Vec<Vec<Member>>,
    channels: Vec<Channel>,
    fills: Vec<Fill>,
    flows: Vec<Flow>,
    /// By flow: what it crosses.
    hops: Vec<Vec<Hop>>,
    /// Numbers of flows that are no more.
    free: Vec<u32>,
    /// How often rates were shared out.
    settlings: u32,
    /// How often open flows were filled.
    rounds: u32,
    /// New flows, and channels of flows that came or went.
    added: Vec<u32>,
    touched: Vec<u32>,
    /// What is open, and the rates before; the channels that it crosses. Kept for their room, as is the heap.
    open: Vec<(u32, f64)>,
    reached: Vec<u32>,
    heap: BinaryHeap<Reverse<(Level, u32)>>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u32,
    /// Index among the flow's hops.
    hop: u32,
    weight: f64,
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
    /// The last round in which it was given a rate.
    filled: u32,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    /// Capacity that flows which are not open leave.
    left: f64,
    /// The rate of those flows that have their bottleneck here.
    level: f64,
    /// How many these are; not those that are open.
    holds: u32,
    /// Sum of the weights of open flows, and how many they are.
    weight: f64,
    open: u32,
    /// The last settling in which an open flow crossed it.
    reached: u32,
}

/// A channel in one round of filling.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    left: f64,
    weight: f64,
    open: u32,
    /// The highest rate that was given to an open flow.
    highest: f64,
    /// The level at which it was full: infinite if its open flows have their bottlenecks elsewhere.
    full_at: f64,
}

/// A rate, which is no number below 0 and no NaN: its bits are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Level(u64);

const NOWHERE: u32 = u32::MAX;

/// Rates that differ by less may be the same. What thousands of flows leave of a channel is the difference of numbers
/// thousands of times larger, each rounded to 16 digits.
const ROUNDING: f64 = 1e-9;

/// Rounds after which all flows that meet an open one are opened, lest a long chain of them takes a round each.
const PATIENCE: u32 = 8;

/// Settlings after which what flows leave is summed up anew, before rounding adds up to anything.
const FRESH: u32 = 1 << 12;

impl Sharing {
    pub(super) fn new(channels: usize, capacity: f64) -> Sharing {
        let channel =
            Channel { left: capacity, level: f64::INFINITY, holds: 0, weight: 0.0, open: 0, reached: 0 };
        Sharing {
            capacity,
            members: vec![Vec::new(); channels],
            channels: vec![channel; channels],
            fills: vec![Fill::default(); channels],
            flows: Vec::new(),
            hops: Vec::new(),
            free: Vec::new(),
            settlings: 0,
            rounds: 0,
            added: Vec::new(),
            touched: Vec::new(),
            open: Vec::new(),
            reached: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// A new flow over these channels; its rate is known when it is settled. Its number: one that is free again, or else
    /// the next.
    pub(super) fn add(&mut self, shares: &[Share]) -> u32 {
        let new = Flow { rate: 0.0, bottleneck: NOWHERE, opened: 0, filled: 0 };
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
            members.push(Member { flow, hop, weight });
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
        self.open_first();
        for round in 0.. {
            self.fill();
            let before = self.open.len();
            for index in 0..self.reached.len() {
                self.open_dissatisfied(self.reached[index], round > PATIENCE);
            }
            if self.open.len() == before {
                break;
            }
        }
        self.close(changed);
    }

    /// Opens what is certain to change.
    fn open_first(&mut self) {
        while let Some(flow) = self.added.pop() {
            self.open_flow(flow);
        }
        while let Some(channel) = self.touched.pop() {
            if self.channels[channel as usize].holds > 0 {
                self.open_members(channel, |flow| flow.bottleneck == channel);
            }
        }
    }

    /// Opens the flows of a channel that have their bottleneck here no more, or not yet.
    fn open_dissatisfied(&mut self, number: u32, is_late: bool) {
        let channel = self.channels[number as usize];
        let fill = self.fills[number as usize];
        if channel.open as usize == self.members[number as usize].len() {
            return;
        }
        if is_late {
            self.open_members(number, |_| true);
            return;
        }
        let level = if channel.holds > 0 { channel.level } else { f64::INFINITY };
        if fill.full_at < level * (1.0 - ROUNDING) {
            // Whoever has more here has to give.
            let most = fill.full_at * (1.0 + ROUNDING);
            self.open_members(number, |flow| flow.rate > most);
        } else if channel.holds > 0 {
            // Whoever stays here has to have as much as anybody, and there must be no more to have.
            let is_full = fill.left <= self.capacity * ROUNDING;
            if !is_full || fill.highest > level * (1.0 + ROUNDING) {
                self.open_members(number, |flow| flow.bottleneck == number);
            }
        }
    }

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
        if let Some(bottleneck) = self.channels.get_mut(flow.bottleneck as usize) {
            bottleneck.holds -= 1;
        }
        for hop in &self.hops[number as usize] {
            let channel = &mut self.channels[hop.channel as usize];
            if channel.reached != self.settlings {
                (channel.reached, channel.open, channel.weight) = (self.settlings, 0, 0.0);
                self.reached.push(hop.channel);
            }
            channel.left += hop.weight * flow.rate;
            channel.weight += hop.weight;
            channel.open += 1;
        }
    }

    /// Gives all open flows a rate and a bottleneck.
    fn fill(&mut self) {
        self.rounds += 1;
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.clear();
        for number in &self.reached {
            let Channel { left, weight, open, .. } = self.channels[*number as usize];
            let fill = Fill { left, weight, open, highest: 0.0, full_at: f64::INFINITY };
            self.fills[*number as usize] = fill;
            entries.push(Reverse((fill.level(0.0), *number)));
        }
        let mut heap = BinaryHeap::from(entries);
        let mut level = 0.0;
        let mut open = self.open.len();
        // As long as a flow is open, all its channels are in the heap.
        while let Some(mut top) = heap.peek_mut().filter(|_| open > 0) {
            let Reverse((expected, channel)) = *top;
            let fill = &mut self.fills[channel as usize];
            if fill.open == 0 {
                std::collections::binary_heap::PeekMut::pop(top);
                continue;
            }
            // As flows stay behind, those left have more: a channel's level only rises while it waits in the heap.
            let found = fill.level(level);
            if found > expected {
                *top = Reverse((found, channel));
                continue;
            }
            std::collections::binary_heap::PeekMut::pop(top);
            level = found.rate();
            fill.full_at = level;
            open -= self.stay(channel, level);
        }
        self.heap = heap;
    }

    /// The open flows that cross a channel stay at this level. How many had not yet stayed.
    fn stay(&mut self, channel: u32, level: f64) -> usize {
        let mut stayed = 0;
        for member in &self.members[channel as usize] {
            let flow = &mut self.flows[member.flow as usize];
            if flow.opened != self.settlings || flow.filled == self.rounds {
                continue;
            }
            (flow.filled, flow.rate, flow.bottleneck) = (self.rounds, level, channel);
            stayed += 1;
            for hop in &self.hops[member.flow as usize] {
                let fill = &mut self.fills[hop.channel as usize];
                fill.left -= hop.weight * level;
                fill.weight -= hop.weight;
                fill.open -= 1;
                fill.highest = level;
            }
        }
        stayed
    }

    /// Takes over what the last round found. Adds the flows whose rate is another now.
    fn close(&mut self, changed: &mut Vec<u32>) {
        for number in self.reached.drain(..) {
            let (channel, fill) = (&mut self.channels[number as usize], &self.fills[number as usize]);
            channel.left = fill.left;
            // Beside flows that stay at their level, it is the same but for rounding: kept, so that this does not add up.
            if channel.holds == 0 {
                channel.level = fill.full_at;
            }
        }
        for (number, before) in self.open.drain(..) {
            let flow = &self.flows[number as usize];
            self.channels[flow.bottleneck as usize].holds += 1;
            if flow.rate != before {
                changed.push(number);
            }
        }
    }

    /// What flows leave of every channel, from their rates.
    fn sum_up(&mut self) {
        for (channel, members) in self.channels.iter_mut().zip(&self.members) {
            let used = members.iter().map(|member| member.weight * self.flows[member.flow as usize].rate);
            channel.left = self.capacity - used.sum::<f64>();
        }
    }
}

impl Fill {
    /// The level at which the channel is full; not below that of the filling, which rounding might make it.
    fn level(&self, reached: f64) -> Level {
        let share = self.left / self.weight;
        Level((if share > reached { share } else { reached }).to_bits())
    }
}

impl Level {
    fn rate(self) -> f64 {
        f64::from_bits(self.0)
    }
}
