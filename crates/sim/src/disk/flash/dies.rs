//! The dies and the channels between them and the controller.
//!
//! A die does one thing at a time. What the host reads comes before everything else that waits; the rest comes in its
//! order. A page that was read waits in the die's registers for the channel, and the die goes on; so does it while data for
//! its next page come in.

use std::collections::VecDeque;

use pio_machine::Duration;
use pio_machine::disk::Flash;

use super::{FlashEvent, Read};
use crate::kernel::{Queue, Time};

/// All dies and channels.
#[derive(Debug)]
pub(super) struct Dies {
    flash: Flash,
    dies: Vec<Die>,
    channels: Vec<Queue>,
    busy: Duration,
}

#[derive(Debug, Default)]
struct Die {
    now: Option<(u32, Job)>,
    /// Since when it does nothing, if so.
    free_since: Time,
    /// What the host reads.
    reads: VecDeque<(u32, Job)>,
    rest: VecDeque<(u32, Job)>,
}

/// What a die does with a page, or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Reads a page, of which so many bytes go over the channel.
    Read { read: Read, bytes: u64 },
    /// Programs a page that the die has.
    Program,
    /// The same, into the region for bursts.
    ProgramBurst,
    /// Is half-way through a page that it takes out of that region, for so long still.
    Empty { left: Duration },
    /// Erases its blocks of a line.
    Erase { line: u32 },
}

impl Dies {
    pub(super) fn new(flash: &Flash) -> Dies {
        Dies {
            flash: *flash,
            dies: (0..flash.all_dies()).map(|_| Die::default()).collect(),
            channels: vec![Queue::default(); flash.channels as usize],
            busy: Duration::ZERO,
        }
    }

    pub(super) fn busy(&self) -> Duration {
        self.busy
    }

    /// The die of a page has something to do.
    pub(super) fn add(&mut self, now: Time, page: u32, job: Job, later: &mut Vec<(Time, FlashEvent)>) {
        let number = page % self.flash.all_dies();
        let die = &mut self.dies[number as usize];
        match job {
            Job::Read { read: Read::Command { .. }, .. } => die.reads.push_back((page, job)),
            Job::Read { .. } | Job::Program | Job::ProgramBurst | Job::Empty { .. } | Job::Erase { .. } => {
                die.rest.push_back((page, job))
            }
        }
        self.go_on(now, number, later);
    }

    /// Every die has a line to erase.
    pub(super) fn erase(&mut self, now: Time, line: u32, later: &mut Vec<(Time, FlashEvent)>) {
        for die in 0..self.flash.all_dies() {
            self.add(now, die, Job::Erase { line }, later);
        }
    }

    /// A die is done with what it did: this. It goes on.
    ///
    /// # Panics
    /// If it did nothing.
    pub(super) fn done(&mut self, now: Time, number: u32, later: &mut Vec<(Time, FlashEvent)>) -> (u32, Job) {
        let done = self.dies[number as usize].now.take();
        self.go_on(now, number, later);
        done.expect("a die that is done did something")
    }

    /// Since when a die has had nothing to do; nothing if it has.
    pub(super) fn free_since(&self, number: u32) -> Option<Time> {
        let die = &self.dies[number as usize];
        die.now.is_none().then_some(die.free_since)
    }

    /// A die was busy for so long, when nobody looked.
    pub(super) fn was_busy(&mut self, time: Duration) {
        self.busy = self.busy.saturating_add(time);
    }

    /// Bytes to or from the die of a page pass its channel. When they are over.
    pub(super) fn over_bus(&mut self, now: Time, page: u32, bytes: u64) -> Time {
        let channel = page % self.flash.all_dies() % self.flash.channels;
        self.channels[channel as usize].serve(now, self.flash.bus.time_of(bytes)).1
    }

    fn go_on(&mut self, now: Time, number: u32, later: &mut Vec<(Time, FlashEvent)>) {
        let die = &mut self.dies[number as usize];
        if die.now.is_some() {
            return;
        }
        die.now = die.reads.pop_front().or_else(|| die.rest.pop_front());
        let Some((_, job)) = die.now else {
            die.free_since = now;
            return;
        };
        let time = match job {
            Job::Read { .. } => self.flash.read,
            Job::Program => self.flash.program,
            Job::ProgramBurst => self.flash.burst.map_or(self.flash.program, |burst| burst.program),
            Job::Empty { left } => left,
            Job::Erase { .. } => self.flash.erase,
        };
        self.busy = self.busy.saturating_add(time);
        later.push((now + time, FlashEvent::Die(number)));
    }
}
