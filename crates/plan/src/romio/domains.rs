//! ROMIO's aggregators and file domains.

use std::ops::Range;

use crate::access::Rank;
use crate::site::Context;

/// Which ranks aggregate, in the order in which they get their domains: so many of each node, node after node in the order
/// of their first ranks (`cb_config_list`), `cb_nodes` at most. ROMIO does not follow a `cb_nodes` above the number of ranks.
pub(super) fn aggregators(context: &Context, ranks: u32) -> Vec<Rank> {
    let asked = &context.asked;
    let count = asked.cb_nodes.filter(|count| *count <= ranks).unwrap_or(ranks) as usize;
    let Some(each) = asked.own.ranks_per_node() else {
        return (0..ranks).map(Rank).take(count).collect();
    };
    let Some(nodes) = context.nodes.as_deref() else {
        return (0..ranks.min(each)).map(Rank).take(count).collect();
    };
    let mut nodes: Vec<&[Rank]> = nodes.each().collect();
    nodes.sort_unstable_by_key(|ranks| ranks.first().copied());
    nodes.into_iter().flat_map(|ranks| ranks.iter().take(each as usize)).copied().take(count).collect()
}

/// The interval `file` in `count` parts, some of them empty: equal parts; with a striping unit, their ends are moved to the
/// nearest border of a strip.
pub(super) fn domains(file: Range<u64>, count: u32, striping_unit: Option<u64>) -> Vec<Range<u64>> {
    let share = (file.end - file.start).div_ceil(u64::from(count.max(1)));
    let mut start = file.start;
    (1..=count)
        .map(|index| {
            let exact = file.start.saturating_add(share.saturating_mul(u64::from(index)));
            let end = match striping_unit {
                Some(_) if index == count => file.end,
                Some(unit) => nearest(exact, unit),
                None => exact,
            };
            let domain = start.min(file.end)..end.clamp(start, file.end.max(start));
            start = domain.end.max(start);
            domain
        })
        .collect()
}

fn nearest(offset: u64, unit: u64) -> u64 {
    let behind = offset % unit;
    if behind < unit - behind { offset - behind } else { offset.saturating_add(unit - behind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Direction;
    use crate::hints::Hints;
    use crate::nodes::Nodes;
    use crate::site::{Site, Via, Views};

    fn chosen(nodes: &[u32], hints: &str) -> Vec<u32> {
        let ranks = nodes.len() as u32;
        let nodes = Some(Nodes::of(nodes.iter().copied()).into());
        let site = Site { ranks, nodes, processors: ranks, via: Via::Kernel, terms: Default::default() };
        let context = site.context(&Views::WHOLE, &Hints::parse(hints).unwrap(), Direction::Write);
        aggregators(&context, ranks).into_iter().map(|rank| rank.0).collect()
    }

    #[test]
    fn one_rank_of_each_node_aggregates_if_nothing_is_said() {
        assert_eq!(chosen(&[0; 8], ""), [0]);
        assert_eq!(chosen(&[0; 8], "cb_nodes=4"), [0], "one of a node at most");
        assert_eq!(chosen(&[1, 0, 1, 0], ""), [0, 1]);
        assert_eq!(chosen(&[0, 0, 1, 1], "cb_nodes=1"), [0]);
    }

    #[test]
    fn the_list_says_how_many_of_each_node() {
        assert_eq!(chosen(&[0; 8], "cb_config_list=*:*"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(chosen(&[0; 8], "cb_config_list=*:*,cb_nodes=3"), [0, 1, 2]);
        assert_eq!(chosen(&[0, 0, 0, 1, 1, 1], "cb_config_list=*:2"), [0, 1, 3, 4]);
        assert_eq!(chosen(&[0, 0, 0, 1, 1, 1], "cb_config_list=*:2,cb_nodes=3"), [0, 1, 3]);
        assert_eq!(chosen(&[0; 4], "cb_config_list=*:2,cb_nodes=9"), [0, 1]);
    }

    #[test]
    fn domains_are_equal_parts() {
        assert_eq!(domains(5..105, 3, None), [5..39, 39..73, 73..105]);
        // The division rounds up: for the last there may be nothing left.
        assert_eq!(domains(0..9, 4, None), [0..3, 3..6, 6..9, 9..9]);
    }

    #[test]
    fn domains_end_at_the_nearest_strip() {
        assert_eq!(domains(0..1000, 3, Some(100)), [0..300, 300..700, 700..1000]);
        assert_eq!(domains(0..100, 2, Some(400)), [0..0, 0..100]);
        assert_eq!(domains(0..300, 2, Some(300)), [0..300, 300..300]);
    }
}
