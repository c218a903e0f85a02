//! Pieces of a part of a file, put together into accesses that a disk likes.
//!
//! A system call costs about as much as copying some kilobytes. So small pieces with small gaps go as one access over
//! all of them (writing, it is read first), and what is far apart goes by itself.

use std::ops::Range;

use pio_layout::Run;
use pio_protocol::goes_along;

/// Bytes of an access that has gaps: so few that they stay in the second-level cache while pieces are put in.
const MOST_BYTES: u64 = 512 << 10;

/// Pieces that go as one access.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// From the first to the last byte.
    pub(super) span: Range<u64>,
    /// The pieces, ascending.
    pub(super) runs: Vec<Run>,
    /// Bytes of all pieces.
    pub(super) bytes: u64,
}

impl Group {
    /// Whether there are no gaps.
    pub(super) fn is_dense(&self) -> bool {
        self.span.end - self.span.start == self.bytes
    }
}

/// Puts ascending runs into groups.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    group: Group,
}

impl Grouping {
    /// Takes the next run; hands out groups that are complete.
    pub(super) fn add<E>(
        &mut self,
        mut run: Run,
        complete: &mut impl FnMut(&Group) -> Result<(), E>,
    ) -> Result<(), E> {
        while run.count > 0 {
            let stride = run.stride.max(0) as u64;
            let together = run.count > 1 && goes_along(stride - run.len, run.len);
            let most = match together {
                true => 1 + MOST_BYTES.saturating_sub(run.len) / stride.max(1),
                false => 1,
            };
            let count = run.count.min(most);
            let part = Run { count, stride: if count > 1 { run.stride } else { 0 }, ..run };
            self.add_part(part, complete)?;
            run.offset += count as i64 * run.stride;
            run.count -= count;
        }
        Ok(())
    }

    /// Hands out the last group.
    pub(super) fn finish<E>(&mut self, complete: &mut impl FnMut(&Group) -> Result<(), E>) -> Result<(), E> {
        if self.group.bytes > 0 {
            complete(&self.group)?;
        }
        self.group = Group::default();
        Ok(())
    }

    fn add_part<E>(&mut self, run: Run, complete: &mut impl FnMut(&Group) -> Result<(), E>) -> Result<(), E> {
        let start = run.offset as u64;
        let span = (run.count - 1) * run.stride.max(0) as u64 + run.len;
        let group = &mut self.group;
        let touches = group.bytes > 0 && start == group.span.end;
        let dense = touches && group.is_dense() && span == run.size();
        let near = group.bytes > 0 && goes_along(start - group.span.end, run.len.min(group.bytes));
        let small = start + span - group.span.start <= MOST_BYTES;
        if group.bytes > 0 && !dense && !(near && small) {
            self.finish(complete)?;
        }
        let group = &mut self.group;
        if group.bytes == 0 {
            group.span.start = start;
        }
        group.span.end = start + span;
        group.bytes += run.size();
        match group.runs.last_mut() {
            Some(last)
                if last.count == 1 && run.count == 1 && last.offset + last.len as i64 == run.offset =>
            {
                last.len += run.len;
            }
            _ => group.runs.push(run),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn groups(runs: &[Run]) -> Vec<Group> {
        let mut found = Vec::new();
        let mut take = |group: &Group| {
            found.push(Group { span: group.span.clone(), runs: group.runs.clone(), bytes: group.bytes });
            Ok::<(), ()>(())
        };
        let mut grouping = Grouping::default();
        for run in runs {
            grouping.add(*run, &mut take).unwrap();
        }
        grouping.finish(&mut take).unwrap();
        found
    }

    fn run(offset: i64, len: u64, stride: i64, count: u64) -> Run {
        Run { offset, len, stride, count }
    }

    #[test]
    fn small_pieces_go_together_and_large_ones_alone() {
        let small = groups(&[run(0, 4, 8, 1000), run(8000, 4, 8, 1000)]);
        assert_eq!(small.len(), 1);
        assert_eq!((small[0].span.clone(), small[0].bytes), (0..15996, 8000));
        assert_eq!(groups(&[run(0, 47_008, 94_016, 5)]).len(), 5);
        let strips = groups(&[run(0, 65536, 0, 1), run(65536, 65536, 0, 1), run(131072, 10, 0, 1)]);
        assert_eq!(strips, [Group { span: 0..131_082, runs: vec![run(0, 131_082, 0, 1)], bytes: 131_082 }]);
    }

    #[test]
    fn accesses_with_gaps_are_bounded_and_dense_ones_are_not() {
        let gaps = groups(&[run(0, 4, 8, 3 << 20)]);
        assert!(gaps.len() >= 48 && gaps.iter().all(|group| group.span.end - group.span.start <= MOST_BYTES));
        assert_eq!(groups(&[run(0, 3 << 20, 0, 1), run(3 << 20, 3 << 20, 0, 1)]).len(), 1);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(pieces in proptest::collection::vec((0u64..9000, 1u64..9000, 1u64..5, 0u64..9000), 1..20)) {
            let (mut at, mut runs) = (0, Vec::new());
            for (gap, len, count, inner) in pieces {
                let stride = if count > 1 { len + inner } else { 0 };
                runs.push(run((at + gap) as i64, len, stride as i64, count));
                at += gap + (count - 1) * stride + len;
            }
            let bytes = |runs: &[Run]| -> Vec<(i64, u64)> {
                let mut merged: Vec<(i64, u64)> = Vec::new();
                for piece in runs.iter().flat_map(|run| run.pieces()) {
                    match merged.last_mut() {
                        Some((offset, len)) if *offset + *len as i64 == piece.offset => *len += piece.len,
                        _ => merged.push((piece.offset, piece.len)),
                    }
                }
                merged
            };
            let groups = groups(&runs);
            let all: Vec<Run> = groups.iter().flat_map(|group| group.runs.clone()).collect();
            prop_assert_eq!(bytes(&all), bytes(&runs));
            for group in &groups {
                let inside = bytes(&group.runs);
                prop_assert_eq!(group.span.start as i64, inside[0].0);
                let last = inside[inside.len() - 1];
                prop_assert_eq!(group.span.end, last.0 as u64 + last.1);
                prop_assert_eq!(group.bytes, inside.iter().map(|(_, len)| len).sum::<u64>());
            }
        }
    }
}
