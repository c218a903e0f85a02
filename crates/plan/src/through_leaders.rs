//! An operation whose data go through leaders, one or a few on each node.
//!
//! With many ranks, what each has for each aggregator is little, and messages cost more than bytes. Then the ranks of a node
//! describe their accesses to a leader there, which merges them into one, and gives each rank a place in a buffer for it. The
//! leaders carry out a [two-phase](crate::TwoPhase) operation of their own, in which all of them aggregate. They know their file
//! domains from the sums over all ranks, and add up once what they access and who hears of it: so P ranks with L leaders
//! send about 4 P messages within nodes, and those of an operation of L ranks between them. (Two levels of aggregation: Kang et al. 2020, "Improving
//! MPI Collective I/O for High Volume Non-Contiguous Requests with Intra-Node Aggregation".)
//!
//! 1. Each rank describes its access to its leader: its view, if it has not [told](crate::ToldViews) it before, and which part.
//! 2. The leader merges them, and tells each rank with data its [place](Message::Place).
//! 3. To write, the ranks put their data there; when all have, the leaders write. To read, the leaders read, and the ranks take
//!    what is theirs.
//! 4. To write, the leader [acknowledges](Message::Acknowledge) to all its ranks: also where there are gaps, all are through then.
//!
//! A leader that has no room, or misses data, takes part without any: its team has an error, and no other rank.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_layout::View;

use crate::access::{Access, Direction, Group, IoError, Piece, Rank};
use crate::descriptions::Descriptions;
use crate::leaders::{Leaders, Team};
use crate::machine::{Action, Event, StateMachine};
use crate::merged::Merged;
use crate::message::{Description, Message};
use crate::site::Context;
use crate::told_views::ToldViews;
use crate::tree::Unexpected;
use crate::two_phase::TwoPhase;

/// One rank's part in such an operation, from where all know that it is one.
#[derive(Debug)]
pub(crate) struct ThroughLeaders {
    me: Rank,
    direction: Direction,
    access: Access,
    /// Data bytes of the rank that has most: no other says that it has more.
    most_bytes: u64,
    role: Role,
    is_over: bool,
}

#[derive(Debug)]
enum Role {
    Member { leader: Rank, place: Option<Access> },
    Leader(Box<Leader>),
}

#[derive(Debug)]
struct Leader {
    leaders: Leaders,
    members: Vec<Rank>,
    context: Context,
    told: ToldViews,
    /// The interval of the file that all ranks access together: so the leaders know their file domains before they add up.
    bounds: Range<u64>,
    /// By rank, this one included.
    accesses: BTreeMap<Rank, Access>,
    /// Members that have not described theirs yet.
    undescribed: BTreeSet<Rank>,
    /// Those, once all are here; none if this one cannot speak for its team.
    merged: Option<Merged>,
    /// Members whose data must still come to be written.
    missing: BTreeSet<Rank>,
    /// Why this one cannot speak for its team. It takes part without data, or the other leaders would wait for ever.
    error: Option<IoError>,
    /// What the leaders do, from when this one has begun it.
    operation: Option<TwoPhase>,
    /// Came from other leaders before this one was so far.
    early: Vec<Event>,
}

impl ThroughLeaders {
    /// `context` is that of the operation and `leaders` its leaders; `descriptions` have the sums over all ranks, and what members
    /// told this rank so far.
    pub(crate) fn new(
        group: Group,
        direction: Direction,
        access: Access,
        context: &Context,
        leaders: &Leaders,
        descriptions: &mut Descriptions,
    ) -> ThroughLeaders {
        let me = group.rank;
        let most_bytes = descriptions.operation(direction).most_bytes;
        let (heard, idle) = descriptions.hand_over();
        let Team { leader, members } = leaders.team_of(me);
        let role = if leader == me {
            let is_mine = |rank: &Rank| *rank == me || members.contains(rank);
            let bounds = descriptions.bounds();
            let is_honest =
                |(rank, access): &(Rank, Access)| is_mine(rank) && is_possible(access, most_bytes, &bounds);
            let accesses: BTreeMap<Rank, Access> = heard.into_iter().filter(is_honest).collect();
            let is_silent = |rank: &Rank| !accesses.contains_key(rank) && !idle.contains(rank);
            Role::Leader(Box::new(Leader {
                leaders: leaders.clone(),
                undescribed: members.iter().copied().filter(is_silent).collect(),
                members,
                context: among_leaders(context),
                told: context.told.clone(),
                bounds,
                accesses,
                merged: None,
                missing: BTreeSet::new(),
                error: None,
                operation: None,
                early: Vec::new(),
            }))
        } else {
            Role::Member { leader, place: None }
        };
        ThroughLeaders { me, direction, access, most_bytes, role, is_over: false }
    }

    /// Begins: a member with its description.
    pub(crate) fn begin(&mut self, told: &ToldViews, actions: &mut Vec<Action>) {
        match &mut self.role {
            Role::Member { leader, .. } => {
                told.see_through(&self.access.view);
                let message = told.describe(&Description::of(&self.access, true), *leader);
                actions.push(Action::Send { to: *leader, message });
                if self.direction == Direction::Read && self.access.bytes() == 0 {
                    self.finish(Ok(0), actions);
                }
            }
            Role::Leader(_) => self.merge_if_described(actions),
        }
    }

    fn take(&mut self, event: Event, actions: &mut Vec<Action>) -> Result<(), Unexpected> {
        match &self.role {
            Role::Member { leader, .. } => {
                let leader = *leader;
                self.take_as_member(leader, event, actions)
            }
            Role::Leader(_) => self.take_as_leader(event, actions),
        }
    }

    fn take_as_member(
        &mut self,
        leader: Rank,
        event: Event,
        actions: &mut Vec<Action>,
    ) -> Result<(), Unexpected> {
        let bytes = self.access.bytes();
        let Role::Member { place, .. } = &mut self.role else { return Err(Unexpected) };
        match event {
            Event::Received { from, message: Message::Place(found) } if from == leader => {
                if place.is_some() || found.bytes() != bytes || bytes == 0 {
                    return Err(Unexpected);
                }
                if self.direction == Direction::Write {
                    let end = found.bounds().end;
                    let piece = Piece::gathered(self.me, end, 0..bytes);
                    actions.push(Action::SendData { to: leader, piece, error: None });
                }
                *place = Some(found);
                Ok(())
            }
            Event::Received { from, message: Message::Acknowledge { error } }
                if from == leader && self.direction == Direction::Write =>
            {
                if error.is_none() && bytes > 0 && place.is_none() {
                    return Err(Unexpected);
                }
                self.finish(error.map_or(Ok(bytes), Err), actions);
                Ok(())
            }
            Event::Data { from, piece, error }
                if from == leader
                    && self.direction == Direction::Read
                    && (place.is_some() || error.is_some()) =>
            {
                let positions = piece.positions;
                if piece.client != self.me || positions.start != 0 || positions.end > bytes {
                    return Err(Unexpected);
                }
                self.finish(error.map_or(Ok(positions.end), Err), actions);
                Ok(())
            }
            _ => Err(Unexpected),
        }
    }

    fn take_as_leader(&mut self, event: Event, actions: &mut Vec<Action>) -> Result<(), Unexpected> {
        let Role::Leader(leader) = &mut self.role else { return Err(Unexpected) };
        match event {
            Event::Received { from, message: Message::AmongLeaders(message) } => {
                let from = leader.number_of(from)?;
                self.go_on(Event::Received { from, message: *message }, actions);
            }
            Event::Received { from, message } => {
                leader.hear(from, message, self.most_bytes)?;
                self.merge_if_described(actions);
            }
            Event::Data { from, piece, error } if piece.is_gathered() => {
                let is_all = leader.place_of(from).is_some_and(|place| place.positions == piece.positions);
                if piece.client != from || !is_all || !leader.missing.remove(&from) {
                    return Err(Unexpected);
                }
                leader.error = leader.error.or(error);
                self.begin_if_gathered(actions);
            }
            Event::Room { result } => match result {
                Ok(()) => self.give_places(actions),
                Err(error) => self.go_without(error, actions),
            },
            Event::Data { from, piece, error } => {
                let (from, client) = (leader.number_of(from)?, leader.number_of(piece.client)?);
                let piece = Piece { client, ..piece };
                self.go_on(Event::Data { from, piece, error }, actions);
            }
            event @ Event::IoDone { .. } => self.go_on(event, actions),
            Event::Start => return Err(Unexpected),
        }
        Ok(())
    }

    /// Once the leader knows what its whole team accesses.
    fn merge_if_described(&mut self, actions: &mut Vec<Action>) {
        let Role::Leader(leader) = &mut self.role else { return };
        if !leader.undescribed.is_empty() {
            return;
        }
        match leader.told.merge(&leader.accesses) {
            Err(_) => self.go_without(IoError::TOO_LARGE, actions),
            Ok(merged) => {
                let bytes = merged.bytes();
                leader.merged = Some(merged);
                if bytes > 0 {
                    actions.push(Action::Gather { bytes });
                } else {
                    self.begin_if_gathered(actions);
                }
            }
        }
    }

    /// There is room: each rank with data hears where its own belong.
    fn give_places(&mut self, actions: &mut Vec<Action>) {
        let (me, direction) = (self.me, self.direction);
        let Role::Leader(leader) = &mut self.role else { return };
        let Leader { merged: Some(merged), missing, .. } = &mut **leader else { return };
        for (rank, place) in merged.places.iter() {
            if *rank != me {
                actions.push(Action::Send { to: *rank, message: Message::Place(place.clone()) });
                if direction == Direction::Write {
                    missing.insert(*rank);
                }
            } else if direction == Direction::Write {
                let piece = Piece::gathered(me, merged.bytes(), place.positions.clone());
                actions.push(Action::Copy { piece });
            }
        }
        self.begin_if_gathered(actions);
    }

    /// This leader cannot speak for its team: nothing of what that has is read or written.
    fn go_without(&mut self, error: IoError, actions: &mut Vec<Action>) {
        let Role::Leader(leader) = &mut self.role else { return };
        leader.error = Some(error);
        leader.merged = None;
        self.begin_if_gathered(actions);
    }

    /// Once all data to be written are there, the leaders' operation begins.
    fn begin_if_gathered(&mut self, actions: &mut Vec<Action>) {
        let Role::Leader(leader) = &mut self.role else { return };
        if !leader.missing.is_empty() {
            return;
        }
        // What did not arrive must not be written.
        let all = leader.merged.as_ref().filter(|_| leader.error.is_none()).map(|merged| merged.all.clone());
        let access = all.unwrap_or(Access { view: View::contiguous(0), positions: 0..0 });
        let number = leader.leaders.index_of(self.me).unwrap_or(0);
        let group = Group { rank: Rank(number), ranks: leader.leaders.all().len() as u32 };
        let bounds = leader.bounds.clone();
        let operation = TwoPhase::within(bounds, group, self.direction, access, &leader.context);
        let operation = leader.operation.insert(operation);
        let mut asked = Vec::new();
        operation.handle(Event::Start, &mut asked);
        for event in std::mem::take(&mut leader.early) {
            operation.handle(event, &mut asked);
        }
        self.pass(asked, actions);
    }

    fn go_on(&mut self, event: Event, actions: &mut Vec<Action>) {
        let Role::Leader(leader) = &mut self.role else { return };
        match &mut leader.operation {
            Some(operation) => {
                let mut asked = Vec::new();
                operation.handle(event, &mut asked);
                self.pass(asked, actions);
            }
            None => leader.early.push(event),
        }
    }

    /// Passes on what the leaders' operation asks for.
    fn pass(&mut self, asked: Vec<Action>, actions: &mut Vec<Action>) {
        let Role::Leader(leader) = &self.role else { return };
        let all = leader.leaders.all().clone();
        let rank_of = |number: Rank| all[number.index()];
        for action in asked {
            actions.push(match action {
                Action::Send { to, message } => {
                    Action::Send { to: rank_of(to), message: Message::AmongLeaders(Box::new(message)) }
                }
                Action::SendData { to, piece, error } => {
                    let piece = Piece { client: rank_of(piece.client), ..piece };
                    Action::SendData { to: rank_of(to), piece, error }
                }
                Action::Copy { piece } => {
                    Action::Copy { piece: Piece { client: rank_of(piece.client), ..piece } }
                }
                Action::Finish { result } => return self.give_out(result, actions),
                action @ (Action::Io(_) | Action::Gather { .. }) => action,
            });
        }
    }

    /// The leaders are through: this one tells its team.
    fn give_out(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        let (me, direction) = (self.me, self.direction);
        let Role::Leader(leader) = &self.role else { return };
        let error = leader.error.or(result.err());
        let mut own = 0;
        match direction {
            Direction::Write => {
                let tell = |to: &Rank| Action::Send { to: *to, message: Message::Acknowledge { error } };
                actions.extend(leader.members.iter().map(tell));
                own = self.access.bytes();
            }
            Direction::Read => {
                let moved = result.unwrap_or(0);
                for rank in leader.accesses.keys() {
                    let end = leader.place_of(*rank).map_or(0, |place| place.within(0..moved).end);
                    let gathered = leader.merged.as_ref().map_or(0, Merged::bytes);
                    let piece = Piece::gathered(*rank, gathered, 0..end);
                    if *rank != me {
                        actions.push(Action::SendData { to: *rank, piece, error });
                    } else if error.is_none() {
                        own = end;
                        actions.push(Action::Copy { piece });
                    }
                }
            }
        }
        self.finish(error.map_or(Ok(own), Err), actions);
    }

    fn finish(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        self.is_over = true;
        actions.push(Action::Finish { result });
    }

    fn fail(&mut self, actions: &mut Vec<Action>) {
        self.finish(Err(IoError::PROTOCOL), actions);
    }
}

impl Leader {
    /// What a member says of its access: at most so many bytes, in the interval of all.
    fn hear(&mut self, from: Rank, message: Message, most_bytes: u64) -> Result<(), Unexpected> {
        if !self.undescribed.remove(&from) {
            return Err(Unexpected);
        }
        let Some(access) = self.told.described(from, message)? else { return Ok(()) };
        if access.bytes() == 0 || !is_possible(&access, most_bytes, &self.bounds) {
            return Err(Unexpected);
        }
        self.accesses.insert(from, access);
        Ok(())
    }

    fn place_of(&self, rank: Rank) -> Option<&Access> {
        self.merged.as_ref()?.places.get(&rank)
    }

    /// Which leader a rank is.
    fn number_of(&self, rank: Rank) -> Result<Rank, Unexpected> {
        self.leaders.index_of(rank).map(Rank).ok_or(Unexpected)
    }
}

/// Whether the sums over all ranks leave room for an access.
fn is_possible(access: &Access, most_bytes: u64, all: &Range<u64>) -> bool {
    let bounds = access.bounds();
    access.bytes() <= most_bytes
        && (access.bytes() == 0 || all.start <= bounds.start && bounds.end <= all.end)
}

/// What the leaders' operation goes by: all of them aggregate, and none has a leader.
fn among_leaders(context: &Context) -> Context {
    let mut context = context.clone();
    context.hints.cb_nodes = None;
    context.hints.describe = None;
    (context.aggregators, context.leaders, context.views) = (None, None, None);
    context.told = ToldViews::default();
    context
}

impl StateMachine for ThroughLeaders {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        if !self.is_over && self.take(event, actions).is_err() {
            self.fail(actions);
        }
    }

    /// In the operation among leaders.
    fn access_of(&self, rank: Rank) -> Option<&Access> {
        match &self.role {
            Role::Leader(leader) => leader.operation.as_ref()?.access_of(leader.number_of(rank).ok()?),
            Role::Member { .. } => (rank == self.me).then_some(&self.access),
        }
    }

    fn place_of(&self, rank: Rank) -> Option<&Access> {
        match &self.role {
            Role::Member { place, .. } => place.as_ref().filter(|_| rank == self.me),
            Role::Leader(leader) => leader.place_of(rank),
        }
    }
}
