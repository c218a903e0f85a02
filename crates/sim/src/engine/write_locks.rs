//! The kernel's lock on a file, where it lets one process at a time write it.
//!
//! As Linux has it (`kernel/locking/rwsem.c`, since 5.3): who wants a file that another writes looks for the end of that on its
//! processor, while the writer has one, too; else it sleeps. So it does when its turn on the processor is over. Who gives the
//! file back wakes the first of those that sleep, and no other. Until that one has a processor, any other that has one may take
//! the file; but once it has waited for long and finds the file taken again, the file is kept for it. So where ranks outnumber
//! processors, one that loses its processor while it writes holds up all that come to write meanwhile, and then they go on one
//! after the other, each when it has a processor.

use std::collections::VecDeque;

use pio_machine::Duration;

use super::{Engine, Happening};
use crate::kernel::Time;
use crate::process::Then;

/// For so long others may take the file before one that sleeps (`RWSEM_WAIT_TIMEOUT`).
const PATIENCE: Duration = Duration::from_picoseconds(4_000_000_000);

/// That of one file.
#[derive(Debug, Default)]
pub(super) struct WriteLock {
    writer: Option<u32>,
    /// Who look for its end on their processors.
    spinning: Vec<u32>,
    /// Who sleep, in order, and since when.
    asleep: VecDeque<(u32, Time)>,
    /// The first of these, when it was woken and has had no processor since.
    woken: Option<(u32, Time)>,
    /// Who alone may have it next.
    kept_for: Option<u32>,
}

impl WriteLock {
    fn take(&mut self, rank: u32) -> bool {
        let is_free =
            self.writer.is_none_or(|writer| writer == rank) && self.kept_for.is_none_or(|next| next == rank);
        if is_free {
            (self.writer, self.kept_for) = (Some(rank), None);
        }
        is_free
    }

    fn is_wanted(&self) -> bool {
        !self.spinning.is_empty() || !self.asleep.is_empty() || self.woken.is_some()
    }
}

impl Engine<'_> {
    /// A rank that wants to write a file where only one can gets it, or waits for it.
    pub(super) fn take_file(&mut self, rank: u32, number: u32) {
        let lock = &mut self.files[number as usize].write_lock;
        if lock.take(rank) {
            return self.call(rank);
        }
        lock.spinning.push(rank);
        self.processes[rank as usize].spins = true;
        if !self.files_wanted.contains(&number) {
            self.files_wanted.push(number);
        }
    }

    /// A rank that was woken has a processor: it tries once more.
    pub(super) fn take_file_again(&mut self, rank: u32) {
        let Some(transfer) = &self.processes[rank as usize].transfer else { return };
        let lock = &mut self.files[transfer.file as usize].write_lock;
        let Some((_, since)) = lock.woken.take() else { return };
        if lock.take(rank) {
            return self.call(rank);
        }
        if self.now.since(since) > PATIENCE {
            lock.kept_for = Some(rank);
            lock.spinning.push(rank);
            self.processes[rank as usize].spins = true;
        } else {
            lock.asleep.push_front((rank, since));
        }
    }

    /// A rank is through with a write: who waits for the file may write it.
    pub(super) fn release_file(&mut self, rank: u32) {
        let Some(transfer) = &self.processes[rank as usize].transfer else { return };
        let number = transfer.file;
        let lock = &mut self.files[number as usize].write_lock;
        if lock.writer == Some(rank) {
            lock.writer = None;
            self.hand_out(number);
        }
    }

    /// Looks at every file that ranks wait for, as processors change hands.
    pub(super) fn look_at_files(&mut self) {
        let mut index = 0;
        while let Some(number) = self.files_wanted.get(index).copied() {
            self.put_to_sleep(number);
            if self.files[number as usize].write_lock.writer.is_none() {
                self.hand_out(number);
            }
            if self.files[number as usize].write_lock.is_wanted() {
                index += 1;
            } else {
                self.files_wanted.swap_remove(index);
            }
        }
    }

    /// Who can no longer look for the end of a write on its own processor, or is not to, as the writer has none.
    fn put_to_sleep(&mut self, number: u32) {
        let writer = self.files[number as usize].write_lock.writer;
        let is_writing = writer.is_none_or(|writer| self.processors.is_running(writer));
        let mut place = 0;
        while let Some(&rank) = self.files[number as usize].write_lock.spinning.get(place) {
            let lock = &mut self.files[number as usize].write_lock;
            let looks = self.processors.is_spinning(rank) && self.processors.is_running(rank);
            if looks && is_writing {
                place += 1;
                continue;
            }
            lock.spinning.remove(place);
            match lock.kept_for {
                Some(next) if next == rank => lock.asleep.push_front((rank, self.now)),
                _ => lock.asleep.push_back((rank, self.now)),
            }
            self.processes[rank as usize].spins = false;
            let events = &mut self.events;
            self.processors.block(rank, self.now, |turn| events.add(turn.at(), Happening::Turn(turn)));
        }
    }

    /// A file that is free goes to a rank that looks for that on its processor. The first that sleeps is woken in any case.
    fn hand_out(&mut self, number: u32) {
        let lock = &mut self.files[number as usize].write_lock;
        let may_have = |rank: &u32| {
            lock.kept_for.is_none_or(|next| next == *rank)
                && self.processors.is_spinning(*rank)
                && self.processors.is_running(*rank)
        };
        let next = lock.spinning.iter().position(may_have).map(|place| lock.spinning.remove(place));
        let sleeper = if lock.woken.is_none() { lock.asleep.pop_front() } else { None };
        lock.woken = lock.woken.or(sleeper);
        if let Some(rank) = next {
            lock.take(rank);
            self.call(rank);
        }
        if let Some((rank, _)) = sleeper {
            self.compute(rank, Duration::ZERO, Then::TakeFile);
        }
    }
}
