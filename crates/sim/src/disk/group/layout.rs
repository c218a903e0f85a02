//! Where strips and parity are in RAID groups.
//!
//! Rows go around the groups: row `r` of the node is row `r / groups` of group `r % groups`. In a row, parity is on another
//! disk than in the row before, and data follow it around the disks (left-symmetric: Lee, UCB/CSD 90/573, 1990), so that
//! strips that follow each other are on different disks.

use std::ops::Range;

use pio_machine::disk::{Raid, RaidLevel};

/// Where everything is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    level: RaidLevel,
    /// Disks of a group.
    group: u32,
    groups: u32,
    /// Bytes of a strip.
    unit: u64,
}

/// A row of a group: on each of its disks a strip at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    group: u32,
    /// Counted in the group.
    number: u64,
}

/// A part of a strip of data: its number in the row, and the bytes in the strip.
pub(super) type Part = (u32, Range<u64>);

impl Layout {
    /// That of a node with so many disks, and strips of `unit` bytes.
    pub(super) fn new(raid: &Raid, disks: u32, unit: u64) -> Layout {
        Layout { level: raid.level, group: raid.group, groups: disks / raid.group, unit }
    }

    /// Strips of data in a row.
    pub(super) fn data(&self) -> u32 {
        self.level.data(self.group)
    }

    pub(super) fn groups(&self) -> u32 {
        self.groups
    }

    pub(super) fn unit(&self) -> u64 {
        self.unit
    }

    /// The part of `bytes` bytes from `offset` on that is in the first row, and how many bytes that is.
    pub(super) fn first_row(&self, offset: u64, bytes: u64) -> (Row, Vec<Part>, u64) {
        let row_bytes = self.unit * u64::from(self.data());
        let (number, within) = (offset / row_bytes, offset % row_bytes);
        let here = bytes.min(row_bytes - within);
        let end = within + here;
        let parts = (within / self.unit..end.div_ceil(self.unit)).map(|strip| {
            let start = strip * self.unit;
            (strip as u32, within.max(start) - start..end.min(start + self.unit) - start)
        });
        let groups = u64::from(self.groups);
        let row = Row { group: (number % groups) as u32, number: number / groups };
        (row, parts.collect(), here)
    }

    /// The row of a disk at one of its strips.
    pub(super) fn row_of_disk(&self, disk: u32, strip: u64) -> Row {
        Row { group: disk / self.group, number: strip }
    }

    /// Where a row begins on each of its disks, in bytes.
    pub(super) fn offset(&self, row: Row) -> u64 {
        row.number * self.unit
    }

    /// The disks that hold a strip of data: one, or all its copies.
    pub(super) fn copies(&self, row: Row, strip: u32) -> Range<u32> {
        let first = row.group * self.group;
        match self.level {
            RaidLevel::Striped => first + strip..first + strip + 1,
            RaidLevel::Mirrored => first..first + self.group,
            RaidLevel::StripedMirrors => first + 2 * strip..first + 2 * strip + 2,
            RaidLevel::Parity | RaidLevel::DoubleParity => {
                let disk = first + (self.parity_at(row) + self.level.parities() + strip) % self.group;
                disk..disk + 1
            }
        }
    }

    /// The disks with the row's parity.
    pub(super) fn parity(&self, row: Row) -> impl Iterator<Item = u32> + use<> {
        let (group, first, at) = (self.group, row.group * self.group, self.parity_at(row));
        (0..self.level.parities()).map(move |number| first + (at + number) % group)
    }

    /// Where in the group the row's first parity is.
    fn parity_at(&self, row: Row) -> u32 {
        self.group - 1 - (row.number % u64::from(self.group)) as u32
    }
}
