//! The first write to a file on each of its servers, or the call that gives a new file its size: the server may have to note on its
//! disk that the file is being written.

use pio_layout::View;
use pio_machine::{Duration, Storage};
use pio_plan::Direction;

use super::Engine;
use super::sites::Dealt;
use crate::hardware::parts;
use crate::kernel::Time;
use crate::server::Part;

impl Engine<'_> {
    /// When a server that has a part may begin with it, if that is later than now. Other writes to the same file wait there, too.
    pub(super) fn begins_later(&mut self, part: &Part) -> Option<Time> {
        let Storage::Striped { begin, .. } = &self.machine.storage else { return None };
        if part.direction == Direction::Read || *begin == Duration::ZERO {
            return None;
        }
        let first = self.now + *begin;
        let file = &mut self.files[part.file as usize];
        file.has_parts = true;
        let begun = file.begun.entry(part.server).or_insert(first);
        Some(*begun).filter(|begun| *begun > self.now)
    }

    /// A file gets a size. If it is new, each server that has a part of so many bytes makes that now, all at once.
    pub(super) fn make_parts(&mut self, file: u32, bytes: u64) {
        let Storage::Striped { begin, .. } = &self.machine.storage else { return };
        let file = &mut self.files[file as usize];
        if file.has_parts || bytes == 0 || *begin == Duration::ZERO {
            return;
        }
        let servers: Vec<u32> = match file.dealt {
            Some(Dealt::ByStore(placement)) => placement.servers_touched(&View::contiguous(0), &(0..bytes)),
            Some(Dealt::Round(striping)) => parts(&striping, 0, bytes).map(|(server, ..)| server).collect(),
            None => return,
        };
        file.has_parts = true;
        let first = self.now + *begin;
        file.begun.extend(servers.into_iter().map(|server| (server, first)));
    }

    /// How long it takes until all servers have begun that are to write to a file.
    pub(super) fn until_begun(&self, file: u32) -> Duration {
        let last = self.files[file as usize].begun.values().copied().max().unwrap_or_default();
        last.since(self.now)
    }
}
