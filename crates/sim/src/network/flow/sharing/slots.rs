//! Numbers of the channels that flows cross.
//!
//! Of a large network's channels flows cross few at a time. What is known of these lies together by their *slot*, a number
//! that a channel has as long as flows cross it: the processor's caches then hold it, and a filling looks at nothing else.

use crate::network::bits::Active;

/// The slots of channels.
#[derive(Debug)]
pub(super) struct Slots {
    /// By channel: its slot, or [`NONE`].
    of: Vec<u32>,
    /// The channels that have one.
    used: Active,
    /// By slot: the channel that has it, or had it last.
    channels: Vec<u32>,
    /// Slots that no channel has.
    free: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Slots {
    /// Of so many channels; none has a slot yet.
    pub(super) fn of(channels: usize) -> Slots {
        Slots {
            of: vec![NONE; channels],
            used: Active::none_of(channels),
            channels: Vec::new(),
            free: Vec::new(),
        }
    }

    /// How many channels there are, with a slot or without.
    pub(super) fn all_channels(&self) -> usize {
        self.of.len()
    }

    /// The slot of a channel, if flows cross it.
    pub(super) fn get(&self, channel: u32) -> Option<u32> {
        Some(self.of[channel as usize]).filter(|slot| *slot != NONE)
    }

    /// The slot of a channel. One that has none gets one: one that is free again, or else the next.
    pub(super) fn take(&mut self, channel: u32) -> u32 {
        if let Some(slot) = self.get(channel) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.channels.push(channel);
            self.channels.len() as u32 - 1
        });
        (self.of[channel as usize], self.channels[slot as usize]) = (slot, channel);
        self.used.insert(channel as usize);
        slot
    }

    /// No flow crosses the channel of a slot any more.
    pub(super) fn leave(&mut self, slot: u32) {
        let channel = self.channels[slot as usize] as usize;
        self.of[channel] = NONE;
        self.used.remove(channel);
        self.free.push(slot);
    }

    /// The channel that has a slot.
    pub(super) fn channel(&self, slot: u32) -> u32 {
        self.channels[slot as usize]
    }

    /// The slots of all channels that have one, in order of the channels.
    pub(super) fn in_order(&self) -> impl Iterator<Item = u32> {
        self.used.iter().map(|channel| self.of[channel])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_come_in_order_of_their_channels() {
        let mut slots = Slots::of(100);
        assert_eq!([70, 3, 99, 3].map(|channel| slots.take(channel)), [0, 1, 2, 1]);
        slots.leave(0);
        assert_eq!((slots.get(70), slots.get(3)), (None, Some(1)));
        assert_eq!([0, 50].map(|channel| slots.take(channel)), [0, 3]);
        assert_eq!(slots.in_order().collect::<Vec<_>>(), [0, 1, 3, 2]);
        assert_eq!([0, 1, 3, 2].map(|slot| slots.channel(slot)), [0, 3, 50, 99]);
    }
}
