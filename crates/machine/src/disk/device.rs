//! The disks of an I/O node, in a machine description.

use std::fmt::{self, Write};
use std::path::{self, PathBuf};

use super::{Drive, Flash, Raid, diskspecs};
use crate::describe::quoted;
use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration};
use crate::section::Section;

/// Disks, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disks {
    /// How many, or how many arrays.
    pub count: u32,
    /// Which waiting request is served next.
    pub queue: Discipline,
    /// Disks with data in each synchronous array (RAID-3: all turn and move together, parity beside them); 1 is no array.
    pub array: u32,
    /// How they hold data together; else each request is on one disk.
    pub raid: Option<Raid>,
    /// Each of them.
    pub disk: Disk,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// One time to get there, unless the request continues the last one, and one rate.
    Simple {
        /// Seek and rotation.
        seek: Duration,
        /// From and to the surface.
        bandwidth: Bandwidth,
    },
    /// A drive with zones, arm, spindle and buffer.
    Drive {
        /// The file of its specification, from the root: what is written of this machine reads the same in any folder.
        specs: PathBuf,
        /// What it says.
        drive: Box<Drive>,
    },
    /// No moving parts: two times and channels.
    SolidState(SolidState),
    /// Flash with all that is inside: dies, channels, mapping, garbage collection.
    Flash(Box<Flash>),
}

/// A solid-state device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolidState {
    /// To begin a read.
    pub read: Duration,
    /// To begin a write.
    pub write: Duration,
    /// Of each channel.
    pub bandwidth: Bandwidth,
    /// Requests served at the same time.
    pub channels: u32,
}

/// Which waiting request is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// The one that came first.
    Fcfs,
    /// The nearest to where the last one ended.
    Sstf,
    /// The next in the direction of the arm, which turns where nothing is left ahead (elevator).
    Look,
}

const DISCIPLINES: [(&str, Discipline); 3] =
    [("fcfs", Discipline::Fcfs), ("sstf", Discipline::Sstf), ("look", Discipline::Look)];

impl Disks {
    /// Reads the section: of its kinds of disk the one whose key is there.
    pub(crate) fn read(mut section: Section<'_>) -> Result<Disks, MachineError> {
        let disk = if section.has("specs") {
            let specs = section.path("specs")?;
            let drive = Box::new(diskspecs::load(&specs)?);
            Disk::Drive { specs: path::absolute(&specs).unwrap_or(specs), drive }
        } else if section.has("solid-state") {
            Disk::SolidState(SolidState::read(section.section("solid-state")?)?)
        } else if section.has("flash") {
            Disk::Flash(Box::new(Flash::read(section.section("flash")?)?))
        } else {
            Disk::Simple {
                seek: section.duration("seek", "10 s")?,
                bandwidth: section.bandwidth("bandwidth")?,
            }
        };
        let queue =
            if section.has("queue") { section.word("queue", &DISCIPLINES)? } else { Discipline::Fcfs };
        let array = if section.has("array") { section.number("array", 1..=1024)? } else { 1 };
        let is_solid_state = matches!(disk, Disk::SolidState(_) | Disk::Flash(_));
        if array > 1 && is_solid_state {
            return Err(
                section.conflict("array", "no array of solid-state devices: they have channels".to_owned())
            );
        }
        if queue != Discipline::Fcfs && matches!(disk, Disk::Flash(_)) {
            return Err(section.conflict("queue", "\"fcfs\": a flash device has no arm".to_owned()));
        }
        let count = section.number("count", 1..=65_536)?;
        let raid =
            if section.has("raid") { Some(Raid::read(section.section("raid")?, count)?) } else { None };
        let disks = Disks { count, queue, array, raid, disk };
        section.finish()?;
        Ok(disks)
    }

    /// The section's line, as [`Disks::read`] reads it.
    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        write!(out, "disk = {{ count = {}", self.count)?;
        match &self.disk {
            Disk::Simple { seek, bandwidth } => {
                write!(out, ", seek = \"{seek}\", bandwidth = \"{bandwidth}\"")?
            }
            Disk::Drive { specs, .. } => write!(out, ", specs = {}", quoted(&specs.to_string_lossy()))?,
            Disk::SolidState(device) => write!(
                out,
                ", solid-state = {{ read = \"{}\", write = \"{}\", bandwidth = \"{}\", channels = {} }}",
                device.read, device.write, device.bandwidth, device.channels
            )?,
            Disk::Flash(flash) => {
                write!(out, ", flash = ")?;
                flash.write(out)?;
            }
        }
        if self.array > 1 {
            write!(out, ", array = {}", self.array)?;
        }
        if let Some(raid) = &self.raid {
            write!(out, ", raid = ")?;
            raid.write(out)?;
        }
        let known = DISCIPLINES.iter().find(|(_, discipline)| *discipline == self.queue);
        writeln!(out, ", queue = \"{}\" }}", known.map_or("fcfs", |(name, _)| name))
    }
}

impl SolidState {
    fn read(mut section: Section<'_>) -> Result<SolidState, MachineError> {
        let device = SolidState {
            read: section.duration("read", "1 s")?,
            write: section.duration("write", "1 s")?,
            bandwidth: section.bandwidth("bandwidth")?,
            channels: section.number("channels", 1..=65_536)?,
        };
        section.finish()?;
        Ok(device)
    }
}
