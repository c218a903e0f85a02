//! Collective operations and views: what a strategy asks for, carried out on simulated hardware.

use std::sync::Arc;

use pio_layout::View;
use pio_machine::Duration;
use pio_plan::{
    Access, Action, Beside, Context, DataPath, Direction, Event as PlanEvent, Group, Io, Message, Piece,
    Purpose, Rank, Shape, Site, Strategy, Took, Via, ViewExchange, Views,
};
use pio_protocol::client::Naming;
use pio_trace::{Call, HandleId};

use super::views::Round;
use super::{Engine, Happening, sites};
use crate::process::{Content, Delivery, Key, Requests, Running, Scattered, Then};
use crate::workload::{Open, What};

/// Contexts that a group keeps: ranks that are not in step may be at two files, and read one and write the other.
const MOST_KEPT: usize = 4;

/// The operations that go by the same [`Context`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextOf {
    file: u32,
    collective: u64,
    /// How many views have been set.
    views: usize,
    direction: Direction,
}

impl Engine<'_> {
    pub(super) fn begin_access(
        &mut self,
        rank: u32,
        handle: HandleId,
        direction: Direction,
        access: Access,
        collective: bool,
    ) {
        let open = &self.workload.handles[handle.index()];
        let group = open.group.unwrap_or(0);
        let members = &self.workload.groups[group as usize];
        let number = members.binary_search(&rank).unwrap_or(0) as u32;
        let mut key = Key { of: open.collective, count: 0 };
        let mut context = self.context(rank, handle, direction);
        let machine: Box<dyn pio_plan::StateMachine + Send> = if collective {
            let count = self.operations.entry((rank, key.of)).or_insert(0);
            *count += 1;
            key.count = *count;
            if self.is_asynchronous(rank) {
                Arc::make_mut(&mut context).beside = Beside::Independent;
            }
            if self.strategy.sends_messages() {
                let told = self.told.entry((rank, key.of)).or_default();
                Arc::make_mut(&mut context).told = told.clone();
            }
            if self.strategy == Strategy::Auto && !self.is_asynchronous(rank) {
                let since_met = self.now.since(*self.memories.met(rank, key.of));
                let since_met_us = self.told_us(since_met);
                let remembered = self.memories.of(rank, key.of);
                Arc::make_mut(&mut context).remembered = remembered.recall(direction, since_met_us);
            } else if self.strategy == Strategy::Auto {
                self.memories.of(rank, key.of).describe_next();
            }
            let us = Group { rank: Rank(number), ranks: members.len() as u32 };
            self.strategy.collective(us, direction, access, &context)
        } else {
            self.strategy.alone(Rank(number), direction, access, &context)
        };
        self.run_machine(rank, machine, key, group, number);
    }

    /// A rank opens a file: what it keeps in mind of others may hold there.
    pub(super) fn remember(&mut self, rank: u32, handle: HandleId) {
        let open = self.workload.handles[handle.index()];
        let (Some(group), Strategy::Auto) = (open.group, self.strategy) else { return };
        let (site, hints) = (self.site_of(&open), self.hints_in_force.of_open(open.collective));
        self.memories.open(rank, open.collective, group, &site, hints);
    }

    /// A rank closes a file: what was kept of its operations there is not needed any more, but by the next file.
    pub(super) fn forget(&mut self, rank: u32, handle: HandleId) {
        let open = self.workload.handles[handle.index()];
        self.told.remove(&(rank, open.collective));
        let (Some(group), Strategy::Auto) = (open.group, self.strategy) else { return };
        let (site, hints) = (self.site_of(&open), self.hints_in_force.of_open(open.collective));
        let shape = self.shape_of(rank, open.collective);
        self.memories.close(rank, open.collective, group, shape, &site, hints);
    }

    /// Whether a rank's call may return before its data are moved.
    fn is_asynchronous(&self, rank: u32) -> bool {
        matches!(self.step(rank), What::Access { call, .. } if call.is_asynchronous() || call.begins_split())
    }

    /// Keeps in mind that the ranks met in the call that ends, and, of an operation, what they chose and how long this one waited for
    /// that.
    pub(super) fn learn(&mut self, rank: u32) {
        if self.strategy != Strategy::Auto {
            return;
        }
        if let What::Open(handle) | What::SetView(handle, _) = self.step(rank) {
            let open = &self.workload.handles[handle.index()];
            if open.group.is_some() {
                *self.memories.met(rank, open.collective) = self.now;
            }
        }
        let Running::Operation { machine, key, began, chose_after, .. } =
            &self.processes[rank as usize].running
        else {
            return;
        };
        let What::Access { direction, .. } = self.step(rank) else { return };
        if let (Some(choice), false) = (machine.choice(), self.is_asynchronous(rank)) {
            let waited = chose_after.unwrap_or_default();
            let all = self.now.since(*began);
            let took = Took { waited_us: self.told_us(waited), all_us: self.told_us(all) };
            *self.memories.met(rank, key.of) = *began + waited;
            self.memories.of(rank, key.of).learn(*direction, choice, took);
        }
    }

    /// What a rank tells others of time. Who replaces machines compares them with those of another clock.
    fn told_us(&self, time: Duration) -> u64 {
        if self.replace.is_some() { 0 } else { time.picoseconds() / 1_000_000 }
    }

    /// What an operation of a rank goes by. It is the same for all ranks, and to find it takes a look at all of them: the latest
    /// few of a group are kept.
    fn context(&mut self, rank: u32, handle: HandleId, direction: Direction) -> Arc<Context> {
        let open = self.workload.handles[handle.index()];
        let group = open.group.unwrap_or(0) as usize;
        let number = self.views_set.get(&(rank, open.collective)).copied().unwrap_or(0);
        let of = ContextOf { file: open.file, collective: open.collective, views: number, direction };
        if let Some((_, context)) = self.contexts[group].iter().find(|(kept, _)| *kept == of) {
            return context.clone();
        }
        let context = Arc::new(self.new_context(open, number, direction));
        let kept = &mut self.contexts[group];
        kept.truncate(MOST_KEPT - 1);
        kept.push_front((of, context.clone()));
        context
    }

    fn new_context(&self, open: Open, number: usize, direction: Direction) -> Context {
        let views = self.round(open.collective, number).map_or(&Views::WHOLE, |round| &round.views);
        let hints = self.hints_in_force.of_open(open.collective);
        self.site_of(&open).context(views, hints, direction)
    }

    /// The views in force for who has set so many; none before the first.
    fn round(&self, open: u64, number: usize) -> Option<&Round> {
        self.views.get(&open)?.get(number.checked_sub(1)?)
    }

    fn site_of(&self, open: &Open) -> Site {
        let mut site = self.sites[open.group.unwrap_or(0) as usize].clone();
        let dealt = self.files[open.file as usize].dealt;
        if let Some(dealt) = dealt.filter(|_| sites::take_views(&self.machine.storage, self.strategy)) {
            let (factor, unit) = dealt.over();
            site.via = Via::Servers { factor, unit };
        }
        site
    }

    /// How the views lie that are in force for a rank.
    fn shape_of(&self, rank: u32, open: u64) -> Shape {
        let number = self.views_set.get(&(rank, open)).copied().unwrap_or(0);
        self.round(open, number).map_or(Shape::default(), |round| round.shape)
    }

    /// Sets a rank's view, and tells the others if the strategy does that.
    pub(super) fn set_view(&mut self, rank: u32, handle: HandleId, view: pio_trace::ViewId) {
        let open = &self.workload.handles[handle.index()];
        let Some(group) = open.group else { return self.compute(rank, Duration::ZERO, Then::End) };
        let before = self.shape_of(rank, open.collective);
        *self.views_set.entry((rank, open.collective)).or_insert(0) += 1;
        self.told.remove(&(rank, open.collective));
        if self.strategy == Strategy::Auto {
            let shapes = (before, self.shape_of(rank, open.collective));
            let (site, hints) = (self.site_of(open), self.hints_in_force.of_open(open.collective));
            self.memories.set_view(rank, open.collective, shapes, &site, hints);
        }
        let hints = self.hints_in_force.of_open(open.collective);
        if !self.sites[group as usize].exchanges_views(self.strategy, hints) {
            return self.compute(rank, Duration::ZERO, Then::End);
        }
        let members = &self.workload.groups[group as usize];
        let number = members.binary_search(&rank).unwrap_or(0) as u32;
        let count = self.operations.entry((rank, open.collective)).or_insert(0);
        *count += 1;
        let key = Key { of: open.collective, count: *count };
        let us = Group { rank: Rank(number), ranks: members.len() as u32 };
        let view = self.workload.views[view.index()].clone();
        self.run_machine(rank, Box::new(ViewExchange::new(us, view)), key, group, number);
    }

    fn run_machine(
        &mut self,
        rank: u32,
        machine: Box<dyn pio_plan::StateMachine + Send>,
        key: Key,
        group: u32,
        number: u32,
    ) {
        let mut machine = match self.replace {
            Some(replace) => replace(rank, machine),
            None => machine,
        };
        let mut actions = Vec::new();
        machine.handle(PlanEvent::Start, &mut actions);
        let process = &mut self.processes[rank as usize];
        process.actions.extend(actions);
        process.running =
            Running::Operation { machine, key, group, number, began: self.now, chose_after: None };
        match self.library_costs() {
            Some(costs) => {
                let longer = self.library_after_work(rank, costs).picoseconds();
                let time = Duration::from_picoseconds(costs.call.picoseconds() + longer);
                self.compute(rank, time, Then::Continue);
            }
            None => self.advance(rank),
        }
    }

    /// Tells a rank's strategy what happened; what it then asks for comes after what it has asked for already.
    pub(super) fn tell(&mut self, rank: u32, event: PlanEvent) {
        let process = &mut self.processes[rank as usize];
        let Running::Operation { machine, .. } = &mut process.running else { return };
        let mut actions = Vec::new();
        machine.handle(event, &mut actions);
        process.actions.extend(actions);
    }

    /// Carries out an action. Whether the rank can go on at once.
    pub(super) fn perform(&mut self, rank: u32, action: Action) -> bool {
        let Running::Operation { key, group, number, .. } = &self.processes[rank as usize].running else {
            return true;
        };
        let (key, group, number) = (*key, *group, *number);
        if matches!(action, Action::Send { .. } | Action::SendData { .. }) {
            let message = if let Action::Send { message, .. } = &action { Some(message) } else { None };
            if let Some(time) = self.time_to_talk(rank, message) {
                let process = &mut self.processes[rank as usize];
                process.actions.push_front(action);
                process.then = Then::Continue;
                self.events.add(self.now + time, Happening::Resume(rank));
                return false;
            }
            if let Some(time) = self.time_for_fresh_memory(rank) {
                self.processes[rank as usize].actions.push_front(action);
                self.compute(rank, time, Then::Continue);
                return false;
            }
        }
        match action {
            Action::Send { to, message } => {
                let call = call_of(&message);
                let bytes = message.size();
                let to = self.workload.groups[group as usize][to.index()];
                self.begin_message(rank, call, to, bytes);
                let delivery = Delivery { key, from: rank, to, bytes, what: Content::Message(message) };
                self.send(rank, delivery, Duration::ZERO);
            }
            Action::SendData { to, piece, error } => {
                let mut head = Vec::new();
                piece.encode(DataPath::InMessage, error, &mut head);
                let data = piece.positions.end - piece.positions.start;
                let bytes = data + head.len() as u64;
                // An aggregator gathers the pieces from its buffer; a client's data are in one piece.
                let pack =
                    if piece.client.0 == number { Duration::ZERO } else { self.copy_cost(rank, &piece) };
                let to = self.workload.groups[group as usize][to.index()];
                self.begin_message(rank, Call::StrategyData, to, data);
                let delivery = Delivery { key, from: rank, to, bytes, what: Content::Data(piece, error) };
                self.send(rank, delivery, pack);
            }
            // Room that is there from one operation to the next.
            Action::Gather { .. } => {
                self.tell(rank, PlanEvent::Room { result: Ok(()) });
                return true;
            }
            Action::Copy { piece } => {
                let cost = self.copy_cost(rank, &piece);
                self.compute(rank, cost, Then::Continue);
            }
            Action::Io(io) => self.begin_io(rank, io),
            Action::Finish { result } => self.end(rank, result.unwrap_or(0)),
        }
        false
    }

    pub(super) fn begin_io(&mut self, rank: u32, io: Io) {
        self.end_message(rank);
        let lock = match &io {
            Io::Lock { file, shared } => Some((file, Then::Lock { shared: *shared })),
            Io::Unlock { file } => Some((file, Then::Unlock)),
            _ => None,
        };
        if let Some((file, then)) = lock {
            self.processes[rank as usize].lock = Some(file.clone());
            return self.ask_for_lock(rank, then);
        }
        if let Io::FillAndWrite { slot, origin, file, holes, locks: true } = io {
            let range = file.clone();
            let io = Io::FillAndWrite { slot, origin, file, holes, locks: false };
            return self.request_with_lock(rank, range, io);
        }
        let Running::Operation { machine, number, .. } = &self.processes[rank as usize].running else {
            return;
        };
        let scattered = |direction, positions, naming| {
            let access = machine.access_of(Rank(*number))?;
            // Without servers, each piece is a request of its own.
            if self.hardware.servers.is_empty() {
                return Some(Requests::Extents(direction, access.view.extents(positions)));
            }
            let access = Access { view: access.view.clone(), positions };
            Some(Requests::Scattered(direction, Some(Scattered { access, naming })))
        };
        let is_buffered = matches!(io, Io::Window { .. } | Io::WriteParts { .. } | Io::FillAndWrite { .. });
        let requests = match io {
            Io::List { direction, positions } => scattered(direction, positions, Naming::List),
            Io::Ship { direction, positions } => scattered(direction, positions, Naming::View),
            Io::Lock { .. } | Io::Unlock { .. } => None,
            Io::Pieces { direction, positions } => machine
                .access_of(Rank(*number))
                .map(|access| Requests::Extents(direction, access.view.extents(positions))),
            Io::Window { direction, file, .. } => {
                let bytes = file.end - file.start;
                Some(Requests::Extents(direction, View::contiguous(file.start).extents(0..bytes)))
            }
            Io::WriteParts { parts, .. } => {
                Some(Requests::Extents(Direction::Write, parts.extents(0..parts.size())))
            }
            Io::FillAndWrite { file, holes, .. } => {
                let (first, last) = (holes.lower_bound() as u64, holes.upper_bound() as u64);
                Some(Requests::FillAndWrite {
                    gaps: Some((first, last - first)),
                    whole: Some((file.start, file.end - file.start)),
                })
            }
        };
        let Some(requests) = requests else { return };
        let (What::Access { handle, .. } | What::Request { handle, .. }) = self.step(rank) else { return };
        self.transfer(rank, *handle, None, requests, is_buffered);
    }

    /// What it costs to move a piece between a collective buffer, where it is scattered, and one contiguous run.
    pub(super) fn copy_cost(&self, rank: u32, piece: &Piece) -> Duration {
        let Running::Operation { machine, .. } = &self.processes[rank as usize].running else {
            return Duration::ZERO;
        };
        let Some(access) = machine.access_for(piece, piece.client) else { return Duration::ZERO };
        let pieces = access.view.pieces(piece.positions.clone());
        let copy = &self.machine.nodes.copy;
        let each = self.library_costs().and_then(|costs| costs.piece).unwrap_or(copy.piece);
        time_to_copy(
            &pio_machine::Copy { piece: each, ..copy.clone() },
            piece.positions.end - piece.positions.start,
            pieces,
        )
    }

    pub(super) fn copy_time(&self, bytes: u64, pieces: u64) -> Duration {
        time_to_copy(&self.machine.nodes.copy, bytes, pieces)
    }
}

/// How long a processor takes to move pieces.
pub(super) fn time_to_copy(copy: &pio_machine::Copy, bytes: u64, pieces: u64) -> Duration {
    copy.bandwidth.time_of(bytes).saturating_add(copy.piece.saturating_mul(pieces))
}

fn call_of(message: &Message) -> Call {
    match message.purpose() {
        Purpose::Describe => Call::StrategyDescribe,
        Purpose::Grant => Call::StrategyGrant,
        Purpose::Acknowledge => Call::StrategyAcknowledge,
    }
}
