//! A server with all that is inside an I/O node: memory that keeps data, if it has such, over the queues and disks of
//! [`IoNode`].
//!
//! The memory is the state machine of `pio-cache`: it decides what is a hit, what is fetched, read ahead and written
//! behind. A read looks into the memory, waits for what it must fetch, and leaves through processor and adapter; a write
//! comes in through these, and is done when the memory has taken it. What the memory fetches and writes passes bus and
//! disks. Without memory, every request goes to the disks.
//!
//! A request of the node is for what lies together on the disks: a strip, or what of it is on one disk, if it is on several.
//! What moves between network and memory has no such bounds.
//!
//! Where a strip is on the disks is settled when it is first touched: the next free place. So files that are written or
//! read in order are contiguous, and files that grow together are interleaved, as under a file system that allocates on
//! demand.

use std::collections::{BTreeMap, BTreeSet};

use pio_cache::{Action, Cache, Event, FileId, ProcessId, RequestId, TransferId};
use pio_machine::Buffers;
use pio_plan::Direction;

use super::part::Part;
use crate::buffers::settings;
use crate::error::SimError;
use crate::io_node::{Adapter, Between, IoDone, IoNode, IoNodeError, IoRequest};
use crate::kernel::{Model, Slab, Time};

/// Such a server.
pub(super) struct NodeServer {
    node: IoNode,
    memory: Option<Cache>,
    strip: u64,
    /// From each multiple of it on, another disk has the bytes. None where the disks divide what they are asked for themselves.
    unit: Option<u64>,
    /// Room for a request under way.
    buffer: u64,
    /// Bytes of a message without data.
    message: u64,
    /// Place of each strip on the disks, by file and number.
    places: BTreeMap<(u32, u64), u64>,
    /// Those that files had which have no bytes any more: the next are these.
    free_places: BTreeSet<u64>,
    /// Parts that are being served.
    parts: Slab<Serving>,
    /// How many of them are of each file.
    under_way: BTreeMap<u32, u32>,
    /// Those of which memory is to drop all when none is left.
    emptied: BTreeSet<u32>,
    /// What the node is busy with, by the number it was given.
    jobs: Slab<Job>,
    /// Requests of the node that each transfer of the memory still needs.
    transfers: BTreeMap<TransferId, (Direction, u32)>,
    /// What the memory asks for.
    actions: Vec<Action>,
    /// What the node has done; kept only for its room.
    done: Vec<IoDone>,
    /// What is to be given out, since then.
    finished: Vec<Part>,
    finished_at: Time,
}

/// A part, and how many requests of the node it still needs.
#[derive(Clone, Copy, Debug)]
struct Serving {
    part: Part,
    jobs: u32,
}

/// What a request of the node is for.
#[derive(Clone, Copy, Debug)]
enum Job {
    Part(u32),
    Transfer(TransferId),
}

impl NodeServer {
    pub(super) fn new(
        node: &pio_machine::IoNode,
        network_has_adapters: bool,
        strip: u64,
        message: u64,
        memory: Option<&Buffers>,
    ) -> Result<NodeServer, SimError> {
        let adapter = if network_has_adapters { Adapter::OfTheNetwork } else { Adapter::Own };
        let memory = match memory {
            Some(buffers) => Some(Cache::new(settings(buffers, buffers.size)?)?),
            None => None,
        };
        Ok(NodeServer {
            node: IoNode::new(node, adapter),
            memory,
            strip,
            unit: node.disks.raid.is_none().then_some(node.unit),
            buffer: node.buffer,
            message,
            places: BTreeMap::new(),
            free_places: BTreeSet::new(),
            parts: Slab::new(),
            under_way: BTreeMap::new(),
            emptied: BTreeSet::new(),
            jobs: Slab::new(),
            transfers: BTreeMap::new(),
            actions: Vec::new(),
            done: Vec::new(),
            finished: Vec::new(),
            finished_at: Time::default(),
        })
    }

    pub(super) fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    pub(super) fn arrive(&mut self, now: Time, part: Part) -> Result<(), IoNodeError> {
        let id = self.parts.insert(Serving { part, jobs: 0 });
        *self.under_way.entry(part.file).or_default() += 1;
        if part.direction == Direction::Write && !part.syncs {
            self.emptied.remove(&part.file);
        }
        if part.syncs {
            return self.ask_memory(now, id);
        }
        if self.memory.is_some() && part.direction == Direction::Read {
            return self.ask_memory(now, id);
        }
        let between = if self.memory.is_some() { Between::NetworkAndMemory } else { Between::NetworkAndDisk };
        self.request(now, Job::Part(id), (part.file, part.offset, part.bytes), part.direction, between)
    }

    /// A file has no bytes any more: memory drops what it has of it, and does not write it, once no rank reads or writes the
    /// file. What is written after this and before that is of the file as it is then: memory keeps all.
    pub(super) fn empty(&mut self, now: Time, file: u32) -> Result<(), IoNodeError> {
        if self.under_way.contains_key(&file) {
            self.emptied.insert(file);
            return Ok(());
        }
        self.forget(now, file)
    }

    fn forget(&mut self, now: Time, file: u32) -> Result<(), IoNodeError> {
        while let Some((strip, place)) = self.places.range((file, 0)..=(file, u64::MAX)).next_back() {
            let (strip, place) = (*strip, *place);
            self.places.remove(&strip);
            self.free_places.insert(place);
        }
        let file = FileId(file.into());
        self.tell_memory(now, Event::Forget { file })?;
        self.tell_memory(now, Event::Size { file, bytes: 0 })
    }

    /// A request of the node is done.
    fn node_is_done(&mut self, one: IoDone) -> Result<(), IoNodeError> {
        self.jobs.remove(one.id);
        match self.jobs[one.id] {
            Job::Part(id) => self.passed(one.done, id),
            Job::Transfer(number) => self.transferred(one.done, number),
        }
    }

    /// A request of the node for a part is done.
    fn passed(&mut self, now: Time, id: u32) -> Result<(), IoNodeError> {
        let serving = &mut self.parts[id];
        serving.jobs -= 1;
        if serving.jobs > 0 {
            return Ok(());
        }
        if self.memory.is_some() && serving.part.direction == Direction::Write {
            return self.ask_memory(now, id);
        }
        self.finish(now, id)
    }

    /// A request of the node for a transfer of the memory is done.
    fn transferred(&mut self, now: Time, number: TransferId) -> Result<(), IoNodeError> {
        let Some((direction, left)) = self.transfers.get_mut(&number) else { return Ok(()) };
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        let direction = *direction;
        self.transfers.remove(&number);
        self.tell_memory(
            now,
            match direction {
                Direction::Read => Event::Fetched { transfer: number },
                Direction::Write => Event::Written { transfer: number },
            },
        )
    }

    fn finish(&mut self, now: Time, id: u32) -> Result<(), IoNodeError> {
        let part = self.parts[id].part;
        self.finished_at = now;
        self.finished.push(part);
        self.parts.remove(id);
        if let Some(count) = self.under_way.get_mut(&part.file) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&part.file);
                if self.emptied.remove(&part.file) {
                    return self.forget(now, part.file);
                }
            }
        }
        Ok(())
    }

    // --- Memory ---

    fn ask_memory(&mut self, now: Time, id: u32) -> Result<(), IoNodeError> {
        let Part { rank, file, direction, offset, bytes: length, syncs, .. } = self.parts[id].part;
        let (request, process, file) = (RequestId(id.into()), ProcessId(rank), FileId(file.into()));
        let event = match direction {
            Direction::Write if syncs => Event::Flush { request, file },
            Direction::Read => Event::Read { request, process, file, offset, length },
            Direction::Write => Event::Write { request, process, file, offset, length },
        };
        self.tell_memory(now, event)
    }

    fn tell_memory(&mut self, now: Time, event: Event) -> Result<(), IoNodeError> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let mut actions = std::mem::take(&mut self.actions);
        memory.handle(event, &mut actions);
        for action in actions.drain(..) {
            match action {
                Action::Fetch { transfer, file, offset, length, .. } => {
                    self.transfer(now, transfer, (file, offset, length), Direction::Read)?;
                }
                Action::Write { transfer, file, offset, length } => {
                    self.transfer(now, transfer, (file, offset, length), Direction::Write)?;
                }
                Action::Complete { request } => self.complete(now, request.0 as u32)?,
                Action::Copy { .. } | Action::Evict { .. } => {}
            }
        }
        self.actions = actions;
        Ok(())
    }

    fn transfer(
        &mut self,
        now: Time,
        number: TransferId,
        (file, offset, length): (FileId, u64, u64),
        direction: Direction,
    ) -> Result<(), IoNodeError> {
        self.transfers.insert(number, (direction, 0));
        let extent = (file.0 as u32, offset, length);
        self.request(now, Job::Transfer(number), extent, direction, Between::MemoryAndDisk)
    }

    /// The memory has what was read, or has taken what was written.
    fn complete(&mut self, now: Time, id: u32) -> Result<(), IoNodeError> {
        let part = self.parts[id].part;
        match part.direction {
            Direction::Read => {
                let extent = (part.file, part.offset, part.bytes);
                self.request(now, Job::Part(id), extent, Direction::Read, Between::NetworkAndMemory)
            }
            Direction::Write => self.finish(now, id),
        }
    }

    // --- The node ---

    /// Where a strip is on the disks: from now on, if it is touched for the first time.
    fn place(&mut self, file: u32, number: u64) -> u64 {
        // All places up to the last are taken or free.
        let next = self.free_places.first().copied();
        let next = next.unwrap_or((self.places.len() + self.free_places.len()) as u64);
        let place = *self.places.entry((file, number)).or_insert(next);
        self.free_places.remove(&place);
        place
    }

    /// Requests for an extent, one for what lies together on the disks.
    fn request(
        &mut self,
        now: Time,
        job: Job,
        (file, offset, length): (u32, u64, u64),
        direction: Direction,
        between: Between,
    ) -> Result<(), IoNodeError> {
        let (mut at, end) = (offset, offset.saturating_add(length));
        while at < end {
            let (number, within) = (at / self.strip, at % self.strip);
            let place = self.place(file, number);
            let on_disks = place * self.strip + within;
            let together = match (between, self.unit) {
                (Between::NetworkAndMemory, _) => self.buffer,
                (_, Some(unit)) => unit - on_disks % unit,
                (_, None) => u64::MAX,
            };
            let bytes = (self.strip - within).min(end - at).min(together);
            let id = self.jobs.insert(job);
            match job {
                Job::Part(part) => self.parts[part].jobs += 1,
                Job::Transfer(number) => {
                    if let Some((_, left)) = self.transfers.get_mut(&number) {
                        *left += 1;
                    }
                }
            }
            let message = if at == offset { self.message } else { 0 };
            let offset = on_disks;
            self.node
                .arrive(now, IoRequest { id, direction, offset, bytes, message, hit: false, between })?;
            at += bytes;
        }
        Ok(())
    }
}

impl Model for NodeServer {
    type Out = Result<Part, IoNodeError>;

    fn next_time(&self) -> Option<Time> {
        // A sync that finds nothing to write is done when it arrives.
        if self.finished.is_empty() { self.node.next_time() } else { Some(self.finished_at) }
    }

    fn advance(&mut self, until: Time, finished: &mut Vec<Self::Out>) {
        let mut done = std::mem::take(&mut self.done);
        let mut last = if self.finished.is_empty() { until } else { self.finished_at };
        while self.node.next_time().is_some_and(|time| time <= last) {
            self.node.advance(last, &mut done);
            for one in done.drain(..) {
                finished.extend(self.node_is_done(one).err().map(Err));
                if !self.finished.is_empty() {
                    last = one.done;
                }
            }
        }
        self.done = done;
        finished.extend(self.finished.drain(..).map(Ok));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_files_that_are_emptied_are_given_again() {
        let node = pio_machine::IoNode::of_baylor().unwrap();
        let mut server = NodeServer::new(&node, false, 1 << 15, 200, None).unwrap();
        let places = |server: &mut NodeServer, file| [3, 1, 2].map(|strip| server.place(file, strip));
        assert_eq!((places(&mut server, 0), places(&mut server, 1)), ([0, 1, 2], [3, 4, 5]));
        server.empty(Time::default(), 0).unwrap();
        assert_eq!(server.place(2, 0), 0);
        assert_eq!(places(&mut server, 1), [3, 4, 5], "as they were");
        assert_eq!(places(&mut server, 0), [1, 2, 6]);
    }
}
