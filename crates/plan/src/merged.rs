//! The accesses of several ranks as one, with a place for each: what a leader makes of those for whom it speaks.
//!
//! Programs write the same part of each step's data, one step behind the other in the file: then all accesses lie equally far further on
//! than the last time, and what was made of them then still holds, moved.

use std::collections::BTreeMap;
use std::sync::Arc;

use pio_layout::{Datatype, Layout, LayoutError, View, coverage};

use crate::access::{Access, Rank};

/// What several ranks access, merged.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    accesses: Arc<BTreeMap<Rank, Access>>,
    /// Every byte that one of them accesses, once, as positions of a view.
    pub(crate) all: Access,
    /// Where each one's data are among these.
    pub(crate) places: Arc<BTreeMap<Rank, Access>>,
    union: Layout,
}

impl Merged {
    /// Of these accesses.
    ///
    /// # Errors
    /// If what comes of them does not fit 63 bits.
    pub(crate) fn of(accesses: BTreeMap<Rank, Access>) -> Result<Merged, LayoutError> {
        let parts: Vec<_> =
            accesses.values().map(|access| (&access.view, access.positions.clone())).collect();
        let union = coverage::union(&parts);
        let place = |(rank, access): (&Rank, &Access)| {
            let layout = access.view.layout_of(access.positions.clone())?;
            let view = View::new(0, 1, Datatype::of(union.positions_of(&layout)?))?;
            Ok((*rank, Access { view, positions: 0..access.bytes() }))
        };
        let places = accesses.iter().map(place).collect::<Result<_, LayoutError>>()?;
        let all = whole(&union)?;
        Ok(Merged { accesses: accesses.into(), all, places: Arc::new(places), union })
    }

    /// The same of other accesses, if they are these, further on in the file or before.
    pub(crate) fn moved(&self, accesses: &BTreeMap<Rank, Access>) -> Option<Merged> {
        let by = shift(&self.accesses, accesses)?;
        let all = whole(&self.union.shifted(by).ok()?).ok()?;
        Some(Merged { all, ..self.clone() })
    }

    /// How many bytes all have together, each counted once.
    pub(crate) fn bytes(&self) -> u64 {
        self.union.size()
    }
}

/// All bytes of a layout.
fn whole(layout: &Layout) -> Result<Access, LayoutError> {
    let start = layout.lower_bound();
    let view = View::new(start.max(0) as u64, 1, Datatype::of(layout.shifted(-start)?))?;
    Ok(Access { view, positions: 0..layout.size() })
}

/// How far in the file each of the accesses must be moved to be that of `to`, if it is equally far for all.
pub(crate) fn shift(from: &BTreeMap<Rank, Access>, to: &BTreeMap<Rank, Access>) -> Option<i64> {
    if from.len() != to.len() {
        return None;
    }
    let mut all = None;
    for ((rank, before), (same, now)) in from.iter().zip(to) {
        let by = before.shift(now)?;
        if rank != same || *all.get_or_insert(by) != by {
            return None;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(step: u64, last: u64) -> BTreeMap<Rank, Access> {
        let access = |rank: u64| {
            let tile = Datatype::hvector(3, 1, 12, &Datatype::bytes(4)).unwrap().resized(0, 40).unwrap();
            let view = View::new(7 + 4 * rank, 1, tile).unwrap();
            let step = if rank == 2 { last } else { step };
            (Rank(rank as u32), Access { view, positions: step * 12..(step + 1) * 12 })
        };
        (0..3).map(access).collect()
    }

    #[test]
    fn what_moves_as_one_is_merged_once() {
        let first = Merged::of(accesses(0, 0)).unwrap();
        assert_eq!(first.bytes(), 36);
        let (moved, afresh) = (first.moved(&accesses(5, 5)).unwrap(), Merged::of(accesses(5, 5)).unwrap());
        assert_eq!(moved.all, afresh.all);
        assert_eq!(moved.places, afresh.places);
        assert_eq!(moved.all.bounds(), 207..243);
        assert!(first.moved(&accesses(5, 6)).is_none());
        let mut fewer = accesses(5, 5);
        fewer.pop_last();
        assert!(first.moved(&fewer).is_none());
    }
}
