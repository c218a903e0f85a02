//! The node at work.

use std::collections::VecDeque;

use pio_machine::{Bandwidth, Duration};
use pio_plan::Direction;

use super::request::{Adapter, Between, IoDone, IoNodeError, IoRequest};
use crate::disk::{DiskGroup, Extent, GroupActions, GroupEvent};
use crate::kernel::{Events, Model, Queue, Slab, Time, advance_events};

/// For how long each part of an I/O node was in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Adapter, what came in.
    pub adapter_in: Duration,
    /// Adapter, what went out.
    pub adapter_out: Duration,
    /// Processor.
    pub cpu: Duration,
    /// Bus.
    pub bus: Duration,
    /// Channels to the disks' caches, all together.
    pub channels: Duration,
    /// Disks, all together; each channel of a solid-state device, and each die of a flash device, by itself.
    pub disks: Duration,
}

/// An I/O node. Its stations but the disks are [`Queue`]s: `docs/design/io-nodes.md` says why not those of
/// [`queueing`](crate::queueing).
#[derive(Debug)]
pub struct IoNode {
    machine: pio_machine::IoNode,
    /// Nothing: the network's.
    adapter: Option<Bandwidth>,
    adapter_in: Queue,
    adapter_out: Queue,
    cpu: Queue,
    bus: Queue,
    disks: DiskGroup,
    /// To the disks' caches.
    channels: Vec<Queue>,
    /// Requests inside by slot; slots are used again.
    inside: Slab<Inside>,
    buffer_free: u64,
    /// Requests that found the buffer full, in the order in which they came.
    outside: VecDeque<(IoRequest, Time)>,
    blocked: u64,
    events: Events<Happening>,
    /// What the disks ask for; kept for its memory.
    actions: GroupActions,
}

/// What happens in a node.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The request in this slot begins its next stage.
    Request(u32, Stage),
    Disk(GroupEvent),
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    request: IoRequest,
    came: Time,
}

/// What a request does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Processor,
    Bus,
    Disk,
    Response,
    AdapterOut,
    Done,
}

impl IoNode {
    /// A node with nothing to do.
    pub fn new(machine: &pio_machine::IoNode, adapter: Adapter) -> IoNode {
        let disks = DiskGroup::new(&machine.disks, machine.unit, machine.channel);
        IoNode {
            adapter: (adapter == Adapter::Own).then_some(machine.adapter),
            adapter_in: Queue::default(),
            adapter_out: Queue::default(),
            cpu: Queue::default(),
            bus: Queue::default(),
            channels: vec![Queue::default(); disks.count()],
            disks,
            inside: Slab::new(),
            buffer_free: machine.buffer,
            outside: VecDeque::new(),
            blocked: 0,
            events: Events::new(),
            actions: GroupActions::default(),
            machine: machine.clone(),
        }
    }

    /// Takes in a request at `now`, which is not before the last time it carried on to. If the buffer is full, the request
    /// waits outside until there is space.
    ///
    /// # Errors
    /// If the request is larger than the buffer, or not on the disks.
    pub fn arrive(&mut self, now: Time, request: IoRequest) -> Result<(), IoNodeError> {
        if request.bytes == 0 || request.bytes > self.machine.buffer {
            return Err(IoNodeError::Size { bytes: request.bytes, most: self.machine.buffer });
        }
        // What does not go to the disks may lie on several.
        let on_disks = request.between != Between::NetworkAndMemory;
        if on_disks && let Some((offset, end, bytes)) = self.disks.beyond(request.offset, request.bytes) {
            return Err(IoNodeError::Beyond { offset, end, bytes });
        }
        if self.outside.is_empty() && request.bytes <= self.buffer_free {
            self.enter(now, now, request);
        } else {
            self.blocked += 1;
            self.outside.push_back((request, now));
        }
        Ok(())
    }

    /// Places for requests of so many bytes that spread them evenly over all disks, with none in the way of another: how
    /// many, and how far apart, in bytes.
    pub fn places(&self, bytes: u64) -> (u64, u64) {
        self.disks.places(bytes)
    }

    /// How many requests waited outside, so far.
    pub fn blocked(&self) -> u64 {
        self.blocked
    }

    /// When all disks that had failed were rebuilt.
    pub fn rebuilt(&self) -> Option<Time> {
        self.disks.rebuilt()
    }

    /// How many requests are inside or wait outside.
    pub fn present(&self) -> usize {
        self.inside.count() + self.outside.len()
    }

    /// For how long each part has been in use, work already taken in included.
    pub fn in_use(&self) -> Use {
        let channels = self.channels.iter().map(|channel| channel.busy().picoseconds()).sum();
        Use {
            adapter_in: self.adapter_in.busy(),
            adapter_out: self.adapter_out.busy(),
            cpu: self.cpu.busy(),
            bus: self.bus.busy(),
            channels: Duration::from_picoseconds(channels),
            disks: self.disks.busy(),
        }
    }

    fn enter(&mut self, now: Time, came: Time, request: IoRequest) {
        self.buffer_free -= request.bytes;
        let slot = self.inside.insert(Inside { request, came });
        let data = if request.direction == Direction::Write { request.bytes } else { 0 };
        let received = match self.adapter {
            _ if request.between == Between::MemoryAndDisk => now,
            Some(adapter) => self.adapter_in.serve(now, adapter.time_of(data + request.message)).1,
            None => now,
        };
        self.events.add(received, Happening::Request(slot, Stage::Processor));
    }

    fn happen(&mut self, now: Time, what: Happening, done: &mut Vec<IoDone>) {
        match what {
            Happening::Request(slot, stage) => self.go_on(now, slot, stage, done),
            Happening::Disk(event) => {
                self.disks.handle(now, event, &mut self.actions);
                self.take_actions(now);
            }
        }
    }

    /// A request begins its next stage.
    fn go_on(&mut self, now: Time, slot: u32, stage: Stage, done: &mut Vec<IoDone>) {
        let Inside { request, .. } = self.inside[slot];
        let reads = request.direction == Direction::Read;
        let (end, next) = match stage {
            Stage::Processor => {
                let (_, end) = self.cpu.serve(now, self.machine.cpu.request);
                let next = match (request.between, request.direction) {
                    (Between::NetworkAndMemory, Direction::Read) => Stage::Response,
                    (Between::NetworkAndMemory, Direction::Write) => Stage::Done,
                    (_, Direction::Read) => Stage::Disk,
                    (_, Direction::Write) => Stage::Bus,
                };
                (end, next)
            }
            Stage::Bus => {
                let (_, end) = self.bus.serve(now, self.machine.bus.time_of(request.bytes));
                let next = match (request.between, request.direction) {
                    (Between::MemoryAndDisk, Direction::Read) => Stage::Done,
                    (_, Direction::Read) => Stage::Response,
                    (_, Direction::Write) => Stage::Disk,
                };
                (end, next)
            }
            Stage::Disk if request.hit => {
                let time = self.machine.channel.time_of(request.bytes);
                let disk = self.disks.disk_of(request.offset);
                let (_, end) = self.channels[disk as usize].serve(now, time);
                (end, if reads { Stage::Bus } else { Stage::Done })
            }
            Stage::Disk => {
                let IoRequest { direction, offset, bytes, .. } = request;
                self.disks.arrive(now, slot, Extent { direction, offset, bytes }, &mut self.actions);
                return self.take_actions(now);
            }
            Stage::Response => (self.cpu.serve(now, self.machine.cpu.response).1, Stage::AdapterOut),
            Stage::AdapterOut => {
                let sent =
                    self.adapter.map(|adapter| self.adapter_out.serve(now, adapter.time_of(request.bytes)).1);
                (sent.unwrap_or(now), Stage::Done)
            }
            Stage::Done => return self.leave(now, slot, done),
        };
        self.events.add(end, Happening::Request(slot, next));
    }

    /// Requests of which the disks say that they are done begin their next stage.
    fn take_actions(&mut self, now: Time) {
        for (time, event) in self.actions.later.drain(..) {
            self.events.add(time, Happening::Disk(event));
        }
        for slot in self.actions.done.drain(..) {
            let reads = self.inside[slot].request.direction == Direction::Read;
            let next = if reads { Stage::Bus } else { Stage::Done };
            self.events.add(now, Happening::Request(slot, next));
        }
    }

    fn leave(&mut self, now: Time, slot: u32, done: &mut Vec<IoDone>) {
        let Inside { request, came, .. } = self.inside[slot];
        done.push(IoDone { id: request.id, came, done: now });
        self.inside.remove(slot);
        self.buffer_free += request.bytes;
        while let Some((waiting, came)) = self.outside.front().copied() {
            if waiting.bytes > self.buffer_free {
                break;
            }
            self.outside.pop_front();
            self.enter(now, came, waiting);
        }
    }
}

impl Model for IoNode {
    type Out = IoDone;

    fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    fn advance(&mut self, until: Time, done: &mut Vec<IoDone>) {
        advance_events(self, |node| &mut node.events, IoNode::happen, until, done);
    }
}
