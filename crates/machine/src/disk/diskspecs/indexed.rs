//! The block `dm_layout_g4`: a tree of runs of tracks.

use super::fields::{Fields, integer, number, signed};
use super::text::{Item, Value};
use crate::disk::{Angle, IndexEntry, IndexedLayout, Node, Remap, TrackPattern};
use crate::error::MachineError;

const MOST_SECTORS: u64 = 1 << 20;
const MOST_BLOCKS: u64 = 1 << 50;

pub(super) fn read(fields: Fields<'_>, surfaces: u32, cylinders: u32) -> Result<IndexedLayout, MachineError> {
    let patterns = patterns(&fields)?;
    let nodes = nodes(&fields, patterns.len(), surfaces)?;
    let layout = IndexedLayout {
        patterns,
        nodes,
        slips: slips(&fields)?,
        remaps: remaps(&fields, surfaces, cylinders)?,
    };
    fields.finish(&[])?;
    Ok(layout)
}

fn patterns(fields: &Fields<'_>) -> Result<Vec<TrackPattern>, MachineError> {
    let expected = "threes of first sector, last sector, sectors of the track";
    let values = fields.integers("TP")?;
    let threes = values.chunks_exact(3);
    let valid = |three: &[u64]| three[0] <= three[1] && three[1] < three[2] && three[2] <= MOST_SECTORS;
    if values.is_empty() || !threes.remainder().is_empty() || !threes.clone().all(valid) {
        return Err(fields.conflict("TP", expected));
    }
    let pattern = |three: &[u64]| TrackPattern {
        low: three[0] as u32,
        high: three[1] as u32,
        sectors: three[2] as u32,
    };
    Ok(threes.map(pattern).collect())
}

fn nodes(fields: &Fields<'_>, patterns: usize, surfaces: u32) -> Result<Vec<Vec<IndexEntry>>, MachineError> {
    let expected = "lists of entries: first block, cylinder, offset, blocks and cylinders of a copy, angle, blocks and \
                    cylinders of all, then IDX and an earlier list or TRACK, a pattern and a surface";
    let mut nodes = Vec::new();
    for item in fields.list("IDX")? {
        let Value::List(values) = &item.value else { return Err(fields.wrong("IDX", item, expected)) };
        let mut rest = values.as_slice();
        let mut entries = Vec::new();
        while !rest.is_empty() {
            let (entry, used) = entry(rest).ok_or_else(|| fields.wrong("IDX", &rest[0], expected))?;
            let known = match entry.child {
                Node::Index(index) => index < nodes.len(),
                Node::Track { pattern, surface } => pattern < patterns && surface < surfaces,
            };
            if !known {
                return Err(fields.wrong("IDX", &rest[0], expected));
            }
            entries.push(entry);
            rest = &rest[used..];
        }
        if entries.is_empty() {
            return Err(fields.wrong("IDX", item, expected));
        }
        entries.sort_by_key(|entry| entry.block);
        nodes.push(entries);
    }
    if nodes.is_empty() {
        return Err(fields.conflict("IDX", expected));
    }
    Ok(nodes)
}

/// The entry that begins a list of values, and how many of them it takes.
fn entry(values: &[Item]) -> Option<(IndexEntry, usize)> {
    let at = |index: usize| values.get(index);
    let angle = |index: usize| at(index).and_then(number).map(Angle::of_revolutions);
    let size = |index: usize| at(index).and_then(integer).filter(|size| (1..=MOST_BLOCKS).contains(size));
    let cylinders = |index: usize| at(index).and_then(signed).filter(|count| count.unsigned_abs() <= 1 << 32);
    let Value::Word(kind) = &at(8)?.value else { return None };
    let index = usize::try_from(integer(at(9)?)?).ok()?;
    let (child, used) = match kind.as_str() {
        "IDX" => (Node::Index(index), 10),
        "TRACK" => {
            let surface = u32::try_from(integer(at(10)?)?).ok()?;
            (Node::Track { pattern: index, surface }, 11)
        }
        _ => return None,
    };
    let entry = IndexEntry {
        block: integer(at(0)?).filter(|block| *block <= MOST_BLOCKS)?,
        cylinder: cylinders(1)?,
        offset: angle(2)?,
        child_blocks: size(3)?,
        child_cylinders: cylinders(4)?,
        child_angle: angle(5)?,
        blocks: size(6)?,
        cylinders: cylinders(7)?,
        child,
    };
    Some((entry, used))
}

/// From pairs of place and count to place and all that were skipped so far.
fn slips(fields: &Fields<'_>) -> Result<Vec<(u64, i64)>, MachineError> {
    let expected = "pairs of place, ascending, and how many are skipped there";
    let items = fields.list("Slips")?;
    let mut slips: Vec<(u64, i64)> = Vec::new();
    for pair in items.chunks(2) {
        let place = integer(&pair[0]).filter(|place| *place <= MOST_BLOCKS);
        let count = pair.get(1).and_then(signed).filter(|count| count.unsigned_abs() <= MOST_BLOCKS);
        let before = slips.last().copied();
        match (place, count) {
            (Some(place), Some(count)) if before.is_none_or(|(last, _)| last <= place) => {
                slips.push((place, before.map_or(0, |(_, sum)| sum) + count));
            }
            _ => return Err(fields.wrong("Slips", &pair[0], expected)),
        }
    }
    Ok(slips)
}

fn remaps(fields: &Fields<'_>, surfaces: u32, cylinders: u32) -> Result<Vec<Remap>, MachineError> {
    let expected = "sixes of block, count, cylinder, surface, sector, and sectors of the track";
    let values = fields.integers("Remaps")?;
    let sixes = values.chunks_exact(6);
    let valid = |six: &[u64]| {
        six[0] <= MOST_BLOCKS
            && six[2] < u64::from(cylinders)
            && six[3] < u64::from(surfaces)
            && six[5] <= MOST_SECTORS
            && six[4].checked_add(six[1]).is_some_and(|end| six[1] > 0 && end <= six[5])
    };
    if !sixes.remainder().is_empty() || !sixes.clone().all(valid) {
        return Err(fields.conflict("Remaps", expected));
    }
    let remap = |six: &[u64]| Remap {
        block: six[0],
        blocks: six[1],
        cylinder: six[2] as u32,
        surface: six[3] as u32,
        sector: six[4] as u32,
        sectors: six[5] as u32,
    };
    let mut remaps: Vec<Remap> = sixes.map(remap).collect();
    remaps.sort_by_key(|remap| remap.block);
    Ok(remaps)
}
