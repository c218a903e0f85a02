//! The program of a rank: its calls one after the other, and the messages that come for it meanwhile.

use pio_layout::View;
use pio_machine::{Duration, Storage};
use pio_plan::{Access, Event as PlanEvent, Rank};
use pio_trace::{Call, Event, FileId, Flags, HandleId, Layer, Target};

use super::{Engine, Happening, store_requests};
use crate::process::{Content, Delivery, Key, Requests, Running, Then};
use crate::workload::{Naming, What};

/// Of one computation between calls: more would cost time, and change nothing that can be seen.
const MOST_PAUSES: u64 = 256;

impl<'a> Engine<'a> {
    /// Goes on to the next call: thinks, then begins it.
    pub(super) fn next_step(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let Some(step) = self.workload.programs[rank as usize].get(process.begun) else {
            process.finished = true;
            process.since = self.now;
            self.ended = self.now;
            return;
        };
        process.begun += 1;
        process.since = self.now;
        if step.idle == Duration::ZERO {
            return self.think(rank);
        }
        process.then = Then::Think;
        self.events.add(self.now + step.idle, Happening::Resume(rank));
    }

    /// Computes what lies before the next call.
    pub(super) fn think(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let think = self.workload.programs[rank as usize][process.begun - 1].think;
        let think = if self.cpu_speed == 1.0 {
            think
        } else {
            Duration::from_seconds(think.seconds() / self.cpu_speed)
        };
        process.think_ns += think.picoseconds() / 1000;
        process.think_left = think;
        self.think_on(rank);
    }

    /// Computes to the end, or until it gives its processor away for a moment. Only who shares a processor is known by that.
    fn think_on(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let whole = self.workload.programs[rank as usize][process.begun - 1].think.picoseconds();
        let shares = self.ranks_per_node > self.machine.nodes.cores;
        let stretch = self.workload.stretches.get(rank as usize).copied().flatten().filter(|_| shares);
        let left = process.think_left.picoseconds();
        let part = stretch
            .map_or(left, |stretch| stretch.picoseconds().max(whole / MOST_PAUSES).clamp(1, left.max(1)));
        process.think_left = Duration::from_picoseconds(left.saturating_sub(part));
        let then = if part < left { Then::Pause } else { Then::Begin };
        self.compute(rank, Duration::from_picoseconds(part.min(left)), then);
    }

    /// It wants its processor back at once: whoever waits goes before it, if that one has had less.
    pub(super) fn pause(&mut self, rank: u32) {
        let events = &mut self.events;
        self.processors.release(rank, self.now, |turn| events.add(turn.at(), Happening::Turn(turn)));
        self.think_on(rank);
    }

    pub(super) fn step(&self, rank: u32) -> &'a What {
        &self.workload.programs[rank as usize][self.processes[rank as usize].begun - 1].what
    }

    pub(super) fn begin(&mut self, rank: u32) {
        let calls = &self.machine.calls;
        let now = self.now;
        let process = &mut self.processes[rank as usize];
        process.since = now;
        process.running = Running::Simple;
        match self.step(rank) {
            What::Open(handle) => {
                self.remember(rank, *handle);
                // Where files are elsewhere, they are made there.
                let makes =
                    matches!(self.machine.storage, Storage::Local { .. }) && self.makes_file(rank, *handle);
                let create = if makes { calls.create } else { Duration::ZERO };
                let file = self.workload.handles[handle.index()].file;
                let empties = self.mode_of(*handle).contains(Flags::TRUNCATE);
                let emptying = if empties { self.empty(rank, file) } else { Duration::ZERO };
                let open = self.by_levels(*handle, calls.open);
                self.compute(rank, open.saturating_add(create).saturating_add(emptying), Then::Directory);
            }
            What::Close(handle) => {
                self.forget(rank, *handle);
                // Pioscope's own servers make durable what was written to a file that is closed.
                let syncs = store_requests::speak_protocol(&self.machine.storage);
                let rewritten = self.close_rewritten(self.workload.handles[handle.index()].file);
                let cost = self.by_levels(*handle, calls.close).saturating_add(rewritten);
                self.compute(rank, cost, if syncs { Then::Flush } else { Then::Directory });
            }
            What::Seek(handle, ..) => {
                let cost = self.by_levels(*handle, calls.seek);
                self.compute(rank, cost, Then::End);
            }
            // Among ranks that change it together, the first does it for all.
            What::Resize(handle, call, size) if self.is_first_with(*handle, rank) => {
                let file = self.workload.handles[handle.index()].file;
                let (call, size) = (*call, *size);
                self.make_parts(file, size);
                let dropping = self.resize(rank, file, call, size);
                self.compute(rank, calls.resize.saturating_add(dropping), Then::Directory);
            }
            What::Resize(..) => self.compute(rank, Duration::ZERO, Then::End),
            What::Sync(..) => self.compute(rank, Duration::ZERO, Then::Flush),
            What::SetView(handle, view) => self.set_view(rank, *handle, *view),
            What::Access { handle, direction, view, positions, collective, .. } => {
                let view = &self.workload.views[view.index()];
                let access = Access { view: view.clone(), positions: positions.clone() };
                self.begin_access(rank, *handle, *direction, access, *collective);
            }
            // So programs find the end of a file.
            What::Request { direction, bytes: 0, .. } => {
                let cost = self.costs_of(*direction).call;
                self.compute(rank, cost, Then::End);
            }
            What::Request { handle, call, direction, offset, bytes } => {
                let extents = View::contiguous(*offset).extents(0..*bytes);
                let requests = Requests::Extents(*direction, extents);
                self.transfer(rank, *handle, Some(*call), requests, false);
            }
            What::Name { call, file } => {
                let naming = Naming::of(*call);
                let own = naming.and_then(|naming| naming.of_both(calls.stat, calls.unlink));
                let removes = naming == Some(Naming::Remove);
                let dropping = if removes { self.remove(rank, *file) } else { Duration::ZERO };
                let cost = own.unwrap_or_default().saturating_add(dropping);
                self.compute(rank, cost, Then::Directory);
            }
            What::Broadcast { root, .. } => self.begin_broadcast(rank, *root),
            What::Rendezvous => self.begin_rendezvous(),
            What::Meet { .. } => self.begin_meeting(rank),
        }
    }

    /// What a call costs that goes through a tree of the ranks that opened its file together, if the machine's do.
    fn by_levels(&self, handle: HandleId, cost: Duration) -> Duration {
        let group = self.workload.handles[handle.index()].group;
        let ranks = group.map_or(1, |group| self.workload.groups[group as usize].len());
        let levels = ranks.next_power_of_two().trailing_zeros().max(1);
        let times = if self.machine.calls.by_levels { u64::from(levels) } else { 1 };
        cost.saturating_mul(times)
    }

    fn is_first_with(&self, handle: HandleId, rank: u32) -> bool {
        let group = self.workload.handles[handle.index()].group;
        group.is_none_or(|group| self.workload.groups[group as usize].first() == Some(&rank))
    }

    /// The call is over: note it, and go on.
    pub(super) fn end(&mut self, rank: u32, moved: u64) {
        if self.waits_for_others(rank) {
            return;
        }
        self.end_message(rank);
        self.learn(rank);
        self.leave_library(rank);
        let process = &mut self.processes[rank as usize];
        process.running = Running::Nothing;
        let (since, operation) = (process.since, process.operation + 1);
        let own_part = process.own_part_done.take().unwrap_or(self.now).since(since);
        let elapsed = self.now.since(since);
        let what = self.step(rank);
        let mut event = self.event(rank, Call::MpiBarrier, since);
        if *what == What::Rendezvous {
            return self.next_step(rank);
        }
        event.think_ns = std::mem::take(&mut self.processes[rank as usize].think_ns);
        event.operation = operation;
        match what {
            What::Rendezvous => {}
            What::Open(handle) | What::Close(handle) => {
                let opens = matches!(what, What::Open(_));
                let (mpi, posix) =
                    if opens { (Call::MpiFileOpen, Call::Open) } else { (Call::MpiFileClose, Call::Close) };
                self.tally.count(posix, 0, own_part);
                self.tally.called(rank, posix.op(), 0, elapsed);
                if self.workload.handles[handle.index()].group.is_some() {
                    self.processes[rank as usize].operation = operation;
                    self.write(Event {
                        call: mpi,
                        handle: Some(*handle),
                        flags: Flags::COLLECTIVE,
                        ..event.clone()
                    });
                    event.flags = Flags::PHYSICAL;
                    event.elapsed_ns = own_part.picoseconds() / 1000;
                    event.think_ns = 0;
                } else {
                    event.operation = 0;
                }
                self.write(Event { call: posix, handle: Some(self.physical[handle.index()]), ..event });
            }
            What::SetView(handle, view) => {
                self.processes[rank as usize].operation = operation;
                let call = Call::MpiFileSetView;
                self.tally.count(call, 0, elapsed);
                self.tally.called(rank, call.op(), 0, elapsed);
                let target = Target::View { view: *view, position: 0 };
                let flags = Flags::COLLECTIVE;
                self.write(Event { call, handle: Some(*handle), target, flags, ..event });
            }
            What::Seek(handle, call) | What::Resize(handle, call, _) | What::Sync(handle, call) => {
                self.tally.count(*call, 0, elapsed);
                self.tally.called(rank, call.op(), 0, elapsed);
                if call.layer() == Layer::MpiIo {
                    self.processes[rank as usize].operation = operation;
                } else {
                    event.operation = 0;
                }
                self.write(Event { call: *call, handle: Some(*handle), ..event });
            }
            What::Access { handle, call, view, positions, collective, .. } => {
                self.processes[rank as usize].operation = operation;
                self.tally.called(rank, call.op(), moved, elapsed);
                self.tally.moved(since.0, self.now.0);
                let target = Target::View { view: *view, position: positions.start };
                let flags = if *collective { Flags::COLLECTIVE } else { Flags::NONE };
                let (size, result) = (positions.end - positions.start, moved as i64);
                self.write(Event {
                    call: *call,
                    handle: Some(*handle),
                    target,
                    flags,
                    size,
                    result,
                    ..event
                });
            }
            What::Request { handle, call, offset, bytes, .. } => {
                self.tally.called(rank, call.op(), moved, elapsed);
                self.tally.moved(since.0, self.now.0);
                // Others are in the trace, as they were made.
                if *bytes == 0 {
                    self.tally.count(*call, 0, elapsed);
                    event.operation = 0;
                    let (handle, target) =
                        (self.physical[handle.index()], Target::Extent { offset: *offset });
                    self.write(Event { call: *call, handle: Some(handle), target, ..event });
                }
            }
            What::Name { call, file } => {
                self.tally.count(*call, 0, elapsed);
                self.tally.called(rank, call.op(), 0, elapsed);
                let target = Target::Name { file: FileId(*file), other: None };
                if call.layer() == Layer::MpiIo {
                    self.processes[rank as usize].operation = operation;
                } else {
                    event.operation = 0;
                }
                self.write(Event { call: *call, target, ..event });
            }
            What::Meet { call, bytes } => {
                self.tally.count_of_program(*call, *bytes, elapsed);
                event.operation = 0;
                let flags = Flags::COLLECTIVE;
                self.write(Event { call: *call, flags, size: *bytes, result: *bytes as i64, ..event });
            }
            What::Broadcast { root, bytes } => {
                self.tally.count_of_program(Call::MpiBcast, *bytes, elapsed);
                let target = Target::Peer { rank: *root };
                event.operation = 0;
                let flags = Flags::COLLECTIVE;
                self.write(Event {
                    call: Call::MpiBcast,
                    target,
                    flags,
                    size: *bytes,
                    result: *bytes as i64,
                    ..event
                });
            }
        }
        self.next_step(rank);
    }

    /// Goes on with what a rank is in: the strategy's actions, then the messages that have come for it.
    pub(super) fn advance(&mut self, rank: u32) {
        loop {
            let process = &mut self.processes[rank as usize];
            if let Running::Meet { .. } = process.running {
                return self.go_on_meeting(rank);
            }
            if let Running::Broadcast { key, has_data, children } = &mut process.running {
                if !*has_data {
                    return self.take_next(rank);
                }
                let (key, child) = (*key, children.pop_front());
                match child {
                    Some(to) => return self.pass_on(rank, to, key),
                    None => return self.end(rank, 0),
                }
            }
            if let Some(action) = process.actions.pop_front() {
                if self.perform(rank, action) {
                    continue;
                }
                return;
            }
            return self.take_next(rank);
        }
    }

    /// Takes in the first message of the operation that the rank is in, or waits for one.
    pub(super) fn take_next(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        let key = match &process.running {
            Running::Operation { key, .. } | Running::Broadcast { key, .. } => *key,
            Running::Meet { count, round, .. } => Key::meet(*count, *round),
            Running::Nothing | Running::Simple => return,
        };
        let deliveries = &self.deliveries;
        let mine = |id: &u32| deliveries[*id].as_ref().is_some_and(|delivery| delivery.key == key);
        let Some(place) = process.mailbox.iter().position(mine) else {
            process.idle = true;
            process.idle_since = self.now;
            return;
        };
        let Some(id) = process.mailbox.remove(place) else { return };
        let cost = self.receive_cost(rank, id);
        self.compute(rank, cost, Then::Take(id));
    }

    pub(super) fn take(&mut self, rank: u32, delivery: Delivery) {
        let process = &mut self.processes[rank as usize];
        match (&mut process.running, delivery.what) {
            (Running::Broadcast { has_data, .. }, _) => *has_data = true,
            (Running::Meet { round, sent, .. }, _) => {
                *round += 1;
                *sent = false;
            }
            (Running::Operation { machine, group, began, chose_after, .. }, what) => {
                let members = &self.workload.groups[*group as usize];
                let from = Rank(members.binary_search(&delivery.from).unwrap_or(0) as u32);
                let event = match what {
                    Content::Message(message) => PlanEvent::Received { from, message },
                    Content::Data(piece, error) => PlanEvent::Data { from, piece, error },
                    Content::Broadcast | Content::Come => return,
                };
                let mut actions = Vec::new();
                machine.handle(event, &mut actions);
                if chose_after.is_none() && machine.choice().is_some() {
                    *chose_after = Some(self.now.since(*began));
                }
                process.actions.extend(actions);
            }
            (Running::Nothing | Running::Simple, _) => {}
        }
        self.advance(rank);
    }
}
