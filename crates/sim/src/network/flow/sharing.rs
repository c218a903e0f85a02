//! Max-min fair rates, kept up as flows come and go.
//!
//! Progressive filling: the rates of all flows grow together; when a channel is full, the flows that cross it stay where
//! they are. A change leaves the filling as it was up to some level. Below the rate that a flow had, nothing changes when
//! it goes. Nor does anything change below the level at which the first channel of a new flow is full, and that level
//! follows from the rates there are. So the filling is taken up at that level, and only for flows that share channels
//! with the change, directly or over others that are above the level.

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
    /// By channel.
    fill: Vec<Fill>,
    /// By flow: what it crosses.
    hops: Vec<Vec<Hop>>,
    /// By flow: its rate; infinite if it is new.
    rates: Vec<f64>,
    /// By flow: the last settling in which its rate was open.
    open_in: Vec<u32>,
    free: Vec<u32>,
    settling: u32,
    /// Channels of flows that came or went.
    touched: Vec<u32>,
    /// The lowest rate of a flow that went.
    lowest_gone: f64,
    /// Channels and flows of a settling: kept for their room.
    channels: Vec<u32>,
    flows: Vec<(u32, f64)>,
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

/// A channel in a settling.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    /// Capacity that flows with a settled rate leave.
    left: f64,
    /// Sum of the weights of the others.
    weight: f64,
    /// How many these are.
    open: u32,
    /// The last settling that the channel was part of.
    settling: u32,
}

/// A rate that is no number below 0, and no NaN: its bits are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Level(u64);

/// Rates that differ by less may be the same level. What thousands of flows leave of a channel is the difference of numbers
/// thousands of times larger, each rounded to 16 digits. To take too many for the same costs time only.
const ROUNDING: f64 = 1e-9;

/// Steps in which the level of a full channel is looked for. Any of them ends at or below it, which is right, if not
/// always fastest.
const STEPS: usize = 8;

impl Sharing {
    pub(super) fn new(channels: usize, capacity: f64) -> Sharing {
        Sharing {
            capacity,
            members: vec![Vec::new(); channels],
            fill: vec![Fill::default(); channels],
            hops: Vec::new(),
            rates: Vec::new(),
            open_in: Vec::new(),
            free: Vec::new(),
            settling: 0,
            touched: Vec::new(),
            lowest_gone: f64::INFINITY,
            channels: Vec::new(),
            flows: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// A new flow over these channels; its rate is known when it is settled. Its number: one that is free
    /// again, or else the next.
    pub(super) fn add(&mut self, shares: &[Share]) -> u32 {
        let flow = self.free.pop().unwrap_or_else(|| {
            self.hops.push(Vec::new());
            self.rates.push(0.0);
            self.open_in.push(0);
            self.rates.len() as u32 - 1
        });
        self.rates[flow as usize] = f64::INFINITY;
        let hops = &mut self.hops[flow as usize];
        for (hop, Share { channel, weight }) in (0..).zip(shares.iter().copied()) {
            let members = &mut self.members[channel as usize];
            hops.push(Hop { channel, place: members.len() as u32, weight });
            members.push(Member { flow, hop, weight });
            self.touched.push(channel);
        }
        flow
    }

    /// The flow is no more.
    pub(super) fn remove(&mut self, flow: u32) {
        // A flow that was never settled changed nothing.
        self.lowest_gone = self.lowest_gone.min(self.rates[flow as usize]);
        while let Some(Hop { channel, place, .. }) = self.hops[flow as usize].pop() {
            let members = &mut self.members[channel as usize];
            members.swap_remove(place as usize);
            if let Some(moved) = members.get(place as usize) {
                self.hops[moved.flow as usize][moved.hop as usize].place = place;
            }
            self.touched.push(channel);
        }
        self.free.push(flow);
    }

    /// Bytes a picosecond of a flow that is settled.
    pub(super) fn rate(&self, flow: u32) -> f64 {
        self.rates[flow as usize]
    }

    /// Shares out the rates after any number of flows came and went. Adds those whose rate is another now.
    pub(super) fn settle(&mut self, changed: &mut Vec<u32>) {
        let level = self.unchanged_below();
        self.settling += 1;
        self.open_above(level);
        self.fill_from(level);
        let rates = &self.rates;
        let is_changed = |(flow, before): &&(u32, f64)| rates[*flow as usize] != *before;
        changed.extend(self.flows.iter().filter(is_changed).map(|(flow, _)| *flow));
        self.lowest_gone = f64::INFINITY;
        self.touched.clear();
    }

    /// A level below which no rate changes.
    fn unchanged_below(&self) -> f64 {
        let full = self.touched.iter().map(|channel| self.full_at(*channel));
        full.fold(self.lowest_gone, f64::min) * (1.0 - ROUNDING)
    }

    /// The level at which a channel is full, if nothing changes below: or one that is lower. Each step takes the flows
    /// that are below the level of the one before as they are, and gives the rest to the others.
    fn full_at(&self, channel: u32) -> f64 {
        let members = &self.members[channel as usize];
        let mut level = 0.0;
        for _ in 0..STEPS {
            let (mut left, mut weight) = (self.capacity, 0.0);
            for member in members {
                let rate = self.rates[member.flow as usize];
                if rate < level {
                    left -= member.weight * rate;
                } else {
                    weight += member.weight;
                }
            }
            if weight == 0.0 {
                return f64::INFINITY;
            }
            let next = left / weight;
            if next <= level {
                break;
            }
            level = next;
        }
        level
    }

    /// Lists the channels that the change reaches, and the flows above the level that cross them.
    fn open_above(&mut self, level: f64) {
        self.channels.clear();
        self.flows.clear();
        for channel in &self.touched {
            if self.fill[*channel as usize].settling != self.settling {
                self.fill[*channel as usize].settling = self.settling;
                self.channels.push(*channel);
            }
        }
        let mut next = 0;
        while let Some(channel) = self.channels.get(next) {
            let mut fill = Fill { left: self.capacity, weight: 0.0, open: 0, settling: self.settling };
            let channel = *channel as usize;
            for member in &self.members[channel] {
                let flow = member.flow as usize;
                let rate = self.rates[flow];
                if rate < level {
                    fill.left -= member.weight * rate;
                    continue;
                }
                fill.weight += member.weight;
                fill.open += 1;
                if self.open_in[flow] == self.settling {
                    continue;
                }
                self.open_in[flow] = self.settling;
                self.flows.push((member.flow, rate));
                for hop in &self.hops[flow] {
                    let reached = &mut self.fill[hop.channel as usize];
                    if reached.settling != self.settling {
                        reached.settling = self.settling;
                        self.channels.push(hop.channel);
                    }
                }
            }
            self.fill[channel] = fill;
            next += 1;
        }
    }

    /// Lets the rates of the flows that are listed grow from the level on.
    fn fill_from(&mut self, level: f64) {
        let is_open = |channel: &&u32| self.fill[**channel as usize].open > 0;
        let entry = |channel: &u32| Reverse((self.fill[*channel as usize].full_at(level), *channel));
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.clear();
        entries.extend(self.channels.iter().filter(is_open).map(entry));
        let mut heap = BinaryHeap::from(entries);
        let mut level = level;
        let mut open = self.flows.len();
        while open > 0 {
            // There is one as long as a flow is open, as all its channels are in the heap.
            let Some(Reverse((expected, channel))) = heap.pop() else { break };
            let fill = self.fill[channel as usize];
            if fill.open == 0 {
                continue;
            }
            // As flows stay behind, those left have more: a channel's level only rises while it waits in the heap.
            let found = fill.full_at(level);
            if found > expected && heap.peek().is_some_and(|Reverse(next)| *next < (found, channel)) {
                heap.push(Reverse((found, channel)));
                continue;
            }
            level = found.rate();
            open -= self.stay(channel, level);
        }
        self.heap = heap;
    }

    /// The flows that cross a channel stay at this level. How many were not settled.
    fn stay(&mut self, channel: u32, level: f64) -> usize {
        let mut settled = 0;
        for member in &self.members[channel as usize] {
            let flow = member.flow as usize;
            if self.open_in[flow] != self.settling {
                continue;
            }
            self.open_in[flow] = 0;
            self.rates[flow] = level;
            settled += 1;
            for hop in &self.hops[flow] {
                let fill = &mut self.fill[hop.channel as usize];
                fill.left -= hop.weight * level;
                fill.weight -= hop.weight;
                fill.open -= 1;
            }
        }
        settled
    }
}

impl Fill {
    /// The level at which the channel is full; not below that of the filling, which rounding might make it.
    fn full_at(&self, level: f64) -> Level {
        let share = self.left / self.weight;
        Level((if share > level { share } else { level }).to_bits())
    }
}

impl Level {
    fn rate(self) -> f64 {
        f64::from_bits(self.0)
    }
}
