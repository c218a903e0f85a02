//! All disks of an I/O node: which of them a request needs, in which order, and when it is done.
//!
//! Like a [`Station`], it is a state machine without a queue of events: an I/O node has one queue for itself and its disks.

use pio_machine::disk::{Disk, Disks};
use pio_machine::{Bandwidth, Duration};

use super::station::{Extent, Station, StationActions, StationEvent};
use crate::kernel::{Slab, Time};

/// The disks of a node.
#[derive(Debug)]
pub struct DiskGroup {
    stations: Vec<Station>,
    is_flash: bool,
    /// Bytes that are contiguous on a disk.
    unit: u64,
    /// Requests under way.
    requests: Slab<Request>,
    /// What disks were asked for.
    operations: Slab<Operation>,
    /// Kept for its memory.
    actions: StationActions,
}

/// A request under way.
#[derive(Clone, Debug)]
struct Request {
    /// Its number at whoever asks.
    id: u32,
    /// Operations that are not done.
    left: u32,
}

/// What a disk is asked for.
#[derive(Clone, Copy, Debug)]
struct Operation {
    request: u32,
}

/// What happens later at one of the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEvent {
    disk: u32,
    event: StationEvent,
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
        DiskGroup {
            stations: (0..disks.count).map(|_| Station::new(disks, channel)).collect(),
            is_flash: matches!(disks.disk, Disk::Flash(_)),
            unit,
            requests: Slab::new(),
            operations: Slab::new(),
            actions: StationActions::default(),
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

    /// Places for requests of so many bytes that spread them evenly over all disks, with none in the way of another: how
    /// many, and how far apart, in bytes. All of a flash device, if such requests fill its units: how much of it is
    /// overwritten decides what garbage collection costs.
    pub fn places(&self, bytes: u64) -> (u64, u64) {
        const MOST_ROUNDS: u64 = 4096;
        let held = self.stations.iter().filter_map(Station::bytes).min();
        if let Some(held) = held.filter(|_| self.is_flash && self.unit.is_multiple_of(bytes)) {
            return (held / self.unit * (self.unit / bytes) * self.stations.len() as u64, bytes);
        }
        let rounds = held.map_or(MOST_ROUNDS, |held| held.saturating_sub(bytes) / self.unit + 1);
        (rounds.min(MOST_ROUNDS) * self.stations.len() as u64, self.unit)
    }

    /// The disk of a byte, and where the byte is on it.
    pub fn place(&self, offset: u64) -> (u32, u64) {
        let (unit, count) = (self.unit, self.stations.len() as u64);
        let number = offset / unit;
        ((number % count) as u32, number / count * unit + offset % unit)
    }

    /// The bytes of a disk that a request needs and the disk does not have: the first, the one after the last, and how many
    /// it has.
    pub fn beyond(&self, offset: u64, bytes: u64) -> Option<(u64, u64, u64)> {
        let (disk, offset) = self.place(offset);
        let end = offset.saturating_add(bytes);
        let held = self.stations[disk as usize].bytes()?;
        (held < end).then_some((offset, end, held))
    }

    /// Takes in a request at `now` for which [`DiskGroup::beyond`] has nothing to say.
    pub fn arrive(&mut self, now: Time, id: u32, extent: Extent, out: &mut GroupActions) {
        let request = self.requests.insert(Request { id, left: 1 });
        let (disk, offset) = self.place(extent.offset);
        self.ask(now, request, disk, Extent { offset, ..extent }, out);
    }

    /// Lets something happen that was to happen at `now`.
    pub fn handle(&mut self, now: Time, GroupEvent { disk, event }: GroupEvent, out: &mut GroupActions) {
        self.stations[disk as usize].handle(now, event, &mut self.actions);
        self.take_actions(disk, out);
    }

    fn ask(&mut self, now: Time, request: u32, disk: u32, extent: Extent, out: &mut GroupActions) {
        let number = self.operations.insert(Operation { request });
        self.stations[disk as usize].arrive(now, number, extent, &mut self.actions);
        self.take_actions(disk, out);
    }

    fn take_actions(&mut self, disk: u32, out: &mut GroupActions) {
        let later = self.actions.later.drain(..);
        out.later.extend(later.map(|(time, event)| (time, GroupEvent { disk, event })));
        for number in self.actions.done.drain(..) {
            let Operation { request } = self.operations[number];
            self.operations.remove(number);
            self.requests[request].left -= 1;
            if self.requests[request].left == 0 {
                out.done.push(self.requests[request].id);
                self.requests.remove(request);
            }
        }
    }
}
