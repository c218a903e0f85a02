//! The first write to a file on each of its servers: the server may have to note on its disk that the file is being written.

use pio_machine::{Duration, Storage};
use pio_plan::Direction;

use super::Engine;
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
        let begun = self.files[part.file as usize].begun.entry(part.server).or_insert(first);
        Some(*begun).filter(|begun| *begun > self.now)
    }
}
