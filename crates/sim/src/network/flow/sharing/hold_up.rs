//! Congestion that spreads: flows that wait for a full channel hold up those that share a channel with them on the way there.
//!
//! Without congestion control, what a full channel does not take waits in the buffers before it, and then in those before
//! these. A buffer is first come, first served: a flow behind one that waits gets through as often as that does, and waits
//! itself. So no flow has a higher rate than one that shares a channel with it and waits further on. A node's own channel is left
//! out: adapters keep what they send apart by destination.
//!
//! Rates only fall, and flows are looked at from the lowest rate upwards: each has the rate of the slowest that can hold it up. Of
//! equally slow ones the one furthest on counts; as a flow then only waits further on, that ends, and the order of flows does not
//! matter.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{NOWHERE, Sharing};

/// The rates that are left.
#[derive(Debug, Default)]
pub(in crate::network::flow) struct HeldUp {
    /// By flow: bytes a picosecond; none of flows that are no more.
    rates: Vec<Option<f64>>,
    /// By flow: the hop before which it waits.
    waits: Vec<u32>,
    /// Flows by rate; rates are above 0, so that their bits are in their order.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl HeldUp {
    /// Bytes a picosecond of a flow, if it is one.
    pub(in crate::network::flow) fn rate(&self, flow: u32) -> Option<f64> {
        self.rates.get(flow as usize).copied().flatten()
    }
}

impl Sharing {
    /// What is left of the rates that are settled.
    pub(in crate::network::flow) fn hold_up(&self, held_up: &mut HeldUp) {
        let HeldUp { rates, waits, queue } = held_up;
        rates.clear();
        waits.clear();
        for (flow, state) in (0..).zip(&self.flows) {
            let is_open = state.bottleneck != NOWHERE;
            let hops = self.crossings.channels(flow);
            let bottleneck = hops.iter().position(|channel| *channel == state.bottleneck).unwrap_or(0);
            rates.push(is_open.then_some(state.rate));
            waits.push(bottleneck as u32);
            if is_open {
                queue.push(Reverse((state.rate.to_bits(), flow)));
            }
        }
        while let Some(Reverse((bits, flow))) = queue.pop() {
            let Some(rate) = rates[flow as usize].filter(|rate| rate.to_bits() == bits) else { continue };
            for hop in 1..waits[flow as usize] {
                let channel = self.crossings.channels(flow)[hop as usize];
                for behind in &self.members[channel as usize] {
                    let other = behind.flow as usize;
                    let Some(had) = rates[other].filter(|had| *had >= rate) else { continue };
                    // Who is as slow already may wait further on because of this one, and hold up others there.
                    if had > rate || waits[other] < behind.hop + 1 {
                        rates[other] = Some(rate);
                        waits[other] = waits[other].max(behind.hop + 1);
                        queue.push(Reverse((bits, behind.flow)));
                    }
                }
            }
        }
    }
}
