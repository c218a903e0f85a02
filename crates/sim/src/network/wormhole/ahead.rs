//! Memory that is about to be used.
//!
//! What happens in a cycle happens all over a network, and a large one does not fit into the processor's nearer caches. If each
//! flit waits for its own, most of the time is waiting. So memory is read ahead for some flits together: a word of each
//! line and nothing else, which lets the processor ask for many lines at once. Nothing depends on what is read.

use std::hint::black_box;

use super::Wormhole;
use super::flit::{Flit, PACKET};

/// So much is read ahead together: enough to wait for at once, and little enough to be still in the nearest cache when it
/// is used.
pub(super) const AHEAD: usize = 32;

impl Wormhole {
    /// For flits that come in by these lanes.
    pub(super) fn read_ahead_of_flits(&self, batch: &[(u32, Flit)]) {
        let fabric = &self.fabric;
        let mut read = 0;
        for (lane, flit) in batch {
            read ^= fabric.channels[fabric.channel(*lane)].switch;
            read ^= fabric.lanes.get(*lane as usize).map_or(0, |lane| lane.front);
            read ^= self.packets.way(*flit >> PACKET).message;
        }
        black_box(read);
        let mut read = 0;
        for (lane, flit) in batch {
            let packet = self.packets.way(*flit >> PACKET);
            let channel = fabric.channel(*lane);
            read ^= if channel < fabric.switch_channels {
                u64::from(self.routes.read_ahead(fabric.channels[channel].switch, packet.destination))
            } else {
                self.messages.get(packet.message).age
            };
        }
        black_box(read);
        let ejected = batch.iter().filter(|(lane, _)| fabric.channel(*lane) >= fabric.switch_channels);
        let message = |flit: Flit| self.packets.way(flit >> PACKET).message;
        black_box(ejected.fold(0, |read, (_, flit)| read ^ self.messages.read_ahead(message(*flit))));
    }

    /// For credits of these lanes.
    pub(super) fn read_ahead_of_credits(&self, batch: &[u32]) {
        let entries = &self.fabric.entries;
        black_box(batch.iter().fold(0, |read, lane| read ^ entries[*lane as usize].holder));
    }

    /// For lanes whose heads ask for an output lane.
    pub(super) fn read_ahead_of_heads(&self, batch: &[u32]) {
        let fabric = &self.fabric;
        let outs = batch.iter().map(|lane| fabric.channel(fabric.lanes[*lane as usize].out));
        let read = |channel: usize| fabric.channels[channel].free ^ self.wanting[self.wanting_of(channel, 0)];
        black_box(outs.fold(0, |before, channel| before ^ read(channel)));
    }
}
