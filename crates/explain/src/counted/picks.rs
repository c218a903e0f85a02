//! Which counters of a module say what.

use std::collections::BTreeMap;

use pio_import::darshan::{CounterNames, Module, Record};

use super::profile::ProfilePicks;
use super::{Counts, RankShare, SizeCount};

/// No job lasts that long (in seconds), and no bytes vary so much: sums of it stay numbers.
const MOST: f64 = 1e30;

/// Indices of a module's counters. What a module does not count, or a record's version did not, is 0.
pub(super) struct Picks {
    opens: Vec<usize>,
    reads: Vec<usize>,
    writes: Vec<usize>,
    read_bytes: Option<usize>,
    written_bytes: Option<usize>,
    read_s: Option<usize>,
    write_s: Option<usize>,
    metadata_s: Option<usize>,
    size_reads: Vec<usize>,
    size_writes: Vec<usize>,
    common: Vec<(usize, usize)>,
    consecutive: Vec<usize>,
    unaligned: Option<usize>,
    fastest: Option<RankPicks>,
    slowest: Option<RankPicks>,
    pub(super) profile: ProfilePicks,
}

struct RankPicks {
    rank: usize,
    bytes: usize,
    time: usize,
}

impl Picks {
    /// Of a module that counts opens of files, data sets or variables.
    pub(super) fn of(module: Module) -> Option<Picks> {
        let (prefix, opens, reads, writes) = match module {
            Module::Posix => ("POSIX", "OPENS", "READS", "WRITES"),
            Module::Stdio => ("STDIO", "OPENS", "READS", "WRITES"),
            Module::MpiIo => (
                "MPIIO",
                "INDEP_OPENS COLL_OPENS",
                "INDEP_READS COLL_READS SPLIT_READS NB_READS",
                "INDEP_WRITES COLL_WRITES SPLIT_WRITES NB_WRITES",
            ),
            Module::Hdf5File => ("H5F", "OPENS", "", ""),
            Module::Hdf5Dataset => ("H5D", "OPENS", "READS", "WRITES"),
            Module::PnetcdfFile => ("PNETCDF_FILE", "CREATES OPENS", "", ""),
            Module::PnetcdfVariable => (
                "PNETCDF_VAR",
                "OPENS",
                "INDEP_READS COLL_READS NB_READS",
                "INDEP_WRITES COLL_WRITES NB_WRITES",
            ),
            Module::Dfs => ("DFS", "OPENS GLOBAL_OPENS LOOKUPS", "READS READXS", "WRITES WRITEXS"),
            Module::Daos => (
                "DAOS",
                "OBJ_OPENS ARRAY_OPENS KV_OPENS",
                "OBJ_FETCHES ARRAY_READS KV_GETS",
                "OBJ_UPDATES ARRAY_WRITES KV_PUTS",
            ),
            _ => return None,
        };
        let names = module.counters();
        let integer = |name: &str| names.integer(&format!("{prefix}_{name}"));
        let float = |name: &str| names.float(&format!("{prefix}_{name}"));
        let integers = |list: &str| list.split_whitespace().filter_map(integer).collect::<Vec<_>>();
        let sizes = |kind: &str| -> Vec<usize> {
            let starts = [format!("{prefix}_SIZE_{kind}_AGG_"), format!("{prefix}_SIZE_{kind}_")];
            let is_size = |name: &String| starts.iter().any(|start| name.starts_with(start.as_str()));
            (0..names.integers.len()).filter(|&index| is_size(&names.integers[index])).collect()
        };
        let rank = |kind: &str| {
            let rank = integer(&format!("{kind}_RANK"))?;
            let bytes = integer(&format!("{kind}_RANK_BYTES"))?;
            Some(RankPicks { rank, bytes, time: float(&format!("F_{kind}_RANK_TIME"))? })
        };
        Some(Picks {
            opens: integers(opens),
            reads: integers(reads),
            writes: integers(writes),
            read_bytes: integer("BYTES_READ"),
            written_bytes: integer("BYTES_WRITTEN"),
            read_s: float("F_READ_TIME"),
            write_s: float("F_WRITE_TIME"),
            metadata_s: float("F_META_TIME"),
            size_reads: sizes("READ"),
            size_writes: sizes("WRITE"),
            common: common_sizes(names, prefix),
            consecutive: integers("CONSEC_READS CONSEC_WRITES"),
            unaligned: integer("FILE_NOT_ALIGNED"),
            fastest: rank("FASTEST"),
            slowest: rank("SLOWEST"),
            profile: ProfilePicks::of(module, prefix),
        })
    }

    fn has_sizes(&self) -> bool {
        self.size_reads.len() == 10 && self.size_writes.len() == 10
    }

    pub(super) fn counts(&self, record: &Record) -> Counts {
        Counts {
            opens: sum(record, &self.opens),
            reads: sum(record, &self.reads),
            writes: sum(record, &self.writes),
            read_bytes: integer(record, self.read_bytes),
            written_bytes: integer(record, self.written_bytes),
            read_s: seconds(record, self.read_s),
            write_s: seconds(record, self.write_s),
            metadata_s: seconds(record, self.metadata_s),
        }
    }

    /// Reads and writes by size; none where the module does not count them.
    pub(super) fn sizes(&self, record: &Record) -> Option<[SizeCount; 10]> {
        let count = |index: usize| SizeCount {
            reads: integer(record, Some(self.size_reads[index])),
            writes: integer(record, Some(self.size_writes[index])),
        };
        self.has_sizes().then(|| std::array::from_fn(count))
    }

    pub(super) fn add_common_sizes(&self, record: &Record, common: &mut BTreeMap<u64, u64>) {
        for &(size, count) in &self.common {
            let count = integer(record, Some(count));
            if count > 0 {
                let sum = common.entry(integer(record, Some(size))).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }

    pub(super) fn consecutive(&self, record: &Record) -> Option<u64> {
        (!self.consecutive.is_empty()).then(|| sum(record, &self.consecutive))
    }

    pub(super) fn unaligned(&self, record: &Record) -> Option<u64> {
        self.unaligned.map(|index| integer(record, Some(index)))
    }

    /// The fastest and the slowest process of a record that stands for all.
    pub(super) fn rank_shares(&self, record: &Record) -> (Option<RankShare>, Option<RankShare>) {
        let share = |picks: &Option<RankPicks>| {
            let picks = picks.as_ref()?;
            let &rank = record.integers.get(picks.rank)?;
            let time_s = seconds(record, Some(picks.time));
            let bytes = integer(record, Some(picks.bytes));
            (rank >= 0).then_some(RankShare { rank, time_s, bytes })
        };
        let (fastest, slowest) = (share(&self.fastest), share(&self.slowest));
        // All zero: it was not measured.
        let measured = slowest.is_some_and(|slowest| slowest.time_s > 0.0);
        if measured { (fastest, slowest) } else { (None, None) }
    }
}

fn common_sizes(names: &CounterNames, prefix: &str) -> Vec<(usize, usize)> {
    let pair = |number: u32| {
        let size = names.integer(&format!("{prefix}_ACCESS{number}_ACCESS"))?;
        Some((size, names.integer(&format!("{prefix}_ACCESS{number}_COUNT"))?))
    };
    (1..=4).filter_map(pair).collect()
}

/// A count: what is negative was not counted.
pub(super) fn integer(record: &Record, index: Option<usize>) -> u64 {
    let value = index.and_then(|index| record.integers.get(index)).copied().unwrap_or(0);
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn sum(record: &Record, indices: &[usize]) -> u64 {
    indices.iter().map(|&index| integer(record, Some(index))).fold(0, u64::saturating_add)
}

/// A time or a variance: nothing negative, and nothing that a job cannot last.
pub(super) fn seconds(record: &Record, index: Option<usize>) -> f64 {
    let value = index.and_then(|index| record.floats.get(index)).copied().unwrap_or(0.0);
    if value.is_nan() { 0.0 } else { value.clamp(0.0, MOST) }
}
