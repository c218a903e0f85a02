//! The decompressed bytes of one region of a log, piece by piece.

use bzip2::Status as Bzip2Status;
use flate2::{FlushDecompress, Status};

use super::header::{Compression, Extent};
use pio_trace::source::Source;

/// Compressed bytes read at once.
const INPUT_LEN: usize = 64 << 10;

/// Decompressed bytes kept at once.
const OUTPUT_LEN: usize = 256 << 10;

/// The longest piece that can be asked for.
pub(super) const MOST_TAKEN: usize = OUTPUT_LEN / 2;

/// Up to here a region may hold whatever its compression makes of it. Beyond, data that swell more than zlib can make
/// any (1,032 times) were made to keep readers busy: bzip2 makes 45 MB of 45 bytes.
const FREE_LEN: u64 = 64 << 20;
const MOST_TIMES: u64 = 2048;

/// Why a region ends before its end, and where in the file.
#[derive(Debug)]
pub(super) struct Break {
    pub(super) offset: u64,
    pub(super) expected: String,
}

/// A region, being read from its start.
pub(super) struct RegionReader<'a> {
    source: &'a Source,
    extent: Extent,
    /// Compressed bytes that were read from the file, up to `next`, and used, up to `used`, of the region.
    next: u64,
    input: Vec<u8>,
    input_at: usize,
    codec: Codec,
    output: Vec<u8>,
    begin: usize,
    filled: usize,
    produced: u64,
}

enum Codec {
    Zlib { stream: Box<flate2::Decompress>, begun: bool },
    Bzip2 { stream: Box<bzip2::Decompress>, begun: bool },
    None,
}

impl<'a> RegionReader<'a> {
    pub(super) fn new(source: &'a Source, extent: Extent, compression: Compression) -> RegionReader<'a> {
        let codec = match compression {
            Compression::Zlib => {
                Codec::Zlib { stream: Box::new(flate2::Decompress::new(true)), begun: false }
            }
            Compression::Bzip2 => {
                Codec::Bzip2 { stream: Box::new(bzip2::Decompress::new(false)), begun: false }
            }
            Compression::None => Codec::None,
        };
        RegionReader {
            source,
            extent,
            next: 0,
            input: Vec::new(),
            input_at: 0,
            codec,
            output: Vec::new(),
            begin: 0,
            filled: 0,
            produced: 0,
        }
    }

    /// The next `len` bytes, at most [`MOST_TAKEN`]; none at the end of the region. An end in between is a break.
    pub(super) fn take(&mut self, len: usize) -> Result<Option<&[u8]>, Break> {
        let available = self.provide(len)?;
        if available == 0 && len > 0 {
            return Ok(None);
        }
        if available < len {
            return Err(self.broken(format!("{len} bytes of a record, found {available} before its end")));
        }
        self.begin += len;
        Ok(Some(&self.output[self.begin - len..self.begin]))
    }

    /// The next `len` bytes, of which the region must have all.
    pub(super) fn take_all(&mut self, len: usize) -> Result<&[u8], Break> {
        if self.provide(len)? < len {
            let available = self.filled - self.begin;
            return Err(self.broken(format!("{len} bytes of a record, found {available} before its end")));
        }
        self.begin += len;
        Ok(&self.output[self.begin - len..self.begin])
    }

    /// At least one and at most `most` of the next units of `len` bytes, of which the region must have one.
    pub(super) fn take_units(&mut self, len: usize, most: u64) -> Result<&[u8], Break> {
        let available = self.provide(len)?;
        if available < len {
            return Err(self.broken(format!("{len} bytes of a list, found {available} before its end")));
        }
        let units = most.min((available / len) as u64) as usize;
        self.begin += units * len;
        Ok(&self.output[self.begin - units * len..self.begin])
    }

    /// All bytes up to the next NUL, without it; none at the end of the region.
    pub(super) fn take_until_nul(&mut self) -> Result<Option<&[u8]>, Break> {
        let mut searched = 0;
        loop {
            let found = self.output[self.begin + searched..self.filled].iter().position(|&byte| byte == 0);
            if let Some(at) = found {
                let from = self.begin;
                self.begin += searched + at + 1;
                return Ok(Some(&self.output[from..from + searched + at]));
            }
            searched = self.filled - self.begin;
            if searched >= MOST_TAKEN {
                return Err(self.broken(format!("a name of less than {MOST_TAKEN} bytes")));
            }
            if self.provide(searched + 1)? == searched {
                if searched == 0 {
                    return Ok(None);
                }
                return Err(self.broken("the end of a name".into()));
            }
        }
    }

    /// A break at the next compressed byte.
    pub(super) fn broken(&self, expected: String) -> Break {
        Break { offset: self.extent.offset.saturating_add(self.used()), expected }
    }

    /// Makes `len` bytes stand ready, if the region has so many. Returns how many there are.
    fn provide(&mut self, len: usize) -> Result<usize, Break> {
        assert!(len <= MOST_TAKEN, "a piece of {len} bytes");
        while self.filled - self.begin < len {
            self.output.copy_within(self.begin..self.filled, 0);
            self.filled -= self.begin;
            self.begin = 0;
            if self.output.is_empty() {
                self.output.resize(OUTPUT_LEN, 0);
            }
            let produced = self.decompress()?;
            if produced == 0 {
                break;
            }
            self.filled += produced;
            self.produced += produced as u64;
            if self.produced > FREE_LEN && self.produced / MOST_TIMES > self.used() {
                return Err(self.broken(format!("data that swell less than {MOST_TIMES} times")));
            }
        }
        Ok(self.filled - self.begin)
    }

    /// Fills some of the output behind `filled`. Returns how much: nothing at the end.
    fn decompress(&mut self) -> Result<usize, Break> {
        loop {
            // A stream may hold bytes back even when it has taken all that there are.
            if self.input_at < self.input.len() || self.codec.is_inside_stream() {
                let step = self.codec.step(&self.input[self.input_at..], &mut self.output[self.filled..]);
                let step = step.map_err(|expected| self.broken(expected))?;
                self.input_at += step.used;
                if step.produced > 0 {
                    return Ok(step.produced);
                }
                if step.used > 0 || step.ended {
                    continue;
                }
                if self.input_at < self.input.len() {
                    return Err(self.broken("compressed data that go on".into()));
                }
            }
            if !self.read_input()? {
                if self.codec.is_inside_stream() {
                    let expected = "the rest of a compressed stream, found the end of its region";
                    return Err(self.broken(expected.into()));
                }
                return Ok(0);
            }
        }
    }

    fn used(&self) -> u64 {
        self.next - (self.input.len() - self.input_at) as u64
    }

    /// Whether there is more compressed data, which then stands in `input`.
    fn read_input(&mut self) -> Result<bool, Break> {
        let left = self.extent.len - self.next;
        if left == 0 {
            return Ok(false);
        }
        let at = self.extent.offset.saturating_add(self.next);
        let len = left.min(INPUT_LEN as u64) as usize;
        match self.source.read(at, len) {
            Ok(bytes) if bytes.is_empty() => {
                let expected = format!("{left} more bytes of this region, found the end of the file");
                Err(Break { offset: at, expected })
            }
            Ok(bytes) => {
                self.next += bytes.len() as u64;
                self.input = bytes;
                self.input_at = 0;
                Ok(true)
            }
            Err(error) => Err(Break { offset: at, expected: format!("readable bytes ({error})") }),
        }
    }
}

struct Step {
    used: usize,
    produced: usize,
    /// The end of a stream: another may follow, as each process compressed its own part.
    ended: bool,
}

impl Codec {
    fn is_inside_stream(&self) -> bool {
        match self {
            Codec::Zlib { begun, .. } | Codec::Bzip2 { begun, .. } => *begun,
            Codec::None => false,
        }
    }

    /// Decompresses some of `input` into some of `output`.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, String> {
        match self {
            Codec::Zlib { stream, begun } => {
                let before = (stream.total_in(), stream.total_out());
                let status = stream
                    .decompress(input, output, FlushDecompress::None)
                    .map_err(|error| format!("zlib data ({error})"))?;
                let used = (stream.total_in() - before.0) as usize;
                let produced = (stream.total_out() - before.1) as usize;
                let ended = status == Status::StreamEnd;
                if ended {
                    stream.reset(true);
                }
                *begun = !ended;
                Ok(Step { used, produced, ended })
            }
            Codec::Bzip2 { stream, begun } => {
                let before = (stream.total_in(), stream.total_out());
                let status =
                    stream.decompress(input, output).map_err(|error| format!("bzip2 data ({error})"))?;
                let used = (stream.total_in() - before.0) as usize;
                let produced = (stream.total_out() - before.1) as usize;
                let ended = status == Bzip2Status::StreamEnd;
                if ended {
                    **stream = bzip2::Decompress::new(false);
                }
                *begun = !ended;
                Ok(Step { used, produced, ended })
            }
            Codec::None => {
                let len = input.len().min(output.len());
                output[..len].copy_from_slice(&input[..len]);
                Ok(Step { used: len, produced: len, ended: false })
            }
        }
    }
}
