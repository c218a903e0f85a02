//! What disks do for a request to a row of a RAID group: what they read first, and what they then write.
//!
//! A small write reads the old data and the old parity, and writes both anew; if fewer reads do, it reads the data that it
//! does not write in their place (read-modify-write and reconstruct-write: Chen et al., ACM Computing Surveys 1994). What a
//! failed disk held is computed from the others.

use std::ops::Range;

use super::layout::{Layout, Part, Row};

/// Disks and the bytes of their strip in the row.
pub(super) type Strips = Vec<(u32, Range<u64>)>;

/// What disks do: all reads at once, and when all are done all writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) reads: Strips,
    pub(super) writes: Strips,
}

impl Layout {
    /// What a read does. `is_there` says which disks have this row; `load` how busy a disk is, to choose among copies.
    pub(super) fn read(
        &self,
        row: Row,
        parts: &[Part],
        is_there: impl Fn(u32) -> bool,
        load: impl Fn(u32) -> u32,
    ) -> Steps {
        let mut reads = Strips::new();
        let mut lost: Option<Range<u64>> = None;
        for (strip, bytes) in parts {
            let copies = self.copies(row, *strip).filter(|disk| is_there(*disk));
            match copies.min_by_key(|disk| load(*disk)) {
                Some(disk) => add(&mut reads, disk, bytes),
                None => lost = Some(cover(lost, bytes)),
            }
        }
        if let Some(bytes) = lost {
            for disk in self.sources(row, None, &is_there) {
                add(&mut reads, disk, &bytes);
            }
        }
        Steps { reads, writes: Strips::new() }
    }

    /// What a write does.
    pub(super) fn write(&self, row: Row, parts: &[Part], is_there: impl Fn(u32) -> bool) -> Steps {
        let mut writes = Strips::new();
        for (strip, bytes) in parts {
            writes.extend(
                self.copies(row, *strip).filter(|disk| is_there(*disk)).map(|disk| (disk, bytes.clone())),
            );
        }
        let parity: Vec<u32> = self.parity(row).filter(|disk| is_there(*disk)).collect();
        let changed = parts.iter().fold(None, |all, (_, bytes)| Some(cover(all, bytes)));
        let Some(changed) = changed.filter(|_| !parity.is_empty()) else {
            return Steps { reads: Strips::new(), writes };
        };
        let reads = self.reads_of_write(row, parts, &changed, &parity, &is_there);
        writes.extend(parity.into_iter().map(|disk| (disk, changed.clone())));
        Steps { reads, writes }
    }

    /// What brings back the strip of a disk in a row: the reads for it.
    pub(super) fn rebuild(
        &self,
        row: Row,
        disk: u32,
        is_there: impl Fn(u32) -> bool,
        load: impl Fn(u32) -> u32,
    ) -> Steps {
        let all = 0..self.unit();
        let copies =
            (0..self.data()).map(|strip| self.copies(row, strip)).find(|copies| copies.contains(&disk));
        let copy =
            copies.and_then(|copies| copies.filter(|disk| is_there(*disk)).min_by_key(|disk| load(*disk)));
        let reads = match copy {
            Some(copy) => vec![(copy, all.clone())],
            None => self.sources(row, Some(disk), &is_there).map(|disk| (disk, all.clone())).collect(),
        };
        Steps { reads, writes: vec![(disk, all)] }
    }

    /// The least that a write must read to know the new parity.
    fn reads_of_write(
        &self,
        row: Row,
        parts: &[Part],
        changed: &Range<u64>,
        parity: &[u32],
        is_there: &impl Fn(u32) -> bool,
    ) -> Strips {
        let disk = |strip: u32| self.copies(row, strip).start;
        let is_whole = |strip: u32| parts.iter().any(|(other, bytes)| *other == strip && bytes == changed);
        let kept: Vec<u32> = (0..self.data()).filter(|strip| !is_whole(*strip)).map(disk).collect();
        let reconstruct = || kept.iter().map(|disk| (*disk, changed.clone())).collect();
        let modifies = parts.iter().all(|(strip, _)| is_there(disk(*strip)));
        let reconstructs = kept.iter().all(|disk| is_there(*disk));
        if reconstructs && (!modifies || kept.len() < parts.len() + parity.len()) {
            return reconstruct();
        }
        if modifies {
            let old = parts.iter().map(|(strip, bytes)| (disk(*strip), bytes.clone()));
            return old.chain(parity.iter().map(|disk| (*disk, changed.clone()))).collect();
        }
        // What a failed disk keeps must be computed before.
        self.sources(row, None, is_there).map(|disk| (disk, changed.clone())).collect()
    }

    /// The disks from which everything in a row can be computed, but for one: data, and as much parity as data are missing.
    fn sources(
        &self,
        row: Row,
        but: Option<u32>,
        is_there: &impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = u32> {
        let data = (0..self.data()).map(move |strip| self.copies(row, strip).start);
        let there = data.chain(self.parity(row)).filter(move |disk| Some(*disk) != but && is_there(*disk));
        there.take(self.data() as usize)
    }
}

/// A disk reads these bytes, too: one operation, whatever lies between.
fn add(strips: &mut Strips, disk: u32, bytes: &Range<u64>) {
    match strips.iter_mut().find(|(other, _)| *other == disk) {
        Some((_, known)) => *known = cover(Some(known.clone()), bytes),
        None => strips.push((disk, bytes.clone())),
    }
}

fn cover(known: Option<Range<u64>>, bytes: &Range<u64>) -> Range<u64> {
    known.map_or(bytes.clone(), |known| known.start.min(bytes.start)..known.end.max(bytes.end))
}
