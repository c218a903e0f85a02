//! The header: the only part of a log that is not compressed.
//!
//! | bytes, up to 3.40 | from 3.41 | what |
//! |---|---|---|
//! | 0 | 0 | version as text, `3.21` and NULs |
//! | 8 | 8 | 6567223, which shows the byte order |
//! | 16 | 16 | compression: 0 zlib, 1 bzip2, 2 none |
//! | 20 (4 bytes) | 24 (8 bytes) | modules that ran out of memory, one bit each |
//! | 24 | 32 | offset and length of the names |
//! | 40 | 48 | offset and length of each of 16 (64) modules |
//! | 296 | 1072 | version of each module's records, 4 bytes each |
//!
//! The job record begins behind the header and ends where the names begin.

use std::fmt;

use super::module::Module;
use crate::order::{self, ByteOrder};

/// Bytes that tell what a file is: version and magic number.
pub(super) const START_LEN: usize = 16;

/// The longer of the two headers.
pub(super) const MAX_LEN: usize = 1328;

const MAGIC: u64 = 6_567_223;

/// Version of a log's format (that of its modules' records is another).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogVersion {
    /// 3.
    pub major: u32,
    /// 0 (written `00`) to 41.
    pub minor: u32,
}

impl LogVersion {
    pub(super) const NEWEST: LogVersion = LogVersion { major: 3, minor: 41 };

    /// Whether it came with 64 modules and times in nanoseconds.
    pub(super) fn is_wide(self) -> bool {
        self.minor > 40
    }

    fn parse(text: &str) -> Option<LogVersion> {
        let (major, minor) = text.split_once('.')?;
        Some(LogVersion { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for LogVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.major, self.minor)
    }
}

/// How the regions of a log are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Streams of zlib (RFC 1950), one behind the other.
    Zlib,
    /// Streams of bzip2, one behind the other.
    Bzip2,
    /// Not at all.
    None,
}

/// A part of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) len: u64,
}

pub(super) struct Header {
    pub(super) version: LogVersion,
    pub(super) order: ByteOrder,
    pub(super) compression: Compression,
    pub(super) job: Extent,
    pub(super) names: Extent,
    pub(super) modules: Vec<Region>,
}

/// A module in the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) module: Module,
    pub(super) version: u32,
    pub(super) partial: bool,
    pub(super) extent: Extent,
}

/// Why bytes are no header.
pub(super) enum NoHeader {
    /// Of something else.
    Other,
    /// Of a version that is not known.
    Version(String),
    /// Not what must be at this offset.
    Damaged(u64, String),
}

/// The version as text and the byte order, if the bytes begin a Darshan log.
pub(super) fn start(bytes: &[u8]) -> Option<(String, ByteOrder)> {
    let (version, rest) = bytes.split_first_chunk::<8>()?;
    let magic = *rest.first_chunk()?;
    let order = [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.u64(magic) == MAGIC)?;
    let version = order::text(version);
    (version.starts_with(|first: char| first.is_ascii_digit()) && version.contains('.'))
        .then_some((version, order))
}

impl Header {
    /// From the first bytes of a file of this length.
    pub(super) fn parse(bytes: &[u8], file_len: u64) -> Result<Header, NoHeader> {
        let (text, order) = start(bytes).ok_or(NoHeader::Other)?;
        let version = LogVersion::parse(&text)
            .filter(|version| version.major == 3 && *version <= LogVersion::NEWEST)
            .ok_or(NoHeader::Version(text))?;
        let (partial_at, module_count) = if version.is_wide() { (24, 64) } else { (20, 16) };
        let names_at = partial_at + if version.is_wide() { 8 } else { 4 };
        let versions_at = names_at + 16 * (module_count + 1);
        let len = versions_at + 4 * module_count;
        let Some(bytes) = bytes.get(..len) else {
            let expected = format!("a header of {len} bytes, found {} before the end", bytes.len());
            return Err(NoHeader::Damaged(bytes.len() as u64, expected));
        };
        let compression = match bytes[16] {
            0 => Compression::Zlib,
            1 => Compression::Bzip2,
            2 => Compression::None,
            other => {
                let expected = format!("a compression of 0 (zlib), 1 (bzip2) or 2 (none), found {other}");
                return Err(NoHeader::Damaged(16, expected));
            }
        };
        let partial = if version.is_wide() {
            order.u64(chunk(bytes, partial_at))
        } else {
            u64::from(order.u32(chunk(bytes, partial_at)))
        };
        let extent = |index: usize| Extent {
            offset: order.u64(chunk(bytes, names_at + 16 * index)),
            len: order.u64(chunk(bytes, names_at + 16 * index + 8)),
        };
        let names = extent(0);
        let modules: Vec<_> = (0..module_count)
            .map(|number| Region {
                module: Module::of(version, number),
                version: order.u32(chunk(bytes, versions_at + 4 * number)),
                partial: partial >> number & 1 == 1,
                extent: extent(number + 1),
            })
            .filter(|region| region.extent.len > 0 || region.partial)
            .collect();
        let job = job_extent(len as u64, names, &modules, file_len);
        Ok(Header { version, order, compression, job, names, modules })
    }
}

/// From the end of the header to the first region behind it: the names, else a module, else the end of the file.
fn job_extent(offset: u64, names: Extent, modules: &[Region], file_len: u64) -> Extent {
    let behind = [names].into_iter().chain(modules.iter().map(|region| region.extent));
    let first = behind.map(|extent| extent.offset).find(|&start| start != 0).unwrap_or(file_len);
    Extent { offset, len: first.saturating_sub(offset) }
}

/// `N` bytes from `at` on, which are there.
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
