//! The node at work.

use std::collections::VecDeque;

use pio_machine::{Bandwidth, Duration};
use pio_plan::Direction;

use super::request::{Adapter, Between, IoDone, IoNodeError, IoRequest};
use crate::disk::{Device, Waiting};
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
    /// Disks, all together, and each channel of a solid-state device by itself.
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
    disks: Vec<Disk>,
    disk_use: Duration,
    /// Requests inside by slot; slots are used again.
    inside: Slab<Inside>,
    buffer_free: u64,
    /// Requests that found the buffer full, in the order in which they came.
    outside: VecDeque<(IoRequest, Time)>,
    blocked: u64,
    events: Events<(u32, Stage)>,
}

#[derive(Debug)]
struct Disk {
    device: Device,
    channel: Queue,
    serving: u32,
    waiting: Waiting<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    request: IoRequest,
    came: Time,
    disk: u32,
    /// Where the data are on the disk.
    offset: u64,
}

/// What a request does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Processor,
    Bus,
    Disk,
    /// Leaves the disk.
    DiskDone,
    Response,
    AdapterOut,
    Done,
}

impl IoNode {
    /// A node with nothing to do.
    pub fn new(machine: &pio_machine::IoNode, adapter: Adapter) -> IoNode {
        let device = Device::new(&machine.disks);
        let disk = |_| Disk {
            device: device.clone(),
            channel: Queue::default(),
            serving: 0,
            waiting: Waiting::new(machine.disks.queue),
        };
        IoNode {
            adapter: (adapter == Adapter::Own).then_some(machine.adapter),
            adapter_in: Queue::default(),
            adapter_out: Queue::default(),
            cpu: Queue::default(),
            bus: Queue::default(),
            disks: (0..machine.disks.count).map(disk).collect(),
            disk_use: Duration::ZERO,
            inside: Slab::new(),
            buffer_free: machine.buffer,
            outside: VecDeque::new(),
            blocked: 0,
            events: Events::new(),
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
        let (disk, offset) = self.place(request.offset);
        let end = offset.saturating_add(request.bytes);
        if let Some(bytes) = self.disks[disk as usize].device.bytes().filter(|bytes| *bytes < end) {
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
        const MOST_ROUNDS: u64 = 4096;
        let unit = self.machine.unit;
        let held = self.disks.iter().filter_map(|disk| disk.device.bytes()).min();
        let rounds = held.map_or(MOST_ROUNDS, |held| held.saturating_sub(bytes) / unit + 1);
        (rounds.min(MOST_ROUNDS) * self.disks.len() as u64, unit)
    }

    /// How many requests waited outside, so far.
    pub fn blocked(&self) -> u64 {
        self.blocked
    }

    /// How many requests are inside or wait outside.
    pub fn present(&self) -> usize {
        self.inside.count() + self.outside.len()
    }

    /// For how long each part has been in use, work already taken in included.
    pub fn in_use(&self) -> Use {
        let channels = self.disks.iter().map(|disk| disk.channel.busy().picoseconds()).sum();
        Use {
            adapter_in: self.adapter_in.busy(),
            adapter_out: self.adapter_out.busy(),
            cpu: self.cpu.busy(),
            bus: self.bus.busy(),
            channels: Duration::from_picoseconds(channels),
            disks: self.disk_use,
        }
    }

    fn enter(&mut self, now: Time, came: Time, request: IoRequest) {
        self.buffer_free -= request.bytes;
        let (disk, offset) = self.place(request.offset);
        let inside = Inside { request, came, disk, offset };
        let slot = self.inside.insert(inside);
        let data = if request.direction == Direction::Write { request.bytes } else { 0 };
        let received = match self.adapter {
            _ if request.between == Between::MemoryAndDisk => now,
            Some(adapter) => self.adapter_in.serve(now, adapter.time_of(data + request.message)).1,
            None => now,
        };
        self.events.add(received, (slot, Stage::Processor));
    }

    /// A request begins its next stage.
    fn go_on(&mut self, now: Time, (slot, stage): (u32, Stage), done: &mut Vec<IoDone>) {
        let Inside { request, disk, .. } = self.inside[slot];
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
                let (_, end) = self.disks[disk as usize].channel.serve(now, time);
                (end, if reads { Stage::Bus } else { Stage::Done })
            }
            Stage::Disk => return self.wait_for_disk(now, slot),
            Stage::DiskDone => {
                self.disks[disk as usize].serving -= 1;
                self.next_on_disk(now, disk);
                (now, if reads { Stage::Bus } else { Stage::Done })
            }
            Stage::Response => (self.cpu.serve(now, self.machine.cpu.response).1, Stage::AdapterOut),
            Stage::AdapterOut => {
                let sent =
                    self.adapter.map(|adapter| self.adapter_out.serve(now, adapter.time_of(request.bytes)).1);
                (sent.unwrap_or(now), Stage::Done)
            }
            Stage::Done => return self.leave(now, slot, done),
        };
        self.events.add(end, (slot, next));
    }

    fn wait_for_disk(&mut self, now: Time, slot: u32) {
        let Inside { disk, offset, .. } = self.inside[slot];
        self.disks[disk as usize].waiting.push(offset, slot);
        self.next_on_disk(now, disk);
    }

    /// The disk serves who waits, as far as it can serve more at the same time.
    fn next_on_disk(&mut self, now: Time, disk: u32) {
        let disk = &mut self.disks[disk as usize];
        while disk.serving < disk.device.channels() {
            let Some(slot) = disk.waiting.pop(disk.device.position()) else { break };
            let Inside { request, offset, .. } = self.inside[slot];
            let served = disk.device.serve(now, request.direction, offset, request.bytes);
            let surface = served.expect("that the disk has the bytes was checked when the request came");
            // What the channel needs more than the surface is not hidden behind it.
            let done = surface.max(now + self.machine.channel.time_of(request.bytes));
            disk.serving += 1;
            let time = done.since(now).picoseconds();
            self.disk_use = Duration::from_picoseconds(self.disk_use.picoseconds().saturating_add(time));
            self.events.add(done, (slot, Stage::DiskDone));
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

    /// The disk of a byte, and where the byte is on it.
    fn place(&self, offset: u64) -> (u32, u64) {
        let (unit, count) = (self.machine.unit, self.disks.len() as u64);
        let number = offset / unit;
        ((number % count) as u32, number / count * unit + offset % unit)
    }
}

impl Model for IoNode {
    type Out = IoDone;

    fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    fn advance(&mut self, until: Time, done: &mut Vec<IoDone>) {
        advance_events(self, |node| &mut node.events, IoNode::go_on, until, done);
    }
}
