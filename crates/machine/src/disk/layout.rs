//! Where blocks are on a drive.

use super::Angle;

/// How logical blocks are laid out on the surfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Zones of cylinders with rules for spares (DiskSim's `dm_layout_g1`).
    Zoned(ZonedLayout),
    /// A tree of runs of tracks, every rule written out (DiskSim's `dm_layout_g4`).
    Indexed(IndexedLayout),
}

/// Zones of cylinders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedLayout {
    /// Order of the tracks of a cylinder.
    pub mapping: Mapping,
    /// Where spare sectors are.
    pub sparing: Sparing,
    /// The zones from the first block on.
    pub zones: Vec<Zone>,
}

impl ZonedLayout {
    /// Cylinders up to the last that a zone has.
    pub fn cylinders(&self) -> u32 {
        self.zones.iter().map(|zone| zone.last_cylinder + 1).max().unwrap_or(0)
    }
}

/// Order of the tracks of a cylinder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Every cylinder from its first surface on.
    FromFirst,
    /// There and back: every other cylinder of a zone, beginning with its second, from the last surface.
    SerpentineByZone,
    /// There and back: odd cylinders of the drive from the last surface.
    Serpentine,
}

/// Where spare sectors are. Blocks slip over a defect into the spares of their region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparing {
    /// No spares.
    None,
    /// Whole tracks at the end of a zone; slips and remaps count tracks.
    Tracks,
    /// At the end of each track.
    TrackEnd,
    /// At the end of each cylinder.
    CylinderEnd,
    /// At the end of each cylinder, for remaps only: blocks slip on through the zone.
    CylinderEndSlipOn,
    /// At the front of each cylinder.
    CylinderFront,
    /// At the front of each cylinder, for remaps only: blocks slip on through the zone.
    CylinderFrontSlipOn,
    /// At the end of the drive.
    DriveEnd,
    /// At the end of each so many cylinders.
    RangeEnd(u32),
    /// At the end of each zone.
    ZoneEnd,
    /// At the end of each zone, for remaps only.
    ZoneEndSlipOn,
}

/// Cylinders with the same number of sectors a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors of a track.
    pub sectors: u32,
    /// Where the first sector of the first track is.
    pub offset: Angle,
    /// Sectors at the front that hold no blocks.
    pub reserved: u32,
    /// From a track's first sector to that of the next track of the cylinder.
    pub track_skew: Angle,
    /// From the first sector of a cylinder's last track to that of the next cylinder's first.
    pub cylinder_skew: Angle,
    /// Spare sectors a region, or spare tracks.
    pub spares: u32,
    /// Defective sectors (tracks) of the zone that were skipped, ascending.
    pub slips: Vec<u64>,
    /// Defective sectors (tracks) of the zone, ascending, and where their data are.
    pub remaps: Vec<(u64, u64)>,
}

impl Zone {
    /// Cylinders.
    pub fn cylinders(&self) -> u64 {
        u64::from(self.last_cylinder - self.first_cylinder) + 1
    }

    /// Blocks that it holds on so many surfaces; nothing if spares and defects leave it less than none.
    pub fn blocks(&self, sparing: Sparing, surfaces: u32) -> Option<u64> {
        let tracks = self.cylinders() * u64::from(surfaces);
        let spares = u64::from(self.spares);
        let slips = self.slips.len() as u64;
        let lost = match sparing {
            Sparing::None => 0,
            Sparing::Tracks => spares.checked_mul(u64::from(self.sectors))?,
            Sparing::TrackEnd => spares.checked_mul(tracks)?,
            Sparing::CylinderEnd | Sparing::CylinderFront => spares.checked_mul(self.cylinders())?,
            Sparing::CylinderEndSlipOn | Sparing::CylinderFrontSlipOn => {
                spares.checked_mul(self.cylinders())?.checked_add(slips)?
            }
            Sparing::DriveEnd => slips,
            Sparing::RangeEnd(range) => spares.checked_mul(self.cylinders() / u64::from(range))?,
            Sparing::ZoneEnd => spares,
            Sparing::ZoneEndSlipOn => spares + slips,
        };
        (tracks * u64::from(self.sectors)).checked_sub(u64::from(self.reserved))?.checked_sub(lost)
    }
}

/// A tree of runs of tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedLayout {
    /// The tracks that occur.
    pub patterns: Vec<TrackPattern>,
    /// The nodes; the last is the root. A node's entries ascend.
    pub nodes: Vec<Vec<IndexEntry>>,
    /// From this block on, so many more are skipped in all; ascending.
    pub slips: Vec<(u64, i64)>,
    /// Blocks that are elsewhere, ascending.
    pub remaps: Vec<Remap>,
}

/// A track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackPattern {
    /// First sector in use.
    pub low: u32,
    /// Last sector in use.
    pub high: u32,
    /// Sectors of a revolution.
    pub sectors: u32,
}

/// Copies of a child one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// First block, counted from the first of the node.
    pub block: u64,
    /// First cylinder, counted from the node's.
    pub cylinder: i64,
    /// Where the first copy begins, counted from where the node does.
    pub offset: Angle,
    /// Blocks of all copies.
    pub blocks: u64,
    /// Cylinders of all copies; below 0, copies go towards lower cylinders.
    pub cylinders: i64,
    /// Blocks of a copy.
    pub child_blocks: u64,
    /// Cylinders of a copy.
    pub child_cylinders: i64,
    /// From where a copy begins to where the next does.
    pub child_angle: Angle,
    /// The child.
    pub child: Node,
}

/// The child of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A node of this number, which is less than its parent's.
    Index(usize),
    /// A track of this pattern on this surface.
    Track {
        /// Number of the pattern.
        pattern: usize,
        /// Surface.
        surface: u32,
    },
}

/// Blocks that are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The first.
    pub block: u64,
    /// Number of blocks that were moved.
    pub blocks: u64,
    /// Cylinder of the first.
    pub cylinder: u32,
    /// Surface.
    pub surface: u32,
    /// Sector of the first.
    pub sector: u32,
    /// Sectors of the track there.
    pub sectors: u32,
}
