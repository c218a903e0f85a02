//! Which ranks speak for others of their node.
//!
//! An aggregator is the leader of the ranks of its node behind it, up to the next aggregator there.

use std::sync::Arc;

use crate::access::Rank;
use crate::cost::Terms;
use crate::hints::{Describe, Hints};
use crate::nodes::Nodes;
use crate::operation::Operation;

/// The leaders of a group of ranks.
#[derive(Clone, Debug)]
pub struct Leaders {
    nodes: Arc<Nodes>,
    /// Ascending; at least one on each node.
    leaders: Arc<[Rank]>,
    /// Ranks of the leader that speaks for most, itself included.
    most: u32,
}

/// How ranks are dealt out to leaders: what an operation through them is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teams {
    /// Leaders, each of which has a team.
    pub leaders: u32,
    /// Ranks of the largest team, its leader included.
    pub most: u32,
    /// Whether the user asks for leaders, whatever that costs.
    pub are_asked_for: bool,
}

/// Of one rank: who speaks for it, and for whom it speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Team {
    pub(crate) leader: Rank,
    /// Of a leader: the others that it speaks for, ascending.
    pub(crate) members: Vec<Rank>,
}

impl Leaders {
    /// The aggregators, if each node has some and not all ranks are.
    pub(crate) fn of(nodes: &Arc<Nodes>, aggregators: &Arc<[Rank]>) -> Option<Leaders> {
        // Not all ranks are looked at: each does this for each operation.
        let mut places: Vec<(u32, usize)> = aggregators.iter().map(|rank| nodes.place_of(*rank)).collect();
        places.sort_unstable();
        let mut of_nodes = places.chunk_by(|one, next| one.0 == next.0);
        let mut most = 0;
        for (node, ranks) in (0..).zip(nodes.each()) {
            let on_node = of_nodes.next().filter(|places| places.iter().all(|(of, _)| *of == node))?;
            // Those before the first are the first one's, too.
            let starts = std::iter::once(0).chain(on_node.iter().skip(1).map(|(_, place)| *place));
            let ends = on_node.iter().skip(1).map(|(_, place)| *place).chain([ranks.len()]);
            most = most.max(starts.zip(ends).map(|(start, end)| end - start).max().unwrap_or(0) as u32);
        }
        let leaders = Leaders { nodes: nodes.clone(), leaders: aggregators.clone(), most };
        (most > 1).then_some(leaders)
    }

    /// All of them, ascending.
    pub(crate) fn all(&self) -> &Arc<[Rank]> {
        &self.leaders
    }

    /// Which leader a rank is, if it is one.
    pub(crate) fn index_of(&self, rank: Rank) -> Option<u32> {
        self.leaders.binary_search(&rank).ok().map(|index| index as u32)
    }

    /// The team of a rank.
    pub(crate) fn team_of(&self, rank: Rank) -> Team {
        let ranks = self.nodes.with(rank);
        let leads = |other: &Rank| self.index_of(*other).is_some();
        let (_, place) = self.nodes.place_of(rank);
        let (before, behind) = (&ranks[..place], &ranks[place + 1..]);
        if !leads(&rank) {
            let leader = before.iter().rev().chain(behind).find(|other| leads(other));
            return Team { leader: leader.copied().unwrap_or(rank), members: Vec::new() };
        }
        // Those before the first are the first one's, too.
        let before = if before.iter().any(leads) { &[] } else { before };
        let behind = behind.iter().take_while(|other| !leads(other));
        Team { leader: rank, members: before.iter().chain(behind).copied().collect() }
    }

    /// How the ranks are dealt out to them.
    pub fn teams(&self, hints: &Hints) -> Teams {
        Teams {
            leaders: self.leaders.len() as u32,
            most: self.most,
            are_asked_for: hints.describe == Some(Describe::Leaders),
        }
    }
}

impl Teams {
    /// Whether leaders are to speak for the others in an operation in which data are exchanged: where what a rank has for an
    /// aggregator costs less to copy twice more than to send by itself, and what a leader has of its team fits a buffer. All
    /// ranks say the same; and so does the cost model, by which they choose.
    pub(crate) fn are_worth_it(self, operation: &Operation, buffer_size: u64, terms: &Terms) -> bool {
        let fits = operation.most_bytes.saturating_mul(u64::from(self.most)) <= buffer_size;
        let pairs = u64::from(operation.busy.max(1)) * u64::from(self.leaders.max(1));
        let copying_s = 2.0 * operation.bytes as f64 / pairs as f64 / terms.copy_bytes_per_s;
        fits && (self.are_asked_for || copying_s < terms.message_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaders(node_of_rank: &[u32], aggregators: &[u32]) -> Option<Leaders> {
        let nodes = Arc::new(Nodes::of(node_of_rank.iter().copied()));
        Leaders::of(&nodes, &aggregators.iter().copied().map(Rank).collect())
    }

    #[test]
    fn a_leader_speaks_for_those_behind_it() {
        let leaders = leaders(&[0, 0, 0, 0, 0, 1, 1, 1], &[1, 3, 5]).unwrap();
        assert_eq!(leaders.most, 3);
        let team = |rank| leaders.team_of(Rank(rank));
        let of = |leader, members: &[u32]| Team {
            leader: Rank(leader),
            members: members.iter().copied().map(Rank).collect(),
        };
        assert_eq!(team(1), of(1, &[0, 2]));
        assert_eq!(team(3), of(3, &[4]));
        assert_eq!(team(5), of(5, &[6, 7]));
        assert_eq!([0, 2, 4, 6, 7].map(|rank| team(rank).leader.0), [1, 1, 3, 5, 5]);
    }

    #[test]
    fn every_rank_is_in_one_team() {
        let node_of_rank: Vec<u32> = (0..40).map(|rank| rank * 7 % 5).collect();
        let nodes = Arc::new(Nodes::of(node_of_rank.iter().copied()));
        for count in 5..40 {
            let leaders = Leaders::of(&nodes, &nodes.spread(count)).unwrap();
            let mut seen: Vec<Rank> = Vec::new();
            for leader in leaders.all().iter() {
                let team = leaders.team_of(*leader);
                assert_eq!(team.leader, *leader);
                assert!(team.members.len() < leaders.most as usize);
                assert!(team.members.iter().all(|member| leaders.team_of(*member).leader == *leader));
                seen.push(*leader);
                seen.extend(team.members);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..40).map(Rank).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn there_are_none_where_a_node_has_no_aggregator_or_all_aggregate() {
        assert!(leaders(&[0, 0, 1, 1], &[0]).is_none());
        assert!(leaders(&[0, 0, 1, 1], &[0, 1, 2, 3]).is_none());
        assert!(leaders(&[0, 0, 1, 1], &[0, 2]).is_some());
    }
}
