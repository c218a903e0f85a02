//! What the clients of an aggregator are known to leave no gap in.
//!
//! Whether they do takes a look at every piece. Programs write the same part of each step's data, one step behind the other in
//! the file: then all accesses lie equally far further on than the last time, and where they had no gap then they have none
//! now, moved. The borders of windows do not move along, as they lie on strips: so it is kept of a stretch, which grows.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::access::{Access, Rank};
use crate::merged;

/// Accesses, and a stretch of the file of which they leave nothing out.
#[derive(Debug)]
pub(crate) struct Covered {
    accesses: BTreeMap<Rank, Access>,
    file: Range<u64>,
}

impl Covered {
    /// These accesses leave nothing of that stretch out.
    pub(crate) fn new(accesses: &BTreeMap<Rank, Access>, file: Range<u64>) -> Covered {
        Covered { accesses: accesses.clone(), file }
    }

    /// The stretch of other accesses, if they are these, further on in the file or before.
    pub(crate) fn moved(&self, accesses: &BTreeMap<Rank, Access>) -> Option<Range<u64>> {
        let by = merged::shift(&self.accesses, accesses)?;
        shifted(&self.file, by)
    }

    /// Those other accesses leave nothing of a further stretch out. Whether they are these, so that this is known from now on.
    pub(crate) fn grow(&mut self, accesses: &BTreeMap<Rank, Access>, file: &Range<u64>) -> bool {
        let by = merged::shift(&self.accesses, accesses);
        let Some(here) = by.and_then(|by| shifted(file, by.checked_neg()?)) else { return false };
        self.file = joined(self.file.clone(), here);
        true
    }
}

fn shifted(file: &Range<u64>, by: i64) -> Option<Range<u64>> {
    Some(file.start.checked_add_signed(by)?..file.end.checked_add_signed(by)?)
}

/// What of an interval is outside another one; more, if that is inside.
pub(crate) fn outside(file: &Range<u64>, known: &Range<u64>) -> Range<u64> {
    let start = if known.contains(&file.start) { known.end } else { file.start };
    let end = if known.start < file.end && file.end <= known.end { known.start } else { file.end };
    start.min(file.end)..end.max(start.min(file.end))
}

/// Both of two intervals, if nothing lies between them; else the second.
fn joined(one: Range<u64>, other: Range<u64>) -> Range<u64> {
    if one.start > other.end || other.start > one.end {
        return other;
    }
    one.start.min(other.start)..one.end.max(other.end)
}

#[cfg(test)]
mod tests {
    use pio_layout::{Datatype, View};

    use super::*;

    #[test]
    fn what_is_known_is_left_out() {
        let known = 10..20;
        assert_eq!(outside(&(10..20), &known), 20..20);
        assert!(outside(&(12..15), &known).is_empty());
        assert_eq!(outside(&(15..30), &known), 20..30);
        assert_eq!(outside(&(5..15), &known), 5..10);
        assert_eq!(outside(&(5..30), &known), 5..30);
        assert_eq!(outside(&(20..30), &known), 20..30);
        assert_eq!(outside(&(2..10), &known), 2..10);
        assert_eq!(outside(&(2..10), &(0..0)), 2..10);
    }

    /// Ranks that write every third block of 4 bytes, one step of 9 blocks behind the other.
    fn accesses(step: u64, ranks: std::ops::Range<u64>) -> BTreeMap<Rank, Access> {
        let access = |rank: u64| {
            let tile = Datatype::bytes(4).resized(0, 12).unwrap();
            let view = View::new(4 * rank, 1, tile).unwrap();
            (Rank(rank as u32), Access { view, positions: step * 12..(step + 1) * 12 })
        };
        ranks.map(access).collect()
    }

    #[test]
    fn a_stretch_moves_with_all_accesses_and_grows() {
        let mut covered = Covered::new(&accesses(1, 0..3), 40..60);
        assert_eq!(covered.moved(&accesses(3, 0..3)), Some(112..132));
        assert_eq!(covered.moved(&accesses(0, 0..3)), Some(4..24));
        assert_eq!(covered.moved(&accesses(3, 0..2)), None, "one is missing");
        assert!(covered.grow(&accesses(3, 0..3), &(130..140)));
        assert!(!covered.grow(&accesses(3, 0..2), &(140..144)));
        assert_eq!(covered.moved(&accesses(1, 0..3)), Some(40..68));
    }

    #[test]
    fn stretches_grow_where_they_touch() {
        assert_eq!(joined(10..20, 20..30), 10..30);
        assert_eq!(joined(10..20, 5..12), 5..20);
        assert_eq!(joined(10..20, 21..30), 21..30);
    }
}
