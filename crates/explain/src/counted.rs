//! What the counters of a Darshan log amount to.
//!
//! Darshan counts whether or not it also traces: for most logs this is all that there is. Interfaces lie above each other
//! (HDF5 on MPI-IO on POSIX), so their rows do not add up; stdio stands beside POSIX.

mod layouts;
mod picks;
mod profile;

use std::collections::BTreeMap;

use pio_import::darshan::{Log, Module, Record};

pub use self::layouts::{LaidOut, Layout, LayoutPart, Layouts, SlowTarget, Target};
use self::picks::Picks;
pub(crate) use self::profile::{Direction, Profile};

/// The counters of a log, summed up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Processes of the job.
    pub processes: u64,
    /// How long it ran, seconds.
    pub run_time_s: f64,
    /// One row an interface, in Darshan's order.
    pub interfaces: Vec<Interface>,
    /// One row a file and interface (or data set, or variable), those that took the most time first.
    pub files: Vec<CountedFile>,
    /// What each process did to files of its own, in order of rank. What it did to files that all processes used is not
    /// here: Darshan keeps one record for all.
    pub ranks: Vec<CountedRank>,
    /// Bytes over time, interface by interface.
    pub activity: Vec<Activity>,
    /// How files lie on the targets of Lustre.
    pub layouts: Layouts,
    /// Where file systems were mounted.
    pub mounts: Vec<String>,
}

/// Calls, bytes and times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Files (or data sets, or variables) opened.
    pub opens: u64,
    /// Read calls of all processes.
    pub reads: u64,
    /// Write calls of all processes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in reads, all processes together, seconds.
    pub read_s: f64,
    /// Time in writes.
    pub write_s: f64,
    /// Time in opens, closes, seeks and the like.
    pub metadata_s: f64,
}

impl Counts {
    /// Time in all calls, seconds.
    pub fn time_s(&self) -> f64 {
        self.read_s + self.write_s + self.metadata_s
    }

    /// Reads and writes.
    pub fn accesses(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        for (sum, part) in [
            (&mut self.opens, other.opens),
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.written_bytes, other.written_bytes),
        ] {
            *sum = sum.saturating_add(part);
        }
        self.read_s += other.read_s;
        self.write_s += other.write_s;
        self.metadata_s += other.metadata_s;
    }
}

/// One interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// Darshan's module.
    pub module: Module,
    /// Records it kept: one a file and process, or one a file that all processes used.
    pub records: u64,
    /// Files (or data sets, or variables).
    pub files: u64,
    /// Of them, those that all processes used.
    pub shared_files: u64,
    /// What was done.
    pub counts: Counts,
    /// Reads and writes by size, in Darshan's ten classes; none where the interface does not count sizes.
    pub sizes: Option<[SizeCount; 10]>,
    /// The sizes that records name as most frequent, and how many accesses had them; most frequent first.
    pub common_sizes: Vec<(u64, u64)>,
    /// Accesses that began exactly where the one before had ended; none where it is not counted.
    pub consecutive: Option<u64>,
    /// Accesses that did not begin at a multiple of the file system's block; none where it is not counted.
    pub unaligned: Option<u64>,
}

/// Accesses of one class of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeCount {
    /// Reads of such a size.
    pub reads: u64,
    /// Writes of such a size.
    pub writes: u64,
}

/// Darshan's classes of sizes, in words.
pub const SIZE_CLASSES: [&str; 10] = [
    "up to 100 B",
    "100 B – 1 KiB",
    "1 KiB – 10 KiB",
    "10 KiB – 100 KiB",
    "100 KiB – 1 MiB",
    "1 MiB – 4 MiB",
    "4 MiB – 10 MiB",
    "10 MiB – 100 MiB",
    "100 MiB – 1 GiB",
    "1 GiB and more",
];

/// One file (or data set, or variable), as one interface saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedFile {
    /// Its path or name.
    pub name: String,
    /// The interface.
    pub module: Module,
    /// Who used it.
    pub used_by: UsedBy,
    /// What was done to it.
    pub counts: Counts,
    /// The process that spent the most time on it; none if only one did.
    pub slowest: Option<RankShare>,
    /// The process that spent the least.
    pub fastest: Option<RankShare>,
    /// Size of a stripe (bytes) and number of stripes on Lustre, of its first component.
    pub striping: Option<(u64, u64)>,
    /// How it lies on the targets of Lustre, if that is known.
    pub layout: Option<Layout>,
    /// The targets that it lies on, in order of their numbers.
    pub targets: Vec<i64>,
    /// Whether its layout has several components, of which `striping` is the first.
    pub(crate) is_composite: bool,
    /// How it was accessed.
    pub(crate) profile: Profile,
}

/// The processes that used a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedBy {
    /// All.
    All,
    /// So many.
    Some(u64),
}

/// One process's part in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankShare {
    /// The process.
    pub rank: i64,
    /// Its time in calls on the file, seconds.
    pub time_s: f64,
    /// Bytes it moved.
    pub bytes: u64,
}

/// What one process did to files of its own, at the file system (POSIX and stdio).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedRank {
    /// The process.
    pub rank: i64,
    /// Its files.
    pub files: u64,
    /// What it did.
    pub counts: Counts,
}

/// Bytes in each of a number of equal spans of time, all processes together.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// The interface: `POSIX`, `MPIIO`, `STDIO`.
    pub interface: String,
    /// Width of a bin, seconds.
    pub bin_s: f64,
    /// Bytes read.
    pub read: Vec<u64>,
    /// Bytes written.
    pub written: Vec<u64>,
    /// Ranks that are a row of `by_ranks` together.
    pub ranks_a_row: u64,
    /// Bytes read and written by so many ranks each, from rank 0 on.
    pub by_ranks: Vec<Vec<u64>>,
}

/// Rows of [`Activity::by_ranks`] at most: more could not be told apart.
const MOST_ROWS: u64 = 32;

impl Counted {
    /// Sums up a log. Where it is damaged, what came before the damage: the trace made of it says so.
    pub fn of(log: &Log) -> Counted {
        let job = log.job();
        let (names, _) = log.names();
        let mut counted = Counted {
            processes: u64::try_from(job.processes).unwrap_or(0),
            run_time_s: if job.run_time_s.is_finite() { job.run_time_s.max(0.0) } else { 0.0 },
            mounts: job.mounts.iter().map(|mount| mount.path.clone()).collect(),
            ..Counted::default()
        };
        let (striping, layouts) = (striping(log), layouts::by_file(log));
        let mut ranks = BTreeMap::new();
        for module in log.modules().map(|region| region.module) {
            let Some(picks) = Picks::of(module) else {
                continue;
            };
            let (interface, files) = interface(log, module, &picks, &mut ranks);
            counted.interfaces.extend(interface);
            counted.files.extend(files.into_iter().map(|(id, file)| CountedFile {
                name: names.get(id).map_or_else(|| format!("record {id}"), str::to_owned),
                module,
                used_by: if file.shared {
                    UsedBy::All
                } else {
                    UsedBy::Some(file.profile.by_rank.len() as u64)
                },
                counts: file.counts,
                slowest: file.slowest.filter(|_| file.shared || file.profile.by_rank.len() > 1),
                fastest: file.fastest.filter(|_| file.shared || file.profile.by_rank.len() > 1),
                striping: striping.get(&id).map(|layout| (layout.0, layout.1)),
                layout: layouts.get(&id).map(|(layout, _)| layout.clone()),
                targets: layouts.get(&id).map(|(_, targets)| targets.clone()).unwrap_or_default(),
                is_composite: striping.get(&id).is_some_and(|layout| layout.2),
                profile: file.profile,
            }));
        }
        counted
            .files
            .sort_by(|a, b| b.counts.time_s().total_cmp(&a.counts.time_s()).then(a.name.cmp(&b.name)));
        counted.layouts = layouts::sums(&counted.files);
        counted.ranks = ranks.into_values().collect();
        counted.activity = activity(log, counted.processes, &|id| names.get(id).map(str::to_owned));
        counted
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.interfaces.is_empty() && self.activity.is_empty()
    }
}

#[derive(Default)]
struct FileSums {
    shared: bool,
    profile: Profile,
    counts: Counts,
    slowest: Option<RankShare>,
    fastest: Option<RankShare>,
}

impl FileSums {
    fn add(&mut self, record: &Record, counts: &Counts, picks: &Picks) {
        self.counts.add(counts);
        self.profile.add(record, counts, picks.sizes(record), &picks.profile);
        if record.rank < 0 {
            self.shared = true;
            (self.fastest, self.slowest) = picks.rank_shares(record);
            return;
        }
        let share = RankShare { rank: record.rank, time_s: counts.time_s(), bytes: counts.bytes() };
        if self.slowest.is_none_or(|slowest| share.time_s > slowest.time_s) {
            self.slowest = Some(share);
        }
        if self.fastest.is_none_or(|fastest| share.time_s < fastest.time_s) {
            self.fastest = Some(share);
        }
    }
}

/// One interface, its files by their ids, and what it adds to the ranks.
fn interface(
    log: &Log,
    module: Module,
    picks: &Picks,
    ranks: &mut BTreeMap<i64, CountedRank>,
) -> (Option<Interface>, BTreeMap<u64, FileSums>) {
    let mut files: BTreeMap<u64, FileSums> = BTreeMap::new();
    let Some(mut records) = log.records(module) else {
        return (None, files);
    };
    let mut interface = Interface {
        module,
        records: 0,
        files: 0,
        shared_files: 0,
        counts: Counts::default(),
        sizes: None,
        common_sizes: Vec::new(),
        consecutive: None,
        unaligned: None,
    };
    let mut common = BTreeMap::new();
    while let Some(record) = records.next() {
        let counts = picks.counts(&record);
        interface.records += 1;
        interface.counts.add(&counts);
        if let Some(sizes) = picks.sizes(&record) {
            for (sum, size) in interface.sizes.get_or_insert_default().iter_mut().zip(sizes) {
                sum.reads = sum.reads.saturating_add(size.reads);
                sum.writes = sum.writes.saturating_add(size.writes);
            }
        }
        picks.add_common_sizes(&record, &mut common);
        for (sum, part) in [
            (&mut interface.consecutive, picks.consecutive(&record)),
            (&mut interface.unaligned, picks.unaligned(&record)),
        ] {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0).saturating_add(part));
            }
        }
        files.entry(record.id).or_default().add(&record, &counts, picks);
        if record.rank >= 0 && matches!(module, Module::Posix | Module::Stdio) {
            let fresh = CountedRank { rank: record.rank, files: 0, counts: Counts::default() };
            let rank = ranks.entry(record.rank).or_insert(fresh);
            rank.files += 1;
            rank.counts.add(&counts);
        }
    }
    interface.files = files.len() as u64;
    interface.shared_files = files.values().filter(|file| file.shared).count() as u64;
    interface.common_sizes = common.into_iter().collect();
    interface.common_sizes.sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
    interface.common_sizes.truncate(8);
    (Some(interface), files)
}

/// Size of a stripe, number of stripes, and whether there are more components.
fn striping(log: &Log) -> BTreeMap<u64, (u64, u64, bool)> {
    let records = log.lustre().into_iter().flatten();
    let first = records.filter_map(|record| {
        let component = record.components.first()?;
        let size = u64::try_from(component.stripe_size).ok()?;
        let count = u64::try_from(component.stripe_count).ok()?;
        Some((record.id, (size, count, record.components.len() > 1)))
    });
    first.collect()
}

fn activity(log: &Log, processes: u64, name: &dyn Fn(u64) -> Option<String>) -> Vec<Activity> {
    let ranks_a_row = processes.div_ceil(MOST_ROWS).max(1);
    let rows = processes.div_ceil(ranks_a_row) as usize;
    let mut all: BTreeMap<u64, Activity> = BTreeMap::new();
    for map in log.heatmaps().into_iter().flatten() {
        let sums = all.entry(map.id).or_insert_with(|| {
            let name = name(map.id).unwrap_or_else(|| format!("record {}", map.id));
            let interface = name.trim_start_matches("heatmap:").to_owned();
            let by_ranks = vec![Vec::new(); rows];
            let (read, written) = (Vec::new(), Vec::new());
            Activity { interface, bin_s: map.bin_s, read, written, ranks_a_row, by_ranks }
        });
        let row = u64::try_from(map.rank).ok().map(|rank| (rank / ranks_a_row) as usize);
        if let Some(row) = row.and_then(|row| sums.by_ranks.get_mut(row)) {
            add(row, &map.read);
            add(row, &map.written);
        }
        for (sums, bins) in [(&mut sums.read, &map.read), (&mut sums.written, &map.written)] {
            add(sums, bins);
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by(|a, b| a.interface.cmp(&b.interface));
    all
}

fn add(sums: &mut Vec<u64>, bins: &[i64]) {
    sums.resize(sums.len().max(bins.len()), 0);
    for (sum, &bin) in sums.iter_mut().zip(bins) {
        *sum = sum.saturating_add(u64::try_from(bin).unwrap_or(0));
    }
}
