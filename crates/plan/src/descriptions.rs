//! What the ranks of an operation tell each other before they exchange data.
//!
//! A few ranks describe their accesses to each other: one step, P − 1 messages a rank. More [add up](crate::tree) what they
//! access together, and then tell only the aggregators whose file domains they access. Either way there is a moment at which a
//! rank knows what all of them access together, in sums: all ranks know the same, and each decides by it. And it knows that all
//! others have begun the operation, and so are through with the one before.

mod to_aggregators;
mod to_all;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_layout::{Layout, coverage};

use crate::access::{Access, Direction, Group, Rank};
use crate::domain::Part;
use crate::hints::{Describe, Hints};
use crate::machine::{Action, Event};
use crate::message::{Description, Message};
use crate::operation::Operation;
use crate::site::Context;
use crate::tree::Unexpected;
use to_aggregators::ToAggregators;
use to_all::ToAll;

pub(crate) use to_all::part_of;

/// Up to so many ranks describe their accesses to each other. Sums cost a rank up to 2 ⌈log₂ P⌉ messages, in 4 ⌈log₂ P⌉ steps,
/// and then it describes its access to aggregators. With 8 ranks, the 7 messages in one step are about as many; with 16, 15
/// messages are twice as many.
const RANKS_TO_ALL: u32 = 8;

/// Whether ranks are so few that each best says what it has to say to every other, in one step; more talk through a [tree](crate::tree).
pub(crate) fn are_few(ranks: u32) -> bool {
    ranks <= RANKS_TO_ALL
}

/// Whether the ranks describe their accesses to all others, not to aggregators alone.
pub(crate) fn are_told_to_all(hints: &Hints, ranks: u32) -> bool {
    match hints.describe {
        Some(describe) => describe == Describe::All,
        None => are_few(ranks),
    }
}

/// Ranks, and which of their data bytes.
pub(crate) type Clients = Vec<(Rank, Range<u64>)>;

/// What a rank says, and hears from others.
#[derive(Debug)]
pub(crate) struct Descriptions {
    way: Way,
    /// Came before this rank could go on: a faster one is already exchanging data.
    pub(crate) early: Vec<Event>,
}

#[derive(Debug)]
enum Way {
    ToAll(ToAll),
    ToAggregators(Box<ToAggregators>),
}

/// What all ranks told of time.
struct Told {
    sum_us: u64,
    most_us: u64,
    ranks: u32,
}

impl Descriptions {
    /// Of one rank. What it tells of time is what the context recalls.
    pub(crate) fn new(group: Group, own: &Access, context: &Context) -> Descriptions {
        Descriptions::within(None, group, own, context)
    }

    /// The same, where all ranks know already in which interval of the file their accesses lie, perhaps.
    pub(crate) fn within(
        bounds: Option<Range<u64>>,
        group: Group,
        own: &Access,
        context: &Context,
    ) -> Descriptions {
        let description = Description { told_us: context.remembered.told_us, ..context.told.own(own) };
        let way = if are_told_to_all(&context.hints, group.ranks) {
            Way::ToAll(ToAll::new(group, own, description, context))
        } else {
            Way::ToAggregators(Box::new(ToAggregators::new(bounds, group, own, description, context)))
        };
        Descriptions { way, early: Vec::new() }
    }

    /// Begins.
    pub(crate) fn tell(&mut self, actions: &mut Vec<Action>) {
        match &mut self.way {
            Way::ToAll(way) => way.tell(actions),
            Way::ToAggregators(way) => way.tell(actions),
        }
    }

    /// Whether a message belongs to the descriptions.
    pub(crate) fn concern(message: &Message) -> bool {
        matches!(
            message,
            Message::Describe(_) | Message::TakePart { .. } | Message::Summary(_) | Message::Clients(_)
        )
    }

    /// Takes in a message.
    ///
    /// # Errors
    /// If it is none of those, or may not come from that rank, or not now.
    pub(crate) fn take(
        &mut self,
        from: Rank,
        message: Message,
        actions: &mut Vec<Action>,
    ) -> Result<(), Unexpected> {
        match &mut self.way {
            Way::ToAll(way) => way.take(from, message),
            Way::ToAggregators(way) => way.take(from, message, actions),
        }
    }

    /// Whether this rank knows what all access together. From then on, sums can be asked for.
    pub(crate) fn are_summed(&self) -> bool {
        match &self.way {
            Way::ToAll(way) => way.are_complete(),
            Way::ToAggregators(way) => way.summary().is_some(),
        }
    }

    /// The sums over all ranks.
    pub(crate) fn operation(&self, direction: Direction) -> Operation {
        match &self.way {
            Way::ToAll(way) => way.operation(direction),
            Way::ToAggregators(way) => way.operation(direction),
        }
    }

    /// The interval of the file that all ranks access together; or a larger one, that all knew before.
    pub(crate) fn bounds(&self) -> Range<u64> {
        match &self.way {
            Way::ToAll(way) => way.bounds(),
            Way::ToAggregators(way) => way.bounds(),
        }
    }

    /// Whether there must be gaps between the ranks' data, as far as the sum of their sizes tells every rank.
    pub(crate) fn are_sparse(&self) -> bool {
        let all = self.bounds();
        let bytes = match &self.way {
            Way::ToAll(way) => way.bytes(),
            Way::ToAggregators(way) => way.summary().map_or(0, |summary| summary.bytes),
        };
        bytes != all.end - all.start
    }

    /// Seconds that the ranks wait for each other, in the mean: as they did the last time, or, if this is the first, by how much
    /// earlier than the last they come.
    pub(crate) fn waits_s(&self, is_first: bool) -> f64 {
        let Told { sum_us, most_us, ranks } = match &self.way {
            Way::ToAll(way) => way.told(),
            Way::ToAggregators(way) => way.told(),
        };
        let mean_us = sum_us as f64 / f64::from(ranks);
        let waits_us = if is_first { most_us as f64 - mean_us } else { mean_us };
        waits_us.max(0.0) / 1e6
    }

    /// Tells aggregators what they do not know yet, when the ranks have decided to exchange data: of this rank's access, the
    /// parts in others' file domains, from the successor on.
    pub(crate) fn tell_aggregators(&mut self, parts: &[Part], actions: &mut Vec<Action>) {
        match &mut self.way {
            Way::ToAll(_) => {}
            Way::ToAggregators(way) => way.tell_aggregators(parts, actions),
        }
    }

    /// Whether the accesses of all ranks that have data for this one are here, and nobody needs this one to hear of others.
    pub(crate) fn are_complete(&self) -> bool {
        match &self.way {
            Way::ToAll(way) => way.are_complete(),
            Way::ToAggregators(way) => way.are_complete(),
        }
    }

    /// What was heard so far goes to whoever goes on with it: accesses, the own one included, and ranks that have nothing.
    pub(crate) fn hand_over(&mut self) -> (BTreeMap<Rank, Access>, BTreeSet<Rank>) {
        match &mut self.way {
            Way::ToAll(_) => Default::default(),
            Way::ToAggregators(way) => way.hand_over(),
        }
    }

    /// Whether every rank knows of every other: what each has, and where.
    pub(crate) fn are_told_to_all(&self) -> bool {
        matches!(self.way, Way::ToAll(_))
    }

    /// The accesses that this rank was told of, its own included.
    pub(crate) fn accesses(&self) -> Box<dyn Iterator<Item = (Rank, &Access)> + '_> {
        match &self.way {
            Way::ToAll(way) => Box::new(way.accesses()),
            Way::ToAggregators(way) => Box::new(way.accesses()),
        }
    }

    /// The access of a rank, if this one was told.
    pub(crate) fn access_of(&self, rank: Rank) -> Option<&Access> {
        match &self.way {
            Way::ToAll(way) => way.access_of(rank),
            Way::ToAggregators(way) => way.access_of(rank),
        }
    }

    /// The ranks that have data in an interval of the file, their accesses, and which of these lie there.
    pub(crate) fn parts_in(&self, file: &Range<u64>) -> impl Iterator<Item = (Rank, &Access, Range<u64>)> {
        self.accesses().filter_map(|(rank, access)| {
            let positions = access.within(file.clone());
            (!positions.is_empty()).then_some((rank, access, positions))
        })
    }

    /// The bytes of an interval of the file that none of these touches, the ranks that have data there.
    pub(crate) fn holes(&self, file: Range<u64>, clients: &Clients) -> Layout {
        let parts: Vec<_> = clients
            .iter()
            .filter_map(|(client, positions)| Some((&self.access_of(*client)?.view, positions.clone())))
            .collect();
        match &self.way {
            Way::ToAll(_) => coverage::holes(file, &parts),
            Way::ToAggregators(way) => way.holes(file, &parts),
        }
    }

    /// The ranks that have data in an interval of the file, and which.
    pub(crate) fn clients_of(&self, file: &Range<u64>) -> Clients {
        self.parts_in(file).map(|(rank, _, positions)| (rank, positions)).collect()
    }
}
