//! Meshes and tori.
//!
//! Node `n` is on port 0 of switch `n`. Nodes are numbered with the first coordinate fastest. After the node come, dimension
//! by dimension, the port against the coordinate and the port along it, if they exist; at coordinate 0 of a torus the
//! other way round. Packets go along one dimension after the other, the shorter way round; if both are as long, by the
//! parity of the coordinate where they set out.
//!
//! In a torus, a ring would let packets wait for each other all around it. So channels have two classes (Dally and Seitz
//! 1987): class 0 for packets that have yet to cross the end of the ring, class 1 for those that have, or need not. No
//! packet of class 0 leaves the coordinate behind the end, and none of class 1 crosses it: neither closes the circle.

use super::error::{MOST_NODES, TopologyError, within};
use super::picture::Place;
use super::wiring::Wiring;
use super::{Device, Routing};

#[derive(Debug)]
pub(super) struct Grid {
    dimensions: Vec<Dimension>,
    is_torus: bool,
}

#[derive(Clone, Copy, Debug)]
struct Dimension {
    extent: u32,
    /// Product of the extents before it.
    weight: u32,
    by_extent: Divisor,
    by_weight: Divisor,
    /// Whether its ends are joined. Not with two coordinates: they are neighbours already.
    is_ring: bool,
}

/// Divides numbers of nodes by a number that is always the same: with a product, which takes a small part of the time.
#[derive(Clone, Copy, Debug)]
struct Divisor(u64);

/// The next step of a packet.
struct Step {
    /// Index of the dimension; none if it is at its destination's switch.
    dimension: usize,
    /// Whether the coordinate grows.
    is_along: bool,
    /// Whether the end of the ring is still ahead.
    wraps: bool,
}

impl Grid {
    pub(super) fn wire(extents: &[u32], is_torus: bool) -> Result<(Wiring, Grid), TopologyError> {
        let kind = if is_torus { "torus" } else { "mesh" };
        within(kind, "number of dimensions", extents.len() as u32, 1..=6)?;
        let mut dimensions = Vec::new();
        let mut nodes = 1_u64;
        for extent in extents {
            within(kind, "nodes along a dimension", *extent, 1..=MOST_NODES as u32)?;
            let is_ring = is_torus && *extent > 2;
            let weight = nodes as u32;
            let (by_extent, by_weight) = (Divisor::of(*extent), Divisor::of(weight));
            dimensions.push(Dimension { extent: *extent, weight, by_extent, by_weight, is_ring });
            nodes *= u64::from(*extent);
            if nodes > MOST_NODES {
                let expected = format!("at most {MOST_NODES}");
                return Err(TopologyError::Size { topology: kind, what: "nodes", found: nodes, expected });
            }
        }
        let nodes = nodes as u32;
        let grid = Grid { dimensions, is_torus };
        let mut wiring = Wiring::new(nodes, nodes);
        for node in 0..nodes {
            wiring.link(Device::Node(node), Device::Switch(node));
        }
        for dimension in &grid.dimensions {
            for switch in 0..nodes {
                let next = match dimension.coordinate(switch) + 1 == dimension.extent {
                    false => switch + dimension.weight,
                    true if dimension.is_ring => switch - (dimension.extent - 1) * dimension.weight,
                    true => continue,
                };
                wiring.link(Device::Switch(switch), Device::Switch(next));
            }
        }
        Ok((wiring, grid))
    }

    fn step(&self, switch: u32, destination: u32) -> Option<Step> {
        let coordinates =
            |dimension: &Dimension| (dimension.coordinate(switch), dimension.coordinate(destination));
        let pairs = self.dimensions.iter().map(coordinates);
        let (dimension, (from, to)) = pairs.enumerate().find(|(_, (from, to))| from != to)?;
        let Dimension { extent, is_ring, .. } = self.dimensions[dimension];
        if !is_ring {
            return Some(Step { dimension, is_along: to > from, wraps: false });
        }
        let along = if to > from { to - from } else { to + extent - from };
        let is_along = match (2 * along).cmp(&extent) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => from.is_multiple_of(2),
            std::cmp::Ordering::Greater => false,
        };
        Some(Step { dimension, is_along, wraps: (to < from) == is_along })
    }
}

impl Dimension {
    #[inline]
    fn coordinate(&self, switch: u32) -> u32 {
        let above = self.by_weight.quotient(switch);
        above - self.by_extent.quotient(above) * self.extent
    }

    /// Ports of a switch along this dimension.
    fn ports(&self, switch: u32) -> u16 {
        if self.is_ring {
            return 2;
        }
        let coordinate = self.coordinate(switch);
        u16::from(coordinate > 0) + u16::from(coordinate + 1 < self.extent)
    }
}

impl Divisor {
    /// Bits of a number of nodes, and twice as many behind the point: what the reciprocal is too large by, less than one unit
    /// of its last place for each unit of the divisor, does not reach the next whole quotient.
    const BITS: u32 = MOST_NODES.ilog2();

    fn of(number: u32) -> Divisor {
        Divisor((1_u64 << (2 * Divisor::BITS)).div_ceil(number.into()))
    }

    #[inline]
    fn quotient(self, dividend: u32) -> u32 {
        ((u64::from(dividend) * self.0) >> (2 * Divisor::BITS)) as u32
    }
}

impl Routing for Grid {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        out.push(self.port(switch, destination));
    }

    fn port(&self, switch: u32, destination: u32) -> u16 {
        let Some(step) = self.step(switch, destination) else { return 0 };
        let before: u16 = self.dimensions[..step.dimension].iter().map(|before| before.ports(switch)).sum();
        let is_second = (self.dimensions[step.dimension].coordinate(switch) > 0) == step.is_along;
        1 + before + u16::from(is_second)
    }

    fn classes(&self) -> u8 {
        if self.is_torus { 2 } else { 1 }
    }

    fn class(&self, switch: u32, _port: u16, destination: u32) -> u8 {
        match self.step(switch, destination) {
            Some(step) => u8::from(self.is_torus && !step.wraps),
            None => 0,
        }
    }

    /// Two dimensions to a square; squares of further dimensions beside each other, and below.
    fn place(&self, device: Device) -> Place {
        let (number, shift) = match device {
            Device::Node(node) => (node, 0.6),
            Device::Switch(switch) => (switch, 0.0),
        };
        let mut place = [shift, shift];
        let mut spacing = [1.8, 1.8];
        for (index, dimension) in self.dimensions.iter().enumerate() {
            place[index % 2] += f64::from(dimension.coordinate(number)) * spacing[index % 2];
            spacing[index % 2] *= f64::from(dimension.extent) + 0.7;
        }
        Place::new(place[0], place[1])
    }

    /// Over the end of a ring, and from square to square.
    fn is_bent(&self, one: Device, other: Device) -> bool {
        let (Device::Switch(one), Device::Switch(other)) = (one, other) else { return false };
        self.dimensions.iter().enumerate().any(|(index, dimension)| {
            let distance = dimension.coordinate(one).abs_diff(dimension.coordinate(other));
            distance > 1 || (distance == 1 && index > 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_divide_as_divisions_do() {
        let most = MOST_NODES as u32;
        let divisors = (1..200).chain([4095, 4096, 4097, 65_537, most / 2 + 1, most - 1, most]);
        for number in divisors {
            let divisor = Divisor::of(number);
            let multiples = (0..=most / number).map(|factor| factor * number);
            let near = multiples.flat_map(|multiple| [multiple.saturating_sub(1), multiple]);
            for dividend in near.chain([most - 1]).filter(|dividend| *dividend < most) {
                assert_eq!(divisor.quotient(dividend), dividend / number, "{dividend} / {number}");
            }
        }
    }
}
