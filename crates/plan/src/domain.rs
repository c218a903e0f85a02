//! File domains: the part of the file that one aggregator reads or writes, and its windows.

use std::ops::Range;
use std::sync::Arc;

use crate::access::Rank;
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

    /// The domains of an interval of the file, one an aggregator: equal parts, their borders on multiples of the
    /// striping unit.
    pub(crate) fn of(&self, all: Range<u64>) -> Vec<Domain> {
        let aggregators = u64::from(self.aggregators);
        let share = (all.end - all.start).div_ceil(aggregators);
        let border = |index: u64| {
            let exact = all.start.saturating_add(share.saturating_mul(index)).min(all.end);
            if index == 0 || index == aggregators || exact == all.end {
                return exact;
            }
            self.aligned(exact).clamp(all.start, all.end)
        };
        let domain = |index| {
            let file = border(index)..border(index + 1);
            // Windows that cannot hold a strip gain nothing from its borders.
            let whole = self.buffer_size >= self.striping_unit;
            let origin = if whole { self.aligned(file.start) } else { file.start };
            Domain { file, origin, buffer_size: self.buffer_size }
        };
        (0..aggregators).map(domain).collect()
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
        if let Some(chosen) = &self.chosen {
            return chosen.binary_search(&rank).is_ok();
        }
        let index = (u64::from(rank.0) * u64::from(self.aggregators)).div_ceil(u64::from(self.ranks)) as u32;
        index < self.aggregators && self.rank_of(index) == rank
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
    use super::*;
    use crate::access::Direction;
    use crate::hints::Hints;
    use crate::nodes::Nodes;
    use crate::site::{Site, Via, Views};

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
        let domains = domains(hints, &[0; 4]).of(500..4100);
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
        assert_eq!(domains.of(0..300).len(), 3);
    }
}
