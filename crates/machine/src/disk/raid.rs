//! Disks that hold data together: RAID groups in a machine description.

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::quantity::{Bandwidth, size_text};
use crate::section::Section;

/// How the disks of an I/O node hold data together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid {
    /// What is kept beside the data.
    pub level: RaidLevel,
    /// Disks of a group; a node has as many groups as its disks make.
    pub group: u32,
    /// Disks that have failed, by their number in the node, ascending.
    pub failed: Vec<u32>,
    /// Whether they are rebuilt, each on a spare that takes its place.
    pub rebuild: Option<Rebuild>,
}

/// What a group keeps beside the data (Patterson, Gibson and Katz 1988; level 6 as in Chen et al. 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaidLevel {
    /// Nothing.
    Striped,
    /// The same on every disk.
    Mirrored,
    /// A strip of parity in each row.
    Parity,
    /// Two strips of parity in each row.
    DoubleParity,
    /// Pairs of disks with the same data.
    StripedMirrors,
}

/// A rebuild of failed disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuild {
    /// At most so much of a disk in a time.
    pub rate: Bandwidth,
    /// Bytes of each disk that are rebuilt.
    pub bytes: u64,
}

const LEVELS: [(u32, RaidLevel); 5] = [
    (0, RaidLevel::Striped),
    (1, RaidLevel::Mirrored),
    (5, RaidLevel::Parity),
    (6, RaidLevel::DoubleParity),
    (10, RaidLevel::StripedMirrors),
];

impl RaidLevel {
    /// Disks of data in a group of so many.
    pub fn data(self, group: u32) -> u32 {
        match self {
            RaidLevel::Striped => group,
            RaidLevel::Mirrored => 1,
            RaidLevel::Parity | RaidLevel::DoubleParity => group - self.parities(),
            RaidLevel::StripedMirrors => group / 2,
        }
    }

    /// Strips of parity in a row.
    pub fn parities(self) -> u32 {
        match self {
            RaidLevel::Parity => 1,
            RaidLevel::DoubleParity => 2,
            RaidLevel::Striped | RaidLevel::Mirrored | RaidLevel::StripedMirrors => 0,
        }
    }

    /// The fewest disks of a group.
    fn least(self) -> u32 {
        match self {
            RaidLevel::Striped => 1,
            RaidLevel::Mirrored | RaidLevel::StripedMirrors => 2,
            RaidLevel::Parity => 3,
            RaidLevel::DoubleParity => 4,
        }
    }

    /// Whether the data of a group survive that these of its disks, by number in the group, have failed.
    fn survives(self, group: u32, failed: &[u32]) -> bool {
        match self {
            RaidLevel::Striped => failed.is_empty(),
            RaidLevel::Mirrored => (failed.len() as u32) < group,
            RaidLevel::Parity | RaidLevel::DoubleParity => failed.len() as u32 <= self.parities(),
            RaidLevel::StripedMirrors => failed.windows(2).all(|pair| pair[0] / 2 != pair[1] / 2),
        }
    }
}

impl Raid {
    /// Reads the table `raid` of a node with so many disks.
    pub(super) fn read(mut section: Section<'_>, disks: u32) -> Result<Raid, MachineError> {
        let number = section.number("level", 0..=10)?;
        let Some((_, level)) = LEVELS.iter().copied().find(|(known, _)| *known == number) else {
            return Err(section.conflict("level", "0, 1, 5, 6 or 10".to_owned()));
        };
        let is_paired = level == RaidLevel::StripedMirrors;
        let can_be_group = |count: u32| count >= level.least() && (!is_paired || count.is_multiple_of(2));
        if !can_be_group(disks) {
            let needed = if is_paired {
                "an even number of disks".to_owned()
            } else {
                format!("at least {} disks", level.least())
            };
            return Err(section.conflict("level", format!("another level, or {needed} (found {disks})")));
        }
        let group = if section.has("group") { section.number("group", 1..=65_536)? } else { disks };
        if !can_be_group(group) || !disks.is_multiple_of(group) {
            let even = if is_paired { "an even number" } else { "a number" };
            let expected = format!("{even} from {} of which the {disks} disks are a multiple", level.least());
            return Err(section.conflict("group", expected));
        }
        let mut failed = Vec::new();
        if section.has("failed") {
            failed = section.numbers("failed", 1..=65_536, 0..=disks - 1)?;
            failed.sort_unstable();
            failed.dedup();
        }
        let mut of_group = Vec::new();
        for number in 0..disks / group {
            of_group.clear();
            of_group.extend(failed.iter().filter(|disk| **disk / group == number).map(|disk| disk % group));
            if !level.survives(group, &of_group) {
                let expected = "disks whose loss the level survives, in each group".to_owned();
                return Err(section.conflict("failed", expected));
            }
        }
        let rebuild =
            if section.has("rebuild") { Some(Rebuild::read(section.section("rebuild")?)?) } else { None };
        if rebuild.is_some() && failed.is_empty() {
            return Err(section.conflict("rebuild", "nothing where no disk has failed".to_owned()));
        }
        section.finish()?;
        Ok(Raid { level, group, failed, rebuild })
    }

    /// The table, as [`Raid::read`] reads it.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let level = LEVELS.iter().find(|(_, level)| *level == self.level).map_or(0, |(number, _)| *number);
        write!(out, "{{ level = {level}, group = {}", self.group)?;
        if !self.failed.is_empty() {
            write!(out, ", failed = {:?}", self.failed)?;
        }
        if let Some(Rebuild { rate, bytes }) = self.rebuild {
            write!(out, ", rebuild = {{ rate = \"{rate}\", bytes = \"{}\" }}", size_text(bytes))?;
        }
        out.write_str(" }")
    }
}

impl Rebuild {
    fn read(mut section: Section<'_>) -> Result<Rebuild, MachineError> {
        let rebuild =
            Rebuild { rate: section.bandwidth("rate")?, bytes: section.size("bytes", 1..=1 << 60)? };
        section.finish()?;
        Ok(rebuild)
    }
}
