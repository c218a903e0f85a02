//! What the counters of one file and interface say of the way it was accessed: what findings are made from.

use std::collections::BTreeMap;

use pio_import::darshan::{Module, Record};

use super::picks::{integer, seconds, sum};
use super::{Counts, SizeCount};

const MIB: u64 = 1 << 20;
/// Darshan's class of sizes that ends with 1 MiB.
const CLASS_OF_1_MIB: usize = 4;

/// How a file was accessed. What an interface does not count is 0 or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Profile {
    pub(crate) reads: Direction,
    pub(crate) writes: Direction,
    /// Counts of each process that has a record of its own; empty for a file that has one record for all.
    pub(crate) by_rank: BTreeMap<i64, Counts>,
    /// Reads and writes by MPI-IO that a rank made for itself, and those that all made together.
    pub(crate) independent: u64,
    pub(crate) collective: u64,
    pub(crate) seeks: u64,
    pub(crate) stats: u64,
    /// `fsync`, `fdatasync`, `MPI_File_sync`; `fflush` of streams.
    pub(crate) syncs: u64,
    /// Accesses that did not begin at a multiple of `alignment` in the file, and buffers that were not aligned.
    pub(crate) unaligned: u64,
    pub(crate) unaligned_in_memory: u64,
    /// Alignment of the file in bytes, as Darshan wrote it down.
    pub(crate) alignment: u64,
    /// Accesses of exactly 1 MiB, which Darshan counts with smaller ones; as far as they are among the most frequent.
    pub(crate) of_1_mib: u64,
    /// Accesses behind a gap of one of the most frequent lengths.
    pub(crate) in_steps: u64,
    /// Variance of the processes' bytes, of a record that stands for all.
    pub(crate) bytes_variance: f64,
    /// First start and last end of opens, reads, writes and closes, seconds since the start of the job.
    pub(crate) span_s: Option<(f64, f64)>,
}

/// Reads, or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Direction {
    /// Calls by Darshan's classes of sizes; none where sizes are not counted.
    pub(crate) sizes: Option<[u64; 10]>,
    /// Calls that began behind the end of the one before, and of them those that began right there.
    pub(crate) sequential: u64,
    pub(crate) consecutive: u64,
    /// Whether the two are counted.
    pub(crate) has_order: bool,
    /// End of the last byte that any process touched.
    pub(crate) reach: u64,
    /// Bytes that processes with records of their own moved beyond the `reach` of each: moved before.
    pub(crate) again: u64,
}

/// Indices of the counters.
pub(super) struct ProfilePicks {
    independent: Vec<usize>,
    collective: Vec<usize>,
    seeks: Option<usize>,
    stats: Option<usize>,
    syncs: Vec<usize>,
    unaligned: Option<usize>,
    unaligned_in_memory: Option<usize>,
    alignment: Option<usize>,
    strides: Vec<(usize, usize)>,
    common: Vec<(usize, usize)>,
    bytes_variance: Option<usize>,
    directions: [DirectionPicks; 2],
    starts: Vec<usize>,
    ends: Vec<usize>,
}

struct DirectionPicks {
    sequential: Option<usize>,
    consecutive: Option<usize>,
    last_byte: Option<usize>,
}

impl ProfilePicks {
    /// Of a module whose counters begin with `prefix`.
    pub(super) fn of(module: Module, prefix: &str) -> ProfilePicks {
        let names = module.counters();
        let integer = |name: &str| names.integer(&format!("{prefix}_{name}"));
        let float = |name: &str| names.float(&format!("{prefix}_{name}"));
        let integers = |list: &str| list.split_whitespace().filter_map(integer).collect::<Vec<_>>();
        let stride = |number: u32| {
            Some((integer(&format!("STRIDE{number}_STRIDE"))?, integer(&format!("STRIDE{number}_COUNT"))?))
        };
        let common = |number: u32| {
            Some((integer(&format!("ACCESS{number}_ACCESS"))?, integer(&format!("ACCESS{number}_COUNT"))?))
        };
        let direction = |many: &str, done: &str| DirectionPicks {
            sequential: integer(&format!("SEQ_{many}")),
            consecutive: integer(&format!("CONSEC_{many}")),
            last_byte: integer(&format!("MAX_BYTE_{done}")),
        };
        let stamps = |which: &str| {
            let names = ["OPEN", "READ", "WRITE", "CLOSE"].map(|op| format!("F_{op}_{which}_TIMESTAMP"));
            names.iter().filter_map(|name| float(name)).collect()
        };
        ProfilePicks {
            independent: integers("INDEP_READS INDEP_WRITES NB_READS NB_WRITES"),
            collective: integers("COLL_READS COLL_WRITES SPLIT_READS SPLIT_WRITES"),
            seeks: integer("SEEKS"),
            stats: integer("STATS"),
            syncs: integers("FSYNCS FDSYNCS SYNCS FLUSHES"),
            unaligned: integer("FILE_NOT_ALIGNED"),
            unaligned_in_memory: integer("MEM_NOT_ALIGNED"),
            alignment: integer("FILE_ALIGNMENT"),
            strides: (1..=4).filter_map(stride).collect(),
            common: (1..=4).filter_map(common).collect(),
            bytes_variance: float("F_VARIANCE_RANK_BYTES"),
            directions: [direction("READS", "READ"), direction("WRITES", "WRITTEN")],
            starts: stamps("START"),
            ends: stamps("END"),
        }
    }
}

impl Profile {
    /// Reads or writes of 1 MiB or more. Darshan's classes end *with* 1 MiB: what has exactly that size, as most large
    /// requests do, is known from the most frequent sizes, of reads and writes together.
    pub(crate) fn large(&self, writes: bool) -> u64 {
        let direction = if writes { &self.writes } else { &self.reads };
        let Some(sizes) = &direction.sizes else { return 0 };
        let larger = sizes[CLASS_OF_1_MIB + 1..].iter().fold(0, |sum: u64, &count| sum.saturating_add(count));
        larger.saturating_add(self.of_1_mib.min(sizes[CLASS_OF_1_MIB]))
    }

    /// Adds a record, whose calls, bytes and times are `counts`.
    pub(super) fn add(
        &mut self,
        record: &Record,
        counts: &Counts,
        sizes: Option<[SizeCount; 10]>,
        picks: &ProfilePicks,
    ) {
        if record.rank >= 0 {
            self.by_rank.entry(record.rank).or_default().add(counts);
        } else {
            self.bytes_variance = self.bytes_variance.max(seconds(record, picks.bytes_variance));
        }
        for (sum, part) in [
            (&mut self.independent, self::sum(record, &picks.independent)),
            (&mut self.collective, self::sum(record, &picks.collective)),
            (&mut self.seeks, integer(record, picks.seeks)),
            (&mut self.stats, integer(record, picks.stats)),
            (&mut self.syncs, self::sum(record, &picks.syncs)),
            (&mut self.unaligned, integer(record, picks.unaligned)),
            (&mut self.unaligned_in_memory, integer(record, picks.unaligned_in_memory)),
        ] {
            *sum = sum.saturating_add(part);
        }
        self.alignment = self.alignment.max(integer(record, picks.alignment));
        for &(stride, count) in &picks.strides {
            // No gap is no step.
            if integer(record, Some(stride)) > 0 {
                self.in_steps = self.in_steps.saturating_add(integer(record, Some(count)));
            }
        }
        for &(size, count) in &picks.common {
            if integer(record, Some(size)) == MIB {
                self.of_1_mib = self.of_1_mib.saturating_add(integer(record, Some(count)));
            }
        }
        let [reads, writes] = &picks.directions;
        let of_sizes = |of: fn(&SizeCount) -> u64| sizes.as_ref().map(|sizes| sizes.each_ref().map(of));
        self.reads.add(record, counts.read_bytes, of_sizes(|size| size.reads), reads);
        self.writes.add(record, counts.written_bytes, of_sizes(|size| size.writes), writes);
        self.add_span(record, picks);
    }

    fn add_span(&mut self, record: &Record, picks: &ProfilePicks) {
        // 0: there was no such call.
        let stamps = |indices: &[usize]| {
            let all: Vec<f64> = indices.iter().map(|&index| seconds(record, Some(index))).collect();
            all.into_iter().filter(|&stamp| stamp > 0.0)
        };
        let first_s = stamps(&picks.starts).fold(f64::INFINITY, f64::min);
        let last_s = stamps(&picks.ends).fold(0.0, f64::max);
        if first_s <= last_s {
            let known = self.span_s.unwrap_or((first_s, last_s));
            self.span_s = Some((known.0.min(first_s), known.1.max(last_s)));
        }
    }
}

impl Direction {
    fn add(&mut self, record: &Record, bytes: u64, sizes: Option<[u64; 10]>, picks: &DirectionPicks) {
        if let Some(sizes) = sizes {
            for (sum, part) in self.sizes.get_or_insert_default().iter_mut().zip(sizes) {
                *sum = sum.saturating_add(part);
            }
        }
        self.has_order |= picks.consecutive.is_some();
        self.sequential = self.sequential.saturating_add(integer(record, picks.sequential));
        self.consecutive = self.consecutive.saturating_add(integer(record, picks.consecutive));
        let reach = if bytes > 0 { integer(record, picks.last_byte).saturating_add(1) } else { 0 };
        self.reach = self.reach.max(reach);
        if record.rank >= 0 && picks.last_byte.is_some() {
            self.again = self.again.saturating_add(bytes.saturating_sub(reach));
        }
    }
}
