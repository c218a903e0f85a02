//! The job record: 4 KiB of who ran what, when, and where file systems were mounted.

use super::header::LogVersion;
use super::region::{Break, RegionReader};
use crate::order::{self, ByteOrder, Words};

/// Decompressed length of the whole record. Its end may be missing: the text behind the fixed part is not padded.
const LEN: usize = 4096;

/// `key=value` lines.
const METADATA_LEN: usize = 1024;

/// What a log says of its job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Who ran it.
    pub uid: i64,
    /// When it started, nanoseconds since 1970-01-01 UTC (whole seconds before version 3.41).
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// How long it ran, seconds: a second more than the difference where times are whole seconds, as in Darshan's tools.
    pub run_time_s: f64,
    /// Number of processes.
    pub processes: i64,
    /// The batch system's number of the job, or the process id of its first process.
    pub id: i64,
    /// Version of Darshan, hints, and what else its runtime noted.
    pub metadata: Vec<(String, String)>,
    /// The command line.
    pub command: String,
    /// File systems, those with the longest path first.
    pub mounts: Vec<Mount>,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Folder that the file system is mounted at.
    pub path: String,
    /// Its type: `lustre`, `nfs`.
    pub kind: String,
}

impl Job {
    pub(super) fn read(
        mut region: RegionReader,
        version: LogVersion,
        order: ByteOrder,
    ) -> Result<Job, Break> {
        let mut bytes = Vec::with_capacity(LEN);
        while bytes.len() < LEN {
            match region.take_units(1, (LEN - bytes.len()) as u64) {
                Ok(piece) => bytes.extend_from_slice(piece),
                Err(_) if bytes.len() > fixed_len(version) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Job::parse(&bytes, version, order))
    }

    fn parse(bytes: &[u8], version: LogVersion, order: ByteOrder) -> Job {
        let (numbers, rest) = bytes.split_at(fixed_len(version) - METADATA_LEN);
        let (metadata, rest) = rest.split_at(METADATA_LEN);
        let mut words = Words::new(numbers, order);
        let time = |words: &mut Words| {
            let seconds = words.i64();
            let nanoseconds = if version.is_wide() { words.i64() } else { 0 };
            seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
        };
        let uid = words.i64();
        let start_ns = time(&mut words);
        let end_ns = time(&mut words);
        let rounding_s = if version.is_wide() { 0.0 } else { 1.0 };
        let text = order::text(rest);
        let mut lines = text.split('\n');
        Job {
            uid,
            start_ns,
            end_ns,
            run_time_s: end_ns.saturating_sub(start_ns) as f64 / 1e9 + rounding_s,
            processes: words.i64(),
            id: words.i64(),
            metadata: order::text(metadata)
                .lines()
                .filter_map(|line| line.split_once('='))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            command: lines.next().unwrap_or_default().to_owned(),
            mounts: mounts(lines),
        }
    }
}

fn fixed_len(version: LogVersion) -> usize {
    METADATA_LEN + 8 * if version.is_wide() { 7 } else { 5 }
}

fn mounts<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Mount> {
    let mut mounts: Vec<_> = lines
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (kind, path) = (words.next()?, words.next()?);
            Some(Mount { path: path.to_owned(), kind: kind.to_owned() })
        })
        .collect();
    mounts.sort_by_key(|mount| std::cmp::Reverse(mount.path.len()));
    mounts
}
