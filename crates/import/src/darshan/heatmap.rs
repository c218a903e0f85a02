//! Bytes over time, process by process.

use super::damage::LogDamage;
use super::records::read_list;
use super::region::{Break, RegionReader};
use crate::order::{ByteOrder, Words};

/// Bytes of a record before its bins: id, rank, width, number, and two addresses in the memory of the program.
const RECORD_LEN: usize = 48;

/// Darshan keeps 200 bins at most.
const MOST_BINS: i64 = 1 << 16;

/// Bytes that one process moved through one interface in equal spans of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// The interface: the name of this record is `heatmap:POSIX` or the like.
    pub id: u64,
    /// The process.
    pub rank: i64,
    /// Width of a bin, seconds.
    pub bin_s: f64,
    /// Bytes written in each bin.
    pub written: Vec<i64>,
    /// Bytes read in each bin.
    pub read: Vec<i64>,
}

/// The heat maps of a log. All are as long as the first: Darshan's runtime may be off by one bin.
pub struct Heatmaps<'a> {
    region: RegionReader<'a>,
    order: ByteOrder,
    first: Option<(f64, usize)>,
    damage: Option<Break>,
}

impl<'a> Heatmaps<'a> {
    pub(super) fn new(version: u32, region: RegionReader<'a>, order: ByteOrder) -> Option<Heatmaps<'a>> {
        (version == 1).then(|| Heatmaps { region, order, first: None, damage: None })
    }

    /// What ended the heat maps before their end, if anything did.
    pub fn damage(&self) -> Option<LogDamage> {
        self.damage.as_ref().map(|found| LogDamage {
            region: "module HEATMAP".into(),
            offset: found.offset,
            expected: found.expected.clone(),
        })
    }

    fn read(&mut self) -> Result<Option<Heatmap>, Break> {
        let Some(bytes) = self.region.take(RECORD_LEN)? else {
            return Ok(None);
        };
        let mut words = Words::new(bytes, self.order);
        let (id, rank, bin_s, bins) = (words.u64(), words.i64(), words.f64(), words.i64());
        if !(0..=MOST_BINS).contains(&bins) {
            return Err(self.region.broken(format!("at most {MOST_BINS} bins, found {bins}")));
        }
        let (mut written, mut read) = (Vec::new(), Vec::new());
        read_list(&mut self.region, self.order, bins as usize, &mut written)?;
        read_list(&mut self.region, self.order, bins as usize, &mut read)?;
        let (first_s, first_bins) = *self.first.get_or_insert((bin_s, bins as usize));
        if bin_s == first_s && first_bins.abs_diff(bins as usize) == 1 {
            written.resize(first_bins, 0);
            read.resize(first_bins, 0);
        }
        Ok(Some(Heatmap { id, rank, bin_s, written, read }))
    }
}

impl Iterator for Heatmaps<'_> {
    type Item = Heatmap;

    fn next(&mut self) -> Option<Heatmap> {
        if self.damage.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|error| {
            self.damage = Some(error);
            None
        })
    }
}
