//! Max-min fair rates, kept up as flows come and go.
//!
//! Rates are max-min fair if every flow has a bottleneck: a channel that is full, and on which no flow has more (Bertsekas
//! and Gallager 1992, section 6.5.2). Progressive filling finds them: all rates grow together; when a channel is full,
//! the flows that cross it stay where they are.
//!
//! Where flows hardly meet, most keep their rate when one comes or goes: then the filling is done over only as far as it
//! differs from the last ([`adjust`]). Where all depend on all, it costs less to fill everything again from the lowest
//! level that can be another ([`refill`]). How much the last settlings changed tells which; both find the same rates.

mod adjust;
mod crossings;
mod hold_up;
mod minima;
mod queue;
mod refill;
mod slots;

use super::routes::Share;
use crossings::Crossings;
pub(super) use hold_up::HeldUp;
use queue::{Level, Queue};
use refill::Refill;
use slots::Slots;

/// Flows, channels, and who crosses what.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Bytes a picosecond of each channel.
    capacity: f64,
    /// The channels that flows cross. In all that follows, channels go by their slots.
    slots: Slots,
    /// By channel: the flows that cross it.
    members: Vec<Vec<Member>>,
    channels: Vec<Channel>,
    flows: Vec<Flow>,
    crossings: Crossings,
    /// Numbers of flows that are no more.
    free: Vec<u32>,
    /// How often rates were shared out.
    settlings: u32,
    /// How many flows were opened by a settling, lately.
    usually_opened: f64,
    /// The lowest rate of a flow that went.
    lowest_removed: f64,
    /// What the flow that is added crosses: kept for its room.
    way: Vec<Share>,
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
    refill: Refill,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u32,
    /// Index among the flow's hops.
    hop: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    rate: f64,
    /// [`NOWHERE`] for a flow that is new, or no more.
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
    /// Sum of the weights of all flows.
    total: f64,
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

/// Settlings after which everything is summed up anew, before rounding adds up to anything.
const FRESH: u32 = 1 << 12;

/// To open a flow in adjusting costs as much as so many flows and channels of a refilling (measured on fat trees).
const OPENING_COSTS: f64 = 10.0;

/// How fast what usually happens follows what happens.
const FORGETTING: f64 = 1.0 / 8.0;

impl Flow {
    /// Whether it has a rate, and one below this.
    fn stays_below(&self, level: f64) -> bool {
        self.rate < level && self.bottleneck != NOWHERE
    }
}

impl Channel {
    /// No flow crosses it.
    fn empty(capacity: f64) -> Channel {
        Channel {
            left: capacity,
            weight: 0.0,
            open: 0,
            holds: 0,
            level: 0.0,
            total: 0.0,
            queued: Level::NEVER,
            reached: 0,
            is_crossed: false,
        }
    }
}

impl Sharing {
    /// Of so many channels, each of this many bytes a picosecond.
    pub(super) fn new(channels: usize, capacity: f64) -> Sharing {
        Sharing {
            capacity,
            slots: Slots::of(channels),
            members: Vec::new(),
            channels: Vec::new(),
            flows: Vec::new(),
            crossings: Crossings::default(),
            free: Vec::new(),
            settlings: 0,
            usually_opened: 0.0,
            lowest_removed: f64::INFINITY,
            way: Vec::new(),
            added: Vec::new(),
            touched: Vec::new(),
            open: Vec::new(),
            rising: 0,
            crossed: Vec::new(),
            queue: Queue::default(),
            refill: Refill::default(),
        }
    }

    /// A new flow over these channels; its rate is known when it is settled. Its number: one that is free again, or else
    /// the next.
    pub(super) fn add(&mut self, shares: &[Share]) -> u32 {
        let new = Flow { rate: 0.0, bottleneck: NOWHERE, opened: 0, stayed: 0 };
        let flow = self.free.pop().unwrap_or_else(|| {
            self.flows.push(new);
            self.flows.len() as u32 - 1
        });
        self.flows[flow as usize] = new;
        self.way.clear();
        for Share { channel, weight } in shares.iter().copied() {
            self.way.push(Share { channel: self.slots.take(channel), weight });
        }
        self.crossings.set(flow, &self.way);
        for (hop, Share { channel, weight }) in (0..).zip(self.way.iter().copied()) {
            if channel as usize == self.channels.len() {
                self.channels.push(Channel::empty(self.capacity));
                self.members.push(Vec::new());
            }
            let members = &mut self.members[channel as usize];
            self.crossings.set_place(flow, hop, members.len() as u32);
            members.push(Member { flow, hop });
            self.channels[channel as usize].total += weight;
            self.touched.push(channel);
        }
        self.added.push(flow);
        flow
    }

    /// The flow is no more. It has been settled.
    pub(super) fn remove(&mut self, flow: u32) {
        let Flow { rate, bottleneck, .. } = self.flows[flow as usize];
        self.flows[flow as usize].bottleneck = NOWHERE;
        self.channels[bottleneck as usize].holds -= 1;
        self.lowest_removed = self.lowest_removed.min(rate);
        let hops = self.crossings.channels(flow).len();
        // Backwards, as the last member of a channel that it crosses twice is its own.
        for hop in (0..hops).rev() {
            let number = self.crossings.channels(flow)[hop];
            let weight = self.crossings.weight(flow, hop as u32);
            let place = self.crossings.place(flow, hop as u32);
            let members = &mut self.members[number as usize];
            members.swap_remove(place as usize);
            if let Some(moved) = members.get(place as usize) {
                self.crossings.set_place(moved.flow, moved.hop, place);
            }
            let channel = &mut self.channels[number as usize];
            if members.is_empty() {
                *channel = Channel::empty(self.capacity);
                self.slots.leave(number);
            } else {
                channel.left += weight * rate;
                channel.total -= weight;
            }
            self.touched.push(number);
        }
        self.crossings.clear(flow);
        self.free.push(flow);
    }

    /// How many flows cross a channel, parts of flows counted as such.
    pub(super) fn load(&self, channel: u32) -> f64 {
        self.slots.get(channel).map_or(0.0, |slot| self.channels[slot as usize].total)
    }

    /// Bytes a picosecond of a flow that is settled.
    pub(super) fn rate(&self, flow: u32) -> f64 {
        self.flows[flow as usize].rate
    }

    /// Shares out the rates after any number of flows came and went. Adds those whose rate is another now.
    pub(super) fn settle(&mut self, changed: &mut Vec<u32>) {
        self.settlings += 1;
        let is_due = self.settlings.is_multiple_of(FRESH);
        if is_due {
            self.sum_up();
        }
        let before = changed.len();
        let flows = self.flows.len() - self.free.len();
        let opened = self.usually_opened.max(self.added.len() as f64);
        if is_due || opened * OPENING_COSTS > (flows + self.slots.all_channels()) as f64 {
            let from = if is_due { 0.0 } else { self.lowest_change() };
            self.refill(from, changed);
            self.opened(changed.len() - before);
        } else {
            let opened = self.adjust(changed);
            self.opened(opened);
        }
        self.lowest_removed = f64::INFINITY;
    }

    fn opened(&mut self, flows: usize) {
        self.usually_opened += (flows as f64 - self.usually_opened) * FORGETTING;
    }

    /// What flows take of every channel.
    fn sum_up(&mut self) {
        for channel in &mut self.channels {
            channel.total = 0.0;
        }
        for flow in 0..self.flows.len() as u32 {
            for (channel, weight) in self.crossings.hops(flow) {
                self.channels[channel as usize].total += weight;
            }
        }
    }
}
