//! A tree over the ranks of a group, and sums that go up it and come down again.
//!
//! The tree is binomial: the parent of a rank is the rank without its lowest bit, so that the ranks below a rank are
//! consecutive, beginning with itself. A sum over all ranks goes up, each rank's after those of its children; what it comes
//! to goes down. For P ranks that are 2 (P − 1) messages in 2 ⌈log₂ P⌉ steps, however many ranks there are: no power of two
//! is needed. No rank sends more than ⌈log₂ P⌉: rank 0 sends only downwards, and any other has a parent, and fewer children.
//!
//! An exchange in which each rank adds up for itself (recursive doubling) takes half the steps, but P ⌈log₂ P⌉ messages,
//! for which each rank would wait ⌈log₂ P⌉ times instead of twice: where ranks share processors, each wait is a turn. And
//! one rank adds up for all, so that all have the same result also of sums whose order counts.

use std::ops::Range;

use crate::access::{Group, Rank};

/// Where a rank is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree(Group);

impl Tree {
    /// That of a rank.
    pub fn of(group: Group) -> Tree {
        Tree(group)
    }

    /// The next rank on the way to rank 0, which has none.
    pub fn parent(self) -> Option<Rank> {
        let rank = self.0.rank.0;
        (rank > 0).then(|| Rank(rank & (rank - 1)))
    }

    /// Those whose parent this rank is, ascending: the last has most ranks below it, and is told first of what goes down.
    pub fn children(self) -> impl DoubleEndedIterator<Item = Rank> {
        let Group { rank: Rank(rank), ranks } = self.0;
        let bits = if rank == 0 { u32::BITS } else { rank.trailing_zeros() };
        (0..bits)
            .filter_map(move |bit| rank.checked_add(1 << bit))
            .filter(move |child| *child < ranks)
            .map(Rank)
    }

    /// The child with all that are below it.
    pub fn below(self, child: Rank) -> Range<u32> {
        let end = child.0.saturating_add(1 << child.0.trailing_zeros().min(u32::BITS - 1));
        child.0..end.min(self.0.ranks)
    }

    /// Steps from rank 0 to the rank that is furthest from it.
    pub fn depth(ranks: u32) -> u32 {
        u32::BITS - ranks.saturating_sub(1).leading_zeros()
    }
}

/// What can be added up in the order of ranks.
pub(crate) trait Sum {
    /// Adds what comes from the ranks behind those that this is of.
    fn add(&mut self, later: Self);
}

/// A sum on its way up, at one rank.
#[derive(Debug)]
pub(crate) struct Sweep<T> {
    tree: Tree,
    own: Option<T>,
    /// By child. They are added when all are there, and so in the same order however they come.
    of_children: Vec<Option<T>>,
}

impl<T: Sum> Sweep<T> {
    pub(crate) fn new(tree: Tree) -> Sweep<T> {
        Sweep { tree, own: None, of_children: tree.children().map(|_| None).collect() }
    }

    /// This rank's own part. The sum over it and all below it, if that is complete.
    pub(crate) fn begin(&mut self, own: T) -> Option<T> {
        self.own = Some(own);
        self.sum()
    }

    /// The sum over a child and all below it. The same.
    ///
    /// # Errors
    /// If that rank is no child, or has said it before.
    pub(crate) fn take(&mut self, from: Rank, sum: T) -> Result<Option<T>, Unexpected> {
        let child = self.tree.children().position(|child| child == from).ok_or(Unexpected)?;
        match self.of_children.get_mut(child) {
            Some(slot @ None) => *slot = Some(sum),
            _ => return Err(Unexpected),
        }
        Ok(self.sum())
    }

    fn sum(&mut self) -> Option<T> {
        if self.own.is_none() || self.of_children.iter().any(Option::is_none) {
            return None;
        }
        let mut sum = self.own.take()?;
        // Who comes now has said it before.
        std::mem::take(&mut self.of_children).into_iter().flatten().for_each(|later| sum.add(later));
        Some(sum)
    }
}

/// A message that may not come from that rank, or not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unexpected;

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(rank: u32, ranks: u32) -> Tree {
        Tree::of(Group { rank: Rank(rank), ranks })
    }

    #[test]
    fn every_rank_is_below_each_of_its_ancestors_once() {
        for ranks in [1, 2, 3, 9, 16, 17, 100, 1000] {
            let mut parents = vec![0; ranks as usize];
            for rank in 0..ranks {
                let tree = tree(rank, ranks);
                let mut next = rank + 1;
                for child in tree.children() {
                    let below = tree.below(child);
                    assert_eq!(below.start, next, "{rank} of {ranks}");
                    next = below.end;
                    parents[child.index()] += 1;
                    assert_eq!(super::Tree::of(Group { rank: child, ranks }).parent(), Some(Rank(rank)));
                }
                let sent = tree.children().count() as u32 + u32::from(tree.parent().is_some());
                assert!(sent <= Tree::depth(ranks), "{rank} of {ranks} sends {sent}");
            }
            assert_eq!(parents[0], 0);
            assert!(parents[1..].iter().all(|count| *count == 1));
        }
        assert_eq!([1, 2, 3, 8, 9].map(Tree::depth), [0, 1, 2, 3, 4]);
    }

    impl Sum for Vec<u32> {
        fn add(&mut self, later: Vec<u32>) {
            self.extend(later);
        }
    }

    #[test]
    fn parts_are_added_in_the_order_of_ranks() {
        let mut sweep = Sweep::new(tree(8, 13));
        assert_eq!(sweep.take(Rank(12), vec![12]), Ok(None));
        assert_eq!(sweep.begin(vec![8]), None);
        assert_eq!(sweep.take(Rank(10), vec![10, 11]), Ok(None));
        assert_eq!(sweep.take(Rank(12), vec![12]), Err(Unexpected));
        assert_eq!(sweep.take(Rank(11), vec![11]), Err(Unexpected));
        assert_eq!(sweep.take(Rank(9), vec![9]), Ok(Some(vec![8, 9, 10, 11, 12])));
        assert_eq!(sweep.take(Rank(9), vec![9]), Err(Unexpected));
    }
}
