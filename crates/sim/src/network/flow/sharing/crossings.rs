//! Which channels every flow crosses.
//!
//! In one table, whose rows are as long as the longest way: a filling goes through the ways of hundreds of flows, a few
//! numbers each, in no order, and the processor should find them where it expects them.

use crate::network::flow::routes::Share;

/// The ways of flows, by the number of the flow.
#[derive(Debug, Default)]
pub(super) struct Crossings {
    /// Hops that a row has room for.
    room: usize,
    /// By flow: how many hops it has.
    lengths: Vec<u32>,
    channels: Vec<u32>,
    /// Index of the hop among its channel's members.
    places: Vec<u32>,
    /// The part of the flow that crosses the channel. Empty as long as all flows cross theirs as a whole.
    weights: Vec<f64>,
}

/// A way over this many channels more often than not costs no new table.
const STEP: usize = 4;

impl Crossings {
    /// The flow crosses these channels; its places among their members are not known yet.
    pub(super) fn set(&mut self, flow: u32, shares: &[Share]) {
        let flow = flow as usize;
        if shares.len() > self.room {
            self.widen(shares.len().next_multiple_of(STEP));
        }
        if flow >= self.lengths.len() {
            self.lengths.resize(flow + 1, 0);
            self.channels.resize((flow + 1) * self.room, 0);
            self.places.resize((flow + 1) * self.room, 0);
        }
        if !self.weights.is_empty() || shares.iter().any(|share| share.weight != 1.0) {
            self.weights.resize(self.lengths.len() * self.room, 1.0);
        }
        self.lengths[flow] = shares.len() as u32;
        let start = flow * self.room;
        for (cell, share) in self.channels[start..].iter_mut().zip(shares) {
            *cell = share.channel;
        }
        for (cell, share) in self.weights.iter_mut().skip(start).zip(shares) {
            *cell = share.weight;
        }
    }

    /// The flow crosses nothing any more.
    pub(super) fn clear(&mut self, flow: u32) {
        self.lengths[flow as usize] = 0;
    }

    #[inline]
    pub(super) fn channels(&self, flow: u32) -> &[u32] {
        let start = flow as usize * self.room;
        &self.channels[start..start + self.lengths[flow as usize] as usize]
    }

    /// The parts of the flow that cross its channels; none if all of it crosses each.
    #[inline]
    pub(super) fn weights(&self, flow: u32) -> Option<&[f64]> {
        if self.weights.is_empty() {
            return None;
        }
        let start = flow as usize * self.room;
        Some(&self.weights[start..start + self.lengths[flow as usize] as usize])
    }

    /// The part of the flow that crosses a channel.
    pub(super) fn weight(&self, flow: u32, hop: u32) -> f64 {
        self.weights.get(flow as usize * self.room + hop as usize).copied().unwrap_or(1.0)
    }

    /// The channels that it crosses, and with how much of itself.
    #[inline]
    pub(super) fn hops(&self, flow: u32) -> impl Iterator<Item = (u32, f64)> {
        let weights = self.weights(flow);
        let weight = move |hop: usize| weights.map_or(1.0, |weights| weights[hop]);
        self.channels(flow).iter().enumerate().map(move |(hop, channel)| (*channel, weight(hop)))
    }

    pub(super) fn place(&self, flow: u32, hop: u32) -> u32 {
        self.places[flow as usize * self.room + hop as usize]
    }

    pub(super) fn set_place(&mut self, flow: u32, hop: u32, place: u32) {
        self.places[flow as usize * self.room + hop as usize] = place;
    }

    fn widen(&mut self, room: usize) {
        let flows = self.lengths.len();
        rearrange(&mut self.channels, flows, self.room, room, 0);
        rearrange(&mut self.places, flows, self.room, room, 0);
        if !self.weights.is_empty() {
            rearrange(&mut self.weights, flows, self.room, room, 1.0);
        }
        self.room = room;
    }
}

/// Gives every row of a table room for `room` cells instead of `before`.
fn rearrange<T: Copy>(table: &mut Vec<T>, rows: usize, before: usize, room: usize, filler: T) {
    let old = std::mem::replace(table, vec![filler; rows * room]);
    if before > 0 {
        for (row, old) in table.chunks_exact_mut(room).zip(old.chunks_exact(before)) {
            row[..before].copy_from_slice(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(channel: u32, weight: f64) -> Share {
        Share { channel, weight }
    }

    #[test]
    fn longer_ways_and_parts_leave_the_others_as_they_are() {
        let mut crossings = Crossings::default();
        crossings.set(0, &[share(3, 1.0), share(5, 1.0)]);
        crossings.set_place(0, 1, 7);
        crossings.set(1, &[1, 2, 3, 4, 5, 6].map(|channel| share(channel, 1.0)));
        assert_eq!((crossings.channels(0), crossings.place(0, 1)), (&[3, 5][..], 7));
        assert_eq!(crossings.weights(0), None);
        crossings.set(2, &[share(9, 0.25)]);
        assert_eq!(crossings.hops(0).collect::<Vec<_>>(), [(3, 1.0), (5, 1.0)]);
        assert_eq!(crossings.hops(2).collect::<Vec<_>>(), [(9, 0.25)]);
        crossings.clear(1);
        assert_eq!(crossings.channels(1), &[]);
    }
}
