//! DXT: every read and write.

use super::damage::LogDamage;
use super::module::Module;
use super::region::{Break, RegionReader};
use crate::order::{self, ByteOrder, Words};

/// Bytes of a record before its segments: id, rank, whether shared, host, numbers of writes and reads.
const RECORD_LEN: usize = 104;
const HOST_LEN: usize = 64;

/// Bytes of a segment.
const SEGMENT_LEN: usize = 32;

/// Segments given at once.
const MOST_SEGMENTS: u64 = 2048;

/// The accesses of one process to one file: its writes, then its reads, each in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DxtRecord {
    /// The file.
    pub id: u64,
    /// The process.
    pub rank: i64,
    /// Where it ran.
    pub host: String,
    /// How many writes follow.
    pub writes: u64,
    /// How many reads follow the writes.
    pub reads: u64,
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Where in the file; −1 in logs that did not know.
    pub offset: i64,
    /// Bytes moved.
    pub length: i64,
    /// When it began, seconds since the start of the job.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
}

/// The accesses of a module: [`Dxt::next_record`], then [`Dxt::segments`] until there are none, and so on.
pub struct Dxt<'a> {
    module: Module,
    region: RegionReader<'a>,
    order: ByteOrder,
    /// The first version for MPI-IO stored no offsets.
    without_offsets: bool,
    writes_left: u64,
    reads_left: u64,
    segments: Vec<Segment>,
    damage: Option<Break>,
}

impl<'a> Dxt<'a> {
    pub(super) fn new(
        module: Module,
        version: u32,
        region: RegionReader<'a>,
        order: ByteOrder,
    ) -> Option<Dxt<'a>> {
        let is_dxt = matches!(module, Module::DxtPosix | Module::DxtMpiIo);
        (is_dxt && (1..=module.newest_version()).contains(&version)).then(|| Dxt {
            module,
            region,
            order,
            without_offsets: module == Module::DxtMpiIo && version == 1,
            writes_left: 0,
            reads_left: 0,
            segments: Vec::new(),
            damage: None,
        })
    }

    /// The next record; none at the end and where the log is damaged. Segments of the one before that were not asked for
    /// are passed over.
    pub fn next_record(&mut self) -> Option<DxtRecord> {
        while self.writes_left + self.reads_left > 0 && self.segments().is_some() {}
        self.step(Dxt::read_record)
    }

    /// Whether they are writes, and the next segments of the record; none at its end and where the log is damaged.
    pub fn segments(&mut self) -> Option<(bool, &[Segment])> {
        let is_write = self.step(Dxt::read_segments)?;
        Some((is_write, &self.segments))
    }

    /// What ended the records before their end, if anything did.
    pub fn damage(&self) -> Option<LogDamage> {
        self.damage.as_ref().map(|found| LogDamage {
            region: format!("module {}", self.module),
            offset: found.offset,
            expected: found.expected.clone(),
        })
    }

    fn step<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<Option<T>, Break>) -> Option<T> {
        if self.damage.is_some() {
            return None;
        }
        read(self).unwrap_or_else(|error| {
            self.damage = Some(error);
            None
        })
    }

    fn read_record(&mut self) -> Result<Option<DxtRecord>, Break> {
        let Some(bytes) = self.region.take(RECORD_LEN)? else {
            return Ok(None);
        };
        let mut words = Words::new(bytes, self.order);
        let (id, rank) = (words.u64(), words.i64());
        let host = order::text(&bytes[24..24 + HOST_LEN]);
        let mut words = Words::new(&bytes[24 + HOST_LEN..], self.order);
        let (writes, reads) = (words.i64(), words.i64());
        // Twice this many would not fit into any file.
        let most = i64::MAX / SEGMENT_LEN as i64 / 2;
        if !(0..=most).contains(&writes) || !(0..=most).contains(&reads) {
            return Err(self
                .region
                .broken(format!("numbers of writes and reads, found {writes} and {reads}")));
        }
        (self.writes_left, self.reads_left) = (writes as u64, reads as u64);
        Ok(Some(DxtRecord { id, rank, host, writes: self.writes_left, reads: self.reads_left }))
    }

    fn read_segments(&mut self) -> Result<Option<bool>, Break> {
        let is_write = self.writes_left > 0;
        let left = if is_write { &mut self.writes_left } else { &mut self.reads_left };
        if *left == 0 {
            return Ok(None);
        }
        let bytes = self.region.take_units(SEGMENT_LEN, MOST_SEGMENTS.min(*left))?;
        *left -= (bytes.len() / SEGMENT_LEN) as u64;
        let order = self.order;
        self.segments.clear();
        self.segments.extend(bytes.as_chunks::<SEGMENT_LEN>().0.iter().map(|segment| {
            let mut words = Words::new(segment, order);
            Segment { offset: words.i64(), length: words.i64(), start_s: words.f64(), end_s: words.f64() }
        }));
        if self.without_offsets {
            self.segments.iter_mut().for_each(|segment| segment.offset = -1);
        }
        Ok(Some(is_write))
    }
}
