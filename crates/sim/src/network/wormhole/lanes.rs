//! The lanes: on one side the credits of who sends into one, on the other its buffer.

use super::Flit;
use super::wiring::Wiring;

/// No lane holds it.
pub(super) const NOBODY: u32 = u32::MAX;

/// How far the packet at the front of a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Idle,
    /// Its head waits for its route and then for an output lane.
    Routing,
    /// Its front flit has an output lane, and may ask for the switch soon.
    Settling,
    /// Its flits ask for the switch as they come.
    Moving,
}

/// The side of the switch that a lane leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    /// Place of the front flit in the ring, and how many flits there are.
    start: u16,
    pub(super) length: u16,
    pub(super) stage: Stage,
    /// The output port of the packet at the front, and the class of the output lane.
    pub(super) port: u8,
    pub(super) class: u8,
    /// The output lane that it has.
    pub(super) out: u32,
    /// Round-robin state: which output lane to accept first, by port and lane.
    pub(super) accept: u16,
}

#[derive(Debug)]
pub(super) struct Lanes {
    /// Bits of a lane's number that count within its channel.
    pub(super) shift: u32,
    /// The lanes that lead into switches.
    pub(super) at: Vec<Lane>,
    /// Their flits: a ring for each.
    flits: Vec<Flit>,
    ring_shift: u32,
    /// Flits of a lane's buffer.
    pub(super) depth: u16,
    /// Flits that may be sent into each lane.
    pub(super) credits: Vec<u16>,
    /// For each lane, that of its sender whose packet has it.
    pub(super) holder: Vec<u32>,
    /// Round-robin state: for each lane, the one of its sender that goes first.
    pub(super) grant: Vec<u16>,
    /// For each channel, its lanes that no packet has.
    pub(super) free: Vec<u64>,
    /// And those that no packet may have before all credits are back.
    draining: Vec<u64>,
    /// For each channel, flits that are on it or in the buffers behind.
    pub(super) used: Vec<u32>,
}

impl Lanes {
    pub(super) fn new(wiring: &Wiring, virtual_channels: u32, buffer: u32) -> Lanes {
        let shift = virtual_channels.next_power_of_two().ilog2();
        let ring_shift = buffer.next_power_of_two().ilog2();
        let all = wiring.channels() << shift;
        let switch_channels = wiring.switch_channels() << shift;
        let lane = Lane { start: 0, length: 0, stage: Stage::Idle, port: 0, class: 0, out: 0, accept: 0 };
        let depth = buffer as u16;
        Lanes {
            shift,
            at: vec![lane; switch_channels],
            flits: vec![0; switch_channels << ring_shift],
            ring_shift,
            depth,
            credits: vec![depth; all],
            holder: vec![NOBODY; all],
            grant: vec![0; all],
            free: vec![!0 >> (64 - virtual_channels); wiring.channels()],
            draining: vec![0; wiring.channels()],
            used: vec![0; wiring.channels()],
        }
    }

    #[inline]
    pub(super) fn channel(&self, lane: u32) -> usize {
        (lane >> self.shift) as usize
    }

    /// Which of its channel's lanes it is.
    #[inline]
    pub(super) fn within(&self, lane: u32) -> u32 {
        lane & ((1 << self.shift) - 1)
    }

    /// Puts a flit into a lane's buffer; gives how many there are.
    #[inline]
    pub(super) fn push(&mut self, lane: u32, flit: Flit) -> u16 {
        let at = &mut self.at[lane as usize];
        debug_assert!(at.length < self.depth, "credits keep buffers from running over");
        let place = u32::from(at.start.wrapping_add(at.length)) & ((1 << self.ring_shift) - 1);
        at.length += 1;
        self.flits[((lane << self.ring_shift) | place) as usize] = flit;
        self.at[lane as usize].length
    }

    /// The flit at the front of a lane that has one.
    #[inline]
    pub(super) fn front(&self, lane: u32) -> Flit {
        let place = u32::from(self.at[lane as usize].start) & ((1 << self.ring_shift) - 1);
        self.flits[((lane << self.ring_shift) | place) as usize]
    }

    /// Takes out the flit at the front; gives it and how many are left.
    #[inline]
    pub(super) fn pop(&mut self, lane: u32) -> (Flit, u16) {
        let flit = self.front(lane);
        let at = &mut self.at[lane as usize];
        at.start = at.start.wrapping_add(1);
        at.length -= 1;
        (flit, at.length)
    }

    /// A flit is sent into a lane that has a credit; gives how many it has left.
    #[inline]
    pub(super) fn use_credit(&mut self, lane: u32) -> u16 {
        let channel = self.channel(lane);
        self.used[channel] += 1;
        self.credits[lane as usize] -= 1;
        self.credits[lane as usize]
    }

    /// A flit has left a lane. Gives whether the lane is free now, having waited for that.
    #[inline]
    pub(super) fn return_credit(&mut self, lane: u32) -> bool {
        let (channel, bit) = (self.channel(lane), 1 << self.within(lane));
        self.used[channel] -= 1;
        self.credits[lane as usize] += 1;
        if self.draining[channel] & bit == 0 || self.credits[lane as usize] < self.depth {
            return false;
        }
        self.draining[channel] &= !bit;
        self.free[channel] |= bit;
        true
    }

    /// A packet takes a lane that is free.
    #[inline]
    pub(super) fn take(&mut self, lane: u32, holder: u32) {
        let channel = self.channel(lane);
        self.free[channel] &= !(1 << self.within(lane));
        self.holder[lane as usize] = holder;
    }

    /// A packet's tail was sent into the lane, which is free now, or when all credits are back.
    #[inline]
    pub(super) fn release(&mut self, lane: u32, is_when_empty: bool) {
        let (channel, bit) = (self.channel(lane), 1 << self.within(lane));
        self.holder[lane as usize] = NOBODY;
        if is_when_empty {
            self.draining[channel] |= bit;
        } else {
            self.free[channel] |= bit;
        }
    }
}
