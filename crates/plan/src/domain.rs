//! File domains: the part of the file that one aggregator reads or writes, and its windows.

use std::ops::Range;
use std::sync::Arc;

use crate::access::{Access, Rank};
use crate::site::Context;

/// Who aggregates, and how large a part at a time.
#[derive(Clone, Debug)]
pub(crate) struct Domains {
    ranks: u32,
    aggregators: u32,
    /// Which ranks aggregate, ascending, if not ranks at equal distances.
    chosen: Option<Arc<[Rank]>>,
    buffer_size: u64,
    striping_unit: u64,
}

/// The part of the file that one aggregator reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Domain {
    /// Which part.
    pub(crate) file: Range<u64>,
    /// Where windows are counted from: at or before the first byte.
    origin: u64,
    buffer_size: u64,
}

/// What of a rank's access lies in the domain of an aggregator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// Which aggregator.
    pub(crate) index: u32,
    /// Its rank.
    pub(crate) rank: Rank,
    /// Its domain.
    pub(crate) domain: Domain,
    /// Which data bytes of the rank's view.
    pub(crate) positions: Range<u64>,
}

impl Domains {
    /// As a context says, for so many ranks.
    pub(crate) fn new(context: &Context, ranks: u32) -> Domains {
        let hints = &context.hints;
        let striping_unit = hints.striping_unit.unwrap_or(1);
        // Whole strips, if one fits: a window's borders are borders of strips then.
        let size = hints.buffer_size();
        let buffer_size = (size - size % striping_unit).max(size.min(striping_unit)).max(1);
        let chosen = context.aggregators.clone();
        Domains { ranks, aggregators: hints.aggregators(ranks), chosen, buffer_size, striping_unit }
    }

    /// How many ranks aggregate.
    pub(crate) fn count(&self) -> u32 {
        self.aggregators
    }

    /// The domain of an aggregator in an interval of the file: an equal part, its borders on multiples of the striping
    /// unit.
    pub(crate) fn domain(&self, all: &Range<u64>, index: u32) -> Domain {
        let file = self.border(all, index)..self.border(all, index + 1);
        // Windows that cannot hold a strip gain nothing from its borders.
        let whole = self.buffer_size >= self.striping_unit;
        let origin = if whole { self.aligned(file.start) } else { file.start };
        Domain { file, origin, buffer_size: self.buffer_size }
    }

    /// Where the domain of an aggregator begins, and the one before ends.
    fn border(&self, all: &Range<u64>, index: u32) -> u64 {
        let share = (all.end - all.start).div_ceil(u64::from(self.aggregators));
        let exact = all.start.saturating_add(share.saturating_mul(u64::from(index))).min(all.end);
        if index == 0 || index == self.aggregators || exact == all.end {
            return exact;
        }
        self.aligned(exact).clamp(all.start, all.end)
    }

    /// The aggregator in whose domain a byte of the interval is.
    fn index_at(&self, all: &Range<u64>, offset: u64) -> u32 {
        let (mut low, mut high) = (0, self.aggregators - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.border(all, middle + 1) <= offset { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// What of an access lies in which domains of the interval, ascending: of those alone in which something does.
    pub(crate) fn parts_of(&self, access: &Access, all: &Range<u64>) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut rest = access.positions.clone();
        while let Some(offset) = access.view.offset_of(rest.start).filter(|_| !rest.is_empty()) {
            let index = self.index_at(all, offset);
            let domain = self.domain(all, index);
            let positions = access.view.positions_within(rest.clone(), domain.file.clone());
            if positions.is_empty() {
                break;
            }
            rest.start = positions.end;
            parts.push(Part { index, rank: self.rank_of(index), domain, positions });
        }
        parts
    }

    /// Bytes of a window.
    pub(crate) fn buffer_size(&self) -> u64 {
        self.buffer_size
    }

    /// Whether the file's strips are known.
    pub(crate) fn are_aligned(&self) -> bool {
        self.striping_unit > 1
    }

    /// The aggregator with this number.
    pub(crate) fn rank_of(&self, index: u32) -> Rank {
        if let Some(chosen) = &self.chosen {
            return chosen[index as usize];
        }
        Rank((u64::from(index) * u64::from(self.ranks) / u64::from(self.aggregators)) as u32)
    }

    /// Whether a rank aggregates.
    pub(crate) fn aggregates(&self, rank: Rank) -> bool {
        self.index_of(rank).is_some()
    }

    /// Which aggregator a rank is, if it is one.
    pub(crate) fn index_of(&self, rank: Rank) -> Option<u32> {
        let index = self.index_from(rank.0);
        (index < self.aggregators && self.rank_of(index) == rank).then_some(index)
    }

    /// Which aggregators there are among consecutive ranks.
    pub(crate) fn indices_among(&self, ranks: &Range<u32>) -> Range<u32> {
        self.index_from(ranks.start)..self.index_from(ranks.end)
    }

    /// The first aggregator whose rank is not below this one.
    fn index_from(&self, rank: u32) -> u32 {
        if let Some(chosen) = &self.chosen {
            return chosen.partition_point(|chosen| chosen.0 < rank) as u32;
        }
        (u64::from(rank) * u64::from(self.aggregators)).div_ceil(u64::from(self.ranks)) as u32
    }

    fn aligned(&self, offset: u64) -> u64 {
        offset - offset % self.striping_unit
    }
}

impl Domain {
    /// The window that an offset in the domain lies in.
    pub(crate) fn index_of(&self, offset: u64) -> u64 {
        (offset - self.origin) / self.buffer_size
    }

    /// The last window.
    pub(crate) fn last_index(&self) -> u64 {
        self.index_of(self.file.end - 1)
    }

    /// Which bytes of the file a window has.
    pub(crate) fn window(&self, index: u64) -> Range<u64> {
        let start = self.origin.saturating_add(index.saturating_mul(self.buffer_size));
        let end = start.saturating_add(self.buffer_size).min(self.file.end);
        start.clamp(self.file.start, end)..end
    }

    /// What comes from a window on.
    pub(crate) fn from(&self, index: u64) -> Range<u64> {
        let start = self.origin.saturating_add(index.saturating_mul(self.buffer_size));
        start.clamp(self.file.start, self.file.end)..self.file.end
    }

    /// Whether a later window needs the buffer of this one.
    pub(crate) fn reuses_buffer_of(&self, index: u64) -> bool {
        index.saturating_add(2) <= self.last_index()
    }
}

#[cfg(test)]
mod tests {
    use pio_layout::{Datatype, View};
    use proptest::prelude::*;

    use super::*;
    use crate::access::Direction;
    use crate::hints::Hints;
    use crate::nodes::Nodes;
    use crate::site::{Site, Via, Views};

    /// Those of all aggregators.
    fn of(domains: &Domains, all: Range<u64>) -> Vec<Domain> {
        (0..domains.count()).map(|index| domains.domain(&all, index)).collect()
    }

    /// Of ranks on these nodes.
    fn domains(hints: Hints, nodes: &[u32]) -> Domains {
        let ranks = nodes.len() as u32;
        let nodes = Some(Nodes::of(nodes.iter().copied()).into());
        let site = Site { ranks, nodes, processors: ranks, via: Via::Kernel, terms: Default::default() };
        Domains::new(&site.context(&Views::WHOLE, &hints, Direction::Write), ranks)
    }

    #[test]
    fn borders_and_windows_lie_on_strips() {
        let hints = Hints {
            cb_nodes: Some(2),
            cb_buffer_size: Some(1000),
            striping_unit: Some(400),
            ..Hints::default()
        };
        let domains = of(&domains(hints, &[0; 4]), 500..4100);
        let windows: Vec<Vec<Range<u64>>> = domains
            .iter()
            .map(|domain| (0..=domain.last_index()).map(|index| domain.window(index)).collect())
            .collect();
        assert_eq!(windows[0], [500..1200, 1200..2000]);
        assert_eq!(windows[1], [2000..2800, 2800..3600, 3600..4100]);
    }

    #[test]
    fn aggregators_are_spread_over_the_ranks() {
        let hints = Hints { cb_nodes: Some(3), ..Hints::default() };
        let domains = domains(hints, &[0; 7]);
        let aggregating: Vec<u32> = (0..7).filter(|rank| domains.aggregates(Rank(*rank))).collect();
        assert_eq!(aggregating, [0, 2, 4]);
        assert_eq!([0, 1, 2].map(|index| domains.rank_of(index).0), [0, 2, 4]);
    }

    #[test]
    fn aggregators_are_spread_over_the_nodes() {
        let hints = Hints { cb_nodes: Some(3), ..Hints::default() };
        let domains = domains(hints, &[0, 1, 2, 0, 1, 2, 0]);
        let aggregating: Vec<u32> = (0..7).filter(|rank| domains.aggregates(Rank(*rank))).collect();
        assert_eq!(aggregating, [0, 1, 2]);
        assert_eq!([0, 1, 2].map(|index| domains.rank_of(index).0), [0, 1, 2]);
        assert_eq!(of(&domains, 0..300).len(), 3);
    }

    proptest! {
        #[test]
        fn the_parts_of_an_access_are_all_of_it(
            nodes in proptest::collection::vec(0u32..3, 1..20), cb_nodes in 1u32..20,
            unit in proptest::option::of(1u64..300), start in 0u64..500, spare in 0u64..500,
            piece in 1u64..40, gap in 0u64..200, positions in (0u64..50, 1u64..300),
        ) {
            let hints = Hints { cb_nodes: Some(cb_nodes), striping_unit: unit, ..Hints::default() };
            let domains = domains(hints, &nodes);
            let tile = Datatype::bytes(piece).resized(0, (piece + gap) as i64).unwrap();
            let view = View::new(start, 1, tile).unwrap();
            let access = Access { view, positions: positions.0..positions.0 + positions.1 };
            let bounds = access.bounds();
            let all = bounds.start.saturating_sub(spare)..bounds.end + spare / 2;
            let expected: Vec<Part> = (0..domains.count())
                .map(|index| {
                    let domain = domains.domain(&all, index);
                    let positions = access.within(domain.file.clone());
                    Part { index, rank: domains.rank_of(index), domain, positions }
                })
                .filter(|part| !part.positions.is_empty())
                .collect();
            prop_assert_eq!(domains.parts_of(&access, &all), expected);
            let ranks = nodes.len() as u32;
            for first in 0..=ranks {
                let among = domains.indices_among(&(first..ranks));
                let aggregating = (first..ranks).filter(|rank| domains.aggregates(Rank(*rank))).count();
                prop_assert_eq!(among.len(), aggregating);
            }
        }
    }
}
