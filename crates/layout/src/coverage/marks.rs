//! Marks for bytes that are touched: where pieces are small, to mark them takes a fraction of the time of a sort.

use std::ops::Range;

use crate::view::View;

/// Where there is a piece to so many bytes or fewer in the mean, bytes are marked. A piece is marked in the time of one step of a
/// sort, and sorting takes a dozen; but 64 bytes take a word to be cleared and looked at, which 2 KiB do in that of all steps.
const MARKED_BYTES: u64 = 2 << 10;

/// Bytes of a window that are marked at once, at most: 8 MiB of marks.
const MOST_BYTES: i64 = 64 << 20;

/// Parts of up to so many pieces each are gone through: to make a layout of a part takes about as long.
const FEW_PIECES: u64 = 256;

/// Whether so many pieces in the window are better marked than sorted.
pub(super) fn are_marked(window: &Range<i64>, pieces: u64) -> bool {
    window.end.saturating_sub(window.start) as u64 / MARKED_BYTES < pieces
}

/// Whether a look at the pieces, if they are few for each of `parts` and small, shows that every byte of `window` is touched. If
/// not, there may be holes or not.
pub(super) fn show_no_hole(window: &Range<i64>, parts: &[(&View, Range<u64>)]) -> bool {
    let len = window.end.saturating_sub(window.start);
    let touched =
        |(_, positions): &(&View, Range<u64>)| u128::from(positions.end.saturating_sub(positions.start));
    if len <= 0 || len > MOST_BYTES || parts.iter().map(touched).sum::<u128>() < len as u128 {
        return false;
    }
    let mut pieces = 0;
    for (view, positions) in parts {
        let of_part = view.pieces(positions.clone());
        if of_part > FEW_PIECES {
            return false;
        }
        pieces += of_part;
    }
    if !are_marked(window, pieces) {
        return false;
    }
    let mut marks = Marks::none();
    marks.clear(len as usize);
    for (view, positions) in parts {
        view.visit(positions.clone(), &mut |piece| {
            let inside = piece.offset.max(window.start)..piece.end().min(window.end);
            if !inside.is_empty() {
                marks.set((inside.start - window.start) as usize..(inside.end - window.start) as usize);
            }
        });
    }
    marks.next(0) == Some(0..len as usize)
}

/// A mark for each byte of a stretch.
pub(super) struct Marks {
    words: Vec<u64>,
    len: usize,
}

impl Marks {
    pub(super) fn none() -> Marks {
        Marks { words: Vec::new(), len: 0 }
    }

    /// For so many bytes from now on, of which none is marked.
    pub(super) fn clear(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
    }

    /// Marks bytes; `bytes` is not empty.
    pub(super) fn set(&mut self, bytes: Range<usize>) {
        let (first, last) = (bytes.start / 64, (bytes.end - 1) / 64);
        let (from, to) = (!0 << (bytes.start % 64), !0 >> (63 - (bytes.end - 1) % 64));
        if first == last {
            self.words[first] |= from & to;
            return;
        }
        self.words[first] |= from;
        self.words[first + 1..last].fill(!0);
        self.words[last] |= to;
    }

    /// The first marked bytes in a row from one on.
    pub(super) fn next(&self, from: usize) -> Option<Range<usize>> {
        let start = self.find(from, 0);
        (start < self.len).then(|| start..self.find(start, !0))
    }

    /// The first byte from one on that is marked; or, if `flipped` is all ones, that is not.
    fn find(&self, from: usize, flipped: u64) -> usize {
        let mut index = from / 64;
        let Some(word) = self.words.get(index) else { return self.len };
        let mut word = (word ^ flipped) & (!0 << (from % 64));
        while word == 0 {
            index += 1;
            let Some(next) = self.words.get(index) else { return self.len };
            word = next ^ flipped;
        }
        (64 * index + word.trailing_zeros() as usize).min(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;

    #[test]
    fn marks_are_found_in_rows() {
        let mut marks = Marks::none();
        marks.clear(200);
        marks.set(3..4);
        marks.set(60..130);
        marks.set(130..131);
        marks.set(199..200);
        assert_eq!(marks.next(0), Some(3..4));
        assert_eq!(marks.next(4), Some(60..131));
        assert_eq!(marks.next(131), Some(199..200));
        assert_eq!(marks.next(200), None);
    }

    /// Columns of a table, side by side: as soon as one is missing, or the table is longer than they are, there may be a hole.
    #[test]
    fn small_pieces_are_seen_to_leave_nothing() {
        let column =
            |number: u64| View::new(8 * number, 1, Datatype::bytes(8).resized(0, 32).unwrap()).unwrap();
        let columns: Vec<View> = (0..4).map(column).collect();
        let parts: Vec<_> = columns.iter().map(|view| (view, 0..8 * FEW_PIECES)).collect();
        let len = 32 * FEW_PIECES as i64;
        assert!(show_no_hole(&(0..len), &parts));
        assert!(show_no_hole(&(5..len - 11), &parts));
        assert!(!show_no_hole(&(0..len + 1), &parts));
        assert!(!show_no_hole(&(0..len / 2), &parts[1..]));
    }
}
