//! A disk of an I/O node with the requests that wait for it.
//!
//! Like a flash device, it is a state machine without a queue of events: whoever has it lets later things happen.

use pio_machine::disk::{Disk, Disks};
use pio_machine::{Bandwidth, Duration};
use pio_plan::Direction;

use super::device::Device;
use super::flash::{FlashActions, FlashEvent, FlashModel};
use super::waiting::Waiting;
use crate::kernel::{Queue, Time};

/// A disk and what waits for it.
#[derive(Debug)]
pub(super) struct Station {
    kind: Kind,
    busy: Duration,
}

#[derive(Debug)]
enum Kind {
    /// Serves as many at a time as it has channels, which is one but for a solid-state device.
    Timed {
        device: Device,
        channel: Bandwidth,
        /// What moves between its buffer and the bus.
        moving: Queue,
        serving: u32,
        waiting: Waiting<(u32, Extent)>,
    },
    Flash(Box<FlashModel>),
}

/// What is asked of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Which way the data go.
    pub direction: Direction,
    /// The first byte on the disk.
    pub offset: u64,
    /// How many bytes; at least one.
    pub bytes: u64,
}

/// What happens later at a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationEvent {
    /// It is done with the request of this number.
    Served(u32),
    /// Something inside a flash device.
    Flash(FlashEvent),
}

/// What a disk asks of whoever has it.
#[derive(Debug, Default)]
pub(super) struct StationActions {
    /// To be handed back at these times, ties in this order.
    pub(super) later: Vec<(Time, StationEvent)>,
    /// The numbers of requests that are done now.
    pub(super) done: Vec<u32>,
    flash: FlashActions,
}

impl Station {
    /// One of the disks of a description. `channel` is the rate between bus and disk.
    pub(super) fn new(disks: &Disks, channel: Bandwidth) -> Station {
        let timed = |device| Kind::Timed {
            device,
            channel,
            moving: Queue::default(),
            serving: 0,
            waiting: Waiting::new(disks.queue),
        };
        let kind = match (&disks.disk, Device::new(disks)) {
            (Disk::Flash(flash), _) => Kind::Flash(Box::new(FlashModel::new(flash))),
            (_, Some(device)) => timed(device),
            (_, None) => unreachable!("only flash is no device whose times are known"),
        };
        Station { kind, busy: Duration::ZERO }
    }

    /// How many bytes it holds; nothing if the description does not say.
    pub(super) fn bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::Timed { device, .. } => device.bytes(),
            Kind::Flash(flash) => Some(flash.bytes()),
        }
    }

    /// How long it has been in use: each channel of a solid-state device, and each die of a flash device, by itself.
    pub(super) fn busy(&self) -> Duration {
        match &self.kind {
            Kind::Timed { .. } => self.busy,
            Kind::Flash(flash) => flash.busy(),
        }
    }

    /// Takes in a request that the disk has the bytes for.
    pub(super) fn arrive(&mut self, now: Time, number: u32, extent: Extent, out: &mut StationActions) {
        match &mut self.kind {
            Kind::Timed { waiting, .. } => {
                waiting.push(extent.offset, (number, extent));
                self.go_on(now, out);
            }
            Kind::Flash(flash) => {
                let Extent { direction, offset, bytes } = extent;
                flash.arrive(now, number, (direction, offset, bytes), &mut out.flash);
                out.take_flash();
            }
        }
    }

    /// Lets something happen that was to happen at `now`.
    pub(super) fn handle(&mut self, now: Time, event: StationEvent, out: &mut StationActions) {
        match (&mut self.kind, event) {
            (Kind::Timed { serving, .. }, StationEvent::Served(number)) => {
                *serving -= 1;
                self.go_on(now, out);
                out.done.push(number);
            }
            (Kind::Flash(flash), StationEvent::Flash(event)) => {
                flash.handle(now, event, &mut out.flash);
                out.take_flash();
            }
            (kind, event) => unreachable!("{event:?} of another disk than {kind:?}"),
        }
    }

    /// The disk serves who waits, as far as it can serve more at the same time.
    fn go_on(&mut self, now: Time, out: &mut StationActions) {
        let Kind::Timed { device, channel, moving, serving, waiting } = &mut self.kind else { return };
        while *serving < device.channels() {
            let Some((number, Extent { direction, offset, bytes })) = waiting.pop(device.position()) else {
                break;
            };
            let served = device.serve(now, direction, offset, bytes);
            let surface = served.expect("that the disk has the bytes was checked when the request came");
            // What the channel needs more than the surface is not hidden behind it. All that the disk serves at the same time
            // passes it.
            let done = surface.max(moving.serve(now, channel.time_of(bytes)).1);
            *serving += 1;
            self.busy = self.busy.saturating_add(done.since(now));
            out.later.push((done, StationEvent::Served(number)));
        }
    }
}

impl StationActions {
    fn take_flash(&mut self) {
        let later = self.flash.later.drain(..);
        self.later.extend(later.map(|(time, event)| (time, StationEvent::Flash(event))));
        self.done.append(&mut self.flash.done);
    }
}
