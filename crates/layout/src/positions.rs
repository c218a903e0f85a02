//! Where one set of bytes is in another.

use crate::error::LayoutError;
use crate::layout::{Kind, Layout};
use crate::runs::{Extent, Run};

/// Pieces of a run that are looked up one by one; whether more are regular is found out first.
const FEW_PIECES: u64 = 4;

impl Layout {
    /// The positions in this layout of the bytes that `part` has, as a layout: what becomes of `part` when this layout's bytes are
    /// put one after the other. Both are [monotone](Layout::is_monotone), and this one has all bytes of `part`.
    ///
    /// Runs that meet pieces at equal distances stay runs.
    ///
    /// # Errors
    /// As [`Layout::strided`].
    pub fn positions_of(&self, part: &Layout) -> Result<Layout, LayoutError> {
        let mut found = Vec::new();
        let mut blocks = Vec::new();
        for run in part.runs(0..part.size()) {
            match self.step_of(&run) {
                Some(step) => {
                    flush(&mut blocks, &mut found)?;
                    let first = self.position_at_or_after(run.offset) as i64;
                    found.push((first, Layout::strided(run.count, step, Layout::bytes(run.len))?));
                }
                None => {
                    let place = |piece: Extent| (self.position_at_or_after(piece.offset) as i64, piece.len);
                    blocks.extend(run.pieces().map(place));
                }
            }
        }
        flush(&mut blocks, &mut found)?;
        Layout::sequence(found)
    }

    /// How many of this layout's bytes lie between the beginnings of two pieces of a run, if it is the same for all and they are
    /// not few: if a row of equal parts has all pieces, and they lie alike in its parts.
    fn step_of(&self, run: &Run) -> Option<i64> {
        if run.count <= FEW_PIECES {
            return None;
        }
        let mut first = run.offset - self.offset;
        let length = (run.count - 1) as i64 * run.stride;
        let mut shape = &self.shape;
        loop {
            match &shape.kind {
                Kind::Block => return Some(run.stride),
                Kind::Strided { stride, inner, .. } => {
                    if run.stride % stride == 0 {
                        return Some(run.stride / stride * inner.size as i64);
                    }
                    let index = first / stride;
                    first -= index * stride;
                    shape = inner;
                }
                Kind::Indexed { displacements, inner } => {
                    let index = displacements.partition_point(|&start| start <= first).checked_sub(1)?;
                    first -= displacements[index];
                    shape = inner;
                }
                Kind::Blocks { blocks, .. } => {
                    let index = blocks.partition_point(|&(start, _)| start <= first).checked_sub(1)?;
                    let (start, len) = blocks[index];
                    return (first - start + length < len as i64).then_some(run.stride);
                }
                Kind::Sequence { parts, .. } => {
                    let index = parts.partition_point(|part| part.offset <= first).checked_sub(1)?;
                    first -= parts[index].offset;
                    shape = &parts[index].shape;
                }
            }
            if first + length >= shape.upper {
                return None;
            }
        }
    }
}

/// Makes one layout of blocks that follow each other.
fn flush(blocks: &mut Vec<(i64, u64)>, found: &mut Vec<(i64, Layout)>) -> Result<(), LayoutError> {
    if !blocks.is_empty() {
        found.push((0, Layout::blocks(std::mem::take(blocks))?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_pieces_stay_symbolic() {
        let piece =
            |rank: i64| Layout::strided(1000, 64, Layout::bytes(4)).unwrap().shifted(8 * rank).unwrap();
        let whole = Layout::strided(1000, 64, Layout::strided(4, 8, Layout::bytes(4)).unwrap()).unwrap();
        let expected = Layout::strided(1000, 16, Layout::bytes(4)).unwrap().shifted(8).unwrap();
        assert_eq!(whole.positions_of(&piece(2)), Ok(expected));
        let dense = Layout::bytes(1 << 20);
        assert_eq!(dense.positions_of(&piece(2)), Ok(piece(2)));
        assert_eq!(dense.positions_of(&Layout::bytes(0)), Ok(Layout::bytes(0)));
    }
}
