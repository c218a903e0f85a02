//! A flash device at work: commands go through a controller to dies on channels, over a buffer for what is written.
//!
//! It is a state machine without a queue of events: [`FlashModel::arrive`] and [`FlashModel::handle`] say what is to happen
//! later, and which requests are done, and whoever has the device lets it happen. `docs/design/flash.md` explains the model
//! and what it leaves out.

mod burst;
mod collector;
mod command;
mod dies;
mod event;
mod link;
mod load;
mod mapping;
mod moves;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use pio_machine::Duration;
use pio_machine::disk::Flash;
use pio_plan::Direction;

use crate::kernel::{Queue, Slab, Stream, Time};
use burst::BurstRegion;
use collector::Collector;
use command::{Command, Write};
use dies::{Dies, Job};
use link::Link;
use mapping::{Mapping, Place};

pub use event::{FlashActions, FlashEvent, Read, Work};
pub use load::{FlashLoad, FlashRun};

/// A flash device that remembers where everything is.
#[derive(Debug)]
pub struct FlashModel {
    flash: Flash,
    mapping: Mapping,
    collector: Collector,
    controller: Queue,
    link: Link,
    dies: Dies,
    /// Commands in the device.
    commands: Slab<Command>,
    /// Commands that wait at the host: there are as many as the device has at a time.
    waiting: VecDeque<Command>,
    /// Writes that have not all of their units in the buffer, in the order in which they came.
    writes: VecDeque<Write>,
    /// Units that the buffer has room for.
    room: u64,
    /// Pages, counted over all lines, that are in the buffer.
    buffered: BTreeMap<u32, Buffered>,
    /// Units read by garbage collection, each with the place that it had, that find no free line.
    homeless: VecDeque<(u32, u32)>,
    /// Lines that are being erased, each with how many dies are not done.
    erasing: BTreeMap<u32, u32>,
    burst: Option<BurstRegion>,
    /// Since when there is no command in the device.
    idle_since: Time,
    done: Work,
    /// Kept for its memory.
    units: Vec<u32>,
}

/// A page in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Buffered {
    /// Units that are there.
    there: u32,
    /// Of these, units of the host, which take up its room.
    of_host: u32,
}

impl FlashModel {
    /// A device with nothing to do.
    pub fn new(flash: &Flash) -> FlashModel {
        FlashModel {
            mapping: Mapping::new(flash),
            collector: Collector::new(flash),
            controller: Queue::default(),
            link: Link::new(flash),
            dies: Dies::new(flash),
            commands: Slab::new(),
            waiting: VecDeque::new(),
            writes: VecDeque::new(),
            room: flash.buffer / flash.mapping,
            buffered: BTreeMap::new(),
            homeless: VecDeque::new(),
            erasing: BTreeMap::new(),
            burst: flash.burst.map(|burst| BurstRegion::new(flash, burst)),
            idle_since: Time::default(),
            done: Work::default(),
            units: Vec::new(),
            flash: *flash,
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.flash.capacity
    }

    /// What it has done.
    pub fn work(&self) -> Work {
        self.done
    }

    /// How long its dies were busy, each by itself, work begun included.
    pub fn busy(&self) -> Duration {
        self.dies.busy()
    }

    /// Overwrites so many units at random within the first `bytes`, in no time: brings a device to the state in which a
    /// long run would leave it.
    pub fn overwrite(&mut self, bytes: u64, count: u64, stream: &mut Stream) {
        let units = (bytes / self.flash.mapping).max(1);
        for _ in 0..count {
            while self.collector.allowance(&self.mapping) <= 0 {
                self.collect_at_once();
            }
            self.collect_at_once();
            self.mapping.append(stream.below(units) as u32);
            self.collector.wrote();
            self.done.written += 1;
        }
    }

    /// Takes in a request at `now`. It is not empty, and not beyond the end of the device.
    pub fn arrive(
        &mut self,
        now: Time,
        id: u32,
        (direction, offset, bytes): (Direction, u64, u64),
        out: &mut FlashActions,
    ) {
        let left = bytes.div_ceil(self.flash.mapping) as u32;
        let command = Command { id, direction, offset, bytes, left };
        if self.commands.count() == 0 {
            self.empty_burst(now, out);
        }
        if self.commands.count() < self.flash.depth as usize {
            self.begin(now, command, out);
        } else {
            self.waiting.push_back(command);
        }
    }

    /// Lets something happen that was to happen at `now`.
    pub fn handle(&mut self, now: Time, event: FlashEvent, out: &mut FlashActions) {
        match event {
            FlashEvent::Begin(command) => match self.commands[command].direction {
                Direction::Read => self.read(now, command, out),
                Direction::Write => self.write(now, command, out),
            },
            FlashEvent::Taken { command, page, units } => {
                self.fill(now, page, units, units, out);
                self.passed(now, command, units, out);
            }
            FlashEvent::Sent { page } => {
                let job = self.programs(page);
                self.dies.add(now, page, job, &mut out.later);
            }
            FlashEvent::Die(die) => {
                let (page, job) = self.dies.done(now, die, &mut out.later);
                self.die_is_done(now, page, job, out);
            }
            FlashEvent::Over(Read::Command { command, bytes }) => {
                let end = self.link.carry(now, Direction::Read, bytes);
                out.later.push((end, FlashEvent::Linked(command)));
            }
            FlashEvent::Over(Read::Moved { page, units }) => self.move_page(now, page, units, out),
            FlashEvent::Linked(command) => self.passed(now, command, 1, out),
        }
    }

    fn begin(&mut self, now: Time, command: Command, out: &mut FlashActions) {
        let command = self.commands.insert(command);
        let taken = self.link.take(now);
        let (_, end) = self.controller.serve(taken, self.flash.controller);
        out.later.push((end + self.flash.latency, FlashEvent::Begin(command)));
    }

    /// Parts of a command are done.
    fn passed(&mut self, now: Time, number: u32, parts: u32, out: &mut FlashActions) {
        let command = &mut self.commands[number];
        command.left -= parts;
        if command.left > 0 {
            return;
        }
        out.done.push(command.id);
        self.commands.remove(number);
        self.idle_since = now;
        if let Some(next) = self.waiting.pop_front() {
            self.begin(now, next, out);
        }
    }

    /// Reads the pages that a command needs: neighbours on the flash at once.
    fn read(&mut self, now: Time, number: u32, out: &mut FlashActions) {
        let Command { offset, bytes, .. } = self.commands[number];
        let unit = self.flash.mapping;
        let (first, end) = (offset / unit, (offset + bytes).div_ceil(unit));
        let mut parts = 0;
        let mut at = first;
        while at < end {
            let place = self.mapping.place(at as u32);
            let page = self.page(place);
            let mut next = at + 1;
            while next < end && self.page(self.mapping.place(next as u32)) == page {
                next += 1;
            }
            let wanted = (next * unit).min(offset + bytes) - (at * unit).max(offset);
            let read = Read::Command { command: number, bytes: wanted };
            parts += 1;
            match page {
                // Still in the buffer.
                (true, page) if self.buffered.contains_key(&page) => {
                    out.later.push((now, FlashEvent::Over(read)))
                }
                (_, page) => {
                    self.dies.add(now, page, Job::Read { read, bytes: (next - at) * unit }, &mut out.later)
                }
            }
            at = next;
        }
        self.commands[number].left = parts;
    }

    /// The page of a place, and whether it was ever written.
    fn page(&self, place: Place) -> (bool, u32) {
        match place {
            Place::Written(place) => (true, self.mapping.page_of(place)),
            Place::Initial(place) => (false, self.mapping.page_of(place)),
        }
    }

    fn write(&mut self, now: Time, number: u32, out: &mut FlashActions) {
        let Command { offset, bytes, .. } = self.commands[number];
        let unit = self.flash.mapping;
        let (first, end) = ((offset / unit) as u32, (offset + bytes).div_ceil(unit) as u32);
        self.commands[number].left = end - first;
        self.writes.push_back(Write { command: number, next: first, end });
        self.take_writes(now, out);
    }

    /// The buffer takes what it has room for, in the order in which writes came; garbage collection keeps step.
    fn take_writes(&mut self, now: Time, out: &mut FlashActions) {
        self.collect(now, out);
        while let Some(Write { command, next, end }) = self.writes.front().copied() {
            let allowed = self.collector.allowance(&self.mapping).min(self.room as i64);
            if allowed <= 0 {
                return;
            }
            let in_page = match self.mapping.left_in_page() {
                0 => self.flash.units_of_page() as u32,
                left => left,
            };
            let count = u64::from(end - next).min(allowed as u64).min(u64::from(in_page)) as u32;
            let mut page = None;
            for unit in next..next + count {
                page = self.mapping.append(unit).map(|place| self.mapping.page_of(place));
                self.collector.wrote();
            }
            let Some(page) = page else { return };
            self.done.written += u64::from(count);
            self.room -= u64::from(count);
            self.buffered.entry(page).or_default();
            let bytes = self.part_of(command, next, next + count);
            let there = self.link.carry(now, Direction::Write, bytes);
            out.later.push((there, FlashEvent::Taken { command, page, units: count }));
            if next + count == end {
                self.writes.pop_front();
            } else if let Some(front) = self.writes.front_mut() {
                front.next = next + count;
            }
            self.collect(now, out);
        }
    }

    /// Bytes of a command within these units.
    fn part_of(&self, command: u32, first: u32, end: u32) -> u64 {
        let Command { offset, bytes, .. } = self.commands[command];
        let unit = self.flash.mapping;
        (u64::from(end) * unit).min(offset + bytes) - (u64::from(first) * unit).max(offset)
    }

    /// Units are in the buffer. A page that is complete goes to its die.
    fn fill(&mut self, now: Time, page: u32, units: u32, of_host: u32, out: &mut FlashActions) {
        let buffered = self.buffered.entry(page).or_default();
        buffered.there += units;
        buffered.of_host += of_host;
        if u64::from(buffered.there) == self.flash.units_of_page() {
            let end = self.dies.over_bus(now, page, self.flash.stripe_page());
            out.later.push((end, FlashEvent::Sent { page }));
        }
    }

    fn die_is_done(&mut self, now: Time, page: u32, job: Job, out: &mut FlashActions) {
        match job {
            Job::Read { read, bytes } => {
                let end = self.dies.over_bus(now, page, bytes);
                out.later.push((end, FlashEvent::Over(read)));
            }
            Job::Program | Job::ProgramBurst => {
                if let Some(buffered) = self.buffered.remove(&page) {
                    self.room += u64::from(buffered.of_host);
                }
                self.take_writes(now, out);
            }
            Job::Empty { .. } => {
                self.burst.iter_mut().for_each(BurstRegion::emptied);
            }
            Job::Erase { line } => {
                let left = self.erasing.entry(line).or_default();
                *left -= 1;
                if *left == 0 {
                    self.erasing.remove(&line);
                    self.release(line);
                    // A line may have no room for all of them: the others wait for the next.
                    for (unit, place) in std::mem::take(&mut self.homeless) {
                        self.rewrite(now, unit, place, out);
                    }
                    self.take_writes(now, out);
                }
            }
        }
    }
}
