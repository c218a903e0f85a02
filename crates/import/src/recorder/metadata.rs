//! `recorder.mt`: what holds for all processes, and the names of the functions.
//!
//! A C structure, of which versions differ, then the names, a line each: behind the structure, or from byte 1,024 on.
//!
//! ```text
//!         2.3 to early 2.5                   late 2.5, 3.0
//!  0 i32  processes                          processes
//!  4      -                                  u8 each: kinds of calls that were traced, …
//!  8 f64  start, seconds since 1970          …, threads are stored, depths are stored (9 in 2.5, 11 in 3.0)
//! 16 f64  unit of times, seconds             start
//! 24      u32 a buffer's size, u32 unused    f64 unit of times
//! 32      i32 one table for all (from 2.4)   u32 a buffer's size
//! 36                                         u8 times are compressed, u8 one table for all, u8 u8 patterns
//! ```

use super::folder::Folder;
use super::{Broken, METADATA};
use crate::error::ImportError;
use crate::order::ByteOrder;

/// Bytes before the names, where nothing else stands.
const RESERVED: usize = 1024;

/// The longest name of a function.
const MOST_NAME: usize = 63;

/// What holds for all processes.
pub(super) struct Metadata {
    pub(super) version: (u32, u32),
    pub(super) ranks: u32,
    /// When the job began, nanoseconds since 1970; 0 if that cannot be.
    pub(super) epoch_ns: u64,
    /// Nanoseconds of a unit of times.
    pub(super) tick_ns: f64,
    pub(super) times_are_packed: bool,
    /// One table of signatures for all processes, and one of grammars.
    pub(super) merged: bool,
    /// Whether signatures say how deep in other calls a call was.
    pub(super) has_depth: bool,
    /// Offsets may be differences to the offset before.
    pub(super) has_differences: bool,
    pub(super) functions: Vec<String>,
    /// Fewer processes have files than there are.
    pub(super) missing_ranks: u32,
}

impl Metadata {
    pub(super) fn read(folder: &Folder) -> Result<Metadata, ImportError> {
        let version = version(folder)?;
        let damaged = |broken: Broken| ImportError::Damaged {
            path: folder.path().join(&broken.file),
            offset: broken.offset,
            expected: broken.expected,
        };
        let bytes = folder.read(METADATA).map_err(damaged)?;
        let mut metadata = Metadata::parse(&bytes, version).map_err(damaged)?;
        // No file may make us look for two thousand million others.
        let justified = if metadata.merged {
            folder.read("ug.mt").map_err(damaged)?.len() / 4
        } else {
            folder.count(".cfg")
        };
        let present = metadata.ranks.min(u32::try_from(justified).unwrap_or(u32::MAX));
        metadata.missing_ranks = metadata.ranks - present;
        metadata.ranks = present;
        Ok(metadata)
    }

    fn parse(bytes: &[u8], version: (u32, u32)) -> Result<Metadata, Broken> {
        let broken = |offset: usize, expected: &str| Broken::new(METADATA, offset as u64, expected);
        let ranks = word(bytes, 0).ok_or_else(|| broken(bytes.len(), "the number of processes"))?;
        let ranks = u32::try_from(ranks as i32).ok().filter(|&ranks| ranks > 0);
        let ranks = ranks.ok_or_else(|| broken(0, "a number of processes, 1 or more"))?;
        let old = real(bytes, 16).filter(|unit| is_unit(*unit));
        let new = real(bytes, 24).filter(|unit| is_unit(*unit));
        let (unit_s, start) = match (old, new) {
            (Some(unit_s), _) => (unit_s, 8),
            (None, Some(unit_s)) => (unit_s, 16),
            (None, None) => return Err(broken(16, "the unit of times, 1e-12 to 1 s, here or at 24")),
        };
        let is_new = old.is_none();
        let names =
            names_at(bytes).ok_or_else(|| broken(32, "names of functions, here, at 40, or at 1024"))?;
        let flag = |offset: usize| bytes.get(offset).is_some_and(|&byte| byte != 0);
        let depth_flag = if version.0 >= 3 { 11 } else { 9 };
        Ok(Metadata {
            version,
            ranks,
            // Since 1970, such a number has no more than microseconds.
            epoch_ns: real(bytes, start).map_or(0, |seconds| ((seconds * 1e6) as u64).saturating_mul(1000)),
            tick_ns: unit_s * 1e9,
            times_are_packed: is_new && flag(36),
            merged: if is_new { flag(37) } else { names > 32 && flag(32) },
            has_depth: !is_new || flag(depth_flag),
            has_differences: is_new && flag(39),
            functions: bytes[names..]
                .split(|&byte| byte == b'\n')
                .map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
                .collect(),
            missing_ranks: 0,
        })
    }

    pub(super) fn function(&self, number: u32) -> &str {
        self.functions.get(number as usize).map_or("", String::as_str)
    }
}

/// Of the file `VERSION`.
fn version(folder: &Folder) -> Result<(u32, u32), ImportError> {
    let text = folder.read("VERSION").map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let unknown = |version: &str| ImportError::UnknownRecorderVersion {
        path: folder.path().to_path_buf(),
        version: version.chars().take(20).collect(),
    };
    let text = text.map_err(|_| unknown("unknown"))?;
    let mut numbers = text.trim().split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if ((2, 3)..=(3, 0)).contains(&(major, minor)) => {
            Ok((major, minor))
        }
        _ => Err(unknown(text.trim())),
    }
}

fn is_unit(seconds: f64) -> bool {
    (1e-12..=1.0).contains(&seconds)
}

/// Where the names of functions begin.
fn names_at(bytes: &[u8]) -> Option<usize> {
    [32, 40, RESERVED].into_iter().find(|&at| {
        let name = bytes.get(at..).and_then(|rest| rest.split(|&byte| byte == b'\n').next());
        name.is_some_and(|name| {
            (1..=MOST_NAME).contains(&name.len())
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        })
    })
}

/// Recorder writes its machine's own order; that of the machines it runs on is this one.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(ByteOrder::Little.u32(*bytes))
}

pub(super) fn double_word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(ByteOrder::Little.u64(*bytes))
}

fn real(bytes: &[u8], at: usize) -> Option<f64> {
    double_word(bytes, at).map(f64::from_bits)
}
