//! Nodes as senders: what each has still to send.

use std::collections::VecDeque;

use super::fabric::NO_LANE;
use super::messages::NONE;
use crate::network::bits::Active;

/// A node as a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    /// First and last of the messages that it has still to send.
    pub(super) first: u32,
    pub(super) last: u32,
    /// The packet that it is sending, how many flits are left, and the lane if it has one.
    pub(super) packet: u32,
    pub(super) left: u32,
    pub(super) lane: u32,
    /// Where the round robin over its lanes goes on.
    pub(super) next_lane: u8,
}

#[derive(Debug)]
pub(super) struct Senders {
    pub(super) at: Vec<Sender>,
    /// Nodes that may have something to send and a credit.
    pub(super) active: Active,
    /// Messages that are still to come, with their cycles.
    pub(super) coming: VecDeque<(u64, u32)>,
}

impl Senders {
    pub(super) fn new(nodes: usize) -> Senders {
        let sender = Sender { first: NONE, last: NONE, packet: NONE, left: 0, lane: NO_LANE, next_lane: 0 };
        Senders { at: vec![sender; nodes], active: Active::none_of(nodes), coming: VecDeque::new() }
    }

    /// A message is to be sent from `cycle` on.
    pub(super) fn add(&mut self, cycle: u64, message: u32) {
        let mut place = self.coming.len();
        while place > 0 && self.coming[place - 1].0 > cycle {
            place -= 1;
        }
        if place == self.coming.len() {
            self.coming.push_back((cycle, message));
        } else {
            self.coming.insert(place, (cycle, message));
        }
    }

    /// A credit has come back to a node.
    pub(super) fn wake(&mut self, node: u32) {
        let sender = &self.at[node as usize];
        if sender.packet != NONE || sender.first != NONE {
            self.active.insert(node as usize);
        }
    }

    pub(super) fn is_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// The cycle of the next message to come; never, if there is none.
    pub(super) fn due(&self) -> u64 {
        self.coming.front().map_or(u64::MAX, |(cycle, _)| *cycle)
    }
}
