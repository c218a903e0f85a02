//! The filling done over only as far as it differs from the last.
//!
//! Of all other flows it is known where they will stay. What is not known is *open*: at first, the new flows. The level
//! rises from one channel to the next that can matter:
//!
//! - A channel is full for its open flows, given what the others will have. If some of those would have more than the level
//!   now, this comes too early: they are opened too. Else, the open ones stay.
//! - The level is that of the flows that have their bottleneck in a channel, and that is not full now. They are opened.
//!
//! What is below the level never changes again, so every flow is opened once at most, and stays once. The cost is that of
//! the flows that are opened, and hardly any of those keeps its rate.

use super::queue::Level;
use super::{Channel, Flow, ROUNDING, Sharing};

impl Sharing {
    /// Shares out the rates. Adds the flows whose rate is another now, and gives how many had to be opened.
    pub(super) fn adjust(&mut self, changed: &mut Vec<u32>) -> usize {
        while let Some(flow) = self.added.pop() {
            self.open_flow(flow);
        }
        while let Some(channel) = self.touched.pop() {
            self.queue(channel);
        }
        self.queue_crossed();
        self.fill();
        let opened = self.open.len();
        for (number, before) in self.open.drain(..) {
            if self.flows[number as usize].rate != before {
                changed.push(number);
            }
        }
        opened
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
        for (crossed, weight) in self.crossings.hops(number) {
            let channel = &mut self.channels[crossed as usize];
            if channel.reached != self.settlings {
                (channel.reached, channel.open, channel.weight) = (self.settlings, 0, 0.0);
            }
            if !channel.is_crossed {
                channel.is_crossed = true;
                self.crossed.push(crossed);
            }
            channel.left += weight * flow.rate;
            channel.weight += weight;
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
            for (crossed, weight) in self.crossings.hops(member.flow) {
                let channel = &mut self.channels[crossed as usize];
                channel.left -= weight * level;
                channel.weight -= weight;
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
            let level = |number: u32| {
                let channel = &mut channels[number as usize];
                channel.queued = channel.due(capacity);
                channel.queued
            };
            self.queue.keep(level, |number| self.slots.channel(number));
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
