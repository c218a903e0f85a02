//! Times: for each call two numbers of four bytes, its start and its end in units since the start of the call before.
//!
//! In files `0.ts`, `1.ts`, …, or one behind the other in `recorder.ts`, behind the length of each (8 bytes); in either
//! case possibly compressed, a part at a time.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;

use super::Broken;
use super::folder::Folder;
use super::metadata::Metadata;
use super::packed::FREE_LEN;

/// All times, one file.
const ALL: &str = "recorder.ts";

/// What swells more than this, beyond [`FREE_LEN`], was made to keep readers busy: times of calls that are all alike swell
/// by a few dozen times.
const MOST_TIMES: u64 = 200;

/// Where the times of each process are.
pub(super) struct Places {
    /// In the file of all: where they begin, and how long they are.
    in_all: Option<Vec<(u64, u64)>>,
}

impl Places {
    pub(super) fn read(folder: &Folder, metadata: &Metadata) -> (Places, Option<Broken>) {
        if !folder.has(ALL) {
            return (Places { in_all: None }, None);
        }
        let mut places = Vec::new();
        let broken = read_lengths(folder, metadata, &mut places).err();
        (Places { in_all: Some(places) }, broken)
    }
}

fn read_lengths(folder: &Folder, metadata: &Metadata, places: &mut Vec<(u64, u64)>) -> Result<(), Broken> {
    // Of all processes that ran, also of those whose other files are missing.
    let processes = u64::from(metadata.ranks) + u64::from(metadata.missing_ranks);
    let (mut input, _) = folder.open(ALL, 0)?;
    let mut begin = processes * 8;
    for rank in 0..metadata.ranks {
        let mut len = [0; 8];
        let at = u64::from(rank) * 8;
        input
            .read_exact(&mut len)
            .map_err(|_| Broken::new(ALL, at, format!("the length of the times of rank {rank}")))?;
        let len = u64::from_le_bytes(len);
        places.push((begin, len));
        begin = begin.saturating_add(len);
    }
    Ok(())
}

/// The times of one process.
pub(super) struct Times<'a> {
    stream: Stream<'a>,
    file: String,
    /// Where it begins in the file.
    begin: u64,
    buffer: Vec<u8>,
    used: usize,
    filled: usize,
    produced: u64,
    /// Start of the call before, in units since the process began.
    start: i64,
    failed: Option<String>,
}

impl<'a> Times<'a> {
    pub(super) fn open(
        folder: &'a Folder,
        rank: u32,
        places: &Places,
        metadata: &Metadata,
    ) -> Result<Times<'a>, Broken> {
        let (file, begin, len) = match &places.in_all {
            None => (format!("{rank}.ts"), 0, u64::MAX),
            Some(places) => match places.get(rank as usize) {
                Some(&(begin, len)) => (ALL.to_owned(), begin, len),
                None => return Err(Broken::new(ALL, u64::from(rank) * 8, "the length of its times")),
            },
        };
        let section = Section { input: folder.open(&file, begin)?.0, left: len, taken: 0 };
        let stream = if metadata.times_are_packed {
            Stream::Packed(Part::first(section).map(ZlibDecoder::new))
        } else {
            Stream::Plain(section)
        };
        Ok(Times {
            stream,
            file,
            begin,
            buffer: vec![0; 1 << 16],
            used: 0,
            filled: 0,
            produced: 0,
            start: 0,
            failed: None,
        })
    }

    /// Start and end of the next call, in units since the process began; none at the end.
    pub(super) fn next(&mut self) -> Option<(i64, i64)> {
        if self.filled - self.used < 8 {
            self.fill();
        }
        let pair: [u8; 8] = *self.buffer[self.used..self.filled].first_chunk()?;
        self.used += 8;
        let [a, b, c, d, e, f, g, h] = pair;
        let (start, end) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        // Threads take turns: what began before the call before it has a number below 0, cut to four bytes. It shows
        // where the end is not.
        let is_before = end < start && start > u32::MAX / 2;
        let since = if is_before { i64::from(start as i32) } else { i64::from(start) };
        self.start = self.start.saturating_add(since);
        Some((self.start, self.start.saturating_add(i64::from(end.wrapping_sub(start)))))
    }

    /// That they ended, and should not have.
    pub(super) fn broken(&self, expected: &str) -> Broken {
        let times = (self.produced - (self.filled - self.used) as u64) / 8;
        let why = self.failed.as_ref().map_or(String::new(), |why| format!(" ({why})"));
        let at = self.begin.saturating_add(self.stream.taken());
        Broken::new(&self.file, at, format!("{expected}, found {times}{why}"))
    }

    fn fill(&mut self) {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
        while self.filled < 8 && self.failed.is_none() {
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(count) => {
                    self.filled += count;
                    self.produced += count as u64;
                }
                Err(error) => self.failed = Some(error.to_string()),
            }
            if self.produced > FREE_LEN && self.produced / MOST_TIMES > self.stream.taken() {
                self.failed = Some(format!("its data swell more than {MOST_TIMES} times"));
            }
        }
    }
}

/// The bytes of a file that hold the times of one process.
struct Section<'a> {
    input: Box<dyn Read + 'a>,
    left: u64,
    taken: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let count = self.input.read(&mut out[..most])?;
        self.left -= count as u64;
        self.taken += count as u64;
        Ok(count)
    }
}

/// A compressed part of a section: as many bytes as the lengths before it say.
struct Part<'a> {
    section: Section<'a>,
    left: u64,
}

impl<'a> Part<'a> {
    fn first(section: Section<'a>) -> Option<Part<'a>> {
        Part { section, left: 0 }.next()
    }

    /// The part behind this one, if there is one.
    fn next(mut self) -> Option<Part<'a>> {
        io::copy(&mut self, &mut io::sink()).ok()?;
        let mut lengths = [0; 16];
        self.section.read_exact(&mut lengths).ok()?;
        let [a, b, c, d, e, f, g, h, ..] = lengths;
        self.left = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Some(self)
    }
}

impl Read for Part<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let count = self.section.read(&mut out[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}

enum Stream<'a> {
    Plain(Section<'a>),
    /// None at the end.
    Packed(Option<ZlibDecoder<Part<'a>>>),
}

impl Stream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(section) => section.read(out),
            Stream::Packed(decoder) => {
                while let Some(part) = decoder {
                    match part.read(out)? {
                        0 => {
                            *decoder =
                                decoder.take().and_then(|it| it.into_inner().next()).map(ZlibDecoder::new)
                        }
                        count => return Ok(count),
                    }
                }
                Ok(0)
            }
        }
    }

    /// Bytes that were taken from the file.
    fn taken(&self) -> u64 {
        match self {
            Stream::Plain(section) => section.taken,
            Stream::Packed(decoder) => decoder.as_ref().map_or(0, |part| part.get_ref().section.taken),
        }
    }
}
