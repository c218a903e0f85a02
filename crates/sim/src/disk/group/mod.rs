//! All disks of an I/O node: which of them a request needs, in which order, and when it is done.
//!
//! Without RAID a request is on the disk of its first byte. With it, a request is split by rows, and each row's disks read,
//! and then write, what its level asks for. Like a [`Station`], this is a state machine without a queue of events: an I/O
//! node has one queue for itself and its disks.

mod layout;
mod rebuild;
mod steps;
#[cfg(test)]
mod tests;

use pio_machine::disk::{Disk, Disks};
use pio_machine::{Bandwidth, Duration};
use pio_plan::Direction;

use super::station::{Extent, Station, StationActions, StationEvent};
use crate::kernel::{Slab, Time};
use layout::Layout;
use rebuild::{Failures, Turn};
use steps::{Steps, Strips};

/// The disks of a node.
#[derive(Debug)]
pub struct DiskGroup {
    stations: Vec<Station>,
    is_flash: bool,
    /// Bytes that are contiguous on a disk.
    unit: u64,
    raid: Option<Layout>,
    failures: Failures,
    /// Requests under way.
    requests: Slab<Request>,
    /// What disks do for a request: all at once, or a row of RAID.
    jobs: Slab<Job>,
    /// What disks were asked for.
    operations: Slab<Operation>,
    /// Operations that each disk has not done.
    load: Vec<u32>,
    /// Kept for its memory.
    actions: StationActions,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Its number at whoever asks.
    id: u32,
    /// Jobs that are not done.
    left: u32,
}

/// Operations that go together.
#[derive(Clone, Debug)]
struct Job {
    /// The request that it is for; nothing for a rebuild.
    request: Option<u32>,
    /// Operations that are not done.
    left: u32,
    /// What is to be written when they are, from this byte of the disks on.
    writes: Strips,
    offset: u64,
}

/// What a disk was asked for.
#[derive(Clone, Copy, Debug)]
struct Operation {
    job: u32,
}

/// What happens later at the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// Something at one disk.
    Disk {
        /// Its number.
        disk: u32,
        /// What it is.
        event: StationEvent,
    },
    /// The next strip of a failed disk is rebuilt.
    Rebuild,
}

/// What the disks ask of whoever has them.
#[derive(Debug, Default)]
pub struct GroupActions {
    /// To be given to [`DiskGroup::handle`] at these times, ties in this order.
    pub later: Vec<(Time, GroupEvent)>,
    /// Requests that are done now.
    pub done: Vec<u32>,
}

impl DiskGroup {
    /// The disks of a description with nothing to do. `unit` bytes are contiguous on a disk; `channel` is the rate between
    /// the bus and a disk.
    pub fn new(disks: &Disks, unit: u64, channel: Bandwidth) -> DiskGroup {
        let stations: Vec<Station> = (0..disks.count).map(|_| Station::new(disks, channel)).collect();
        let held = stations.iter().filter_map(Station::bytes).min();
        DiskGroup {
            is_flash: matches!(disks.disk, Disk::Flash(_)),
            unit,
            raid: disks.raid.as_ref().map(|raid| Layout::new(raid, disks.count, unit)),
            failures: Failures::new(disks.raid.as_ref(), unit, held),
            requests: Slab::new(),
            jobs: Slab::new(),
            operations: Slab::new(),
            load: vec![0; stations.len()],
            actions: StationActions::default(),
            stations,
        }
    }

    /// How many disks there are.
    pub fn count(&self) -> usize {
        self.stations.len()
    }

    /// How long the disks have been in use, all together.
    pub fn busy(&self) -> Duration {
        let busy = self.stations.iter().map(|station| station.busy().picoseconds());
        Duration::from_picoseconds(busy.fold(0, u64::saturating_add))
    }

    /// When all failed disks were rebuilt.
    pub fn rebuilt(&self) -> Option<Time> {
        self.failures.rebuilt
    }

    /// Places for requests of so many bytes that spread them evenly over all disks, with none in the way of another: how
    /// many, and how far apart, in bytes. All of a flash device, if such requests fill its units: how much of it is
    /// overwritten decides what garbage collection costs.
    pub fn places(&self, bytes: u64) -> (u64, u64) {
        const MOST_ROUNDS: u64 = 4096;
        let held = self.stations.iter().filter_map(Station::bytes).min();
        if let Some(held) = held.filter(|_| self.is_flash && self.unit.is_multiple_of(bytes)) {
            return (held / self.unit * (self.unit / bytes) * self.strips(), bytes);
        }
        // Of a RAID group, rows of whole strips only.
        let whole_strips = |held: u64| match self.raid {
            None => held.saturating_sub(bytes) / self.unit + 1,
            Some(_) => held / self.unit,
        };
        let rounds = held.map_or(MOST_ROUNDS, whole_strips);
        (rounds.min(MOST_ROUNDS) * self.strips(), self.unit)
    }

    /// The disk of a byte: with copies, the first.
    pub fn disk_of(&self, offset: u64) -> u32 {
        match &self.raid {
            None => self.place(offset).0,
            Some(layout) => {
                let (row, parts, _) = layout.first_row(offset, 1);
                parts.first().map_or(0, |(strip, _)| layout.copies(row, *strip).start)
            }
        }
    }

    /// The bytes of a disk that a request needs and the disk does not have: the first, the one after the last, and how many
    /// it has.
    pub fn beyond(&self, offset: u64, bytes: u64) -> Option<(u64, u64, u64)> {
        let held = self.stations.iter().filter_map(Station::bytes).min()?;
        let (first, end) = match &self.raid {
            None => {
                let (_, first) = self.place(offset);
                (first, first.saturating_add(bytes))
            }
            Some(_) => {
                let row = self.unit * self.strips();
                let end = offset.saturating_add(bytes).div_ceil(row).saturating_mul(self.unit);
                (offset / row * self.unit, end)
            }
        };
        (held < end).then_some((first, end, held))
    }

    /// Takes in a request at `now` for which [`DiskGroup::beyond`] has nothing to say.
    pub fn arrive(&mut self, now: Time, id: u32, extent: Extent, out: &mut GroupActions) {
        if self.failures.begin(now) {
            out.later.push((now, GroupEvent::Rebuild));
        }
        let request = self.requests.insert(Request { id, left: 0 });
        let Some(layout) = self.raid else {
            let (disk, offset) = self.place(extent.offset);
            self.requests[request].left = 1;
            let job =
                self.jobs.insert(Job { request: Some(request), left: 1, writes: Strips::new(), offset });
            return self.ask(now, job, disk, Extent { offset, ..extent }, out);
        };
        // All of the rows first: one of them may be done at once. So a request chooses among copies once.
        let Extent { direction, mut offset, mut bytes } = extent;
        let mut rows = Vec::new();
        while bytes > 0 {
            let (row, parts, here) = layout.first_row(offset, bytes);
            let is_there = |disk| self.failures.is_there(disk, layout.offset(row));
            let steps = match direction {
                Direction::Read => layout.read(row, &parts, is_there, |disk| self.load[disk as usize]),
                Direction::Write => layout.write(row, &parts, is_there),
            };
            rows.push((layout.offset(row), steps));
            (offset, bytes) = (offset + here, bytes - here);
        }
        self.requests[request].left = rows.len() as u32;
        for (offset, steps) in rows {
            self.start(now, Some(request), offset, steps, out);
        }
    }

    /// Lets something happen that was to happen at `now`.
    pub fn handle(&mut self, now: Time, event: GroupEvent, out: &mut GroupActions) {
        match event {
            GroupEvent::Disk { disk, event } => {
                self.stations[disk as usize].handle(now, event, &mut self.actions);
                self.take_actions(now, disk, out);
            }
            GroupEvent::Rebuild => self.rebuild(now, out),
        }
    }

    /// Strips of data in a row of all disks.
    fn strips(&self) -> u64 {
        let groups = |layout: &Layout| u64::from(layout.data()) * u64::from(layout.groups());
        self.raid.as_ref().map_or(self.stations.len() as u64, groups)
    }

    /// The disk of a byte without RAID, and where the byte is on it.
    fn place(&self, offset: u64) -> (u32, u64) {
        let (unit, count) = (self.unit, self.stations.len() as u64);
        let number = offset / unit;
        ((number % count) as u32, number / count * unit + offset % unit)
    }

    /// The next strip of a failed disk, if one is left.
    fn rebuild(&mut self, now: Time, out: &mut GroupActions) {
        let (Some(layout), Some((disk, strip))) = (self.raid, self.failures.next()) else { return };
        let row = layout.row_of_disk(disk, strip);
        let offset = layout.offset(row);
        let is_there = |disk| self.failures.is_there(disk, offset);
        let steps = layout.rebuild(row, disk, is_there, |disk| self.load[disk as usize]);
        self.start(now, None, offset, steps, out);
    }

    /// Disks begin with the steps of a job, at this byte of each of them.
    fn start(&mut self, now: Time, request: Option<u32>, offset: u64, steps: Steps, out: &mut GroupActions) {
        let job = self.jobs.insert(Job { request, left: 0, writes: steps.writes, offset });
        match steps.reads.is_empty() {
            true => self.write(now, job, out),
            false => self.ask_all(now, job, Direction::Read, &steps.reads, out),
        }
    }

    /// What a job read is there: it writes.
    fn write(&mut self, now: Time, job: u32, out: &mut GroupActions) {
        let writes = std::mem::take(&mut self.jobs[job].writes);
        self.ask_all(now, job, Direction::Write, &writes, out);
    }

    fn ask_all(
        &mut self,
        now: Time,
        job: u32,
        direction: Direction,
        strips: &Strips,
        out: &mut GroupActions,
    ) {
        let Job { offset, left, .. } = &mut self.jobs[job];
        *left = strips.len() as u32;
        let begin = *offset;
        for (disk, bytes) in strips {
            let extent = Extent { direction, offset: begin + bytes.start, bytes: bytes.end - bytes.start };
            self.ask(now, job, *disk, extent, out);
        }
    }

    fn ask(&mut self, now: Time, job: u32, disk: u32, extent: Extent, out: &mut GroupActions) {
        let number = self.operations.insert(Operation { job });
        self.load[disk as usize] += 1;
        self.stations[disk as usize].arrive(now, number, extent, &mut self.actions);
        self.take_actions(now, disk, out);
    }

    fn take_actions(&mut self, now: Time, disk: u32, out: &mut GroupActions) {
        for (time, event) in self.actions.later.drain(..) {
            out.later.push((time, GroupEvent::Disk { disk, event }));
        }
        let mut done = std::mem::take(&mut self.actions.done);
        for number in done.drain(..) {
            let Operation { job } = self.operations[number];
            self.operations.remove(number);
            self.load[disk as usize] -= 1;
            self.jobs[job].left -= 1;
            if self.jobs[job].left == 0 {
                self.go_on(now, job, out);
            }
        }
        self.actions.done = done;
    }

    /// A job has done all that it asked for.
    fn go_on(&mut self, now: Time, number: u32, out: &mut GroupActions) {
        if !self.jobs[number].writes.is_empty() {
            return self.write(now, number, out);
        }
        let request = self.jobs[number].request;
        self.jobs.remove(number);
        match request {
            Some(request) => {
                self.requests[request].left -= 1;
                if self.requests[request].left == 0 {
                    out.done.push(self.requests[request].id);
                    self.requests.remove(request);
                }
            }
            None => match self.failures.strip_is_done(now) {
                Turn::At(time) => out.later.push((time, GroupEvent::Rebuild)),
                Turn::Never => {}
            },
        }
    }
}
