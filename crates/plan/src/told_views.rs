//! Views that ranks told aggregators, and need not tell them again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pio_layout::{LayoutError, View};

use crate::access::{Access, Rank};
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
    /// Who knows it.
    to: BTreeSet<Rank>,
    /// Those of others.
    of: BTreeMap<Rank, View>,
    /// What a leader last made of the accesses of those for whom it speaks.
    merged: Option<Merged>,
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

    /// What this rank says of its access, through that view, to one that is to know it: where it knows the view, a range of positions.
    pub(crate) fn describe(&self, own: &Description, to: Rank) -> Message {
        match &own.access {
            Some(access) if !self.lock().to.insert(to) => {
                Message::TakePart { positions: access.positions.clone(), waited_us: 0 }
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

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
