//! Who sends to whom.

use crate::kernel::Stream;
use crate::network::traffic::error::TrafficError;

/// Who sends to whom.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Every message to any node, each as likely.
    Uniform {
        /// Whether a node sends to itself as well, through the network.
        to_self: bool,
    },
    /// A share of the messages to one of these nodes, each as likely; the others to any node, also each as likely.
    /// Nobody sends to itself, and a node whose only choice that would be sends nothing.
    HotSpot {
        /// The nodes.
        nodes: Vec<u32>,
        /// From 0 to 1.
        share: f64,
    },
    /// Always the same partner (Dally and Towles 2004, table 3.1).
    Permutation(Permutation),
}

/// A node's partner, from the bits of its number b(n-1) ... b0, or from its number s of N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permutation {
    /// Upper and lower half of the bits exchanged.
    Transpose,
    /// Every bit turned over.
    BitComplement,
    /// The bits in the opposite order.
    BitReverse,
    /// The bits turned left by one.
    Shuffle,
    /// s + ceil(N / 2) - 1 modulo N.
    Tornado,
    /// s + 1 modulo N.
    Neighbour,
    /// s + so many modulo N: by the nodes of a group, the worst that a dragonfly can be given (Kim et al. 2008, section 4.2).
    Shift(u32),
}

/// A pattern on a number of nodes, found to be possible.
#[derive(Debug)]
pub(super) struct Destinations {
    pattern: Pattern,
    nodes: u32,
}

impl Permutation {
    /// Its name, as a user writes it.
    pub fn name(self) -> &'static str {
        match self {
            Permutation::Transpose => "transpose",
            Permutation::BitComplement => "bit-complement",
            Permutation::BitReverse => "bit-reverse",
            Permutation::Shuffle => "shuffle",
            Permutation::Tornado => "tornado",
            Permutation::Neighbour => "neighbour",
            Permutation::Shift(_) => "shift",
        }
    }

    /// The partner of `node` among so many nodes.
    fn partner(self, node: u32, nodes: u32) -> u32 {
        let bits = nodes.ilog2();
        match self {
            Permutation::Transpose => node >> (bits / 2) | (node & ((1 << (bits / 2)) - 1)) << (bits / 2),
            Permutation::BitComplement => !node & (nodes - 1),
            Permutation::BitReverse if bits == 0 => node,
            Permutation::BitReverse => node.reverse_bits() >> (32 - bits),
            Permutation::Shuffle if bits == 0 => node,
            Permutation::Shuffle => (node << 1 | node >> (bits - 1)) & (nodes - 1),
            Permutation::Tornado => (node + nodes.div_ceil(2) - 1) % nodes,
            Permutation::Neighbour => (node + 1) % nodes,
            Permutation::Shift(by) => ((u64::from(node) + u64::from(by)) % u64::from(nodes)) as u32,
        }
    }

    fn check(self, nodes: u32) -> Result<(), TrafficError> {
        let expected = match self {
            Permutation::Tornado | Permutation::Neighbour | Permutation::Shift(_) => return Ok(()),
            Permutation::Transpose if nodes.is_power_of_two() && nodes.ilog2().is_multiple_of(2) => {
                return Ok(());
            }
            Permutation::Transpose => "a power of 4",
            _ if nodes.is_power_of_two() => return Ok(()),
            _ => "a power of 2",
        };
        Err(TrafficError::Permutation { pattern: self.name(), nodes, expected })
    }
}

impl Destinations {
    pub(super) fn of(pattern: &Pattern, nodes: u32) -> Result<Destinations, TrafficError> {
        match pattern {
            Pattern::Uniform { to_self: false } if nodes < 2 => {
                return Err(TrafficError::Pattern { pattern: "uniform", expected: "at least two nodes" });
            }
            Pattern::Uniform { .. } => {}
            Pattern::HotSpot { nodes: hot, share } => {
                if hot.is_empty() || nodes < 2 {
                    let expected = "at least one hot spot and two nodes";
                    return Err(TrafficError::Pattern { pattern: "hot-spot", expected });
                }
                if !(0.0..=1.0).contains(share) {
                    return Err(TrafficError::Share { found: *share });
                }
                if let Some(node) = hot.iter().copied().find(|node| *node >= nodes) {
                    return Err(TrafficError::NoSuchNode { node, last: nodes - 1 });
                }
            }
            Pattern::Permutation(permutation) => permutation.check(nodes)?,
        }
        Ok(Destinations { pattern: pattern.clone(), nodes })
    }

    /// Whether a node sends anything.
    pub(super) fn sends(&self, node: u32) -> bool {
        match &self.pattern {
            Pattern::HotSpot { nodes, share } => *share < 1.0 || nodes.iter().any(|hot| *hot != node),
            _ => true,
        }
    }

    /// Where a node's next message goes.
    pub(super) fn draw(&self, node: u32, stream: &mut Stream) -> u32 {
        match &self.pattern {
            Pattern::Uniform { to_self: true } => stream.below(u64::from(self.nodes)) as u32,
            Pattern::Uniform { to_self: false } => self.another(node, stream),
            Pattern::HotSpot { nodes, share } => {
                let others = nodes.iter().filter(|hot| **hot != node);
                let count = others.clone().count();
                if count == 0 || !stream.chance(*share) {
                    return self.another(node, stream);
                }
                let chosen = stream.below(count as u64) as usize;
                others.copied().nth(chosen).unwrap_or(node)
            }
            Pattern::Permutation(permutation) => permutation.partner(node, self.nodes),
        }
    }

    /// Any node but `node`.
    fn another(&self, node: u32, stream: &mut Stream) -> u32 {
        let drawn = stream.below(u64::from(self.nodes) - 1) as u32;
        drawn + u32::from(drawn >= node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_of_eight_and_sixteen() {
        let partners = |permutation: Permutation, nodes: u32| -> Vec<u32> {
            (0..nodes).map(|node| permutation.partner(node, nodes)).collect()
        };
        assert_eq!(partners(Permutation::BitComplement, 8), [7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(partners(Permutation::BitReverse, 8), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(partners(Permutation::Shuffle, 8), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(partners(Permutation::Tornado, 8), [3, 4, 5, 6, 7, 0, 1, 2]);
        assert_eq!(partners(Permutation::Neighbour, 8), [1, 2, 3, 4, 5, 6, 7, 0]);
        assert_eq!(partners(Permutation::Shift(11), 8), [3, 4, 5, 6, 7, 0, 1, 2]);
        let transposed: Vec<u32> = (0..16).map(|node| node % 4 * 4 + node / 4).collect();
        assert_eq!(partners(Permutation::Transpose, 16), transposed);
    }

    #[test]
    fn hot_spots_get_their_share_and_nobody_sends_to_itself() {
        let pattern = Pattern::HotSpot { nodes: vec![3, 5], share: 0.5 };
        let destinations = Destinations::of(&pattern, 8).expect("possible");
        let mut stream = Stream::named(1, "test");
        let mut counts = [0_u32; 8];
        for draw in 0..80_000 {
            let from = draw % 8;
            let to = destinations.draw(from, &mut stream);
            assert_ne!(from, to);
            counts[to as usize] += 1;
        }
        // A cold node gets 7 shares of 1/7 of a half of a node's messages.
        for (node, count) in counts.iter().enumerate() {
            let expected = if node == 3 || node == 5 { 25_000.0 } else { 5_000.0 };
            assert!((f64::from(*count) - expected).abs() < 0.05 * expected, "node {node}: {count}");
        }
    }
}
