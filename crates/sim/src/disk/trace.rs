//! A recorded series of requests to a drive.
//!
//! One request a line: `R` or `W`; `Hit`, `Miss`, `Doub` or `Trip` as whoever measured saw it; first block; blocks; service time in µs;
//! time from its completion to the next request in µs.

use std::path::{Path, PathBuf};

use pio_machine::Duration;
use pio_plan::Direction;
use thiserror::Error;

use super::request::{DiskError, Request};

/// Requests issued one at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskTrace {
    /// Where it comes from.
    pub path: PathBuf,
    /// The requests, in order.
    pub requests: Vec<TracedRequest>,
}

/// A request as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedRequest {
    /// Its line in the file, from 1.
    pub line: usize,
    /// What was asked for.
    pub request: Request,
    /// What whoever measured saw it do.
    pub seen: Seen,
    /// How long it took.
    pub measured: Duration,
    /// How long after its completion the next came.
    pub gap: Duration,
}

/// What a drive was seen to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Its buffer served it.
    Hit,
    /// It went to the surface.
    Miss,
    /// A write that took the bus twice.
    Double,
    /// A write that took the bus three times.
    Triple,
}

impl Seen {
    /// All that a drive can be seen to do.
    pub const ALL: [Seen; 4] = [Seen::Hit, Seen::Miss, Seen::Double, Seen::Triple];

    /// The word for it in a series of requests.
    pub fn word(self) -> &'static str {
        match self {
            Seen::Hit => "Hit",
            Seen::Miss => "Miss",
            Seen::Double => "Doub",
            Seen::Triple => "Trip",
        }
    }
}

/// A series of requests that cannot be used.
#[derive(Debug, Error)]
pub enum DiskTraceError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A line that is no request.
    #[error("{path}:{line}: {field} is '{found}': expected {expected}", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What of the request.
        field: &'static str,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// No request at all.
    #[error("{path}: expected at least one request a line: R or W, Hit, Miss, Doub or Trip, block, blocks, us, us", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A request that the drive cannot serve.
    #[error("{path}:{line}: {source}", path = path.display())]
    Request {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why not.
        source: DiskError,
    },
}

/// An hour: no request of a drive takes longer, and no pause in a series of them.
const MOST_US: f64 = 3.6e9;

impl DiskTrace {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or a line is no request: names file and line.
    pub fn load(path: &Path) -> Result<DiskTrace, DiskTraceError> {
        let bytes =
            std::fs::read(path).map_err(|source| DiskTraceError::File { path: path.to_owned(), source })?;
        DiskTrace::parse(path, &String::from_utf8_lossy(&bytes))
    }

    /// Reads a text; `path` is its name in errors.
    ///
    /// # Errors
    /// If a line is no request: names file and line.
    pub fn parse(path: &Path, text: &str) -> Result<DiskTrace, DiskTraceError> {
        let mut requests = Vec::new();
        for (index, words) in text.lines().enumerate() {
            if words.trim().is_empty() || words.trim_start().starts_with('#') {
                continue;
            }
            requests.push(Line { path, number: index + 1, words: words.split_whitespace() }.read()?);
        }
        if requests.is_empty() {
            return Err(DiskTraceError::Empty { path: path.to_owned() });
        }
        Ok(DiskTrace { path: path.to_owned(), requests })
    }
}

struct Line<'t> {
    path: &'t Path,
    number: usize,
    words: std::str::SplitWhitespace<'t>,
}

impl Line<'_> {
    fn read(mut self) -> Result<TracedRequest, DiskTraceError> {
        let direction = self.field("the direction", "R or W", |word| match word {
            "R" | "r" => Some(Direction::Read),
            "W" | "w" => Some(Direction::Write),
            _ => None,
        })?;
        let seen = self.field("the outcome", "Hit, Miss, Doub or Trip", |word| {
            Seen::ALL.into_iter().find(|seen| word.eq_ignore_ascii_case(seen.word()))
        })?;
        let block = self.field("the first block", "a whole number", |word| word.parse().ok())?;
        let blocks = self.field("the number of blocks", "a whole number from 1 to 1073741824", |word| {
            word.parse().ok().filter(|blocks| (1..=1 << 30).contains(blocks))
        })?;
        let measured = self.field("the service time", "microseconds from 0 on", microseconds)?;
        let gap = self.field("the time to the next request", "microseconds from 0 on", microseconds)?;
        if let Some(found) = self.words.next() {
            return Err(self.wrong("what follows", found, "the end of the line"));
        }
        let request = Request { direction, block, blocks };
        Ok(TracedRequest { line: self.number, request, seen, measured, gap })
    }

    fn field<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, DiskTraceError> {
        let word = self.words.next().unwrap_or_default();
        read(word).ok_or_else(|| self.wrong(field, word, expected))
    }

    fn wrong(&self, field: &'static str, found: &str, expected: &'static str) -> DiskTraceError {
        let found = found.to_owned();
        DiskTraceError::Line { path: self.path.to_owned(), line: self.number, field, found, expected }
    }
}

fn microseconds(word: &str) -> Option<Duration> {
    let number: f64 = word.parse().ok()?;
    (0.0..=MOST_US).contains(&number).then(|| Duration::from_seconds(number / 1e6))
}
