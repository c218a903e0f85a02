//! Views that ranks told aggregators, and need not tell them again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pio_layout::{Layout, LayoutError, View, coverage};

use crate::access::{Access, Rank};
use crate::covered::{Covered, outside};
use crate::descriptions::part_of;
use crate::merged::Merged;
use crate::message::{Description, Message};
use crate::tree::Unexpected;

/// What a rank told of its view in an open file, and was told by others of theirs, since the ranks set the views in force.
///
/// The collective operations of a rank share it: after a description with the view, its other descriptions to the same
/// aggregator are a range of positions. Whoever carries out operations begins a new one when the ranks set their views. As a
/// rank and an aggregator both carry them out in the same order, an aggregator knows what the rank remembers to have told.
#[derive(Clone, Debug, Default)]
pub struct ToldViews(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    /// This rank's own.
    view: Option<View>,
    /// What it last described, and how many pieces that is.
    counted: Option<(Access, u64)>,
    /// Who knows it.
    to: BTreeSet<Rank>,
    /// Those of others.
    of: BTreeMap<Rank, View>,
    /// What a leader last made of the accesses of those for whom it speaks.
    merged: Option<Merged>,
    /// Where an aggregator last found that its clients leave nothing out.
    covered: Option<Covered>,
}

impl ToldViews {
    /// The next descriptions are of this view of the rank.
    pub(crate) fn see_through(&self, view: &View) {
        let mut told = self.lock();
        if told.view.as_ref() != Some(view) {
            told.view = Some(view.clone());
            told.to.clear();
        }
    }

    /// The description of this rank's access. To count pieces takes a walk: what lies like the last one is as many.
    pub(crate) fn own(&self, access: &Access) -> Description {
        let mut told = self.lock();
        let counted = told.counted.as_ref().filter(|(last, _)| last.shift(access).is_some());
        let pieces = counted.map_or_else(|| access.pieces(), |(_, pieces)| *pieces);
        told.counted = Some((access.clone(), pieces));
        Description::of_pieces(access, pieces, true)
    }

    /// What this rank says of its access, through that view, to one that is to know it: where it knows the view, a range of positions.
    pub(crate) fn describe(&self, own: &Description, to: Rank) -> Message {
        match &own.access {
            Some(access) if !self.lock().to.insert(to) => {
                Message::TakePart { positions: access.positions.clone(), told_us: 0 }
            }
            _ => Message::Describe(own.clone()),
        }
    }

    /// The access of which another rank says that; none if it has nothing.
    ///
    /// # Errors
    /// If the message is no description, or of a view that the rank has not told, or of positions that this has not.
    pub(crate) fn described(&self, from: Rank, message: Message) -> Result<Option<Access>, Unexpected> {
        match message {
            Message::Describe(Description { access: Some(access), .. }) => {
                self.lock().of.insert(from, access.view.clone());
                Ok(Some(access))
            }
            Message::Describe(Description { bytes: 0, .. }) => Ok(None),
            Message::TakePart { positions, .. } => {
                let view = self.lock().of.get(&from).cloned().ok_or(Unexpected)?;
                part_of(&view, positions).map(Some)
            }
            _ => Err(Unexpected),
        }
    }

    /// The accesses of those for whom a leader speaks, merged.
    ///
    /// # Errors
    /// As [`Merged::of`].
    pub(crate) fn merge(&self, accesses: &BTreeMap<Rank, Access>) -> Result<Merged, LayoutError> {
        let mut told = self.lock();
        if let Some(moved) = told.merged.as_ref().and_then(|merged| merged.moved(accesses)) {
            return Ok(moved);
        }
        Ok(told.merged.insert(Merged::of(accesses.clone())?).clone())
    }

    /// The bytes of an interval of the file that none of `parts` touches, which are all that these accesses of an aggregator's
    /// clients have there.
    pub(crate) fn holes(
        &self,
        accesses: &BTreeMap<Rank, Access>,
        file: Range<u64>,
        parts: &[(&View, Range<u64>)],
    ) -> Layout {
        let mut told = self.lock();
        let known = told.covered.as_ref().and_then(|covered| covered.moved(accesses)).unwrap_or(0..0);
        let rest = outside(&file, &known);
        if rest.is_empty() {
            return Layout::bytes(0);
        }
        let within =
            |positions: &Range<u64>, view: &View| view.positions_within(positions.clone(), rest.clone());
        let left: Vec<_> = parts.iter().map(|(view, positions)| (*view, within(positions, view))).collect();
        let holes = coverage::holes(rest.clone(), &left);
        if holes.is_empty() && !told.covered.as_mut().is_some_and(|covered| covered.grow(accesses, &file)) {
            told.covered = Some(Covered::new(accesses, file));
        }
        holes
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use pio_layout::Datatype;
    use proptest::prelude::*;

    use super::*;

    /// Ranks that have blocks of 4 bytes of every row of 12, three rows a step.
    fn accesses(step: u64, ranks: &[u64], last_rows: u64) -> BTreeMap<Rank, Access> {
        let access = |&rank: &u64| {
            let tile = Datatype::bytes(4).resized(0, 12).unwrap();
            let rows = if rank == 2 { last_rows } else { 3 };
            let positions = step * 12..step * 12 + rows * 4;
            (Rank(rank as u32), Access { view: View::new(4 * rank, 1, tile).unwrap(), positions })
        };
        ranks.iter().map(access).collect()
    }

    proptest! {
        #[test]
        fn what_was_found_before_changes_nothing(
            steps in prop::collection::vec((0..40_u64, prop::sample::subsequence(vec![0, 1, 2], 2..=3), 2..4_u64, 0..40_u64, 1..40_u64), 1..30),
        ) {
            let told = ToldViews::default();
            for (step, ranks, last_rows, start, len) in steps {
                let accesses = accesses(step, &ranks, last_rows);
                let start = (step * 36 + start).saturating_sub(2);
                let file = start..start + len;
                let parts: Vec<_> = accesses.values().map(|access| (&access.view, access.within(file.clone()))).collect();
                let bytes = |holes: Layout| holes.extents(0..holes.size()).collect::<Vec<_>>();
                let expected = bytes(coverage::holes(file.clone(), &parts));
                prop_assert_eq!(bytes(told.holes(&accesses, file, &parts)), expected);
            }
        }
    }

    #[test]
    fn what_lies_alike_is_described_alike() {
        let told = ToldViews::default();
        for step in [0, 7, 3] {
            let access = &accesses(step, &[1], 3)[&Rank(1)];
            assert_eq!(told.own(access), Description::of(access, true));
        }
        let fewer = &accesses(3, &[2], 2)[&Rank(2)];
        assert_eq!(told.own(fewer), Description::of(fewer, true));
    }
}
