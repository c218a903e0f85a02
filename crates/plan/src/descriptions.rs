//! What the ranks of an operation tell each other before they begin.

use std::ops::Range;
use std::sync::Arc;

use pio_layout::View;

use crate::access::{Access, Group, Rank};
use crate::machine::{Action, Event};
use crate::message::{Description, Message};

/// Ranks, and which of their data bytes.
pub(crate) type Clients = Vec<(Rank, Range<u64>)>;

/// The descriptions of all ranks, as they come in.
#[derive(Debug)]
pub(crate) struct Descriptions {
    each: Vec<Option<Description>>,
    missing: u32,
    /// The views that the ranks registered.
    views: Option<Arc<[View]>>,
    /// Whether this rank's view is among them, so that it need not say it again.
    is_registered: bool,
    /// Came before the last description: a faster rank is already exchanging data.
    pub(crate) early: Vec<Event>,
}

impl Descriptions {
    /// Of one rank, which knows its own access, and how long it waited the last time.
    pub(crate) fn new(
        group: Group,
        own: &Access,
        views: Option<Arc<[View]>>,
        waited_us: u64,
    ) -> Descriptions {
        let mut each = vec![None; group.ranks as usize];
        each[group.rank.index()] = Some(Description { waited_us, ..Description::of(own, true) });
        let registered = views.as_ref().and_then(|views| views.get(group.rank.index()));
        let is_registered = registered == Some(&own.view);
        Descriptions { each, missing: group.ranks - 1, views, is_registered, early: Vec::new() }
    }

    /// Tells every other rank of `own` access, beginning with the successor, so that not all ranks turn to rank 0 at
    /// once; those for whom `exact` holds are told the exact bytes.
    pub(crate) fn tell(
        &self,
        group: Group,
        own: &Access,
        exact: impl Fn(Rank) -> bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(Some(description)) = self.each.get(group.rank.index()) else { return };
        for step in 1..group.ranks {
            let to = Rank((group.rank.0 + step) % group.ranks);
            let message = if self.is_registered {
                Message::TakePart { positions: own.positions.clone(), waited_us: description.waited_us }
            } else if exact(to) {
                Message::Describe(description.clone())
            } else {
                Message::Describe(Description { access: None, ..description.clone() })
            };
            actions.push(Action::Send { to, message });
        }
    }

    /// Takes in a message. False if it is no description, or not one that may come now. `exact`: whether this rank must
    /// be told the exact bytes.
    pub(crate) fn take(&mut self, from: Rank, message: Message, exact: bool) -> bool {
        let description = match message {
            Message::Describe(description) => description,
            Message::TakePart { positions, waited_us } => {
                let view = self.views.as_ref().and_then(|views| views.get(from.index()));
                let Some(view) = view.filter(|view| positions.is_empty() || positions.end <= view.limit())
                else {
                    return false;
                };
                Description { waited_us, ..Description::of(&Access { view: view.clone(), positions }, true) }
            }
            _ => return false,
        };
        let complete = description.access.is_some() || description.bytes == 0 || !exact;
        match self.each.get_mut(from.index()) {
            Some(slot @ None) if complete => *slot = Some(description),
            _ => return false,
        }
        self.missing -= 1;
        true
    }

    /// Whether every rank's is here.
    pub(crate) fn are_complete(&self) -> bool {
        self.missing == 0
    }

    /// Seconds that the ranks waited for each other the last time, in the mean.
    pub(crate) fn waited_s(&self) -> f64 {
        let all: u64 = self.each.iter().flatten().map(|one| one.waited_us).fold(0, u64::saturating_add);
        all as f64 / 1e6 / self.each.len() as f64
    }

    /// Those of ranks that have data.
    pub(crate) fn busy(&self) -> impl Iterator<Item = &Description> {
        self.each.iter().flatten().filter(|description| description.bytes > 0)
    }

    /// The accesses that this rank was told of.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (Rank, &Access)> {
        self.each.iter().enumerate().filter_map(|(rank, description)| {
            let access = description.as_ref()?.access.as_ref()?;
            Some((Rank(rank as u32), access))
        })
    }

    /// The access of a rank, if this one was told.
    pub(crate) fn access_of(&self, rank: Rank) -> Option<&Access> {
        self.each.get(rank.index())?.as_ref()?.access.as_ref()
    }

    /// The ranks that have data in an interval of the file, and which.
    pub(crate) fn clients_of(&self, file: &Range<u64>) -> Clients {
        let part = |(rank, access): (Rank, &Access)| {
            let positions = access.within(file.clone());
            (!positions.is_empty()).then_some((rank, positions))
        };
        self.accesses().filter_map(part).collect()
    }

    /// The interval of the file that all ranks access together.
    pub(crate) fn bounds(&self) -> Range<u64> {
        let start = self.busy().map(|description| description.bounds.start).min().unwrap_or(0);
        start..self.busy().map(|description| description.bounds.end).max().unwrap_or(start)
    }

    /// Data bytes of all ranks together.
    pub(crate) fn bytes(&self) -> u64 {
        self.busy().map(|description| description.bytes).fold(0, u64::saturating_add)
    }

    /// Whether there must be gaps between the ranks' data, as far as the sum of their sizes tells every rank.
    pub(crate) fn are_sparse(&self) -> bool {
        let all = self.bounds();
        self.bytes() != all.end - all.start
    }
}
