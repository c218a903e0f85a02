//! Which ranks are on which node.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::access::Rank;

/// The ranks of each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The ranks of a node ascending, node after node.
    ranks: Box<[Rank]>,
    /// Where those of each node end.
    ends: Box<[usize]>,
    /// Which node each rank is on.
    of: Box<[u32]>,
}

impl Nodes {
    /// From the node of each rank, in the order of ranks: ranks of the same node have the same number, whichever it is.
    pub fn of(node_of_rank: impl IntoIterator<Item = u32>) -> Nodes {
        let mut nodes: BTreeMap<u32, Vec<Rank>> = BTreeMap::new();
        for (rank, node) in (0..).zip(node_of_rank) {
            nodes.entry(node).or_default().push(Rank(rank));
        }
        let ends = nodes.values().scan(0, |end, ranks| {
            *end += ranks.len();
            Some(*end)
        });
        let mut of = vec![0; nodes.values().map(Vec::len).sum()];
        for (node, rank) in
            (0..).zip(nodes.values()).flat_map(|(node, ranks)| ranks.iter().map(move |rank| (node, rank)))
        {
            of[rank.index()] = node;
        }
        Nodes { ends: ends.collect(), ranks: nodes.values().flatten().copied().collect(), of: of.into() }
    }

    /// On which node a rank is, and how many ranks of that are before it.
    pub(crate) fn place_of(&self, rank: Rank) -> (u32, usize) {
        (self.of[rank.index()], self.with(rank).partition_point(|other| *other < rank))
    }

    /// The ranks on the node of a rank, ascending, itself included.
    pub(crate) fn with(&self, rank: Rank) -> &[Rank] {
        let node = self.of[rank.index()] as usize;
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ranks[start..self.ends[node]]
    }

    /// How many nodes there are.
    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The ranks of each node, ascending.
    pub fn each(&self) -> impl Iterator<Item = &[Rank]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.ranks[start..*end])
    }

    /// So many ranks (all, if there are not so many), ascending: as many of one node as of another, as far as they have
    /// them, and those of a node at equal distances.
    pub fn spread(&self, count: u32) -> Arc<[Rank]> {
        let mut shares = vec![0; self.ends.len()];
        let mut left = (count as usize).min(self.ranks.len());
        while left > 0 {
            let open = self.each().zip(&shares).filter(|(ranks, share)| **share < ranks.len()).count();
            let each = (left / open).max(1);
            for (ranks, share) in self.each().zip(&mut shares) {
                let more = each.min(ranks.len() - *share).min(left);
                *share += more;
                left -= more;
            }
        }
        let of_node = |(ranks, share): (&[Rank], &usize)| -> Vec<Rank> {
            (0..*share).map(|index| ranks[index * ranks.len() / share]).collect()
        };
        let mut spread: Vec<Rank> = self.each().zip(&shares).flat_map(of_node).collect();
        spread.sort_unstable();
        spread.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(node_of_rank: &[u32], count: u32) -> Vec<u32> {
        let nodes = Nodes::of(node_of_rank.iter().copied());
        nodes.spread(count).iter().map(|rank| rank.0).collect()
    }

    #[test]
    fn nodes_have_their_ranks() {
        let nodes = Nodes::of([7, 3, 7, 3, 9]);
        let each: Vec<Vec<u32>> =
            nodes.each().map(|ranks| ranks.iter().map(|rank| rank.0).collect()).collect();
        assert_eq!(each, [vec![1, 3], vec![0, 2], vec![4]]);
        assert_eq!(nodes.count(), 3);
    }

    #[test]
    fn ranks_are_spread_over_nodes_however_they_were_dealt_out() {
        let (by_blocks, in_turn) = ([0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(spread(&by_blocks, 1), [0]);
        assert_eq!(spread(&by_blocks, 2), [0, 4]);
        assert_eq!(spread(&by_blocks, 4), [0, 2, 4, 6]);
        assert_eq!(spread(&in_turn, 2), [0, 1]);
        assert_eq!(spread(&in_turn, 4), [0, 1, 4, 5]);
        assert_eq!(spread(&in_turn, 3), [0, 1, 4]);
        assert_eq!(spread(&in_turn, 99), [0, 1, 2, 3, 4, 5, 6, 7]);
        // A small node gives what it has; the others give the rest.
        assert_eq!(spread(&[0, 1, 1, 1, 1, 2, 2, 2, 2], 5), [0, 1, 3, 5, 7]);
        assert_eq!(spread(&[0; 7], 3), [0, 2, 4]);
    }
}
