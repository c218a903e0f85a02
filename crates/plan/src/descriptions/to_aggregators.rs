//! All ranks add up what they access together, and then tell it to the aggregators whose file domains they access.
//!
//! 1. A [summary](Summary) of what each accesses goes up the [tree](crate::tree), and that of all comes down: what the operation
//!    is judged by, and the bounds from which every rank knows the file domains.
//! 2. If they exchange data, each tells the aggregators in whose domains it has data: its view, if it has not
//!    [told](crate::ToldViews) it before, and which part. Meanwhile the numbers of clients go up the tree, and each
//!    aggregator's comes down to it: from so many it is to hear. Where all know the bounds before, as leaders do, the numbers go
//!    along with the summaries.
//!
//! A rank sends up to 2 ⌈log₂ P⌉ messages, and one to each aggregator whose domain it accesses. It keeps its own access, and
//! those of its clients if it aggregates; a message of the sums has an entry an aggregator at most.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_layout::{Layout, View};

use super::Told;
use crate::access::{Access, Direction, Group, Rank};
use crate::domain::{Domains, Part};
use crate::expected::Clients;
use crate::machine::Action;
use crate::message::{Description, Message};
use crate::operation::Operation;
use crate::site::Context;
use crate::summary::Summary;
use crate::told_views::ToldViews;
use crate::tree::{Sweep, Tree, Unexpected};

#[derive(Debug)]
pub(super) struct ToAggregators {
    group: Group,
    tree: Tree,
    domains: Domains,
    /// In which interval of the file all accesses lie, if all ranks know that before.
    known: Option<Box<Range<u64>>>,
    own: Description,
    told: ToldViews,
    summaries: Sweep<Summary>,
    summary: Option<Summary>,
    numbers: Sweep<Clients>,
    /// Which aggregator this rank is, if it is one.
    aggregator: Option<u32>,
    /// Those that told this aggregator, and its own access.
    clients: BTreeMap<Rank, Access>,
    /// Those that told this one that they have nothing: of a leader, which is to hear from its whole team.
    idle: BTreeSet<Rank>,
    /// How many other ranks tell this one, when nobody waits any more to hear such numbers from it.
    expected: Option<u32>,
}

impl ToAggregators {
    pub(super) fn new(
        known: Option<Range<u64>>,
        group: Group,
        own: &Access,
        description: Description,
        context: &Context,
    ) -> ToAggregators {
        let tree = Tree::of(group);
        let domains = Domains::new(context, group.ranks);
        let aggregator = domains.index_of(group.rank);
        let own_as_client = aggregator.filter(|_| own.bytes() > 0).map(|_| (group.rank, own.clone()));
        ToAggregators {
            group,
            tree,
            domains,
            known: known.map(Box::new),
            own: description,
            told: context.told.clone(),
            summaries: Sweep::new(tree),
            summary: None,
            numbers: Sweep::new(tree),
            aggregator,
            clients: own_as_client.into_iter().collect(),
            idle: BTreeSet::new(),
            expected: None,
        }
    }

    /// This rank's part of the summary.
    pub(super) fn tell(&mut self, actions: &mut Vec<Action>) {
        let clients = self.known.as_ref().map(|bounds| {
            let access = self.own.access.as_ref();
            let parts = access.map_or_else(Vec::new, |access| self.domains.parts_of(access, bounds));
            Box::new(self.one_client(&parts))
        });
        if let Some(sum) = self.summaries.begin(Summary { clients, ..Summary::of(&self.own) }) {
            self.pass_summary_up(sum, actions);
        }
    }

    pub(super) fn take(
        &mut self,
        from: Rank,
        message: Message,
        actions: &mut Vec<Action>,
    ) -> Result<(), Unexpected> {
        let is_from_above = self.tree.parent() == Some(from);
        match message {
            Message::Summary(part) if part.clients.is_some() != self.known.is_some() => Err(Unexpected),
            Message::Clients(_) if self.known.is_some() => Err(Unexpected),
            Message::Summary(summary) if is_from_above => self.know(*summary, actions),
            Message::Summary(part) => {
                if let Some(sum) = self.summaries.take(from, *part)? {
                    self.pass_summary_up(sum, actions);
                }
                Ok(())
            }
            Message::Clients(numbers) if is_from_above => {
                let is_awaited = self.summary.is_some() && self.expected.is_none() && self.hears_numbers();
                if !is_awaited {
                    return Err(Unexpected);
                }
                self.pass_numbers_down(&numbers, actions)
            }
            Message::Clients(part) => match self.numbers.take(from, part)? {
                Some(sum) => self.pass_numbers_up(sum, actions),
                None => Ok(()),
            },
            message => match self.told.described(from, message)? {
                Some(access) => self.add_client(from, access),
                None if self.aggregator.is_some() && self.idle.insert(from) => Ok(()),
                None => Err(Unexpected),
            },
        }
    }

    fn pass_summary_up(&mut self, sum: Summary, actions: &mut Vec<Action>) {
        match self.tree.parent() {
            Some(to) => actions.push(Action::Send { to, message: Message::Summary(Box::new(sum)) }),
            // Rank 0 hears from nobody else what it knows.
            None => _ = self.know(sum, actions),
        }
    }

    /// The sum over all ranks is here.
    fn know(&mut self, mut summary: Summary, actions: &mut Vec<Action>) -> Result<(), Unexpected> {
        if self.summary.is_some() {
            return Err(Unexpected);
        }
        let numbers = summary.clients.take();
        for to in self.tree.children().rev() {
            let below = self.domains.indices_among(&self.tree.below(to));
            let clients = numbers.as_ref().map(|numbers| Box::new(numbers.within(&below)));
            let message = Message::Summary(Box::new(Summary { clients, ..summary.clone() }));
            actions.push(Action::Send { to, message });
        }
        self.summary = Some(summary);
        numbers.map_or(Ok(()), |numbers| self.expect(&numbers))
    }

    pub(super) fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    pub(super) fn bounds(&self) -> Range<u64> {
        match &self.known {
            Some(bounds) => (**bounds).clone(),
            None => self.summary.as_ref().map_or(0..0, Summary::bounds),
        }
    }

    pub(super) fn operation(&self, direction: Direction) -> Operation {
        let nothing = Summary::default();
        self.summary.as_ref().unwrap_or(&nothing).operation(direction, self.group.ranks)
    }

    pub(super) fn told(&self) -> Told {
        let sums = self.summary.as_ref().map(|summary| (summary.told_us, summary.most_told_us));
        let (sum_us, most_us) = sums.unwrap_or_default();
        Told { sum_us, most_us, ranks: self.group.ranks }
    }

    pub(super) fn tell_aggregators(&mut self, parts: &[Part], actions: &mut Vec<Action>) {
        // First, as others wait for it longer than for the descriptions. Rank 0 alone adds up nothing that could be wrong.
        if self.known.is_none()
            && let Some(sum) = self.numbers.begin(self.one_client(parts))
        {
            _ = self.pass_numbers_up(sum, actions);
        }
        let Some(access) = &self.own.access else { return };
        self.told.see_through(&access.view);
        for part in parts.iter().filter(|part| part.rank != self.group.rank) {
            let message = self.told.describe(&self.own, part.rank);
            actions.push(Action::Send { to: part.rank, message });
        }
    }

    /// This rank as a client of the other aggregators in whose domains it has data.
    fn one_client(&self, parts: &[Part]) -> Clients {
        let mut others: Vec<u32> = parts.iter().map(|part| part.index).collect();
        others.retain(|index| Some(*index) != self.aggregator);
        others.sort_unstable();
        Clients::one_of(others)
    }

    fn pass_numbers_up(&mut self, sum: Clients, actions: &mut Vec<Action>) -> Result<(), Unexpected> {
        match self.tree.parent() {
            None => self.pass_numbers_down(&sum, actions),
            Some(to) => {
                actions.push(Action::Send { to, message: Message::Clients(sum) });
                if self.hears_numbers() { Ok(()) } else { self.expect(&Clients::default()) }
            }
        }
    }

    /// Tells those children that are aggregators, or have some below them.
    fn pass_numbers_down(&mut self, numbers: &Clients, actions: &mut Vec<Action>) -> Result<(), Unexpected> {
        for to in self.tree.children().rev() {
            let aggregators = self.domains.indices_among(&self.tree.below(to));
            if !aggregators.is_empty() {
                actions.push(Action::Send { to, message: Message::Clients(numbers.within(&aggregators)) });
            }
        }
        self.expect(numbers)
    }

    /// Whether numbers come down to this rank.
    fn hears_numbers(&self) -> bool {
        self.group.rank.0 > 0 && !self.domains.indices_among(&self.tree.below(self.group.rank)).is_empty()
    }

    /// These many are to describe their accesses to this rank, if it aggregates.
    fn expect(&mut self, numbers: &Clients) -> Result<(), Unexpected> {
        let others = self.aggregator.map_or(0, |index| numbers.of(index));
        self.expected = Some(others);
        if self.others_here() > others { Err(Unexpected) } else { Ok(()) }
    }

    fn add_client(&mut self, from: Rank, access: Access) -> Result<(), Unexpected> {
        let is_one = self.aggregator.is_some() && from != self.group.rank && access.bytes() > 0;
        if !is_one || self.clients.insert(from, access).is_some() {
            return Err(Unexpected);
        }
        if self.expected.is_some_and(|others| self.others_here() > others) { Err(Unexpected) } else { Ok(()) }
    }

    fn others_here(&self) -> u32 {
        self.clients.len() as u32 - u32::from(self.clients.contains_key(&self.group.rank))
    }

    pub(super) fn are_complete(&self) -> bool {
        self.expected == Some(self.others_here())
    }

    /// The bytes of an interval of the file that none of these touches, which are all that the clients have there.
    pub(super) fn holes(&self, file: Range<u64>, parts: &[(&View, Range<u64>)]) -> Layout {
        self.told.holes(&self.clients, file, parts)
    }

    /// Those that told this aggregator so far, with its own access, and those that have nothing.
    pub(super) fn hand_over(&mut self) -> (BTreeMap<Rank, Access>, BTreeSet<Rank>) {
        (std::mem::take(&mut self.clients), std::mem::take(&mut self.idle))
    }

    pub(super) fn accesses(&self) -> impl Iterator<Item = (Rank, &Access)> {
        self.clients.iter().map(|(rank, access)| (*rank, access))
    }

    pub(super) fn access_of(&self, rank: Rank) -> Option<&Access> {
        self.clients.get(&rank)
    }
}
