//! How files lie on the targets of Lustre, and how fast each target was.

use std::collections::BTreeMap;

use pio_import::darshan::{Log, LustreRecord, Module};

use super::{CountedFile, Counts};
use crate::findings::SLOWER;

/// Targets of which one can be slower than the others.
const LEAST_TARGETS: usize = 4;
/// Data from which on a target's rate says something, bytes.
const LEAST_BYTES: u64 = 64 << 20;

/// How one file lies on targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    /// Its parts, in order; one, unless the layout is composite.
    pub parts: Vec<LayoutPart>,
    /// The pool of targets; empty for none.
    pub pool: String,
}

/// A part of a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayoutPart {
    /// First byte of the file.
    pub start: u64,
    /// Stripes of a round; none for data that have no target yet, or lie on the metadata target.
    pub stripes: Option<u64>,
    /// Size of a stripe, bytes.
    pub stripe_bytes: u64,
}

/// Files of one layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LaidOut {
    /// The layout.
    pub layout: Layout,
    /// How many files have it.
    pub files: u64,
    /// What was done to them at the file system.
    pub counts: Counts,
}

/// What lies on one target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Target {
    /// Its number.
    pub number: i64,
    /// Files that have a stripe on it.
    pub files: u64,
    /// Of them, those that lie on no other.
    pub alone: u64,
    /// What was done to these at the file system.
    pub counts: Counts,
}

impl Target {
    /// Bytes a second of the files that lie on no other; none if they say too little.
    pub fn rate(&self) -> Option<f64> {
        let time_s = self.counts.read_s + self.counts.write_s;
        (self.counts.bytes() >= LEAST_BYTES && time_s > 0.0).then(|| self.counts.bytes() as f64 / time_s)
    }
}

/// A target that was slower than others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowTarget {
    /// The target.
    pub target: Target,
    /// Its rate, bytes a second.
    pub rate: f64,
    /// The rate that half of the targets reach.
    pub median_rate: f64,
}

/// The layouts of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layouts {
    /// Each different layout, those with the most files first.
    pub kinds: Vec<LaidOut>,
    /// The targets, in order of their numbers.
    pub targets: Vec<Target>,
}

impl Layouts {
    /// The slowest target, if it was much slower than half of the others.
    pub fn slow_target(&self) -> Option<SlowTarget> {
        let mut rated: Vec<_> =
            self.targets.iter().filter_map(|target| Some((target.rate()?, target))).collect();
        rated.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (&(rate, &target), (median_rate, _)) = (rated.first()?, rated.get(rated.len() / 2)?);
        let is_slow = rated.len() >= LEAST_TARGETS && rate * SLOWER < *median_rate;
        is_slow.then_some(SlowTarget { target, rate, median_rate: *median_rate })
    }
}

/// The layout of each file, by its id, and its targets.
pub(super) fn by_file(log: &Log) -> BTreeMap<u64, (Layout, Vec<i64>)> {
    log.lustre().into_iter().flatten().map(|record| (record.id, of(&record))).collect()
}

fn of(record: &LustreRecord) -> (Layout, Vec<i64>) {
    let mut layout = Layout::default();
    let mut targets = Vec::new();
    for component in &record.components {
        layout.parts.push(LayoutPart {
            start: u64::try_from(component.start).unwrap_or(0),
            stripes: u64::try_from(component.stripe_count).ok().filter(|&stripes| stripes > 0),
            stripe_bytes: u64::try_from(component.stripe_size).unwrap_or(0),
        });
        if layout.pool.is_empty() {
            layout.pool.clone_from(&component.pool);
        }
        targets.extend(component.targets.iter().copied().filter(|&target| target >= 0));
    }
    targets.sort_unstable();
    targets.dedup();
    (layout, targets)
}

/// Sums up over the files of a log, as POSIX saw them.
pub(super) fn sums(files: &[CountedFile]) -> Layouts {
    let mut kinds: BTreeMap<&Layout, LaidOut> = BTreeMap::new();
    let mut targets: BTreeMap<i64, Target> = BTreeMap::new();
    for file in files.iter().filter(|file| file.module == Module::Posix) {
        let Some(layout) = file.layout.as_ref().filter(|layout| !layout.parts.is_empty()) else { continue };
        let kind = kinds.entry(layout).or_insert_with(|| LaidOut {
            layout: layout.clone(),
            files: 0,
            counts: Counts::default(),
        });
        kind.files += 1;
        kind.counts.add(&file.counts);
        for &number in &file.targets {
            let target = targets.entry(number).or_insert_with(|| Target { number, ..Target::default() });
            target.files += 1;
            if file.targets.len() == 1 {
                target.alone += 1;
                target.counts.add(&file.counts);
            }
        }
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.files));
    Layouts { kinds, targets: targets.into_values().collect() }
}
