//! What ranks access together, in a few numbers that can be added up on the way through a [tree](crate::tree).

use std::ops::Range;

use crate::access::Direction;
use crate::expected::Clients;
use crate::message::Description;
use crate::operation::Operation;
use crate::tree::Sum;

/// Intervals of a summary, at most. Ranks that are neighbours mostly access parts of the file that are neighbours, and make
/// one interval; more than one are for those that do not.
pub(crate) const INTERVALS: usize = 4;

/// Sums over the accesses of some ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Ranks that have data.
    pub busy: u32,
    /// Data bytes of all ranks.
    pub bytes: u64,
    /// Data bytes of the rank that has most.
    pub most_bytes: u64,
    /// Contiguous pieces of the file, of all ranks.
    pub pieces: u64,
    /// Pieces of the rank that has most.
    pub most_pieces: u64,
    /// Bytes from the first to the last that a rank accesses, summed up.
    pub spans: u64,
    /// The same of the rank that has most.
    pub most_span: u64,
    /// Microseconds that ranks [told](Description::told_us), summed up.
    pub told_us: u64,
    /// The same of the rank that told most.
    pub most_told_us: u64,
    /// Whether some ranks' spans overlap: or perhaps overlap, if what the ranks of one part of the tree access does not fit
    /// so few intervals as a summary has.
    pub is_interleaved: bool,
    /// Intervals that hold all spans, and the first and last byte of them: ascending, apart from each other, at most 4.
    pub intervals: Vec<Range<u64>>,
    /// Of each aggregator, how many of the ranks will describe their accesses to it: if the file domains are known before what
    /// all access is added up. (Boxed, as few summaries have it, and all ranks keep one.)
    pub clients: Option<Box<Clients>>,
}

impl Summary {
    /// Of one rank.
    pub(crate) fn of(description: &Description) -> Summary {
        let Description { bytes, pieces, bounds, told_us, .. } = description;
        if *bytes == 0 {
            return Summary { told_us: *told_us, most_told_us: *told_us, ..Summary::default() };
        }
        let span = bounds.end - bounds.start;
        Summary {
            busy: 1,
            bytes: *bytes,
            most_bytes: *bytes,
            pieces: *pieces,
            most_pieces: *pieces,
            spans: span,
            most_span: span,
            told_us: *told_us,
            most_told_us: *told_us,
            is_interleaved: false,
            intervals: vec![bounds.clone()],
            clients: None,
        }
    }

    /// The interval of the file that the ranks access together; empty if they access nothing.
    pub(crate) fn bounds(&self) -> Range<u64> {
        match (self.intervals.first(), self.intervals.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// The operation of so many ranks, if these are all.
    pub(crate) fn operation(&self, direction: Direction, ranks: u32) -> Operation {
        let bounds = self.bounds();
        Operation {
            direction,
            ranks: ranks.max(1),
            busy: self.busy,
            bytes: self.bytes,
            most_bytes: self.most_bytes,
            pieces: self.pieces,
            most_pieces: self.most_pieces,
            span: bounds.end - bounds.start,
            spans: self.spans,
            most_span: self.most_span,
            is_interleaved: self.is_interleaved,
        }
    }
}

impl Sum for Summary {
    fn add(&mut self, later: Summary) {
        self.clients = self.clients.take().zip(later.clients).map(|(mut sum, clients)| {
            sum.add(*clients);
            sum
        });
        self.busy = self.busy.saturating_add(later.busy);
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.most_bytes = self.most_bytes.max(later.most_bytes);
        self.pieces = self.pieces.saturating_add(later.pieces);
        self.most_pieces = self.most_pieces.max(later.most_pieces);
        self.spans = self.spans.saturating_add(later.spans);
        self.most_span = self.most_span.max(later.most_span);
        self.told_us = self.told_us.saturating_add(later.told_us);
        self.most_told_us = self.most_told_us.max(later.most_told_us);
        self.intervals.extend(later.intervals);
        self.intervals.sort_by_key(|interval| interval.start);
        let overlaps = self.intervals.is_sorted_by(|one, next| one.end <= next.start);
        self.is_interleaved |= later.is_interleaved || !overlaps;
        self.intervals.dedup_by(|next, one| {
            let touches = next.start <= one.end;
            if touches {
                one.end = one.end.max(next.end);
            }
            touches
        });
        while self.intervals.len() > INTERVALS {
            self.join_nearest();
        }
    }
}

impl Summary {
    /// Makes one of the two intervals that have the least between them.
    fn join_nearest(&mut self) {
        let gap = |index: &usize| self.intervals[index + 1].start - self.intervals[*index].end;
        let Some(nearest) = (0..self.intervals.len() - 1).min_by_key(gap) else { return };
        let next = self.intervals.remove(nearest + 1);
        self.intervals[nearest].end = next.end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn description(bytes: u64, pieces: u64, bounds: Range<u64>) -> Description {
        Description { bytes, pieces, bounds, told_us: 2, access: None }
    }

    /// As a tree adds them: neighbours first.
    fn sum(descriptions: &[Description]) -> Summary {
        match descriptions {
            [] => Summary::default(),
            [one] => Summary::of(one),
            many => {
                let (first, later) = many.split_at(many.len().next_power_of_two() / 2);
                let mut summary = sum(first);
                summary.add(sum(later));
                summary
            }
        }
    }

    #[test]
    fn parts_that_are_apart_are_seen_so_in_the_order_of_ranks() {
        for ranks in [2, 9, 100] {
            let apart: Vec<_> =
                (0..ranks).map(|rank| description(40, 1, rank * 100..rank * 100 + 40)).collect();
            let summary = sum(&apart);
            assert!(!summary.is_interleaved, "{ranks}");
            assert!(summary.intervals.len() <= INTERVALS);
            assert_eq!(summary.operation(Direction::Write, 9).span, (ranks - 1) * 100 + 40);
            assert_eq!((summary.told_us, summary.most_told_us), (ranks * 2, 2));
            let reversed: Vec<_> = apart.iter().rev().cloned().collect();
            assert!(!sum(&reversed).is_interleaved);
        }
    }

    proptest! {
        #[test]
        fn a_sum_tells_what_all_descriptions_tell(
            parts in proptest::collection::vec((0u64..500, 0u64..40, 1u64..9), 1..40),
        ) {
            let describe = |(start, bytes, pieces): &(u64, u64, u64)| {
                let bounds = if *bytes == 0 { 0..0 } else { *start..start + bytes * 2 };
                description(*bytes, if *bytes == 0 { 0 } else { *pieces }, bounds)
            };
            let descriptions: Vec<_> = parts.iter().map(describe).collect();
            let exact = Operation::of(Direction::Read, descriptions.len() as u32, &descriptions);
            let summed = sum(&descriptions).operation(Direction::Read, descriptions.len() as u32);
            // What is interleaved is never taken for apart.
            prop_assert!(summed.is_interleaved || !exact.is_interleaved);
            prop_assert_eq!(Operation { is_interleaved: exact.is_interleaved, ..summed }, exact);
        }
    }
}
