//! What the automatic choice keeps in mind, of each rank: while a file is open, and from one file to the next.

use std::collections::BTreeMap;

use pio_plan::{Hints, Memory, Remembered, Shape, Site};

use crate::kernel::Time;

/// Of all ranks. As in the library, a group's ranks talk through one channel for each file that they have open at a time; it is
/// the channel that has a memory, and the next file takes the one that was put back last.
#[derive(Debug, Default)]
pub(super) struct Memories {
    /// For each rank and collective open.
    open: BTreeMap<(u32, u64), Kept>,
    /// For each rank and group: of channels that are free.
    free: BTreeMap<(u32, u32), Vec<Memory>>,
}

#[derive(Debug, Default)]
struct Kept {
    memory: Memory,
    /// Under the views in force.
    remembered: Remembered,
    /// When the ranks opened the file, set its views, or last described their accesses.
    met: Time,
}

impl Memories {
    /// A rank opens a file with others of a group.
    pub(super) fn open(&mut self, rank: u32, open: u64, group: u32, site: &Site, hints: &Hints) {
        let memory = self.free.get_mut(&(rank, group)).and_then(Vec::pop).unwrap_or_default();
        let remembered = memory.recall(site, hints, Shape::default());
        self.open.insert((rank, open), Kept { memory, remembered, met: Time::default() });
    }

    /// A rank sets a view there: until now the views had this shape, and now that.
    pub(super) fn set_view(
        &mut self,
        rank: u32,
        open: u64,
        (before, now): (Shape, Shape),
        site: &Site,
        hints: &Hints,
    ) {
        let Kept { memory, remembered, .. } = self.open.entry((rank, open)).or_default();
        memory.keep(site, hints, before, *remembered);
        *remembered = memory.recall(site, hints, now);
    }

    /// A rank closes the file, whose views have this shape.
    pub(super) fn close(
        &mut self,
        rank: u32,
        open: u64,
        group: u32,
        shape: Shape,
        site: &Site,
        hints: &Hints,
    ) {
        let Some(Kept { mut memory, remembered, .. }) = self.open.remove(&(rank, open)) else { return };
        memory.keep(site, hints, shape, remembered);
        self.free.entry((rank, group)).or_default().push(memory);
    }

    /// What a rank keeps in mind of a file under the views in force.
    pub(super) fn of(&mut self, rank: u32, open: u64) -> &mut Remembered {
        &mut self.open.entry((rank, open)).or_default().remembered
    }

    /// When the ranks met there.
    pub(super) fn met(&mut self, rank: u32, open: u64) -> &mut Time {
        &mut self.open.entry((rank, open)).or_default().met
    }
}
