//! Every rank describes its access to every other.

use std::ops::Range;
use std::sync::Arc;

use pio_layout::View;

use super::Told;
use crate::access::{Access, Direction, Group, Rank};
use crate::domain::Domains;
use crate::machine::Action;
use crate::message::{Description, Message};
use crate::operation::Operation;
use crate::site::Context;
use crate::tree::Unexpected;

/// The descriptions of all ranks, as they come in.
#[derive(Debug)]
pub(super) struct ToAll {
    group: Group,
    domains: Domains,
    /// This rank's own data bytes.
    positions: Range<u64>,
    each: Vec<Option<Description>>,
    missing: u32,
    /// The views that the ranks registered.
    views: Option<Arc<[View]>>,
    /// Whether this rank's view is among them, so that it need not say it again.
    is_registered: bool,
}

impl ToAll {
    /// Of one rank: its own access, and what it says of it.
    pub(super) fn new(group: Group, own: &Access, description: Description, context: &Context) -> ToAll {
        let mut each = vec![None; group.ranks as usize];
        each[group.rank.index()] = Some(description);
        let views = context.views.clone();
        let registered = views.as_ref().and_then(|views| views.get(group.rank.index()));
        let is_registered = registered == Some(&own.view);
        let domains = Domains::new(context, group.ranks);
        ToAll {
            group,
            domains,
            positions: own.positions.clone(),
            each,
            missing: group.ranks - 1,
            views,
            is_registered,
        }
    }

    /// Tells every other rank of this one's access, beginning with the successor, so that not all ranks turn to rank 0 at
    /// once; aggregators are told the exact bytes.
    pub(super) fn tell(&self, actions: &mut Vec<Action>) {
        let Group { rank, ranks } = self.group;
        let Some(Some(description)) = self.each.get(rank.index()) else { return };
        for step in 1..ranks {
            let to = Rank((rank.0 + step) % ranks);
            let message = if self.is_registered {
                Message::TakePart { positions: self.positions.clone(), told_us: description.told_us }
            } else if self.domains.aggregates(to) {
                Message::Describe(description.clone())
            } else {
                Message::Describe(Description { access: None, ..description.clone() })
            };
            actions.push(Action::Send { to, message });
        }
    }

    pub(super) fn take(&mut self, from: Rank, message: Message) -> Result<(), Unexpected> {
        let description = match message {
            Message::Describe(description) => description,
            Message::TakePart { positions, told_us } => {
                let view = self.views.as_ref().and_then(|views| views.get(from.index())).ok_or(Unexpected)?;
                Description { told_us, ..Description::of(&part_of(view, positions)?, true) }
            }
            _ => return Err(Unexpected),
        };
        let must_be_exact = self.domains.aggregates(self.group.rank);
        let complete = description.access.is_some() || description.bytes == 0 || !must_be_exact;
        match self.each.get_mut(from.index()) {
            Some(slot @ None) if complete => *slot = Some(description),
            _ => return Err(Unexpected),
        }
        self.missing -= 1;
        Ok(())
    }

    /// Whether every rank's is here.
    pub(super) fn are_complete(&self) -> bool {
        self.missing == 0
    }

    pub(super) fn told(&self) -> Told {
        let each = || self.each.iter().flatten().map(|one| one.told_us);
        let (sum_us, most_us) = (each().fold(0, u64::saturating_add), each().max().unwrap_or(0));
        Told { sum_us, most_us, ranks: self.group.ranks }
    }

    pub(super) fn operation(&self, direction: Direction) -> Operation {
        Operation::of(direction, self.group.ranks, self.busy())
    }

    /// Those of ranks that have data.
    fn busy(&self) -> impl Iterator<Item = &Description> {
        self.each.iter().flatten().filter(|description| description.bytes > 0)
    }

    /// The accesses that this rank was told of.
    pub(super) fn accesses(&self) -> impl Iterator<Item = (Rank, &Access)> {
        self.each.iter().enumerate().filter_map(|(rank, description)| {
            let access = description.as_ref()?.access.as_ref()?;
            Some((Rank(rank as u32), access))
        })
    }

    pub(super) fn access_of(&self, rank: Rank) -> Option<&Access> {
        self.each.get(rank.index())?.as_ref()?.access.as_ref()
    }

    /// The interval of the file that all ranks access together.
    pub(super) fn bounds(&self) -> Range<u64> {
        let start = self.busy().map(|description| description.bounds.start).min().unwrap_or(0);
        start..self.busy().map(|description| description.bounds.end).max().unwrap_or(start)
    }

    /// Data bytes of all ranks together.
    pub(super) fn bytes(&self) -> u64 {
        self.busy().map(|description| description.bytes).fold(0, u64::saturating_add)
    }
}

/// Some data bytes of a view that another rank named: perhaps more than it has.
pub(crate) fn part_of(view: &View, positions: Range<u64>) -> Result<Access, Unexpected> {
    let is_there = positions.is_empty() || positions.end <= view.limit();
    if is_there { Ok(Access { view: view.clone(), positions }) } else { Err(Unexpected) }
}
