//! From blocks to places on the surfaces.

#[cfg(test)]
mod tests;

use pio_machine::disk::{Angle, Drive, IndexedLayout, Layout, Mapping, Node, Sparing, Zone};

/// Blocks that follow each other on one track, and where the first is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) track: Track,
    /// Where the first sector begins.
    pub(super) angle: Angle,
    /// Sectors of the track.
    pub(super) sectors: u32,
    /// How many blocks follow each other; at least one.
    pub(super) blocks: u64,
}

/// A track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) cylinder: u32,
    pub(super) surface: u32,
}

/// Where all blocks are.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    surfaces: u32,
    blocks: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Zoned { mapping: Mapping, zones: Vec<PlacedZone> },
    Indexed(IndexedLayout),
}

/// A zone and what can be said of it beforehand.
#[derive(Clone, Debug)]
struct PlacedZone {
    zone: Zone,
    /// First block.
    first: u64,
    sparing: Sparing,
    /// Sectors of a region with spares of its own, and how many of them are none.
    region: u64,
    usable: u64,
    /// Whole regions.
    regions: u64,
    /// Slipped places among those that are no spares, where blocks slip on from region to region.
    slips_on: Vec<u64>,
}

impl Geometry {
    pub(super) fn new(drive: &Drive) -> Geometry {
        match &drive.layout {
            Layout::Zoned(layout) => {
                let mut first = 0;
                let mut zones = Vec::with_capacity(layout.zones.len());
                for zone in &layout.zones {
                    zones.push(PlacedZone::new(zone, first, layout.sparing, drive.surfaces));
                    first += zone.blocks(layout.sparing, drive.surfaces).unwrap_or(0);
                }
                let kind = Kind::Zoned { mapping: layout.mapping, zones };
                Geometry { surfaces: drive.surfaces, blocks: first, kind }
            }
            Layout::Indexed(layout) => {
                let kind = Kind::Indexed(layout.clone());
                Geometry { surfaces: drive.surfaces, blocks: drive.blocks, kind }
            }
        }
    }

    /// How many blocks there are.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The run that `block`, which is one of the drive, begins; at most `most` blocks long, which is not 0.
    pub(super) fn run(&self, block: u64, most: u64) -> Run {
        match &self.kind {
            Kind::Zoned { mapping, zones } => {
                let index = zones.partition_point(|zone| zone.first <= block).max(1) - 1;
                zones[index].run(block, most, *mapping, self.surfaces)
            }
            Kind::Indexed(layout) => indexed_run(layout, block, most),
        }
    }

    /// The first block after the track of `block`.
    pub(super) fn track_end(&self, block: u64) -> u64 {
        self.end_of(block, |first, track| first == track)
    }

    /// The first block after the cylinder of `block`.
    pub(super) fn cylinder_end(&self, block: u64) -> u64 {
        self.end_of(block, |first, track| first.cylinder == track.cylinder)
    }

    fn end_of(&self, block: u64, same: impl Fn(Track, Track) -> bool) -> u64 {
        let first = self.run(block, u64::MAX);
        let mut end = block + first.blocks;
        while end < self.blocks {
            let run = self.run(end, u64::MAX);
            if !same(first.track, run.track) {
                break;
            }
            end += run.blocks;
        }
        end
    }
}

impl PlacedZone {
    fn new(zone: &Zone, first: u64, sparing: Sparing, surfaces: u32) -> PlacedZone {
        let sectors = u64::from(zone.sectors);
        let cylinder = sectors * u64::from(surfaces);
        let all = cylinder * zone.cylinders();
        let spares = u64::from(zone.spares);
        let (region, spares) = match sparing {
            Sparing::TrackEnd => (sectors, spares),
            Sparing::CylinderEnd
            | Sparing::CylinderEndSlipOn
            | Sparing::CylinderFront
            | Sparing::CylinderFrontSlipOn => (cylinder, spares),
            Sparing::RangeEnd(range) => (cylinder * u64::from(range), spares),
            Sparing::None
            | Sparing::Tracks
            | Sparing::DriveEnd
            | Sparing::ZoneEnd
            | Sparing::ZoneEndSlipOn => (all, 0),
        };
        let mut placed = PlacedZone {
            zone: zone.clone(),
            first,
            sparing,
            region,
            usable: region - spares.min(region - 1),
            regions: all / region,
            slips_on: Vec::new(),
        };
        if !placed.slips_stay() && sparing != Sparing::Tracks {
            let front = placed.front();
            let among_usable = |place: &u64| {
                let within = (place % region).checked_sub(front).filter(|within| *within < placed.usable)?;
                Some(place / region * placed.usable + within)
            };
            placed.slips_on = zone.slips.iter().filter_map(among_usable).collect();
        }
        placed
    }

    /// Whether blocks slip into the spares of their own region, so that the next region begins where it would anyway.
    fn slips_stay(&self) -> bool {
        matches!(
            self.sparing,
            Sparing::TrackEnd | Sparing::CylinderEnd | Sparing::CylinderFront | Sparing::RangeEnd(_)
        )
    }

    /// Spare sectors before the usable ones of a region.
    fn front(&self) -> u64 {
        match self.sparing {
            Sparing::CylinderFront | Sparing::CylinderFrontSlipOn => self.region - self.usable,
            _ => 0,
        }
    }

    fn run(&self, block: u64, most: u64, mapping: Mapping, surfaces: u32) -> Run {
        let (place, contiguous) = self.place(block - self.first);
        let sectors = u64::from(self.zone.sectors);
        let (place, left) = self.remapped(place, contiguous.min(sectors - place % sectors));
        let track = place / sectors;
        let cylinder = track / u64::from(surfaces);
        let in_cylinder = track % u64::from(surfaces);
        Run {
            track: Track {
                cylinder: self.zone.first_cylinder + cylinder as u32,
                surface: self.surface(cylinder, in_cylinder as u32, mapping, surfaces),
            },
            angle: self.angle(cylinder, in_cylinder, place % sectors, surfaces),
            sectors: self.zone.sectors,
            blocks: left.min(most).max(1),
        }
    }

    /// The place in the zone of its block of this number, and how many blocks are in one piece from there, tracks and
    /// remaps not considered.
    fn place(&self, number: u64) -> (u64, u64) {
        let number = number + u64::from(self.zone.reserved);
        if self.sparing == Sparing::Tracks {
            let sectors = u64::from(self.zone.sectors);
            let (track, _) = slipped(&self.zone.slips, number / sectors);
            return (track * sectors + number % sectors, sectors - number % sectors);
        }
        if !self.slips_stay() {
            let (among_usable, next) = slipped(&self.slips_on, number);
            let within = among_usable % self.usable;
            let place = among_usable / self.usable * self.region + self.front() + within;
            return (place, (next - among_usable).min(self.usable - within));
        }
        let region = (number / self.usable).min(self.regions);
        // The last range may be short, and then has no spares.
        let usable = if region < self.regions { self.usable } else { u64::MAX };
        let within = number - region * self.usable;
        let begin = region * self.region;
        let low = self.zone.slips.partition_point(|slip| *slip < begin);
        let high = self.zone.slips.partition_point(|slip| *slip < begin + self.region);
        let slips = &self.zone.slips[low..high];
        let left = usable - within;
        let place = if self.sparing == Sparing::CylinderFront {
            // Blocks fill the region up to its end.
            slips.iter().rev().fold(begin + self.region - left, |place, slip| {
                if *slip < place { place } else { place.saturating_sub(1).max(begin) }
            })
        } else {
            slips.iter().fold(begin + within, |place, slip| if *slip <= place { place + 1 } else { place })
        };
        let next = slips.iter().copied().find(|slip| *slip > place).unwrap_or(u64::MAX);
        (place, left.min(next - place))
    }

    /// Where a place is if it was moved, and how many of `left` blocks are in one piece there.
    fn remapped(&self, place: u64, left: u64) -> (u64, u64) {
        let remaps = &self.zone.remaps;
        let sectors = u64::from(self.zone.sectors);
        if remaps.is_empty() {
            return (place, left);
        }
        if self.sparing == Sparing::Tracks {
            let found = remaps.binary_search_by_key(&(place / sectors), |(from, _)| *from);
            return found.map_or((place, left), |at| (remaps[at].1 * sectors + place % sectors, left));
        }
        let next = remaps.partition_point(|(from, _)| *from < place);
        match remaps.get(next) {
            Some((from, to)) if *from == place => (*to, 1),
            Some((from, _)) => (place, left.min(from - place)),
            None => (place, left),
        }
    }

    fn surface(&self, cylinder: u64, in_cylinder: u32, mapping: Mapping, surfaces: u32) -> u32 {
        let backwards = match mapping {
            Mapping::FromFirst => false,
            Mapping::SerpentineByZone => cylinder % 2 == 1,
            Mapping::Serpentine => (cylinder + u64::from(self.zone.first_cylinder)) % 2 == 1,
        };
        if backwards { surfaces - 1 - in_cylinder } else { in_cylinder }
    }

    /// Where a sector begins. A cylinder has one track switch less than tracks.
    fn angle(&self, cylinder: u64, in_cylinder: u64, sector: u64, surfaces: u32) -> Angle {
        let zone = &self.zone;
        let switches = in_cylinder + (u64::from(surfaces) - 1) * cylinder;
        // With spares by track or cylinder, skew counts from block to block: what slipped pushes the next ones on.
        let tracks = cylinder * u64::from(surfaces);
        let pushed = match self.sparing {
            Sparing::TrackEnd => self.slips_before((tracks + in_cylinder) * u64::from(zone.sectors)),
            Sparing::CylinderEnd
            | Sparing::CylinderEndSlipOn
            | Sparing::CylinderFront
            | Sparing::CylinderFrontSlipOn => self.slips_before(tracks * u64::from(zone.sectors)),
            _ => 0,
        };
        zone.offset
            + zone.track_skew.times(switches)
            + zone.cylinder_skew.times(cylinder)
            + Angle::of_sectors(sector + pushed, zone.sectors)
    }

    fn slips_before(&self, place: u64) -> u64 {
        self.zone.slips.partition_point(|slip| *slip < place) as u64
    }
}

/// Where the thing of a number is if the slipped places, which ascend, are passed over; and the next slipped place.
fn slipped(slips: &[u64], number: u64) -> (u64, u64) {
    // The i-th slip concerns all that would come to lie at it or behind it after i slips; slip − i does not fall.
    let (mut low, mut high) = (0, slips.len());
    while low < high {
        let middle = (low + high) / 2;
        if slips[middle] - middle as u64 <= number {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (number + low as u64, slips.get(low).copied().unwrap_or(u64::MAX))
}

fn indexed_run(layout: &IndexedLayout, block: u64, most: u64) -> Run {
    let next = layout.remaps.partition_point(|remap| remap.block <= block);
    let until = layout.remaps.get(next).map_or(u64::MAX, |remap| remap.block - block);
    if let Some(remap) = next.checked_sub(1).map(|at| layout.remaps[at])
        && block < remap.block + remap.blocks
    {
        let within = block - remap.block;
        return Run {
            track: Track { cylinder: remap.cylinder, surface: remap.surface },
            angle: Angle::of_sectors(u64::from(remap.sector) + within, remap.sectors),
            sectors: remap.sectors,
            blocks: (remap.blocks - within).min(most).max(1),
        };
    }
    let (mut place, mut left) = (block, u64::MAX);
    for (at, sum) in &layout.slips {
        if *at > place {
            left = at - place;
            break;
        }
        place = block.saturating_add_signed(*sum);
    }
    walk(layout, place, left.min(until).min(most))
}

/// Down the tree to the track of a place.
fn walk(layout: &IndexedLayout, place: u64, most: u64) -> Run {
    let (mut cylinder, mut angle, mut place, mut left) = (0_i64, Angle::default(), place, most);
    let mut node = layout.nodes.len() - 1;
    loop {
        let entries = &layout.nodes[node];
        let entry = &entries[entries.partition_point(|entry| entry.block <= place).max(1) - 1];
        let within = place.saturating_sub(entry.block).min(entry.blocks - 1);
        let (copy, rest) = (within / entry.child_blocks, within % entry.child_blocks);
        left = left.min(entry.blocks - within).min(entry.child_blocks - rest);
        let (steps, turned) = if entry.cylinders < 0 {
            (-(copy as i64), Angle::default() - entry.child_angle.times(copy))
        } else {
            (copy as i64, entry.child_angle.times(copy))
        };
        cylinder += entry.cylinder + steps * entry.child_cylinders;
        angle = angle + entry.offset + turned;
        place = rest;
        match entry.child {
            Node::Index(child) => node = child,
            Node::Track { pattern, surface } => {
                let pattern = layout.patterns[pattern];
                let in_use = u64::from(pattern.high - pattern.low) + 1;
                let within = rest.min(in_use - 1);
                return Run {
                    track: Track { cylinder: u32::try_from(cylinder).unwrap_or(0), surface },
                    angle: angle + Angle::of_sectors(within, pattern.sectors),
                    sectors: pattern.sectors,
                    blocks: left.min(in_use - within).max(1),
                };
            }
        }
    }
}
