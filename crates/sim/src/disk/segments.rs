//! The drive's buffer: segments of contiguous blocks.

use pio_machine::disk::Buffer;

/// The segments.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    size: u64,
    uses: u64,
}

/// A segment: blocks from `start` up to `end`; empty if they are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: Kind,
    used: u64,
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// What was read.
    #[default]
    Read,
    /// What was written.
    Written,
}

/// What a read finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All of it, in this segment.
    Whole(usize),
    /// Its first blocks, in this segment.
    Part(usize),
    /// Not its first block.
    Nothing,
}

impl Segments {
    pub(super) fn new(buffer: &Buffer) -> Segments {
        let all = vec![Segment::default(); buffer.segments as usize];
        Segments { all, size: u64::from(buffer.segment_blocks), uses: 0 }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn get(&self, index: usize) -> Segment {
        self.all[index]
    }

    /// What a read of `blocks` from `block` on finds. `active` is the segment that the arm is filling: if `almost`, its
    /// next block counts as found.
    pub(super) fn find(
        &self,
        block: u64,
        blocks: u64,
        with_written: bool,
        active: Option<usize>,
        almost: bool,
    ) -> Found {
        let mut best = Found::Nothing;
        for (index, segment) in self.all.iter().enumerate() {
            let next = almost && active == Some(index) && segment.end == block;
            if !(segment.start..segment.end).contains(&block) && !next {
                continue;
            }
            if segment.kind == Kind::Written && !with_written {
                continue;
            }
            if segment.end >= block + blocks {
                return Found::Whole(index);
            }
            if best == Found::Nothing {
                best = Found::Part(index);
            }
        }
        best
    }

    /// The segment whose written blocks end where `block` is, with space behind them.
    pub(super) fn written_before(&self, block: u64) -> Option<usize> {
        self.all.iter().position(|segment| {
            segment.kind == Kind::Written && segment.end == block && segment.start < segment.end
        })
    }

    /// A segment for other data: an empty one, or the one whose last use is longest ago, out of `allowed`.
    pub(super) fn take(&mut self, block: u64, kind: Kind, allowed: impl Fn(usize) -> bool) -> usize {
        let candidates = self.all.iter().enumerate().filter(|(index, _)| allowed(*index));
        let oldest = candidates.min_by_key(|(_, segment)| (segment.start < segment.end, segment.used));
        let index = oldest.map_or(0, |(index, _)| index);
        self.all[index] = Segment { start: block, end: block, kind, used: 0 };
        self.touch(index);
        index
    }

    /// A use of a segment.
    pub(super) fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.all[index].used = self.uses;
    }

    /// The segment now reaches up to `end`; what no longer has space falls out at its start.
    pub(super) fn extend(&mut self, index: usize, end: u64) {
        let size = self.size;
        let segment = &mut self.all[index];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(size));
    }

    /// The segment begins at `start`, which is before where it began; not more than there is space for.
    pub(super) fn extend_front(&mut self, index: usize, start: u64) {
        let segment = &mut self.all[index];
        segment.start = segment.start.min(start).max(segment.end.saturating_sub(self.size));
    }

    /// Empties what overlaps blocks that are written, but for the segment that takes them.
    pub(super) fn invalidate(&mut self, block: u64, blocks: u64, but: usize) {
        for (index, segment) in self.all.iter_mut().enumerate() {
            if index != but && segment.start < block + blocks && block < segment.end {
                segment.end = segment.start;
            }
        }
    }

    /// Empties a segment.
    pub(super) fn clear(&mut self, index: usize) {
        self.all[index].end = self.all[index].start;
    }
}
