//! A flash device by itself under a closed load: so many requests at a time, as `fio` and data sheets have it.

use pio_machine::Duration;
use pio_machine::disk::Flash;
use pio_plan::Direction;

use super::{FlashActions, FlashEvent, FlashModel, Work};
use crate::disk::ServiceTimes;
use crate::kernel::{Events, Stream, Time};

/// So many requests at a time: one that is done makes room for the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashLoad {
    /// Bytes of each.
    pub bytes: u64,
    /// How many at a time.
    pub depth: u32,
    /// Probability of a read; the rest are writes.
    pub reads: f64,
    /// Whether they are at random places, else one after the other; both at multiples of `bytes`, within `region`.
    pub random: bool,
    /// The first bytes of the device, to which all of them go.
    pub region: u64,
    /// Overwrites of the region, each unit once on average, before anything is measured, in no time.
    pub overwrites: f64,
    /// How many are done before anything is measured.
    pub skipped: u64,
    /// How many are measured.
    pub requests: u64,
    /// Of the random numbers.
    pub seed: u64,
}

/// What a device did under such a load.
#[derive(Clone, Debug)]
pub struct FlashRun {
    /// Requests a second.
    pub rate: f64,
    /// From the coming of each measured request to its end.
    pub times: ServiceTimes,
    /// What was done within them.
    pub work: Work,
}

impl FlashRun {
    /// Bytes a second.
    pub fn bandwidth(&self, load: &FlashLoad) -> f64 {
        self.rate * load.bytes as f64
    }
}

impl FlashLoad {
    /// Runs a device under this load.
    ///
    /// # Panics
    /// If the region is less than a request or more than the device, or nothing is to be measured.
    pub fn run(&self, flash: &Flash) -> FlashRun {
        assert!(
            self.region >= self.bytes && self.region <= flash.capacity,
            "a load on {} bytes",
            self.region
        );
        assert!(self.bytes > 0 && self.depth > 0 && self.requests > 0, "a load of nothing: {self:?}");
        let mut stream = Stream::named(self.seed, "requests to a flash device");
        let mut model = FlashModel::new(flash);
        let overwrites = (self.region / flash.mapping) as f64 * self.overwrites;
        model.overwrite(self.region, overwrites.round() as u64, &mut stream);
        let mut run = Run {
            load: *self,
            model,
            stream,
            events: Events::new(),
            out: FlashActions::default(),
            came: vec![Time::default(); self.depth as usize],
            next: 0,
        };
        run.all()
    }
}

struct Run {
    load: FlashLoad,
    model: FlashModel,
    stream: Stream,
    events: Events<FlashEvent>,
    out: FlashActions,
    /// When each request under way came.
    came: Vec<Time>,
    /// The next place, if places are one after the other.
    next: u64,
}

impl Run {
    fn all(&mut self) -> FlashRun {
        for id in 0..self.load.depth {
            self.ask(Time::default(), id);
        }
        let (mut done, mut times) = (0, Vec::new());
        let (mut begin, mut end, mut before) = (Time::default(), Time::default(), self.model.work());
        while done < self.load.skipped + self.load.requests {
            let Some((now, event)) = self.events.pop() else { break };
            self.model.handle(now, event, &mut self.out);
            let mut ids = std::mem::take(&mut self.out.done);
            for id in ids.drain(..) {
                if done >= self.load.skipped {
                    times.push(now.since(self.came[id as usize]));
                    end = now;
                }
                done += 1;
                if done == self.load.skipped {
                    (begin, before) = (now, self.model.work());
                }
                self.ask(now, id);
            }
            self.out.done = ids;
            self.schedule();
        }
        let seconds = end.since(begin).max(Duration::from_picoseconds(1)).seconds();
        FlashRun {
            rate: times.len() as f64 / seconds,
            times: ServiceTimes::new(times),
            work: self.model.work().since(&before),
        }
    }

    fn ask(&mut self, now: Time, id: u32) {
        let places = self.load.region / self.load.bytes;
        let place = if self.load.random { self.stream.below(places) } else { self.next % places };
        self.next += 1;
        let reads = self.load.reads >= 1.0 || (self.load.reads > 0.0 && self.stream.chance(self.load.reads));
        let direction = if reads { Direction::Read } else { Direction::Write };
        self.came[id as usize] = now;
        self.model.arrive(now, id, (direction, place * self.load.bytes, self.load.bytes), &mut self.out);
        self.schedule();
    }

    fn schedule(&mut self) {
        for (time, event) in self.out.later.drain(..) {
            self.events.add(time, event);
        }
    }
}
