//! The block `dm_layout_g1`: zones.

use super::fields::Fields;
use super::text::Value;
use crate::disk::{Angle, Mapping, Sparing, Zone, ZonedLayout};
use crate::error::MachineError;

/// In what a skew is given.
#[derive(Clone, Copy)]
enum SkewUnits {
    Sectors,
    Revolutions,
}

const MOST_SECTORS: u32 = 1 << 20;

/// The layout, and what of it is not modelled. The last zone may have one cylinder more than the drive says it has: some
/// specifications give the number of the last for their number.
pub(super) fn read(
    fields: Fields<'_>,
    surfaces: u32,
    cylinders: u32,
) -> Result<(ZonedLayout, Vec<String>), MachineError> {
    let mapping = match fields.count("LBN-to-PBN mapping scheme", 0..=2)? {
        0 => Mapping::FromFirst,
        1 => Mapping::SerpentineByZone,
        _ => Mapping::Serpentine,
    };
    let range = fields.count("Rangesize for sparing", 0..=100_000_000)?;
    let sparing = match fields.count("Sparing scheme used", 0..=10)? {
        0 => Sparing::None,
        1 => Sparing::Tracks,
        2 => Sparing::CylinderEnd,
        3 => Sparing::TrackEnd,
        4 => Sparing::CylinderEndSlipOn,
        5 => Sparing::CylinderFront,
        6 => Sparing::CylinderFrontSlipOn,
        7 => Sparing::DriveEnd,
        8 if range == 0 => {
            return Err(fields.conflict("Rangesize for sparing", "at least 1 with sparing scheme 8"));
        }
        8 => Sparing::RangeEnd(range),
        9 => Sparing::ZoneEnd,
        _ => Sparing::ZoneEndSlipOn,
    };
    let units = skew_units(&fields, SkewUnits::Sectors)?;
    let (mut zones, mut left_out): (Vec<Zone>, u64) = (Vec::new(), 0);
    for item in fields.list("Zones")? {
        let Value::Block(block) = &item.value else {
            return Err(fields.wrong("Zones", item, "blocks dm_layout_g1_zone { ... }"));
        };
        // Zones may share a cylinder at their border.
        let after = zones.last().map_or(0, |zone| zone.first_cylinder + 1);
        let (zone, beyond) = zone(Fields::new(block), units, sparing, surfaces, after..cylinders + 1)?;
        zones.push(zone);
        left_out += beyond;
    }
    if zones.is_empty() {
        return Err(fields.conflict("Zones", "at least one zone"));
    }
    let mut not_modelled = fields.finish(&[])?;
    if left_out > 0 {
        not_modelled.push(format!("slips and defects beyond the end of their zone: {left_out}"));
    }
    Ok((ZonedLayout { mapping, sparing, zones }, not_modelled))
}

fn skew_units(fields: &Fields<'_>, default: SkewUnits) -> Result<SkewUnits, MachineError> {
    if !fields.has("Skew units") {
        return Ok(default);
    }
    let units = [("sectors", SkewUnits::Sectors), ("revolutions", SkewUnits::Revolutions)];
    fields.word("Skew units", &units)
}

/// The zone, and how many of its slips and defects are none, as they are beyond its end.
fn zone(
    fields: Fields<'_>,
    units: SkewUnits,
    sparing: Sparing,
    surfaces: u32,
    allowed: std::ops::Range<u32>,
) -> Result<(Zone, u64), MachineError> {
    if fields.block.kind != "dm_layout_g1_zone" {
        return Err(fields.wrong_kind("dm_layout_g1_zone"));
    }
    let last = allowed.end - 1;
    if allowed.start >= last {
        return Err(fields.conflict("First cylinder number", "a cylinder of the drive after the last zone"));
    }
    let first_cylinder = fields.count("First cylinder number", allowed.start..=last - 1)?;
    let last_cylinder = fields.count("Last cylinder number", first_cylinder..=last)?;
    let sectors = fields.count("Blocks per track", 1..=MOST_SECTORS)?;
    let units = skew_units(&fields, units)?;
    let skew = |key| -> Result<Angle, MachineError> {
        if !fields.has(key) {
            return Ok(Angle::default());
        }
        match units {
            SkewUnits::Revolutions => Ok(Angle::of_revolutions(fields.number(key, -1e6..=1e6)?)),
            SkewUnits::Sectors => {
                let most = f64::from(MOST_SECTORS);
                let found = fields.number(key, -most..=most)?;
                Ok(Angle::of_revolutions(found / f64::from(sectors)))
            }
        }
    };
    let cylinders = u64::from(last_cylinder - first_cylinder + 1);
    let tracks = cylinders * u64::from(surfaces);
    let places = if sparing == Sparing::Tracks { tracks } else { tracks * u64::from(sectors) };
    let (slips, beyond) = slips(&fields, places)?;
    let (remaps, moved_beyond) = remaps(&fields, places)?;
    let mut zone = Zone {
        first_cylinder,
        last_cylinder,
        sectors,
        offset: skew("Offset of first block")?,
        reserved: 0,
        track_skew: skew("Skew for track switch")?,
        cylinder_skew: skew("Skew for cylinder switch")?,
        spares: fields.count("Number of spares", 0..=u32::MAX)?,
        slips,
        remaps,
    };
    zone.reserved = fields.count("Empty space at zone front", 0..=u32::MAX)?;
    if zone.blocks(sparing, surfaces).is_none_or(|blocks| blocks == 0) {
        let expected = "spares, reserved and slipped sectors that leave the zone some blocks";
        return Err(fields.conflict("Number of spares", expected));
    }
    fields.finish(&[])?;
    Ok((zone, beyond + moved_beyond))
}

fn slips(fields: &Fields<'_>, places: u64) -> Result<(Vec<u64>, u64), MachineError> {
    let mut slips = fields.integers("slips")?;
    slips.sort_unstable();
    slips.dedup();
    let inside = slips.partition_point(|place| *place < places);
    let beyond = slips.len() - inside;
    slips.truncate(inside);
    Ok((slips, beyond as u64))
}

/// Pairs of a defect's place and where its data are.
type Remaps = Vec<(u64, u64)>;

fn remaps(fields: &Fields<'_>, places: u64) -> Result<(Remaps, u64), MachineError> {
    let named = fields.integers("defects")?;
    let pairs = named.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(fields.conflict("defects", "pairs of a place of the zone and where its data are"));
    }
    let all = pairs.len();
    let mut remaps: Remaps = pairs.map(|pair| (pair[0], pair[1])).collect();
    remaps.retain(|(from, to)| *from < places && *to < places);
    let beyond = all - remaps.len();
    remaps.sort_unstable();
    remaps.dedup_by_key(|pair| pair.0);
    Ok((remaps, beyond as u64))
}
