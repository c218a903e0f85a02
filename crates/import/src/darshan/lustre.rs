//! How files are striped on Lustre.

use super::damage::LogDamage;
use super::records::read_list;
use super::region::{Break, RegionReader};
use crate::order::{self, ByteOrder, Words};

/// More components or stripes than this are damage: Lustre allows 2,000 stripes in a component.
const MOST_COMPONENTS: i64 = 1 << 12;
const MOST_STRIPES: i64 = 1 << 20;

/// Seven numbers and the name of a pool.
const COMPONENT_LEN: usize = 72;

/// The layout of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LustreRecord {
    /// The file.
    pub id: u64,
    /// The process that asked; −1 for all.
    pub rank: i64,
    /// Its components; one, unless the layout is composite.
    pub components: Vec<LustreComponent>,
    /// Object storage targets of the file system. Only the first version of records knows.
    pub targets: Option<i64>,
    /// Metadata targets of the file system. Only the first version of records knows.
    pub metadata_targets: Option<i64>,
    /// The target asked for when the file was made, −1 for any. Only the first version of records knows.
    pub stripe_offset: Option<i64>,
}

/// A part of a file with a striping of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LustreComponent {
    /// Size of a stripe, bytes.
    pub stripe_size: i64,
    /// How many stripes make a round.
    pub stripe_count: i64,
    /// Lustre's number for RAID 0, data on the metadata target, and so on; −1 if unknown.
    pub pattern: i64,
    /// Lustre's flags; −1 if unknown.
    pub flags: i64,
    /// First byte of the file.
    pub start: i64,
    /// Byte behind the last one; −1 for the end of the file.
    pub end: i64,
    /// Which mirror; −1 if unknown.
    pub mirror: i64,
    /// The pool of targets.
    pub pool: String,
    /// The targets, stripe by stripe.
    pub targets: Vec<i64>,
}

/// The layouts of a log's files.
pub struct Lustre<'a> {
    region: RegionReader<'a>,
    order: ByteOrder,
    version: u32,
    damage: Option<Break>,
}

impl<'a> Lustre<'a> {
    pub(super) fn new(version: u32, region: RegionReader<'a>, order: ByteOrder) -> Option<Lustre<'a>> {
        (version == 1 || version == 2).then_some(Lustre { region, order, version, damage: None })
    }

    /// What ended the records before their end, if anything did.
    pub fn damage(&self) -> Option<LogDamage> {
        self.damage.as_ref().map(|found| LogDamage {
            region: "module LUSTRE".into(),
            offset: found.offset,
            expected: found.expected.clone(),
        })
    }

    /// Always one component, and three numbers that later versions do not have.
    fn read_first_version(&mut self) -> Result<Option<LustreRecord>, Break> {
        let Some(bytes) = self.region.take(56)? else {
            return Ok(None);
        };
        let mut words = Words::new(bytes, self.order);
        let (id, rank) = (words.u64(), words.i64());
        let [targets, metadata_targets, stripe_offset, stripe_size, stripe_count] =
            std::array::from_fn(|_| words.i64());
        let component = LustreComponent {
            stripe_size,
            stripe_count,
            pattern: -1,
            flags: -1,
            start: 0,
            end: -1,
            mirror: -1,
            pool: String::new(),
            targets: self.read_targets(stripe_count)?,
        };
        Ok(Some(LustreRecord {
            id,
            rank,
            components: vec![component],
            targets: Some(targets),
            metadata_targets: Some(metadata_targets),
            stripe_offset: Some(stripe_offset),
        }))
    }

    fn read_second_version(&mut self) -> Result<Option<LustreRecord>, Break> {
        let Some(bytes) = self.region.take(32)? else {
            return Ok(None);
        };
        let mut words = Words::new(bytes, self.order);
        let (id, rank, components, stripes) = (words.u64(), words.i64(), words.i64(), words.i64());
        if components > MOST_COMPONENTS {
            let expected = format!("at most {MOST_COMPONENTS} components, found {components}");
            return Err(self.region.broken(expected));
        }
        let mut record = LustreRecord { id, rank, ..LustreRecord::default() };
        if components < 1 {
            return Ok(Some(record));
        }
        for _ in 0..components {
            let bytes = self.region.take_all(COMPONENT_LEN)?;
            let mut words = Words::new(bytes, self.order);
            record.components.push(LustreComponent {
                stripe_size: words.i64(),
                stripe_count: words.i64(),
                pattern: words.i64(),
                flags: words.i64(),
                start: words.i64(),
                end: words.i64(),
                mirror: words.i64(),
                pool: order::text(&bytes[56..]),
                targets: Vec::new(),
            });
        }
        let targets = self.read_targets(stripes)?;
        // The runtime leaves room for components, and marks what it did not need.
        let used = record.components.iter().position(|component| component.stripe_size == -1);
        record.components.truncate(used.unwrap_or(record.components.len()));
        let mut targets = targets.into_iter();
        for component in &mut record.components {
            let count = usize::try_from(component.stripe_count).unwrap_or(0);
            component.targets = targets.by_ref().take(count).collect();
        }
        Ok(Some(record))
    }

    fn read_targets(&mut self, count: i64) -> Result<Vec<i64>, Break> {
        if count > MOST_STRIPES {
            return Err(self.region.broken(format!("at most {MOST_STRIPES} stripes, found {count}")));
        }
        let mut targets = Vec::new();
        read_list(&mut self.region, self.order, usize::try_from(count).unwrap_or(0), &mut targets)?;
        Ok(targets)
    }
}

impl Iterator for Lustre<'_> {
    type Item = LustreRecord;

    fn next(&mut self) -> Option<LustreRecord> {
        if self.damage.is_some() {
            return None;
        }
        let read = if self.version == 1 { self.read_first_version() } else { self.read_second_version() };
        read.unwrap_or_else(|error| {
            self.damage = Some(error);
            None
        })
    }
}
