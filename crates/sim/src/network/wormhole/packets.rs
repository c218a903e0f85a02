//! Packets on their way.

use crate::kernel::Slab;

/// No waypoint; and one that the packet is past.
pub(super) const DIRECT: u32 = u32::MAX;
pub(super) const PAST: u32 = u32::MAX - 1;

/// What every switch asks of a packet: eight to a line of the processor's cache, as every hop looks at one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) message: u32,
    pub(super) destination: u32,
}

/// What only networks ask that are not plain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Where it goes first, [`DIRECT`] or [`PAST`].
    pub(super) waypoint: u32,
    /// Whether its first switch is still to choose between the waypoint and the straight way.
    pub(super) is_open: bool,
    pub(super) flits: u32,
    pub(super) age: u64,
}

/// All packets on their way.
#[derive(Debug)]
pub(super) struct Packets {
    ways: Slab<Way>,
    /// By the number of the packet, where it is wanted.
    rests: Vec<Rest>,
}

impl Packets {
    pub(super) fn new() -> Packets {
        Packets { ways: Slab::new(), rests: Vec::new() }
    }

    /// Takes in a packet; gives its number. Of a network that is plain, all packets come without the rest.
    pub(super) fn insert(&mut self, way: Way, rest: Option<Rest>) -> u32 {
        let number = self.ways.insert(way);
        if let Some(rest) = rest {
            match self.rests.get_mut(number as usize) {
                Some(place) => *place = rest,
                None => self.rests.push(rest),
            }
        }
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.ways.remove(number);
    }

    #[inline]
    pub(super) fn way(&self, number: u32) -> &Way {
        &self.ways[number]
    }

    #[inline]
    pub(super) fn rest(&self, number: u32) -> &Rest {
        &self.rests[number as usize]
    }

    #[inline]
    pub(super) fn rest_mut(&mut self, number: u32) -> &mut Rest {
        &mut self.rests[number as usize]
    }
}
