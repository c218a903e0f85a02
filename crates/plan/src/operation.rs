//! A collective operation in a few sums: what it is judged by.

use crate::access::Direction;
use crate::leaders::Teams;
use crate::message::Description;

/// A collective operation, as sums over its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Whether the file is read or written.
    pub direction: Direction,
    /// Ranks that take part, with data or without.
    pub ranks: u32,
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
    /// Bytes from the first to the last that any rank accesses.
    pub span: u64,
    /// The same of each rank, summed up.
    pub spans: u64,
    /// The same of the rank that has most.
    pub most_span: u64,
    /// Whether some ranks' spans overlap.
    pub is_interleaved: bool,
}

impl Operation {
    /// From what the ranks say of their accesses.
    pub fn of<'a>(
        direction: Direction,
        ranks: u32,
        descriptions: impl IntoIterator<Item = &'a Description>,
    ) -> Operation {
        let mut busy: Vec<&Description> =
            descriptions.into_iter().filter(|description| description.bytes > 0).collect();
        busy.sort_by_key(|description| description.bounds.start);
        let span = |description: &&Description| description.bounds.end - description.bounds.start;
        let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0, u64::saturating_add);
        let most = |all: &mut dyn Iterator<Item = u64>| all.max().unwrap_or(0);
        let start = busy.first().map_or(0, |first| first.bounds.start);
        let end = most(&mut busy.iter().map(|description| description.bounds.end));
        Operation {
            direction,
            ranks: ranks.max(1),
            busy: busy.len() as u32,
            bytes: sum(&mut busy.iter().map(|description| description.bytes)),
            most_bytes: most(&mut busy.iter().map(|description| description.bytes)),
            pieces: sum(&mut busy.iter().map(|description| description.pieces)),
            most_pieces: most(&mut busy.iter().map(|description| description.pieces)),
            span: end.saturating_sub(start),
            spans: sum(&mut busy.iter().map(span)),
            most_span: most(&mut busy.iter().map(span)),
            is_interleaved: busy.windows(2).any(|pair| pair[1].bounds.start < pair[0].bounds.end),
        }
    }

    /// The operation that leaders carry out for all, as far as sums tell. Where no byte is left out, neighbours' pieces lie side by
    /// side, and become one: neighbours mostly are on one node.
    pub(crate) fn among(&self, teams: Teams) -> Operation {
        let most = u64::from(teams.most.max(1));
        let joined = if self.is_dense() { most } else { 1 };
        let pieces = self.pieces.div_ceil(joined);
        // Each leader's span is that of all its team; those of ranks that overlap are about the same.
        let spans = (self.spans / most).max(self.span.min(self.spans));
        let most_span = self.most_span.saturating_mul(most).min(self.span);
        Operation {
            ranks: teams.leaders,
            busy: self.busy.min(teams.leaders),
            most_bytes: self.most_bytes.saturating_mul(most).min(self.bytes),
            pieces,
            most_pieces: self.most_pieces.saturating_mul(most).div_ceil(joined).min(pieces),
            spans,
            most_span,
            ..self.clone()
        }
    }

    /// Whether every rank's data are one piece.
    pub fn is_contiguous(&self) -> bool {
        self.pieces <= u64::from(self.busy)
    }

    /// Whether no byte of the span is left out.
    pub fn is_dense(&self) -> bool {
        self.bytes >= self.span
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn description(bytes: u64, pieces: u64, bounds: Range<u64>) -> Description {
        Description { bytes, pieces, bounds, told_us: 0, access: None }
    }

    #[test]
    fn sums_over_ranks() {
        let ranks = [description(40, 10, 0..76), description(0, 0, 0..0), description(20, 1, 76..96)];
        let operation = Operation::of(Direction::Read, 3, &ranks);
        let expected = Operation {
            direction: Direction::Read,
            ranks: 3,
            busy: 2,
            bytes: 60,
            most_bytes: 40,
            pieces: 11,
            most_pieces: 10,
            span: 96,
            spans: 96,
            most_span: 76,
            is_interleaved: false,
        };
        assert_eq!(operation, expected);
        assert!(!operation.is_contiguous() && !operation.is_dense());
    }

    #[test]
    fn interleaved_ranks_are_seen_in_any_order() {
        let ranks = [description(40, 10, 4..80), description(40, 10, 0..76)];
        let operation = Operation::of(Direction::Write, 2, &ranks);
        assert!(operation.is_interleaved && operation.is_dense());
        let apart = [description(40, 1, 40..80), description(40, 1, 0..40)];
        let operation = Operation::of(Direction::Write, 2, &apart);
        assert!(!operation.is_interleaved && operation.is_contiguous());
    }

    #[test]
    fn nothing_is_nothing() {
        let operation = Operation::of(Direction::Write, 4, &[]);
        assert_eq!((operation.busy, operation.bytes, operation.span), (0, 0, 0));
    }
}
