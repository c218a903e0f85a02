//! The bytes of a spool: what one process left behind.
//!
//! `c/pio_spool.h` draws them and says how they come to be. A spool may end anywhere and hold anything (the process may
//! have been killed while it wrote, the disk may have been full, the file may be something else): whatever it holds,
//! reading it gives the whole records up to the first that is not, and counts the rest as damage.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pio_trace::{Flags, Layer, names};

/// Where the recorder's own records begin; below are the numbers of [`pio_trace::Call`].
pub(crate) const ADOPT: u16 = 0xf001;
/// A piece of the description of a datatype.
pub(crate) const DATATYPE: u16 = 0xf002;
/// A view.
pub(crate) const VIEW: u16 = 0xf003;
/// A path that calls name.
pub(crate) const NAME: u16 = 0xf004;
/// Hints for a file of MPI-IO. The number before is that of a record that was taken back.
pub(crate) const HINTS: u16 = 0xf006;
/// What a device has.
pub(crate) const DEVICE: u16 = 0xf007;
/// The name of marks and phases.
pub(crate) const MARK_NAME: u16 = 0xf008;
/// The name of a call site; the last of the recorder's own.
pub(crate) const CALL_SITE: u16 = 0xf009;

/// In the place of the offset of an open: the file was cold, or what it had was cut off; and behind these bits the number of its
/// device.
pub(crate) const COLD: u64 = 1;
/// See [`COLD`].
pub(crate) const TRUNCATE: u64 = 2;
/// See [`COLD`].
pub(crate) const DEVICE_SHIFT: u32 = 2;

/// No offset was given: the call worked at the descriptor's own position, or on a name that is not known.
pub(crate) const NO_OFFSET: u64 = u64::MAX;
/// The id of plain contiguous bytes.
pub(crate) const PLAIN: u64 = 0;

const MAGIC: &[u8; 8] = b"PIOSPOOL";
/// Of the format: [`Spool::open`] reads no other.
pub(crate) const VERSION: u32 = 7;
/// Where the command is in the header.
const COMMAND: usize = 400;
/// Where it ends at the latest: counts of lost calls follow.
const LOST: usize = 4064;
/// … of how often a rank slept, which is behind the command.
const SLEEPS: usize = 4048;
/// … of what it waited for a processor.
const PROCESSOR_WAITS: usize = 4056;
const CHUNK_MAGIC: u32 = 0x4b4e_4843;
const HEADER_BYTES: usize = 4096;
const CHUNK_STEP: usize = 4096;
const MAX_CHUNK_BYTES: usize = 65536;
const UNIT_BYTES: usize = 64;

/// Flag of a short record.
const SHORT: u8 = 128;
/// Bytes of its fixed part, and what it is counted in.
const SHORT_BYTES: usize = 16;
const SHORT_UNIT_BYTES: usize = 8;
const NO_FD: u16 = u16::MAX;
// What follows the fixed part, 8 bytes each, in the order start, think time, size, offset, result.
const HAS_THINK: u16 = 1;
const HAS_SIZE: u16 = 2;
const HAS_OFFSET: u16 = 4;
const HAS_RESULT: u16 = 8;
const GOES_ON: u16 = 16;
const HAS_START: u16 = 32;

const ENDED_NORMALLY: u32 = 1;
const ENDED_BY_MPI_ABORT: u32 = 2;

/// What a process said of itself.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// Its id on its host.
    pub pid: u32,
    /// In `MPI_COMM_WORLD`, if it is an MPI process.
    pub rank: Option<u32>,
    /// Ranks of `MPI_COMM_WORLD`; 0 if it is no MPI process, or did not say it.
    pub ranks: u32,
    /// Whether it ended by itself.
    pub ended_normally: bool,
    /// Records lost for want of room.
    pub dropped: u64,
    /// Of them, reads and writes.
    pub lost_calls: [u64; 2],
    /// Bytes that these moved.
    pub lost_bytes: [u64; 2],
    /// Calls that the budget did not allow: reads, writes, others.
    pub thinned_calls: [u64; 3],
    /// Bytes that they moved.
    pub thinned_bytes: [u64; 3],
    /// Of so many calls one was kept in the end.
    pub keeps_one_in: u64,
    /// Rings (io_uring) that could not be followed.
    pub unseen_rings: u64,
    /// If there are any: bytes that the process read from devices and wrote to them, if it came to say so.
    pub device_bytes: Option<[u64; 2]>,
    /// Page faults that waited for a device since the process first mapped a file, and bytes that it caused to be read from
    /// devices meanwhile; 0 if it did not come to say so.
    pub major_faults: u64,
    /// See `major_faults`.
    pub fault_device_bytes: u64,
    /// How long a rank could have run, but had no processor; none where that is not known.
    pub processor_waits_ns: Option<u64>,
    /// How often a rank gave its processor away to wait for something; none where that is not known.
    pub sleeps: Option<u64>,
    /// Processors that a rank may use, a bit each; none where that is not known.
    pub processors: [u64; 8],
    /// Both clocks, read together: wall clock since 1970 and the boot's own.
    pub realtime_ns: u64,
    /// See `realtime_ns`.
    pub monotonic_ns: u64,
    /// Boot's clock when the process was first seen.
    pub start_ns: u64,
    /// Boot's clock when it ended normally.
    pub end_ns: u64,
    /// Where the next chunk would have gone.
    next: u64,
    /// Names the clock.
    pub boot_id: String,
    /// Host name.
    pub host: String,
    /// Arguments, separated by blanks.
    pub command: String,
}

/// One record, as the process wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Number of the call, or one of the recorder's own.
    pub call: u16,
    /// Bits of [`pio_trace::Flags`].
    pub flags: u8,
    /// Descriptor, number of the file of MPI-IO or a library, or peer.
    pub fd: i32,
    /// By the boot's clock.
    pub start_ns: u64,
    /// Until it returned.
    pub elapsed_ns: u64,
    /// CPU time before.
    pub think_ns: u64,
    /// In the file, or [`NO_OFFSET`].
    pub offset: u64,
    /// Bytes asked for (length of the path for opens).
    pub size: u64,
    /// Bytes moved or minus the error.
    pub result: i64,
    /// Operation it is or belongs to.
    pub operation: u64,
    /// View in force (MPI-IO).
    pub view: u64,
    /// Memory datatype (MPI-IO).
    pub memory: u64,
    /// CPU time that the thread used within a call of MPI or a library above, if it returned.
    pub used_ns: Option<u64>,
    /// Of an open: the id of the name of its call site, and the line.
    pub call_site: Option<(u64, u64)>,
}

/// A chunk: records of one thread, in the order in which their room was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// Where in the file.
    pub offset: u64,
    /// In order of first record.
    pub thread: u32,
    /// How-many-th of its thread.
    pub sequence: u32,
    /// Whether it holds short records: a stream of its own.
    pub is_short: bool,
    bytes: usize,
}

/// A spool file, opened anew for each read: a job may have more processes than a process may have files.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    /// What the process said of itself.
    pub header: Header,
    length: u64,
}

/// Where chunks are.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Their offsets.
    pub chunks: Vec<u64>,
    /// Where there is none, or none yet.
    pub holes: Vec<u64>,
    /// Where to go on.
    pub end: u64,
}

/// Why a file is not used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It is no spool, or one whose process had no room for even the header.
    NotASpool,
    /// It is a spool of another version of the format, which is here.
    OtherVersion(u32),
    /// The system refused.
    System(io::Error),
}

impl Spool {
    /// Reads the header of the spool `path`.
    pub(crate) fn open(path: &Path) -> Result<Spool, Unusable> {
        let file = File::open(path).map_err(Unusable::System)?;
        let length = file.metadata().map_err(Unusable::System)?.len();
        let mut bytes = vec![0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Unusable::NotASpool,
            _ => Unusable::System(error),
        })?;
        if &bytes[..8] != MAGIC {
            return Err(Unusable::NotASpool);
        }
        match u32_at(&bytes, 8) {
            VERSION => {}
            other => return Err(Unusable::OtherVersion(other)),
        }
        Ok(Spool { path: path.to_path_buf(), header: Header::decode(&bytes), length })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Every chunk, with its records. Returns how many places were damaged.
    pub(crate) fn scan(&self, mut visit: impl FnMut(Chunk, &[u8])) -> io::Result<u64> {
        let file = File::open(&self.path)?;
        let end = self.header.next.min(self.length);
        let mut buffer = vec![0; MAX_CHUNK_BYTES];
        let mut damaged = 0;
        let mut offset = HEADER_BYTES as u64;
        while offset < end {
            let filled = read_up_to(&file, &mut buffer, offset)?;
            match chunk_at(&buffer[..filled], offset, filled) {
                Some(chunk) => {
                    visit(chunk, &buffer[UNIT_BYTES..chunk.bytes]);
                    offset += chunk.bytes as u64;
                }
                None => {
                    // Room that was taken but never used is zero; and so is what a short chunk leaves of a segment.
                    damaged += u64::from(filled >= 4 && u32_at(&buffer, 0) != 0);
                    offset += CHUNK_STEP as u64;
                }
            }
        }
        Ok(damaged)
    }

    /// Where chunks begin from `start` on, which is 0 or the end of the places found before.
    pub(crate) fn places(&self, start: u64) -> io::Result<Places> {
        let end = self.header.next.min(self.length);
        let mut places = Places { end: start.max(HEADER_BYTES as u64), ..Places::default() };
        while places.end < end {
            let offset = places.end;
            match self.chunk(offset)? {
                Some(chunk) => {
                    places.chunks.push(offset);
                    places.end += chunk.bytes as u64;
                }
                None => {
                    places.holes.push(offset);
                    places.end += CHUNK_STEP as u64;
                }
            }
        }
        Ok(places)
    }

    /// The chunk that begins at `offset`, if one does.
    pub(crate) fn chunk(&self, offset: u64) -> io::Result<Option<Chunk>> {
        let mut head = [0; UNIT_BYTES];
        let filled = read_up_to(&File::open(&self.path)?, &mut head, offset)?;
        let room = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        Ok(chunk_at(&head[..filled], offset, room.min(MAX_CHUNK_BYTES)))
    }

    /// The records of one chunk that `scan` found, though its process may still run, and may have gone on: then the chunk
    /// was copied behind what was there when it was found, and holds others by now.
    pub(crate) fn read_found(&self, chunk: Chunk) -> io::Result<Vec<u8>> {
        let bytes = self.read_chunk(chunk)?;
        let is_same = |found: Chunk| {
            (found.thread, found.sequence, found.is_short) == (chunk.thread, chunk.sequence, chunk.is_short)
        };
        if self.chunk(chunk.offset)?.is_some_and(is_same) {
            return Ok(bytes);
        }
        let now = match Spool::open(&self.path) {
            Ok(now) => now,
            Err(Unusable::System(error)) => return Err(error),
            Err(Unusable::NotASpool | Unusable::OtherVersion(_)) => return Ok(Vec::new()),
        };
        for offset in now.places(chunk.offset)?.chunks {
            if let Some(copy) = now.chunk(offset)?.filter(|&found| is_same(found)) {
                return now.read_chunk(copy);
            }
        }
        // A damaged file: a process clears no chunk that it has not copied.
        Ok(Vec::new())
    }

    /// The records of one chunk as it is now.
    pub(crate) fn read_chunk(&self, chunk: Chunk) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; chunk.bytes - UNIT_BYTES];
        File::open(&self.path)?.read_exact_at(&mut bytes, chunk.offset + UNIT_BYTES as u64)?;
        Ok(bytes)
    }
}

/// The records in the bytes of a chunk, each with what follows it. Ends before the first that is not whole.
pub(crate) fn records(bytes: &[u8]) -> Records<'_> {
    Records { bytes, damaged: false, previous: Previous::default() }
}

/// Iterator of [`records`].
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    /// Whether it ended because of something that cannot be.
    pub damaged: bool,
    previous: Previous,
}

/// What short records say relative to the one before.
#[derive(Default)]
struct Previous {
    /// When it ended.
    end_ns: u64,
    size: u64,
    /// Where in the file it ended.
    end: u64,
}

impl<'a> Iterator for Records<'a> {
    type Item = (Record, &'a [u8]);

    fn next(&mut self) -> Option<(Record, &'a [u8])> {
        let word = if self.bytes.len() < SHORT_BYTES { 0 } else { u32_at(self.bytes, 0) };
        if word == 0 {
            return None;
        }
        let is_short = (word >> 24) as u8 & SHORT != 0;
        let units = usize::from((word >> 16) as u8);
        let bytes = units * if is_short { SHORT_UNIT_BYTES } else { UNIT_BYTES };
        let number = word as u16;
        let known = (ADOPT..=CALL_SITE).contains(&number) || pio_trace::Call::from_number(number).is_some();
        let decoded = (bytes > 0 && bytes <= self.bytes.len() && known)
            .then(|| self.bytes.split_at(bytes))
            .and_then(|(record, rest)| {
                self.bytes = rest;
                match is_short {
                    true => Some((self.previous.decode(word, record)?, &record[..0])),
                    false => Some(decode_record(word, record)),
                }
            });
        if decoded.is_none() {
            self.damaged = true;
            self.bytes = &[];
        }
        decoded
    }
}

impl Previous {
    /// A short record. None if it has not the length that it must have.
    fn decode(&mut self, word: u32, bytes: &[u8]) -> Option<Record> {
        let (head, mut more) = bytes.split_at_checked(SHORT_BYTES)?;
        let (fd, form) = (u16_at(head, 4), u16_at(head, 6));
        let mut take = |flag: u16| {
            if form & flag == 0 {
                return Some(None);
            }
            let (value, rest) = more.split_at_checked(8)?;
            more = rest;
            Some(Some(u64_at(value, 0)))
        };
        let start_ns = take(HAS_START)?;
        let think_ns = take(HAS_THINK)?;
        let size = take(HAS_SIZE)?.unwrap_or(self.size);
        let offset = take(HAS_OFFSET)?.unwrap_or(if form & GOES_ON != 0 { self.end } else { NO_OFFSET });
        let result = take(HAS_RESULT)?.map_or(size as i64, |result| result as i64);
        let gap_ns = u64::from(u32_at(head, 8));
        let elapsed_ns = u64::from(u32_at(head, 12));
        let call = word as u16;
        let record = Record {
            call,
            flags: (word >> 24) as u8 & !SHORT,
            fd: if fd == NO_FD { -1 } else { i32::from(fd) },
            start_ns: start_ns.unwrap_or(self.end_ns.wrapping_add(gap_ns)),
            elapsed_ns,
            think_ns: think_ns.unwrap_or(gap_ns),
            offset,
            size,
            result,
            operation: 0,
            view: PLAIN,
            memory: PLAIN,
            used_ns: used_by_message(call, offset, elapsed_ns),
            call_site: None,
        };
        if !more.is_empty() {
            return None;
        }
        self.end_ns = record.start_ns.wrapping_add(record.elapsed_ns);
        self.size = size;
        if offset != NO_OFFSET {
            self.end = offset.wrapping_add(u64::try_from(result).unwrap_or(0));
        }
        Some(record)
    }
}

fn decode_record(word: u32, bytes: &[u8]) -> (Record, &[u8]) {
    let (head, payload) = bytes.split_at(UNIT_BYTES);
    let mut record = Record {
        call: word as u16,
        flags: (word >> 24) as u8,
        fd: u32_at(head, 4) as i32,
        start_ns: u64_at(head, 8),
        elapsed_ns: u64_at(head, 16),
        think_ns: u64_at(head, 24),
        offset: u64_at(head, 32),
        size: u64_at(head, 40),
        result: u64_at(head, 48) as i64,
        operation: u64_at(head, 56),
        view: PLAIN,
        memory: PLAIN,
        used_ns: None,
        call_site: None,
    };
    if is_open(record.call) && record.fd >= 0 {
        record.call_site = record.call_site(payload);
        record.result = 0;
    } else if is_operation(record.call) && payload.len() >= UNIT_BYTES {
        record.view = u64_at(payload, 0);
        record.memory = u64_at(payload, 8);
        let is_finished = u16::from(record.flags) & Flags::UNFINISHED.bits() == 0;
        record.used_ns = is_finished.then(|| u64_at(payload, 32).min(record.elapsed_ns));
    } else {
        record.used_ns = used_by_message(record.call, record.offset, record.elapsed_ns);
    }
    (record, payload)
}

/// What a message of MPI says in the place of an offset: CPU time, or that all of its time was.
fn used_by_message(number: u16, offset: u64, elapsed_ns: u64) -> Option<u64> {
    let call = pio_trace::Call::from_number(number)?;
    let is_of_mpi = call.layer() == Layer::Message && !call.is_of_strategy();
    is_of_mpi.then(|| offset.min(elapsed_ns))
}

/// Whether calls of this number are written when they begin, with the part that MPI-IO and the libraries above have.
fn is_operation(number: u16) -> bool {
    layer_of(number).is_some_and(|layer| layer == Layer::MpiIo || layer.is_library())
}

/// Whether a record of this call that has a descriptor has a path behind it.
pub(crate) fn is_open(number: u16) -> bool {
    use pio_trace::Call::{Creat, Fopen, Open};
    matches!(pio_trace::Call::from_number(number), Some(Open | Creat | Fopen))
}

fn layer_of(number: u16) -> Option<Layer> {
    pio_trace::Call::from_number(number).map(pio_trace::Call::layer)
}

impl Record {
    /// Whether it is an MPI-IO call.
    pub(crate) fn is_mpi_io(&self) -> bool {
        layer_of(self.call) == Some(Layer::MpiIo)
    }

    /// The text after the record of an open, an adoption or a name: a path, or what a mark is called.
    pub(crate) fn path(&self, payload: &[u8]) -> Option<String> {
        let (text, length) = match is_operation(self.call) {
            true if payload.len() >= UNIT_BYTES => (&payload[UNIT_BYTES..], u32_at(payload, 20) as usize),
            true => return None,
            false => (payload, usize::try_from(self.size).ok()?),
        };
        let text = text.get(..length)?;
        (!text.is_empty()).then(|| names::of_bytes(text).into_owned())
    }

    /// The call site of an open: the id is in the place of the result, and the line follows the path.
    fn call_site(&self, payload: &[u8]) -> Option<(u64, u64)> {
        let line = payload.get(usize::try_from(self.size).ok()?..)?.first_chunk()?;
        (self.result != 0).then(|| (self.result as u64, u64::from_le_bytes(*line)))
    }

    /// Ranks of the communicator that opened a file by MPI-IO.
    pub(crate) fn ranks(&self, payload: &[u8]) -> u32 {
        if payload.len() >= UNIT_BYTES { u32_at(payload, 16).max(1) } else { 1 }
    }

    /// The piece of a description: where it starts, and its bytes.
    pub(crate) fn datatype_piece<'a>(&self, payload: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let start = u64::try_from(self.result).ok()?;
        Some((start, payload.get(..usize::try_from(self.think_ns).ok()?)?))
    }

    /// The hints: keys and values.
    pub(crate) fn hints(&self, payload: &[u8]) -> Option<Vec<(String, String)>> {
        let text = payload.get(..usize::try_from(self.size).ok()?)?.strip_suffix(&[0])?;
        let texts: Vec<String> = text.split(|byte| *byte == 0).map(printable).collect();
        Some(texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
    }

    /// Displacement, bytes of the etype, id of the filetype.
    pub(crate) fn view_parts(&self, payload: &[u8]) -> Option<(u64, u64, u64)> {
        (payload.len() >= UNIT_BYTES).then(|| (u64_at(payload, 0), u64_at(payload, 8), u64_at(payload, 16)))
    }
}

impl Header {
    fn decode(bytes: &[u8]) -> Header {
        let ended = u32_at(bytes, 28);
        let command_bytes = (u32_at(bytes, 224) as usize).min(SLEEPS - COMMAND);
        Header {
            pid: u32_at(bytes, 12),
            rank: u32::try_from(u32_at(bytes, 20) as i32).ok(),
            ranks: u32::try_from(u32_at(bytes, 24) as i32).unwrap_or(0),
            ended_normally: ended & ENDED_NORMALLY != 0 && ended & ENDED_BY_MPI_ABORT == 0,
            next: u64_at(bytes, 32),
            dropped: u64_at(bytes, 40),
            thinned_calls: [240, 248, 256].map(|at| u64_at(bytes, at)),
            thinned_bytes: [264, 272, 280].map(|at| u64_at(bytes, at)),
            lost_calls: [LOST, LOST + 8].map(|at| u64_at(bytes, at)),
            lost_bytes: [LOST + 16, LOST + 24].map(|at| u64_at(bytes, at)),
            keeps_one_in: u64_at(bytes, 288),
            unseen_rings: u64_at(bytes, 368),
            device_bytes: (u64_at(bytes, 376) != 0).then(|| [384, 392].map(|at| u64_at(bytes, at))),
            major_faults: u64_at(bytes, 232),
            fault_device_bytes: u64_at(bytes, 360),
            sleeps: u64_at(bytes, SLEEPS).checked_sub(1),
            processor_waits_ns: u64_at(bytes, PROCESSOR_WAITS).checked_sub(1),
            processors: std::array::from_fn(|word| u64_at(bytes, 296 + 8 * word)),
            realtime_ns: u64_at(bytes, 48),
            monotonic_ns: u64_at(bytes, 56),
            start_ns: u64_at(bytes, 64),
            end_ns: u64_at(bytes, 72),
            boot_id: text(&bytes[80..120]),
            host: text(&bytes[120..224]),
            command: command(&bytes[COMMAND..COMMAND + command_bytes]),
        }
    }
}

/// A key or value without what would make it two lines of a note.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(char::is_control, " ")
}

fn command(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    names::of_bytes(bytes).replace('\0', " ")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// The chunk that begins with these bytes, of which there is this much room.
fn chunk_at(bytes: &[u8], offset: u64, room: usize) -> Option<Chunk> {
    if bytes.len() < UNIT_BYTES || u32_at(bytes, 0) != CHUNK_MAGIC {
        return None;
    }
    let size = u32_at(bytes, 4) as usize;
    let whole = size >= CHUNK_STEP && size.is_multiple_of(CHUNK_STEP) && size <= room;
    whole.then(|| Chunk {
        offset,
        thread: u32_at(bytes, 8),
        sequence: u32_at(bytes, 12),
        is_short: u32_at(bytes, 16) != 0,
        bytes: size,
    })
}

fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK_BYTES: usize = 4096;

    fn chunk(sequence: u32, fill: u8) -> Vec<u8> {
        let mut bytes = vec![fill; CHUNK_BYTES];
        for (word, value) in [CHUNK_MAGIC, CHUNK_BYTES as u32, 0, sequence, 1].iter().enumerate() {
            bytes[4 * word..][..4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    fn write(path: &Path, chunks: &[Vec<u8>]) -> io::Result<()> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes.extend(chunks.concat());
        let next = bytes.len() as u64;
        bytes[32..40].copy_from_slice(&next.to_le_bytes());
        std::fs::write(path, bytes)
    }

    #[test]
    fn a_chunk_that_is_used_again_is_read_where_it_was_copied_to() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.spool");
        write(&path, &[chunk(7, 1)])?;
        let spool = Spool::open(&path).map_err(|error| format!("{error:?}"))?;
        let mut found = Vec::new();
        spool.scan(|chunk, _| found.push(chunk))?;
        let [old] = found[..] else { return Err("one chunk".into()) };
        assert_eq!(spool.read_found(old)?, vec![1; CHUNK_BYTES - UNIT_BYTES]);
        // Its thread went on: the others' chunk, and the copy, lie behind it.
        write(&path, &[chunk(8, 2), chunk(3, 3), chunk(7, 1)])?;
        assert_eq!(spool.read_found(old)?, vec![1; CHUNK_BYTES - UNIT_BYTES]);
        Ok(())
    }
}
