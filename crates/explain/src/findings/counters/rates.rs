//! What large requests reach, by the files of the log that were accessed in such requests alone.

use std::collections::BTreeMap;

use pio_import::darshan::Module;

use super::super::limits::RATE_CALLS;
use super::super::rates::{Reference, References, Source};
use crate::counted::{Counted, CountedFile, Counts};

/// The part of a file's requests that may be smaller: headers.
const SMALLER: f64 = 0.1;

/// Rates of reads and writes of one process, by file system.
pub(super) struct Rates<'a> {
    /// Where file systems are mounted, longest first.
    mounts: Vec<&'a str>,
    /// Calls, bytes and seconds.
    sums: BTreeMap<(&'a str, bool), (u64, f64, f64)>,
}

impl<'a> Rates<'a> {
    pub(super) fn of(counted: &'a Counted) -> Rates<'a> {
        let mut mounts: Vec<&str> = counted.mounts.iter().map(String::as_str).collect();
        mounts.sort_by_key(|mount| (std::cmp::Reverse(mount.len()), *mount));
        let mut rates = Rates { mounts, sums: BTreeMap::new() };
        for file in counted.files.iter().filter(|file| matches!(file.module, Module::Posix | Module::Dfs)) {
            for writes in [false, true] {
                let (calls, bytes, time_s) = moved(&file.counts, writes);
                let large = file.profile.large(writes);
                if large == 0 || (large as f64) < (1.0 - SMALLER) * calls as f64 || time_s <= 0.0 {
                    continue;
                }
                let place = rates.place(&file.name);
                let sum = rates.sums.entry((place, writes)).or_default();
                *sum = (sum.0.saturating_add(large), sum.1 + bytes as f64, sum.2 + time_s);
            }
        }
        rates
    }

    /// Bytes per second of one process in large requests on the file system of a file.
    pub(super) fn rate(&self, file: &CountedFile, writes: bool) -> Option<f64> {
        let &(calls, bytes, time_s) = self.sums.get(&(self.place(&file.name), writes))?;
        let rate = bytes / time_s;
        (calls >= RATE_CALLS && rate.is_finite() && rate > 0.0).then_some(rate)
    }

    /// The same as a finding shows it.
    pub(super) fn references(&self, file: &CountedFile) -> References {
        let reference = |writes| {
            let bytes_per_s = self.rate(file, writes)?;
            Some(Reference { bytes_per_s, source: Source::Counters })
        };
        References { read: reference(false), write: reference(true) }
    }

    /// Where the file system of a path is mounted; empty if the log does not say.
    fn place(&self, path: &str) -> &'a str {
        let holds = |mount: &&&str| {
            let rest = path.strip_prefix(mount.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.mounts.iter().find(holds).copied().unwrap_or_default()
    }
}

/// Calls, bytes and seconds of reads, or of writes.
pub(super) fn moved(counts: &Counts, writes: bool) -> (u64, u64, f64) {
    if writes {
        (counts.writes, counts.written_bytes, counts.write_s)
    } else {
        (counts.reads, counts.read_bytes, counts.read_s)
    }
}
