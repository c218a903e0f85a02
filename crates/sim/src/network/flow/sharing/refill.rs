//! The filling from a level on below which nothing changes.
//!
//! The level rises from the channel that is full first to the next. As flows stay behind, there is more of a channel for
//! those left: when a channel will be full only moves up, and is reckoned anew when it comes first.

use super::minima::Minima;
use super::slots::Slots;
use super::{Channel, Flow, ROUNDING, Sharing};

/// What is needed during a filling: kept for its room.
#[derive(Debug, Default)]
pub(super) struct Refill {
    /// By channel: together, as every flow that stays changes those of all channels that it crosses.
    loads: Vec<Load>,
    /// The channels that flows cross which have no rate yet, and when each will be full at the earliest.
    crossed: Vec<u32>,
    full: Minima,
    /// Flows that a channel has just filled up for.
    staying: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Load {
    /// What flows that stay have left of the channel.
    left: f64,
    /// Sum of the weights of the others.
    weight: f64,
}

/// A rate found again differs by no more than this part, because of the order of sums. It is not another then.
const SAME: f64 = 1e-13;

impl Sharing {
    /// A level below which nothing is other than before. Up to there, the flows that went were still rising with the
    /// others, and the new ones do not fill any channel.
    pub(super) fn lowest_change(&self) -> f64 {
        let channels = self.added.iter().flat_map(|flow| self.crossings.channels(*flow));
        channels.fold(self.lowest_removed, |lowest, channel| lowest.min(self.full_not_before(*channel)))
    }

    /// A level below which a channel is not full: at which it would be, if all rose to their equal part of it, and those
    /// that stayed below that left the others the rest.
    fn full_not_before(&self, channel: u32) -> f64 {
        let total = self.channels[channel as usize].total;
        let part = self.capacity / total;
        let (mut left, mut weight) = (self.capacity, total);
        for member in &self.members[channel as usize] {
            let flow = &self.flows[member.flow as usize];
            if flow.stays_below(part) {
                let own = self.crossings.weight(member.flow, member.hop);
                left -= own * flow.rate;
                weight -= own;
            }
        }
        left / weight
    }

    /// Shares out the rates; those below a level stay as they are. Adds the flows whose rate is another now.
    pub(super) fn refill(&mut self, from: f64, changed: &mut Vec<u32>) {
        self.added.clear();
        self.touched.clear();
        self.refill.empty(self.capacity, &mut self.channels);
        let mut rising = self.keep_below(from);
        if rising == 0 {
            // What the flows that went leave of their channels is known.
            return;
        }
        self.refill.start(&self.slots);
        let mut level = 0.0_f64;
        while rising > 0 {
            let (number, full_at) = self.refill.first_full();
            level = level.max(full_at);
            let stayed = self.stay_at(number, level, changed);
            let channel = &mut self.channels[number as usize];
            (channel.holds, channel.level) = (channel.holds + stayed as u32, level);
            rising -= stayed;
        }
        for (channel, load) in self.channels.iter_mut().zip(&self.refill.loads) {
            channel.left = load.left;
        }
    }

    /// Flows below a level stay as they are; gives how many others there are. What these leave of every channel is summed
    /// up over the fewer: those that stay, or those that do not.
    fn keep_below(&mut self, level: f64) -> usize {
        let most = level * (1.0 - ROUNDING);
        let mut kept = 0;
        for flow in &mut self.flows {
            if flow.stays_below(most) {
                flow.stayed = self.settlings;
                self.channels[flow.bottleneck as usize].holds += 1;
                kept += 1;
            }
        }
        let rising = self.flows.len() - self.free.len() - kept;
        let (loads, flows) = (self.refill.loads.as_mut_slice(), (0..).zip(&self.flows));
        // Two visits a rising flow, one now and one when it stays, or else one a flow.
        if rising < kept {
            for (load, channel) in loads.iter_mut().zip(&self.channels) {
                *load = Load { left: channel.left, weight: 0.0 };
            }
            for (number, flow) in flows.filter(|(_, flow)| flow.stayed != self.settlings) {
                for (channel, weight) in self.crossings.hops(number) {
                    loads[channel as usize].take(-weight, -weight * flow.rate);
                }
            }
        } else {
            for (number, flow) in flows.filter(|(_, flow)| flow.stayed == self.settlings) {
                for (channel, weight) in self.crossings.hops(number) {
                    loads[channel as usize].take(weight, weight * flow.rate);
                }
            }
        }
        rising
    }

    /// The flows of a channel that have no rate yet stay at this level; gives how many.
    fn stay_at(&mut self, number: u32, level: f64, changed: &mut Vec<u32>) -> usize {
        let Sharing { members, flows, crossings, refill: Refill { loads, staying, .. }, .. } = self;
        let (members, flows) = (&members[number as usize], flows.as_mut_slice());
        let (loads, settlings) = (loads.as_mut_slice(), self.settlings);
        // Half of them, in no order: sorted out without a branch, before anything is done about them.
        staying.resize(staying.len().max(members.len() + 1), 0);
        let mut stayed = 0;
        for member in members {
            staying[stayed] = member.flow;
            stayed += usize::from(flows[member.flow as usize].stayed != settlings);
        }
        let mut crosses_twice = 0;
        for &flow in &staying[..stayed] {
            let Flow { rate, bottleneck, stayed, .. } = &mut flows[flow as usize];
            if *stayed == settlings {
                crosses_twice += 1;
                continue;
            }
            (*bottleneck, *stayed) = (number, settlings);
            if (*rate - level).abs() > SAME * level {
                *rate = level;
                changed.push(flow);
            }
            match crossings.weights(flow) {
                None => {
                    for &channel in crossings.channels(flow) {
                        loads[channel as usize].take(1.0, level);
                    }
                }
                Some(weights) => {
                    for (&channel, &weight) in crossings.channels(flow).iter().zip(weights) {
                        loads[channel as usize].take(weight, weight * level);
                    }
                }
            }
        }
        stayed - crosses_twice
    }
}

impl Refill {
    /// No flow stays yet.
    fn empty(&mut self, capacity: f64, channels: &mut [Channel]) {
        self.loads.clear();
        for channel in channels {
            channel.holds = 0;
            self.loads.push(Load { left: capacity, weight: channel.total });
        }
    }

    /// Finds out when each channel will be full.
    fn start(&mut self, slots: &Slots) {
        let Refill { loads, crossed, full, .. } = self;
        crossed.clear();
        crossed.extend(slots.in_order().filter(|slot| loads[*slot as usize].weight > ROUNDING));
        full.fill(crossed.iter().map(|channel| loads[*channel as usize].full_at()));
    }

    /// Takes out the channel that is full first, and gives the level at which it is.
    fn first_full(&mut self) -> (u32, f64) {
        loop {
            let (expected, place) = self.full.least();
            let number = self.crossed[place];
            let full_at = self.loads[number as usize].full_at();
            if full_at > expected {
                self.full.set(place, full_at);
                continue;
            }
            assert!(expected < f64::INFINITY, "every flow crosses a channel as a whole");
            self.full.set(place, f64::INFINITY);
            return (number, full_at);
        }
    }
}

impl Load {
    /// The level at which the channel is full; infinite if no flow will fill it.
    #[inline]
    fn full_at(&self) -> f64 {
        // No flow has so small a part of itself anywhere; but rounding may leave such.
        if self.weight > ROUNDING { self.left.max(0.0) / self.weight } else { f64::INFINITY }
    }

    #[inline]
    fn take(&mut self, weight: f64, rate: f64) {
        self.left -= rate;
        self.weight -= weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Stream;
    use crate::network::flow::routes::Share;

    const CHANNELS: u64 = 30;

    /// One channel as a whole, and parts of some others.
    fn way(stream: &mut Stream) -> Vec<Share> {
        let mut way = vec![Share { channel: stream.below(CHANNELS) as u32, weight: 1.0 }];
        for _ in 0..stream.below(5) {
            let weight = if stream.chance(0.5) { 1.0 } else { 1.0 / (1 + stream.below(3)) as f64 };
            way.push(Share { channel: stream.below(CHANNELS) as u32, weight });
        }
        way
    }

    #[test]
    fn both_ways_to_fill_find_the_same_rates() {
        let mut stream = Stream::named(1, "ways");
        let mut adjusted = Sharing::new(CHANNELS as usize, 1.0);
        let mut refilled = Sharing::new(CHANNELS as usize, 1.0);
        // One that goes from one to the other, as a network's does.
        let mut mixed = Sharing::new(CHANNELS as usize, 1.0);
        let mut flows: Vec<u32> = Vec::new();
        let mut changed = Vec::new();
        for step in 0..1500 {
            for _ in 0..1 + stream.below(2) {
                if flows.is_empty() || stream.chance(if step % 500 < 250 { 0.7 } else { 0.3 }) {
                    let way = way(&mut stream);
                    flows.push(adjusted.add(&way));
                    assert_eq!([refilled.add(&way), mixed.add(&way)], [flows[flows.len() - 1]; 2]);
                } else {
                    // The last ones may be new, and are settled before they go.
                    let flow = flows.swap_remove(stream.below(flows.len() as u64) as usize);
                    let all = [(&mut adjusted, false), (&mut refilled, true), (&mut mixed, step % 3 == 0)];
                    for (sharing, is_refilled) in all {
                        settle(sharing, is_refilled, &mut changed);
                        sharing.remove(flow);
                    }
                }
            }
            settle(&mut mixed, stream.chance(0.5), &mut changed);
            settle(&mut adjusted, false, &mut changed);
            settle(&mut refilled, true, &mut changed);
            for flow in &flows {
                let expected = adjusted.rate(*flow);
                for found in [refilled.rate(*flow), mixed.rate(*flow)] {
                    assert!((found - expected).abs() < 1e-9 * expected, "{step}: {found} not {expected}");
                }
            }
        }
    }

    fn settle(sharing: &mut Sharing, is_refilled: bool, changed: &mut Vec<u32>) {
        sharing.settlings += 1;
        if is_refilled {
            let from = sharing.lowest_change();
            sharing.refill(from, changed);
        } else {
            sharing.adjust(changed);
        }
        sharing.lowest_removed = f64::INFINITY;
    }
}
