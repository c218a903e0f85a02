//! An access, cut into requests: for each server some megabytes at a time.

use std::ops::Range;

use pio_layout::{Datatype, View};

use super::transfer::{Direction, Naming};
use crate::error::Failure;
use crate::extents::{Extents, MOST_EXTENTS};
use crate::limits::Limits;
use crate::placement::{Placement, Shares};

/// Strips that one request goes through at most: far fewer than a server allows.
pub const MOST_STRIPS: u64 = Limits::DEFAULT.strips as u64 / 16;

/// Bytes of the longest encoding of a view that is sent whole: with all else that a request for data says, it fits a head.
const MOST_VIEW_BYTES: u64 = Limits::DEFAULT.head_bytes as u64 - 1024;

/// Bytes of data of one request, if nothing else is said: both sides work on one while the next is on its way.
pub const CHUNK_BYTES: u64 = 512 << 10;

/// Bytes of data of one request of an access through `view`, where `wanted` is what the client was told to use.
pub fn chunk_bytes(wanted: u64, direction: Direction, view: &View) -> u64 {
    if direction == Direction::Write && *view == View::contiguous(view.displacement()) {
        // A server has nothing to do with it but to pass it on to its file: what a message costs by itself, waking up
        // threads, weighs more than that it outgrows the caches. Reads and pieces are slower so.
        return wanted.saturating_mul(2);
    }
    wanted
}

/// What one request of an access moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The slot of the stripe whose server it goes to.
    pub slot: u32,
    /// Positions of the view that hold it; those of them that are on other servers belong to other chunks.
    pub positions: Range<u64>,
    /// Its data bytes, counted from the first of the access.
    pub bytes: Vec<Range<u64>>,
    /// How many they are.
    pub len: u64,
    /// The view of nothing but the chunk's own bytes, if the whole one is too long for a request. It is sent in its place.
    pub part: Option<View>,
}

impl Chunk {
    fn empty(slot: u32) -> Chunk {
        Chunk { slot, positions: 0..0, bytes: Vec::new(), len: 0, part: None }
    }

    /// Keeps the first half of its data, and says what is left; `start` is the first position of the access.
    fn halve(&mut self, start: u64) -> Chunk {
        let half = self.len / 2;
        let mut kept = 0;
        // The piece that the half ends in, or before.
        let mut index = 0;
        while kept + (self.bytes[index].end - self.bytes[index].start) <= half {
            kept += self.bytes[index].end - self.bytes[index].start;
            index += 1;
        }
        let mut rest = self.bytes.split_off(index);
        let border = rest[0].start + half - kept;
        if rest[0].start < border {
            self.bytes.push(rest[0].start..border);
            rest[0].start = border;
        }
        let positions = start + rest[0].start..self.positions.end;
        let len = self.len - half;
        self.len = half;
        self.positions.end = start + self.bytes.last().map_or(0, |last| last.end);
        Chunk { slot: self.slot, positions, bytes: rest, len, part: None }
    }

    /// Offset in the file of its first byte.
    pub fn offset(&self, view: &View) -> u64 {
        view.offset_of(self.positions.start).unwrap_or(0)
    }

    /// The list by which a request names the chunk, if it does so by a list.
    ///
    /// # Errors
    /// If it has more pieces than one request may name.
    pub fn list(
        &self,
        naming: Naming,
        view: &View,
        placement: &Placement,
    ) -> Result<Option<Extents>, Failure> {
        match naming {
            Naming::View => Ok(None),
            Naming::List => self.extents(view, placement).map(Some),
        }
    }

    /// The pieces of the view that the chunk has some of, as a list: what of them is on other servers belongs to other chunks.
    ///
    /// # Errors
    /// If they are more than one request may name.
    pub fn extents(&self, view: &View, placement: &Placement) -> Result<Extents, Failure> {
        let mut list = Vec::new();
        let striping = placement.striping();
        for piece in view.extents(self.positions.clone()) {
            let (offset, len) = (piece.offset as u64, piece.len);
            let here = striping.strips(offset..offset + len).any(|strip| strip.server == self.slot);
            if here {
                list.push((offset, len));
            }
            if list.len() > MOST_EXTENTS {
                break;
            }
        }
        Extents::new(list)
    }
}

/// Iterator over the chunks of an access, in the order in which they are complete: see [`Split::new`].
#[derive(Debug)]
pub struct Split {
    shares: Shares,
    start: u64,
    /// The chunk of each slot that is being put together.
    open: Vec<Chunk>,
    /// What is left of a share that was too long for a chunk.
    rest: Option<(u32, Range<u64>)>,
    /// Strips since the chunk of the slot was begun.
    strips: Vec<u64>,
    walked: u64,
    chunk_bytes: u64,
    most_strips: u64,
    ended: u32,
    /// The view, if it is too long for a request, and where its file is.
    long: Option<(View, Placement)>,
    most_view_bytes: u64,
    /// What is left of chunks that were halved, as their own parts of the view were too long; the next one last.
    halves: Vec<Chunk>,
}

impl Split {
    /// The chunks of `positions` of `view`, of at most `chunk_bytes` bytes and out of at most `most_strips` strips.
    pub fn new(
        placement: &Placement,
        view: &View,
        positions: Range<u64>,
        chunk_bytes: u64,
        most_strips: u64,
    ) -> Split {
        Split::within(placement, view, positions, (chunk_bytes, most_strips, MOST_VIEW_BYTES))
    }

    fn within(
        placement: &Placement,
        view: &View,
        positions: Range<u64>,
        (chunk_bytes, most_strips, most_view_bytes): (u64, u64, u64),
    ) -> Split {
        let factor = placement.striping().factor;
        let open = (0..factor).map(Chunk::empty).collect();
        let start = positions.start;
        let shares = placement.shares(view, positions);
        Split {
            shares,
            start,
            open,
            rest: None,
            strips: vec![0; factor as usize],
            walked: 0,
            chunk_bytes: chunk_bytes.max(1),
            most_strips: most_strips.max(1),
            ended: 0,
            long: (!view.encodes_within(most_view_bytes)).then(|| (view.clone(), *placement)),
            most_view_bytes,
            halves: Vec::new(),
        }
    }

    fn take(&mut self, slot: u32) -> Chunk {
        std::mem::replace(&mut self.open[slot as usize], Chunk::empty(slot))
    }

    /// Gives a chunk its own part of a view that is too long; one that has too long a part is halved.
    fn with_part(&mut self, mut chunk: Chunk) -> Chunk {
        let Some((view, placement)) = &self.long else { return chunk };
        loop {
            chunk.part = part_of(view, placement, &chunk);
            let is_short = chunk.part.as_ref().is_none_or(|part| part.encodes_within(self.most_view_bytes));
            if is_short || chunk.len == 1 {
                return chunk;
            }
            let rest = chunk.halve(self.start);
            self.halves.push(rest);
        }
    }

    fn next_chunk(&mut self) -> Option<Chunk> {
        loop {
            let (slot, positions) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.shares.next() {
                    Some(share) => {
                        self.walked += 1;
                        (share.slot, share.positions)
                    }
                    None => break,
                },
            };
            let index = slot as usize;
            // What came too far since the chunk was begun would make the server walk too far for one request.
            if self.open[index].len > 0 && self.walked - self.strips[index] >= self.most_strips {
                self.rest = Some((slot, positions));
                return Some(self.take(slot));
            }
            let chunk = &mut self.open[index];
            if chunk.len == 0 {
                chunk.positions = positions.start..positions.start;
                self.strips[index] = self.walked;
            }
            let len = (positions.end - positions.start).min(self.chunk_bytes - chunk.len);
            let taken = positions.start..positions.start + len;
            let bytes = taken.start - self.start..taken.end - self.start;
            match chunk.bytes.last_mut() {
                Some(last) if last.end == bytes.start => last.end = bytes.end,
                _ => chunk.bytes.push(bytes),
            }
            chunk.len += len;
            chunk.positions.end = taken.end;
            if taken.end < positions.end {
                self.rest = Some((slot, taken.end..positions.end));
            }
            if chunk.len == self.chunk_bytes {
                return Some(self.take(slot));
            }
        }
        while (self.ended as usize) < self.open.len() {
            let slot = self.ended;
            self.ended += 1;
            if self.open[slot as usize].len > 0 {
                return Some(self.take(slot));
            }
        }
        None
    }
}

impl Iterator for Split {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let chunk = self.halves.pop().or_else(|| self.next_chunk())?;
        Some(self.with_part(chunk))
    }
}

/// The view whose first data bytes are a chunk's; none if it would be nested too deeply.
fn part_of(view: &View, placement: &Placement, chunk: &Chunk) -> Option<View> {
    let layout = placement.striping().intersect(chunk.slot, view, chunk.positions.clone());
    View::new(0, 1, Datatype::of(layout)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_layout::Datatype;
    use proptest::prelude::*;

    proptest! {
        /// Each data byte is in exactly one chunk, and the server finds the same bytes in the positions of the chunk.
        #[test]
        fn chunks_are_what_the_servers_find(
            displacement in 0u64..50, len in 1u64..20, gap in 0u64..70, unit in 1u64..40, factor in 1u32..5,
            start in 0u64..60, count in 0u64..400, chunk_bytes in 1u64..100, most_strips in 1u64..20,
            gaps in proptest::collection::vec(0i64..50, 0..60), most_view_bytes in 20u64..60,
        ) {
            let placement = Placement::new(unit, factor, 0, factor).unwrap();
            // A tile like its neighbours, or one of irregular blocks.
            let mut end = 0;
            let offsets: Vec<(u64, i64)> = std::iter::once(&0).chain(&gaps).map(|gap| {
                let offset = end + gap;
                end = offset + len as i64;
                (len, offset)
            }).collect();
            let filetype = Datatype::hindexed(&offsets, &Datatype::bytes(1)).unwrap();
            let filetype = filetype.resized(0, end + gap as i64).unwrap();
            let view = View::new(displacement, 1, filetype).unwrap();
            let is_long = !view.encodes_within(most_view_bytes);
            let positions = start..start + count;
            let mut seen = vec![0; count as usize];
            for chunk in Split::within(&placement, &view, positions, (chunk_bytes, most_strips, most_view_bytes)) {
                prop_assert!(chunk.len > 0 && chunk.len <= chunk_bytes);
                prop_assert_eq!(chunk.len, chunk.bytes.iter().map(|range| range.end - range.start).sum::<u64>());
                prop_assert_eq!(chunk.part.is_some(), is_long);
                let found = |view: &View, positions| {
                    let mut strips = placement.strips_of(chunk.slot, view, positions);
                    let found: Vec<u64> = strips.by_ref().flat_map(|strip| strip.positions).collect();
                    (found, strips.steps())
                };
                let told: Vec<u64> = chunk.bytes.iter().cloned().flatten().collect();
                let (own, steps) = found(&view, chunk.positions.clone());
                prop_assert_eq!(own, told.iter().map(|byte| byte + start).collect::<Vec<_>>());
                prop_assert!(steps <= most_strips);
                // What is sent in the view's place has those bytes, and no other server's.
                if let Some(part) = &chunk.part {
                    prop_assert!(part.encodes_within(most_view_bytes) || chunk.len == 1);
                    let (all, steps) = found(part, 0..chunk.len);
                    prop_assert_eq!(all, (0..chunk.len).collect::<Vec<_>>());
                    prop_assert!(steps <= most_strips);
                    let offsets = told.iter().map(|byte| view.offset_of(byte + start));
                    prop_assert!(offsets.eq((0..chunk.len).map(|position| part.offset_of(position))));
                }
                told.iter().for_each(|byte| seen[*byte as usize] += 1);
            }
            prop_assert!(seen.iter().all(|times| *times == 1));
        }
    }
}
